// All settings there are, tried one by one: what a tuner is measured against.
#pragma once

#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

// depth {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64} × workers {1, 2, 4, …, all} × reads {1, …, 64}.
TunerLimits GridLimits(const Workload& workload);

struct GridResult {
  TunerSettings best;
  Outcome best_outcome;
  // The least memory of those that reach 99 % of the best throughput.
  TunerSettings smallest;
  Outcome smallest_outcome;
  int points = 0;  // simulated
};

// Leaves out what cannot be better: throughput grows with depth and with workers, so the best is
// among the deepest with all workers, and the smallest of each column is found by bisection.
GridResult SearchGrid(const Workload& workload);

// Every point; some hundred times slower. What SearchGrid is tested against.
GridResult SearchWholeGrid(const Workload& workload);

}  // namespace stoker::tuner_sim
