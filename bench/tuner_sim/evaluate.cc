#include "bench/tuner_sim/evaluate.h"

#include <memory>

#include "bench/tuner_sim/controllers.h"

namespace stoker::tuner_sim {
namespace {

constexpr int kFixedReads = 32;

std::unique_ptr<Controller> Make(const Workload& workload, Way way) {
  const TunerLimits limits = GridLimits(workload);
  const auto fixed = [&limits](int depth) {
    return std::make_unique<Fixed>(
        TunerSettings{.depth = depth, .workers = limits.workers, .reads = kFixedReads});
  };
  switch (way) {
    case Way::kTuned:
      return MakeTuned(limits);
    case Way::kHillClimber:
      return MakeHillClimber(workload, limits);
    case Way::kDepth1:
      return fixed(1);
    case Way::kDepth2:
      return fixed(2);
    case Way::kDepth8:
      return fixed(8);
    case Way::kDepth32:
      return fixed(32);
  }
  return nullptr;
}

uint32_t SettledAfter(const Trace& trace, const Trace& best) {
  constexpr size_t kInARow = 64;
  constexpr double kAsGood = 1.05;
  const auto time = [](const Trace& of, size_t from) {
    return static_cast<double>(of.records[from + kInARow].taken_ns - of.records[from].taken_ns);
  };
  size_t k = 0;
  while (k + kInARow < trace.records.size() && time(trace, k) > kAsGood * time(best, k)) ++k;
  return static_cast<uint32_t>(k);
}

}  // namespace

const char* NameOf(Way way) {
  switch (way) {
    case Way::kTuned:
      return "tuned";
    case Way::kHillClimber:
      return "hill climber";
    case Way::kDepth1:
      return "depth 1";
    case Way::kDepth2:
      return "depth 2";
    case Way::kDepth8:
      return "depth 8";
    case Way::kDepth32:
      return "depth 32";
  }
  return "";
}

Run Compare(const Workload& workload, const GridResult& grid, Way way) {
  Run run;
  Trace trace, best;
  run.outcome = Simulate(workload, *Make(workload, way), &trace);
  Fixed fixed(grid.best);
  const Outcome of_best = Simulate(workload, fixed, &best);
  run.throughput = run.outcome.batches_per_second / of_best.batches_per_second;
  run.whole_run = of_best.whole_run_seconds / run.outcome.whole_run_seconds;
  run.memory = run.outcome.memory / grid.smallest_outcome.memory;
  run.settled_after = SettledAfter(trace, best);
  return run;
}

Evaluation Evaluate(const Workload& workload) {
  Evaluation evaluation;
  evaluation.grid = SearchGrid(workload);
  for (const Way way : kWays) {
    evaluation.runs[static_cast<size_t>(way)] = Compare(workload, evaluation.grid, way);
  }
  return evaluation;
}

}  // namespace stoker::tuner_sim
