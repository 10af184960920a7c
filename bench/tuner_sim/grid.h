// Tries all settings one by one; a tuner is measured against the result.
#pragma once

#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

// depth {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64} × workers {1, 2, 4, …, all} × reads {1, …, 64}.
TunerLimits GridLimits(const Workload& workload);

struct GridResult {
  TunerSettings best;
  Outcome best_outcome;
  // The point with the least memory among those that reach 99 % of the best throughput.
  TunerSettings smallest;
  Outcome smallest_outcome;
  int points = 0;  // simulated
};

// Leaves out points that cannot be better: throughput grows with depth and with workers, so the
// best is among the deepest with all workers, and the smallest of each column is found by
// bisection.
GridResult SearchGrid(const Workload& workload);

// Simulates every point, which is some hundred times slower. SearchGrid is tested against it.
GridResult SearchWholeGrid(const Workload& workload);

}  // namespace stoker::tuner_sim
