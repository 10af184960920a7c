// Controllers of a simulated loader: they choose its settings.
#pragma once

#include <memory>
#include <string>

#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

// The real Tuner.
std::unique_ptr<Controller> MakeTuned(const TunerLimits& limits);

// The idea of tf.data's AUTOTUNE (Murray et al., "tf.data: A Machine Learning Data Processing
// Framework", VLDB 2021): begins with one of everything; from time to time models the output
// latency from mean times, with a queue of random arrivals between producer and consumer; raises by
// one the setting that lowers it most, again and again, until none does or all are at their
// maximum.
std::unique_ptr<Controller> MakeHillClimber(const Workload& workload, const TunerLimits& limits);

}  // namespace stoker::tuner_sim
