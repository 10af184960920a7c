// Stopwatch: adds its lifetime, in nanoseconds, to a counter.
#pragma once

#include <cstdint>

#include "core/time/stage_times.h"

namespace stoker {

class Stopwatch {
 public:
  explicit Stopwatch(uint64_t& total) : total_(total), start_(NowNanoseconds()) {}
  ~Stopwatch() { total_ += NowNanoseconds() - start_; }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  uint64_t& total_;
  const uint64_t start_;
};

}  // namespace stoker
