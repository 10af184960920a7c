// The program's own, not stoker's.
#pragma once

namespace own {

struct Transform {
  int value = 3;
};

}  // namespace own
