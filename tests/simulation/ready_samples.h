// The hand-over of samples from reader threads to workers
// (engine/production/samples/samples_in_flight.h, engine/runtime/concurrency_limit.h) without a
// loader around it: schedules that hardly occur in a loader occur often here.
#pragma once

#include <cstdint>

namespace stoker::testing {

// Reader threads make samples ready and send a task for each. Workers, whose number is limited,
// take the sample that is needed first, and further ones. Calls Scheduler::Fail if a sample is left
// when all tasks have ended. Only within a simulation.
void RunReadySamples(uint64_t seed);

}  // namespace stoker::testing
