// Who may choose the settings of a simulated loader.
#pragma once

#include <memory>
#include <string>

#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

// The real Tuner.
std::unique_ptr<Controller> MakeTuned(const TunerLimits& limits);

// What tf.data's AUTOTUNE does, in its idea (Murray et al., "tf.data: A Machine Learning Data
// Processing Framework", VLDB 2021): begin with one of everything; from time to time model the
// output latency from mean times, with a queue of random arrivals between producer and consumer;
// raise by one what lowers it most, again and again, until nothing does or all is at its maximum.
std::unique_ptr<Controller> MakeHillClimber(const Workload& workload, const TunerLimits& limits);

}  // namespace stoker::tuner_sim
