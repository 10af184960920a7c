// The hand-over of samples from reader threads to workers (engine/loader/samples_in_flight.h,
// engine/runtime/concurrency_limit.h) without a loader around it: schedules that hardly occur in a
// loader occur often here.
#pragma once

#include <cstdint>

namespace stoker::testing {

// Reader threads make samples ready and send a task for each. Workers, whose number is limited,
// take the sample that is needed first. Calls Scheduler::Fail if a task finds no sample, since each
// task is sent after its sample is ready and takes one, and if a sample is left at the end. Only
// within a simulation.
void RunReadySamples(uint64_t seed);

}  // namespace stoker::testing
