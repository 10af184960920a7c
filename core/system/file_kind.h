// Names kinds of files in messages.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "core/result/result.h"

namespace stoker {

// Returns "a directory", "a FIFO", …, for stat's st_mode.
const char* FileKind(mode_t mode);

// Returns the error for a file that is a Git LFS pointer, without its path; nullopt for others.
std::optional<Error> LfsPointer(std::span<const uint8_t> first_bytes);

}  // namespace stoker
