// Explains why a consumer waited for a batch: divides the wait along the critical path of the
// batch, which ends with the row that was finished last.
#pragma once

#include <cstdint>

#include "core/time/stage_times.h"
#include "engine/metrics/sample_times.h"

namespace stoker {

// The times of a batch that the explanation needs.
struct CriticalPath {
  // The path of the request whose sample was finished last. A row is claimed when a request is
  // free, so this sample was also delayed by the earlier samples of its request.
  SamplePath last_row;
  uint64_t opened_ns = 0;    // the earliest time at which a row could be claimed
  uint64_t complete_ns = 0;  // the time after the last row is the workers' (mixing), up to
  uint64_t whole_ns = 0;     // here if the rest is the program's function; 0 means there is none
};

// Divides the time from `asked_ns` to `taken_ns` by cause. Backwards from the end: time after
// completion is `other`; from there back to when the batch went to the program's function is `map`;
// back to the last row's end, and on to when that row reached the workers, is `decode`; back to the
// row's claim is `storage`; time before the claim has the causes of its request's earlier samples.
// Time before the recorded history is divided in the same proportion; time before the opening is
// `other`. A pure function without allocation; for any input the sum is taken_ns - asked_ns.
WaitCauses CausesOf(const CriticalPath& path, uint64_t asked_ns, uint64_t taken_ns);

}  // namespace stoker
