// Applies a function to every sample of a set, with several threads.
#pragma once

#include <cstdint>
#include <functional>

#include "core/result/result.h"

namespace stoker {

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using SampleProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Called with ids, in ascending order.
using SampleWork = std::function<Status(uint64_t id)>;

// Calls `make_work` on each of `threads` threads (0 means the cores allotted); the functions it
// returns are together called with all ids from 0 to `samples` - 1. The first error ends the work;
// of several, the one of the lowest id is returned. Running out of memory is ResourceExhausted.
Status ForEachSample(uint64_t samples, int threads, const SampleProgress& progress,
                     const std::function<SampleWork()>& make_work);

}  // namespace stoker
