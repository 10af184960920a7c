// One workload, run in every way that is compared.
#pragma once

#include <array>
#include <cstdint>

#include "bench/tuner_sim/grid.h"
#include "bench/tuner_sim/simulation.h"

namespace stoker::tuner_sim {

enum class Way : uint8_t { kTuned, kHillClimber, kDepth1, kDepth2, kDepth8, kDepth32 };
inline constexpr std::array kWays = {Way::kTuned,  Way::kHillClimber, Way::kDepth1,
                                     Way::kDepth2, Way::kDepth8,      Way::kDepth32};
const char* NameOf(Way way);

struct Run {
  Outcome outcome;
  double throughput = 0;  // of the best grid point's
  double memory = 0;      // of the smallest grid point's that reaches 99 % of the best
  double whole_run = 0;   // throughput from the first batch on, of the best grid point's
  // Batches until 64 in a row took at most 5 % longer than with the best grid point; all, if never.
  uint32_t settled_after = 0;
};

struct Evaluation {
  GridResult grid;
  std::array<Run, kWays.size()> runs;  // by way
};

Run Compare(const Workload& workload, const GridResult& grid, Way way);
Evaluation Evaluate(const Workload& workload);

}  // namespace stoker::tuner_sim
