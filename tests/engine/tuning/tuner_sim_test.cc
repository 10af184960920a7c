// Checks for a few workloads the bounds that tuner_sim shows for hundreds. Simulated, so the
// results are the same on every machine, however busy it is.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/tuner_sim/evaluate.h"
#include "tests/testing/effort.h"

namespace stoker::tuner_sim {
namespace {

TEST(TunerSim, ReachesNearlyTheBestGridPointInLittleMemory) {
  const auto workloads = static_cast<uint32_t>(stoker::testing::Effort(24));
  std::vector<double> throughput;
  int small = 0;
  for (uint32_t i = 0; i < workloads; ++i) {
    const Workload workload = MakeWorkload(1, i);
    const tuner_sim::Run run = Compare(workload, SearchGrid(workload), Strategy::kTuned);
    EXPECT_GE(run.throughput, 0.95) << workload.name;
    throughput.push_back(run.throughput);
    small += run.memory <= 1.5;
  }
  std::sort(throughput.begin(), throughput.end());
  EXPECT_GE(throughput[workloads / 2], 0.99);
  EXPECT_GE(small + 2, static_cast<int>(workloads));
}

// Bisection finds the same as trying all points.
TEST(TunerSim, SearchGridMatchesSearchingTheWholeGrid) {
  for (const uint32_t i : {3u, 39u}) {
    const Workload workload = MakeWorkload(1, i);
    const GridResult quick = SearchGrid(workload), whole = SearchWholeGrid(workload);
    EXPECT_LT(quick.points, whole.points);
    EXPECT_GE(quick.best_outcome.batches_per_second, 0.995 * whole.best_outcome.batches_per_second);
    EXPECT_LE(quick.smallest_outcome.memory, 1.1 * whole.smallest_outcome.memory);
  }
}

}  // namespace
}  // namespace stoker::tuner_sim
