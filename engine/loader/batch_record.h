// What it took to make one batch, and how its consumer waited for it: what the tuner learns from.
#pragma once

#include <cstdint>

#include "engine/loader/batch_sequence.h"
#include "engine/watching/wait_causes.h"

namespace stoker {

// Times are nanoseconds of the monotonic clock, durations nanoseconds.
struct BatchRecord {
  BatchName name;
  uint32_t rows = 0;

  // A slot was taken for it: its rows may be claimed. Not after the batch before it was taken (its
  // Take opens the next before it returns), unless production had stopped: a Seek, an Append, no
  // memory. A batch that was opened later tells that those after it could not be opened either.
  uint64_t opened_ns = 0;
  uint64_t complete_ns = 0;  // it could be delivered
  uint64_t asked_ns = 0;     // the consumer called Next
  uint64_t taken_ns = 0;     // and had it

  uint64_t work_ns = 0;          // workers' time on its samples, and on mixing it
  uint64_t longest_ns = 0;       // the longest that a worker had one of them in hand
  uint64_t mix_ns = 0;           // of work_ns: after its last row was written, to being complete
  uint64_t read_ns = 0;          // their reads, each from being claimed to being there, summed
  uint64_t longest_read_ns = 0;  // the longest of them
  uint32_t reads = 0;            // how many were read; 0: they were in memory
  // Summed over its reads: how many reads of this loader were in flight when it was claimed, itself
  // among them. What latency was measured at: without it a slow disk and a long queue look alike.
  uint64_t reads_in_flight = 0;

  WaitCauses waited;  // asked_ns to taken_ns, by cause
};

}  // namespace stoker
