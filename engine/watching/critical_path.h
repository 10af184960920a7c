// Why a consumer waited for a batch: the time that it waited, laid over the critical path of that
// batch, which ends with the row that it waited for last.
#pragma once

#include <cstdint>

#include "engine/watching/sample_times.h"
#include "engine/watching/wait_causes.h"

namespace stoker {

// What has to be known of a batch to say so.
struct CriticalPath {
  // Of the sample whose row was finished last. A row is claimed when a request is free, so what
  // kept the samples that its request was used for before is what this one waited for.
  SamplePath last_row;
  uint64_t opened_ns = 0;    // before that no row could be claimed
  uint64_t complete_ns = 0;  // what follows the last row is the workers' (mixing)
};

// Of the time from `asked_ns` to `taken_ns`, backwards: behind completion other; to the last row's
// end decode; to where it met the workers decode; to its claim storage; then what was before it. A
// time before all that is known is divided as what is known; before the opening it is other. Pure
// arithmetic; no allocation; whatever the numbers are, the sum is taken_ns - asked_ns.
WaitCauses Explain(const CriticalPath& path, uint64_t asked_ns, uint64_t taken_ns);

}  // namespace stoker
