// CoreTime: the share of the time for which a thread wants a core and has one. The rest of the time
// it waits for other threads, or is throttled by a limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stoker {

// A sum over periods of a thread's work.
struct CoreTime {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;

  // 0 to 1; 1 if nothing was measured.
  double share() const {
    if (wall_ns == 0) return 1;
    return std::min(1.0, static_cast<double>(cpu_ns) / static_cast<double>(wall_ns));
  }
  CoreTime& operator+=(const CoreTime& other) {
    wall_ns += other.wall_ns;
    cpu_ns += other.cpu_ns;
    return *this;
  }
};

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
