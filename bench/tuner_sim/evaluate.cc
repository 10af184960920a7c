#include "bench/tuner_sim/evaluate.h"

#include <memory>

#include "bench/tuner_sim/controllers.h"

namespace stoker::tuner_sim {
namespace {

constexpr int kFixedReads = 32;

std::unique_ptr<Controller> Make(const Workload& workload, Strategy strategy) {
  const TunerLimits limits = GridLimits(workload);
  const auto fixed = [&limits](int depth) {
    return std::make_unique<Fixed>(
        TunerSettings{.depth = depth, .workers = limits.workers, .reads = kFixedReads});
  };
  switch (strategy) {
    case Strategy::kTuned:
      return MakeTuned(limits);
    case Strategy::kHillClimber:
      return MakeHillClimber(workload, limits);
    case Strategy::kDepth1:
      return fixed(1);
    case Strategy::kDepth2:
      return fixed(2);
    case Strategy::kDepth8:
      return fixed(8);
    case Strategy::kDepth32:
      return fixed(32);
  }
  return nullptr;
}

uint32_t ConvergedAfter(const Trace& trace, const Trace& best) {
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

const char* NameOf(Strategy strategy) {
  switch (strategy) {
    case Strategy::kTuned:
      return "tuned";
    case Strategy::kHillClimber:
      return "hill climber";
    case Strategy::kDepth1:
      return "depth 1";
    case Strategy::kDepth2:
      return "depth 2";
    case Strategy::kDepth8:
      return "depth 8";
    case Strategy::kDepth32:
      return "depth 32";
  }
  return "";
}

Run Compare(const Workload& workload, const GridResult& grid, Strategy strategy) {
  Run run;
  Trace trace, best;
  run.outcome = Simulate(workload, *Make(workload, strategy), &trace);
  Fixed fixed(grid.best);
  const Outcome of_best = Simulate(workload, fixed, &best);
  run.throughput = run.outcome.batches_per_second / of_best.batches_per_second;
  run.whole_run = of_best.whole_run_seconds / run.outcome.whole_run_seconds;
  run.memory = run.outcome.memory / grid.smallest_outcome.memory;
  run.converged_after = ConvergedAfter(trace, best);
  return run;
}

Evaluation Evaluate(const Workload& workload) {
  Evaluation evaluation;
  evaluation.grid = SearchGrid(workload);
  for (const Strategy strategy : kStrategies) {
    evaluation.runs[static_cast<size_t>(strategy)] = Compare(workload, evaluation.grid, strategy);
  }
  return evaluation;
}

}  // namespace stoker::tuner_sim
