// BatchRecord: what making one batch cost, and how long its consumer waited for it. The tuner
// learns from it; `name`, `complete_ns` and `waited` are for the trace and the statistics.
#pragma once

#include <cstdint>

#include "core/batch/batch.h"
#include "core/time/stage_times.h"

namespace stoker {

// Points in time are nanoseconds of the monotonic clock; durations are nanoseconds.
struct BatchRecord {
  BatchName name;
  uint32_t rows = 0;

  // When a slot was taken for the batch, so that its rows could be claimed. Later than the Take of
  // the batch before only if production stood still (Seek, Append, no memory); then the batches
  // after it stood still too.
  uint64_t opened_ns = 0;
  uint64_t complete_ns = 0;  // when it could be delivered
  uint64_t asked_ns = 0;     // when the consumer called Next
  uint64_t taken_ns = 0;     // when Next returned it

  uint64_t work_ns = 0;          // workers' time on its samples and on mixing
  uint64_t longest_ns = 0;       // the longest time a worker spent on one sample
  uint64_t mix_ns = 0;           // part of work_ns: a worker's time for mixing or padding
  uint64_t map_ns = 0;           // the call of the program's function, after mixing
  uint32_t map_calls = 0;        // how many such calls are made at a time
  uint64_t read_ns = 0;          // its reads, each from claim to completion, summed
  uint64_t longest_read_ns = 0;  // the longest read
  uint32_t reads = 0;            // number of reads; 0 means the samples were in memory
  // The sum, over its reads, of how many reads of this loader were in flight when the read was
  // claimed, including itself. Latency depends on it: without it a slow disk and a long queue look
  // alike.
  uint64_t reads_in_flight = 0;

  WaitCauses waited;  // asked_ns to taken_ns, divided by cause
};

}  // namespace stoker
