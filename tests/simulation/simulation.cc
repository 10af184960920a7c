// The engine's control part on a virtual clock: whatever reads, decodes, assembles, tunes and
// shares memory runs as fibers whose schedule is drawn from a seed, over storage that answers late
// and with errors, while a model says what each batch must be. See scheduler.h and workload.h.
//
//     simulation [--seeds A..B] [--schedule random|priorities|both] [--twice] [--trace]
//         [--block N]
//
// Ends with 1 at the first seed that fails, with the command that replays it. --twice runs each
// seed again and compares the schedules.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/simulation/ready_samples.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/workload.h"

namespace stoker::testing {
namespace {

constexpr uint64_t kReadyRuns = 4;  // RunReadySamples for each seed: each has few rows

struct Arguments {
  std::string program, seeds = "1..100", schedule = "both";
  uint64_t first = 1, last = 100, block = 0;
  bool twice = false, trace = false;
};

struct Totals {
  uint64_t runs = 0, points = 0, switches = 0, threads = 0, most_points = 0;
  uint64_t clock_ns = 0;
  WorkloadTotals work;
};

const char* NameOf(Policy policy) { return policy == Policy::kRandom ? "random" : "priorities"; }

ScheduleTotals RunOnce(const Arguments& given, uint64_t seed, Policy policy,
                       const std::vector<std::vector<uint8_t>>& images, Totals& totals) {
  const std::string text = std::to_string(seed);
  const Schedule schedule{
      .seed = seed,
      .policy = policy,
      .trace = given.trace,
      .block = given.block,
      .replay = given.program + " --seeds " + text + ".." + text + " --schedule " + NameOf(policy)};
  const ScheduleTotals run = Scheduler::Run(schedule, [seed, &images, &totals] {
    for (uint64_t part = 0; part < kReadyRuns; ++part) RunReadySamples(seed * kReadyRuns + part);
    RunWorkload(seed, images, totals.work);
  });
  ++totals.runs;
  totals.points += run.points;
  totals.switches += run.switches;
  totals.threads += run.threads;
  totals.clock_ns += run.clock_ns;
  totals.most_points = std::max(totals.most_points, run.points);
  return run;
}

bool RunSeed(const Arguments& given, uint64_t seed, Policy policy,
             const std::vector<std::vector<uint8_t>>& images, Totals& totals) {
  const ScheduleTotals run = RunOnce(given, seed, policy, images, totals);
  if (!given.twice) return true;
  const ScheduleTotals again = RunOnce(given, seed, policy, images, totals);
  if (again.digest == run.digest && again.points == run.points) return true;
  std::printf(
      "seed %llu, %s: two runs differ: %llu points, digest %016llx; %llu, %016llx\n",
      static_cast<unsigned long long>(seed), NameOf(policy),
      static_cast<unsigned long long>(run.points), static_cast<unsigned long long>(run.digest),
      static_cast<unsigned long long>(again.points), static_cast<unsigned long long>(again.digest));
  return false;
}

void Print(const Totals& totals, double seconds) {
  const auto number = [](uint64_t value) { return static_cast<unsigned long long>(value); };
  const auto per_minute = [seconds](uint64_t value) {
    return static_cast<double>(value) / seconds * 60;
  };
  const SoakTotals& jobs = totals.work.jobs;
  std::printf(
      "%llu runs, %llu loaders, %llu threads, %llu scheduling points (at most %llu), "
      "%llu switches, %.0f s on the virtual clock\n",
      number(totals.runs), number(totals.work.loaders), number(totals.threads),
      number(totals.points), number(totals.most_points), number(totals.switches),
      static_cast<double>(totals.clock_ns) / 1e9);
  std::printf(
      "%llu batches, %llu samples; %llu batches failed, %llu rows substituted, %llu "
      "dropped, %llu samples waited for memory\n",
      number(jobs.batches), number(jobs.samples), number(jobs.failed), number(jobs.substituted),
      number(jobs.dropped), number(totals.work.samples_waited));
  std::printf(
      "%llu resumed, %llu restored, %llu sought, %llu by name, %llu beside, %llu "
      "interrupted, %llu stopped, %llu refused; %llu pairs of loaders alike, at most %llu "
      "samples behind\n",
      number(jobs.resumed), number(jobs.restored), number(jobs.sought), number(jobs.by_name),
      number(jobs.beside), number(jobs.interrupted), number(jobs.stopped), number(jobs.refused),
      number(totals.work.alike), number(totals.work.most_behind));
  std::printf("in %.1f s: %.0f runs and %.1f million points a minute\n", seconds,
              per_minute(totals.runs), per_minute(totals.points) / 1e6);
}

int Run(const Arguments& given) {
  const auto images = WorkloadImages();
  Totals totals;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    WorkloadTotals unused;
    Scheduler::Run({.seed = seed, .warm_up = true},
                   [&, seed] { RunWorkload(seed, images, unused); });
  }
  const auto begun = std::chrono::steady_clock::now();
  for (uint64_t seed = given.first; seed <= given.last; ++seed) {
    for (const Policy policy : {Policy::kRandom, Policy::kPriorities}) {
      if (given.schedule != "both" && given.schedule != NameOf(policy)) continue;
      if (!RunSeed(given, seed, policy, images, totals)) return 1;
    }
  }
  Print(totals, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  return 0;
}

}  // namespace
}  // namespace stoker::testing

int main(int argc, char** argv) {
  stoker::testing::Arguments given;
  given.program = argv[0];
  CLI::App app("The engine's threads on a virtual clock, by schedules that are drawn from seeds.");
  app.add_option("--seeds", given.seeds, "the first and the last one: 1..100");
  app.add_option("--schedule", given.schedule, "how threads are chosen")
      ->check(CLI::IsMember({"random", "priorities", "both"}));
  app.add_flag("--twice", given.twice, "run each seed twice, and compare the schedules");
  app.add_flag("--trace", given.trace, "print each switch to standard error");
  app.add_option("--block", given.block, "print who allocates the block of this number");
  CLI11_PARSE(app, argc, argv);
  const size_t dots = given.seeds.find("..");
  given.first = std::strtoull(given.seeds.c_str(), nullptr, 10);
  given.last = dots == std::string::npos
                   ? given.first
                   : std::strtoull(given.seeds.c_str() + dots + 2, nullptr, 10);
  return stoker::testing::Run(given);
}
