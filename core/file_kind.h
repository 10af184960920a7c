// FileKind: names the kind of a file in messages.
#pragma once

#include <sys/types.h>

namespace stoker {

// Returns "a directory", "a FIFO", …, for stat's st_mode.
const char* FileKind(mode_t mode);

}  // namespace stoker
