// What a path leads to, in words for messages.
#pragma once

#include <sys/types.h>

namespace stoker {

// "a directory", "a FIFO", …, by stat's st_mode.
const char* FileKind(mode_t mode);

}  // namespace stoker
