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
  // free, so this sample also waited for what delayed the earlier samples of its request.
  SamplePath last_row;
  uint64_t opened_ns = 0;    // no row could be claimed before
  uint64_t complete_ns = 0;  // the time after the last row is the workers' (mixing), up to
  uint64_t whole_ns = 0;     // here, if the program's function has the rest; 0 means it has none
};

// Divides the time from `asked_ns` to `taken_ns` by cause. From the end backwards: time after
// completion is other; time back to when the batch went to the program's function is map; time back
// to the last row's end, and on back to when that row met the workers, is decode; time back to the
// row's claim is storage; time before its claim has the causes of its request's earlier samples.
// Time before all that is known is divided in the same proportion; time before the opening is
// other. A pure function without allocation; for any input the sum is taken_ns - asked_ns.
WaitCauses CausesOf(const CriticalPath& path, uint64_t asked_ns, uint64_t taken_ns);

}  // namespace stoker
