// The hand-over of samples from reader threads to workers by itself (engine/loader/
// samples_in_flight.h): schedules that hardly occur in a whole loader do in this one.
#pragma once

#include <cstdint>

namespace stoker::testing {

// Reader threads make samples ready and send a task for each; workers take the sample that is
// needed first. Calls Scheduler::Fail if a task finds none, since each task is sent after its
// sample is ready and takes one. Within a simulation only.
void RunReadySamples(uint64_t seed);

}  // namespace stoker::testing
