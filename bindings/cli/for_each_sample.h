// Does the same with every sample of a set, with several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "core/result/result.h"

namespace stoker {

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using SampleProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Called with ids, in ascending order.
using SampleWork = std::function<Status(uint64_t id)>;

// Calls `make_work` on each of `threads` threads (0 means the cores allotted), and what it returns
// with some of the ids from 0 to `samples` - 1 each, all together. The first error ends the work;
// of several it is that of the lowest id. Running out of memory is ResourceExhausted.
Status ForEachSample(uint64_t samples, int threads, const SampleProgress& progress,
                     const std::function<SampleWork()>& make_work);

}  // namespace stoker
