// The program's own, not stoker's.
#pragma once

namespace own {

struct Device {
  int value = 4;
};

}  // namespace own
