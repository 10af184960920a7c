// Runs one workload in every way that is compared.
#pragma once

#include <array>
#include <cstdint>

#include "bench/tuner_sim/grid.h"
#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

enum class Strategy : uint8_t { kTuned, kHillClimber, kDepth1, kDepth2, kDepth8, kDepth32 };
inline constexpr std::array kStrategies = {Strategy::kTuned,  Strategy::kHillClimber,
                                           Strategy::kDepth1, Strategy::kDepth2,
                                           Strategy::kDepth8, Strategy::kDepth32};
const char* NameOf(Strategy strategy);

struct Run {
  Outcome outcome;
  double throughput = 0;  // relative to the best grid point's
  double memory = 0;      // relative to that of the smallest grid point that reaches 99 % of the
                          // best throughput
  double whole_run = 0;   // throughput from the first batch on, relative to the best grid point's
  // Batches until 64 in a row took at most 5 % longer than with the best grid point; all batches,
  // if that never happened.
  uint32_t converged_after = 0;
};

struct Evaluation {
  GridResult grid;
  std::array<Run, kStrategies.size()> runs;  // by strategy
};

Run Compare(const Workload& workload, const GridResult& grid, Strategy strategy);
Evaluation Evaluate(const Workload& workload);

}  // namespace stoker::tuner_sim
