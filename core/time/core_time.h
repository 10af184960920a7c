// CoreClock: measures the share of the time for which a thread wants a core and has one. The rest
// of the time it waits for other threads, or is throttled by a limit.
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

  // nullopt if the thread has blocked (it slept, or waited for a lock or for a page from storage):
  // how long it blocked, and how long it then waited for a core, is not known.
  std::optional<CoreTime> Read() const;

 private:
  int64_t blocks_;
  uint64_t wall_ns_, cpu_ns_;
};

}  // namespace stoker
