// Why a consumer waited for a batch: the time that it waited, laid over the critical path of that
// batch, which ends with the row that it waited for last.
#pragma once

#include <cstdint>
#include <span>

#include "engine/pipeline/sample_times.h"

namespace stoker {

// Nanoseconds. Their sum is the time waited.
struct WaitCauses {
  uint64_t storage_ns = 0;  // bytes were on their way
  uint64_t decode_ns = 0;   // a worker was at it, or none was free
  uint64_t copy_ns = 0;     // on the way to a device
  uint64_t other_ns = 0;    // threads that had to wake up, and what is unknown

  uint64_t sum() const { return storage_ns + decode_ns + copy_ns + other_ns; }
  WaitCauses& operator+=(const WaitCauses& other) {
    storage_ns += other.storage_ns;
    decode_ns += other.decode_ns;
    copy_ns += other.copy_ns;
    other_ns += other.other_ns;
    return *this;
  }
};

// What has to be known of a batch to say so.
struct CriticalPath {
  // The sample whose row was finished last, and before it those that its request was used for,
  // newest first: a row is claimed when a request is free, so what kept the one before is what this
  // one waited for. Oldest times may be missing.
  std::span<const SampleTimes> last_row;
  uint64_t opened_ns = 0;    // before that no row could be claimed
  uint64_t complete_ns = 0;  // what follows the last row is the workers' (mixing)
};

// Of the time from `asked_ns` to `taken_ns`. Pure arithmetic; no allocation.
WaitCauses Explain(const CriticalPath& path, uint64_t asked_ns, uint64_t taken_ns);

}  // namespace stoker
