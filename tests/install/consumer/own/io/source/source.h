// The program's own, not stoker's.
#pragma once

namespace own {

struct Source {
  int value = 2;
};

}  // namespace own
