// When a sample got how far: what a wait for its batch is explained by.
#pragma once

#include <cstdint>

namespace stoker {

// Nanoseconds of the monotonic clock (NowNanoseconds); 0: has not got there, or was not read.
struct SampleTimes {
  uint64_t claimed_ns = 0;  // its row was claimed, and its read handed to the reader
  uint64_t read_ns = 0;     // its bytes were there; samples in memory: claimed_ns
  uint64_t begun_ns = 0;    // a worker took it
  uint64_t done_ns = 0;     // its row was written, or it failed
  // When it was claimed, others whose bytes were there waited for a worker.
  bool behind_workers = false;
};

}  // namespace stoker
