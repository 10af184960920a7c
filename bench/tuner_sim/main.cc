// tuner_sim: compares the tuner with the exhaustive grid, a hill climber and fixed depths,
// simulated.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "bench/tuner_sim/controllers.h"
#include "bench/tuner_sim/evaluate.h"

namespace stoker::tuner_sim {
namespace {

struct Options {
  uint32_t workloads = 240;
  uint64_t seed = 1;
  bool short_phases = false;
  bool lowest_request_first = false;
  int threads = 2;
  std::string csv;
  int trace_workload = -1;
  bool trace_steps = false;
};

struct Row {
  uint32_t index = 0;
  std::string name;
  Evaluation evaluation;
  const Run& run(Strategy strategy) const { return evaluation.runs[static_cast<size_t>(strategy)]; }
};

Workload Make(const Options& options, uint32_t index) {
  Workload workload = MakeWorkload(options.seed, index, options.short_phases);
  workload.oldest_first = !options.lowest_request_first;
  return workload;
}

std::vector<Row> RunAll(const Options& options) {
  std::vector<Row> rows(options.workloads);
  std::atomic<uint32_t> next{0};
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(options.threads));
  for (int t = 0; t < options.threads; ++t) {
    threads.emplace_back([&] {
      for (uint32_t i; (i = next.fetch_add(1)) < options.workloads;) {
        const Workload workload = Make(options, i);
        rows[i] = {i, workload.name, Evaluate(workload)};
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return rows;
}

template <typename Value>
std::vector<double> Sorted(const std::vector<Row>& rows, Strategy strategy, Value value) {
  std::vector<double> sorted;
  sorted.reserve(rows.size());
  for (const Row& row : rows) sorted.push_back(static_cast<double>(value(row.run(strategy))));
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double At(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

void PrintTable(const std::vector<Row>& rows) {
  fmt::print(
      "{} workloads. Throughput: of the best grid point's. Memory: of the smallest grid "
      "point's that reaches 99 % of the best.\n\n",
      rows.size());
  fmt::print(
      "| | throughput: least | 5th percentile | median | below 95 % | memory: median | "
      "90th percentile | most | above 1.5 | converged after batches: median | 90th "
      "percentile |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  for (const Strategy strategy : kStrategies) {
    const auto fast = Sorted(rows, strategy, [](const Run& run) { return run.throughput; });
    const auto memory = Sorted(rows, strategy, [](const Run& run) { return run.memory; });
    const auto converged =
        Sorted(rows, strategy, [](const Run& run) { return run.converged_after; });
    const auto slow = std::lower_bound(fast.begin(), fast.end(), 0.95) - fast.begin();
    const auto large = memory.end() - std::upper_bound(memory.begin(), memory.end(), 1.5);
    fmt::print(
        "| {} | {:.3f} | {:.3f} | {:.3f} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {:.0f} | "
        "{:.0f} |\n",
        NameOf(strategy), fast.front(), At(fast, 0.05), At(fast, 0.5), slow, At(memory, 0.5),
        At(memory, 0.9), memory.back(), large, At(converged, 0.5), At(converged, 0.9));
  }
}

// Prints the workloads on which the tuner is worst.
void PrintWorst(const std::vector<Row>& rows) {
  fmt::print(
      "\n| outside | workload | throughput | memory | changes | depth, workers, reads: "
      "tuned (mean) | the smallest grid point | the best |\n|--:|---|--:|--:|--:|---|---|---|\n");
  for (const Row& row : rows) {
    const Run& run = row.run(Strategy::kTuned);
    if (run.throughput >= 0.95 && run.memory <= 1.5) continue;
    const GridResult& grid = row.evaluation.grid;
    fmt::print(
        "| {} | {} | {:.3f} | {:.2f} | {} | {:.1f}, {:.1f}, {:.1f} | {}, {}, {} | {}, {}, "
        "{} |\n",
        row.index, row.name, run.throughput, run.memory, run.outcome.changes, run.outcome.depth,
        run.outcome.workers, run.outcome.reads, grid.smallest.depth, grid.smallest.workers,
        grid.smallest.reads, grid.best.depth, grid.best.workers, grid.best.reads);
  }
}

void WriteCsv(const std::vector<Row>& rows, const std::string& path) {
  std::ofstream out(path);
  out << "index,name,way,throughput,memory,whole_run,converged_after,changes,depth,workers,reads\n";
  for (const Row& row : rows) {
    for (const Strategy strategy : kStrategies) {
      const Run& run = row.run(strategy);
      out << fmt::format("{},{},{},{:.4f},{:.4f},{:.4f},{},{},{:.2f},{:.2f},{:.2f}\n", row.index,
                         row.name, NameOf(strategy), run.throughput, run.memory, run.whole_run,
                         run.converged_after, run.outcome.changes, run.outcome.depth,
                         run.outcome.workers, run.outcome.reads);
    }
  }
}

// Prints a run batch by batch, as CSV.
void PrintTrace(const Workload& workload) {
  Trace trace;
  Simulate(workload, *MakeTuned(GridLimits(workload)), &trace);
  fmt::print("batch,seconds,step_ms,waited_ms,depth,workers,reads\n");
  for (size_t k = 0; k < trace.records.size(); ++k) {
    const BatchRecord& record = trace.records[k];
    const TunerSettings& settings = trace.settings[k];
    fmt::print("{},{:.6f},{:.4f},{:.4f},{},{},{}\n", k, static_cast<double>(record.taken_ns) / 1e9,
               workload.gap[k] / 1e6, static_cast<double>(record.taken_ns - record.asked_ns) / 1e6,
               settings.depth, settings.workers, settings.reads);
  }
}

int Main(int argc, char** argv) {
  Options options;
  CLI::App app("The tuner on simulated jobs, against all it could have chosen.");
  app.add_option("--workloads", options.workloads, "how many")->check(CLI::PositiveNumber);
  app.add_option("--seed", options.seed);
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--csv", options.csv, "every workload's results to this file");
  app.add_flag("--short-phases", options.short_phases, "loads change after 130 batches");
  app.add_flag("--lowest-request-first", options.lowest_request_first,
               "workers take the lowest request, not the oldest row");
  app.add_option("--trace-workload", options.trace_workload, "only this one, batch by batch");
  app.add_flag("--trace-steps", options.trace_steps,
               "only a step of 5 ms, then 50 ms, then 5 ms, batch by batch");
  CLI11_PARSE(app, argc, argv);
  if (options.trace_steps) {
    PrintTrace(MakeStepChange());
  } else if (options.trace_workload >= 0) {
    PrintTrace(Make(options, static_cast<uint32_t>(options.trace_workload)));
  } else {
    const std::vector<Row> rows = RunAll(options);
    PrintTable(rows);
    PrintWorst(rows);
    if (!options.csv.empty()) WriteCsv(rows, options.csv);
  }
  return 0;
}

}  // namespace
}  // namespace stoker::tuner_sim

int main(int argc, char** argv) { return stoker::tuner_sim::Main(argc, argv); }
