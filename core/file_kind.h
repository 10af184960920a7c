// The kind of a file, in words for messages.
#pragma once

#include <sys/types.h>

namespace stoker {

// "a directory", "a FIFO", …, for stat's st_mode.
const char* FileKind(mode_t mode);

}  // namespace stoker
