// CoreClock: measures the share of its runnable time that a thread has a core. The rest of that
// time it waits for other threads, or is throttled by a limit.
#pragma once

#include <cstdint>
#include <optional>

#include "core/time/stage_times.h"

namespace stoker {

// Times the calling thread since its construction. Construction and Read make two system calls
// each.
class CoreClock {
 public:
  CoreClock();

  // Returns nullopt if the thread blocked (on sleep, a lock, or a page from storage), because the
  // time blocked cannot be told from the time it then waited for a core.
  std::optional<CoreTime> Read() const;

 private:
  int64_t blocks_;
  uint64_t wall_ns_, cpu_ns_;
};

}  // namespace stoker
