// The program's own, not stoker's.
#pragma once

namespace own {

struct Result {
  int value = 1;
};

}  // namespace own
