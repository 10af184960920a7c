// How much of the time in which a thread wants a core it has one; the rest of the time it waits for
// other threads, or is held back by a limit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace stoker {

// A sum over stretches of a thread's work.
struct CoreTime {
  uint64_t wall_ns = 0;
  uint64_t cpu_ns = 0;

  // 0 to 1; 1 where nothing is known.
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

// Times the calling thread from its construction on. Two system calls each for making and reading.
class CoreClock {
 public:
  CoreClock();

  // Nothing where the thread has blocked (it slept, waited for a lock, or for a page that was read
  // from storage): how long it did, and how long it then waited for a core, nobody can tell.
  std::optional<CoreTime> Read() const;

 private:
  int64_t blocks_;
  uint64_t wall_ns_, cpu_ns_;
};

}  // namespace stoker
