#include "engine/tuning/tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "bench/tuner_sim/controllers.h"
#include "bench/tuner_sim/draws.h"
#include "bench/tuner_sim/simulation.h"
#include "bench/tuner_sim/workload.h"
#include "engine/tuning/tuner_decision.h"
#include "engine/tuning/tuner_model.h"
#include "tests/testing/effort.h"

namespace stoker {
namespace {

using tuner_sim::Draws;
using tuner_sim::Fixed;
using tuner_sim::Outcome;
using tuner_sim::Simulate;
using tuner_sim::Trace;
using tuner_sim::Workload;

constexpr double kMillisecond = 1e6;
constexpr TunerLimits kLimits{.depth = 64, .workers = 8, .reads = 64};

// 32 rows of 0.7 ms each: five workers make a batch in 4.5 ms.
Workload Steady(double gap_ms, uint32_t batches) {
  Workload workload;
  workload.batch_size = 32;
  workload.batches = batches;
  workload.max_workers = 8;
  workload.slot_bytes = 1;
  workload.work.assign(workload.samples(), static_cast<float>(0.7 * kMillisecond));
  workload.quantum_ns = kMillisecond;
  workload.gap.assign(batches, gap_ms * kMillisecond);
  workload.cores.assign(batches, 8);
  return workload;
}

void ReadFrom(Workload& workload, int channels, double service_ms, double delay_ms) {
  workload.channels = channels;
  workload.service.assign(workload.samples(), static_cast<float>(service_ms * kMillisecond));
  workload.delay.assign(workload.samples(), static_cast<float>(delay_ms * kMillisecond));
}

struct Tuned {
  Outcome outcome;
  Trace trace;
  const TunerSettings& last() const { return trace.settings.back(); }
};

Tuned Tune(const Workload& workload, const TunerLimits& limits = kLimits) {
  Tuned tuned;
  tuned.outcome = Simulate(workload, *tuner_sim::MakeTuned(limits), &tuned.trace);
  return tuned;
}

// Returns the share of the time that was waited, from batch `from` on.
double Waited(const Trace& trace, size_t from, size_t to) {
  uint64_t waited = 0;
  for (size_t k = from; k < to; ++k) {
    waited += trace.records[k].taken_ns - trace.records[k].asked_ns;
  }
  return static_cast<double>(waited) /
         static_cast<double>(trace.records[to - 1].taken_ns - trace.records[from].taken_ns);
}

int Deepest(const Trace& trace) {
  int deepest = 0;
  for (const TunerSettings& settings : trace.settings) deepest = std::max(deepest, settings.depth);
  return deepest;
}

TEST(Tuner, StartsWithAllWorkersAndTheFixedSettings) {
  const Tuner tuner({.fixed = {.depth = 5, .workers = 0, .reads = 90}}, kLimits);
  EXPECT_EQ(tuner.settings().depth, 5);
  EXPECT_EQ(tuner.settings().workers, kLimits.workers);
  EXPECT_EQ(tuner.settings().reads, 90);  // beyond the limit: set is set
}

// After a validation of a minute or a lunch break of an hour the settings are as before.
TEST(Tuner, ALongPauseDoesNotReduceProduction) {
  for (const double pause_ms : {60e3, 3600e3}) {
    Workload workload = Steady(5, 4000);
    for (size_t batch = 500; batch < 4000; batch += 500) {
      workload.gap[batch] = pause_ms * kMillisecond;
    }
    const Tuned tuned = Tune(workload);
    EXPECT_GE(tuned.last().workers, 5);
    uint64_t waited = 0, stepped = 0;  // pauses left out
    for (size_t k = 501; k < 4000; ++k) {
      const BatchRecord& record = tuned.trace.records[k];
      waited += record.taken_ns - record.asked_ns;
      if (k % 500 != 0) stepped += record.asked_ns - tuned.trace.records[k - 1].taken_ns;
    }
    EXPECT_LT(static_cast<double>(waited), 0.02 * static_cast<double>(stepped));
  }
}

// Workers are the limit, and samples differ, so that some depth is useful; then comes a validation,
// a first step that is compiled, or somebody who looks at a batch. Batches that could be made
// meanwhile are not worth their memory.
TEST(Tuner, APauseDoesNotIncreaseDepth) {
  const int step = 100 / testing::Effort(100);
  int n = 0;
  for (const double step_ms : {0.5, 5.0}) {
    Draws draws(11);
    Workload without = Steady(step_ms, 1600);
    for (float& work : without.work) work *= static_cast<float>(draws.LogNormal(0.8));
    const int usual = Deepest(Tune(without).trace);
    for (const double pause_ms : {300.0, 1e3, 37e3, 3600e3}) {
      for (const std::vector<size_t>& at : std::vector<std::vector<size_t>>{
               {1}, {3}, {7}, {20}, {100}, {700}, {1, 3, 5}, {600, 605, 610, 615, 620, 625}}) {
        if (n++ % step != 0) continue;
        Workload workload = without;
        for (const size_t batch : at) workload.gap[batch] = pause_ms * kMillisecond;
        EXPECT_LE(Deepest(Tune(workload).trace), usual + 2)
            << "a step of " << step_ms << " ms, " << at.size() << " pauses of " << pause_ms
            << " ms, from batch " << at[0];
      }
    }
  }
}

// More batches pass between two updates than the mean loss covers. If the tuner overshot, it would
// find reasons to grow for seconds after the load has gone.
TEST(Tuner, ShrinksAfterVeryHighBatchRates) {
  constexpr double kStep = 3'000;
  Draws draws(7);
  Tuner tuner({}, {.depth = 64, .workers = 1, .reads = 64});
  std::array<double, 128> taken{1e9};  // of the last batches, by number modulo 128
  double done = taken[0];
  for (size_t k = 1; k < 10'000'000; ++k) {
    const double work = k < 9'000'000 ? 0.5 * kStep * draws.LogNormal(1.2) : 10;
    const auto depth = static_cast<size_t>(tuner.settings().depth);
    const double opened = taken[(k - std::min(k, depth)) % 128];
    const double asked = taken[(k - 1) % 128] + kStep;
    done = std::max(done, opened) + work;
    const double now = taken[k % 128] = std::max(asked, done);
    BatchRecord batch;
    batch.rows = 1;
    batch.work_ns = batch.longest_ns = static_cast<uint64_t>(work);
    batch.opened_ns = static_cast<uint64_t>(opened);
    batch.asked_ns = static_cast<uint64_t>(asked);
    batch.complete_ns = batch.taken_ns = static_cast<uint64_t>(now);
    tuner.Observe(batch);
  }
  EXPECT_LE(tuner.settings().depth, 4);
}

TEST(Tuner, UnchangedLimitsMakeNoDecision) {
  Tuner tuner({}, kLimits);
  EXPECT_TRUE(tuner.SetLimits(kLimits, 1).empty());
  const auto fewer = tuner.SetLimits({.depth = 64, .workers = 2, .reads = 64}, 2);
  ASSERT_EQ(fewer.size(), 1u);
  EXPECT_EQ(fewer[0].reason, TunerDecision::Reason::kLimit);
  EXPECT_EQ(tuner.settings().workers, 2);
}

TEST(Tuner, TakesOnlyAsManyWorkersAsKeepUp) {
  const Tuned tuned = Tune(Steady(5, 3000));
  EXPECT_GE(tuned.last().workers, 5);
  EXPECT_LE(tuned.last().workers, 6);
  EXPECT_LE(tuned.last().depth, 3);
  EXPECT_LT(tuned.outcome.waited, 0.01);
}

TEST(Tuner, UsesOneWorkerAndOneBatchForASlowConsumer) {
  const Tuned tuned = Tune(Steady(50, 1000));
  EXPECT_EQ(tuned.last().workers, 1);
  EXPECT_EQ(tuned.last().depth, 1);
  EXPECT_EQ(tuned.outcome.waited, 0);
}

TEST(Tuner, UsesAllWorkersAndLittleMemoryWhenProductionIsTheLimit) {
  const Tuned tuned = Tune(Steady(0.5, 3000));
  EXPECT_EQ(tuned.last().workers, 8);
  EXPECT_LE(tuned.last().depth, 3);
}

// The model finds one batch enough for a consumer of 5 ms, because it knows no moments within a
// batch; in fact the consumer would wait 1.3 % of its time.
TEST(Tuner, GivesUpADepthOfOneForWhichTheConsumerWaits) {
  Workload workload = tuner_sim::MakeStepChange();
  workload.batches = 1500;  // before the step changes
  const Tuned tuned = Tune(workload);
  const auto is_one = [](const TunerSettings& settings) { return settings.depth == 1; };
  EXPECT_TRUE(std::any_of(tuned.trace.settings.begin(), tuned.trace.settings.end(), is_one));
  EXPECT_LT(Waited(tuned.trace, 1000, 1500), 0.01);
}

TEST(Tuner, UnavoidableWaitsChangeNothing) {
  Workload workload = Steady(0.01, 12000);
  workload.max_workers = 1;
  const Tuned tuned = Tune(workload, {.depth = 64, .workers = 1, .reads = 64});
  int changes = 0;
  for (size_t k = 1000; k < tuned.trace.settings.size(); ++k) {
    changes += tuned.trace.settings[k].depth != tuned.trace.settings[k - 1].depth;
  }
  EXPECT_LE(changes, 1);
}

// The consumer waits 2 % of its time, but no batch cost anything like it.
TEST(Tuner, WorkersShrinkAlsoAtAFixedDepthOfOne) {
  Tuner tuner({.fixed = {.depth = 1}}, kLimits);
  uint64_t now = 1'000'000'000;
  for (int k = 0; k < 2000; ++k) {
    BatchRecord record;
    record.rows = 32;
    record.opened_ns = now;
    record.asked_ns = now + 10'000'000;
    record.taken_ns = now = record.asked_ns + 200'000;
    record.complete_ns = now;
    record.work_ns = 1'000'000;
    record.longest_ns = 40'000;
    tuner.Observe(record);
  }
  EXPECT_EQ(tuner.settings().depth, 1);
  EXPECT_EQ(tuner.settings().workers, 1);
}

TEST(Tuner, MeetsBurstsWithDepth) {
  Workload workload = Steady(5, 3000);
  for (uint32_t k = 0; k < workload.batches; ++k) {
    workload.gap[k] = k % 8 == 7 ? 64 * kMillisecond : 0.01 * kMillisecond;
  }
  const Tuned tuned = Tune(workload);
  EXPECT_GE(tuned.last().depth, 7);
  EXPECT_LE(tuned.last().depth, 11);
  EXPECT_LT(tuned.outcome.waited, 0.02);
}

TEST(Tuner, RaisesReadsForLongLatencyUpToTheKnee) {
  Workload network = Steady(5, 3000);
  ReadFrom(network, 64, 0, 5);  // a batch in 5 ms needs 32 at a time
  const Tuned far = Tune(network);
  EXPECT_GE(far.last().reads, 32);
  EXPECT_LT(far.outcome.waited, 0.01);

  Workload disk = Steady(0.5, 3000);
  ReadFrom(disk, 4, 1, 0);  // brings a batch in 8 ms, whatever is asked of it beyond 4
  const Tuned near = Tune(disk);
  EXPECT_GE(near.last().reads, 4);
  EXPECT_LE(near.last().reads, 12);
}

TEST(Tuner, FollowsAStepThatChanges) {
  const Workload workload = tuner_sim::MakeStepChange();
  const Tuned tuned = Tune(workload);
  EXPECT_GE(tuned.trace.settings[1499].workers, 5);
  EXPECT_EQ(tuned.trace.settings[2999].workers, 1);
  EXPECT_GE(tuned.trace.settings[4499].workers, 5);
  EXPECT_LT(Waited(tuned.trace, 1000, 1500), 0.01);
  EXPECT_LT(Waited(tuned.trace, 1600, 3000), 0.001);
  EXPECT_LT(Waited(tuned.trace, 3100, 4500), 0.02);  // some 0.5 s after it
}

TEST(Tuner, FollowsANeighbourThatTakesCores) {
  Workload workload = Steady(5, 3000);
  std::fill(workload.work.begin() + workload.work.size() / 2, workload.work.end(),
            static_cast<float>(1.0 * kMillisecond));
  const Tuned tuned = Tune(workload);
  EXPECT_LE(tuned.trace.settings[1499].workers, 6);
  EXPECT_GE(tuned.last().workers, 7);
  EXPECT_LT(Waited(tuned.trace, 1700, 3000), 0.01);
}

TEST(Tuner, DoesNotOscillate) {
  for (const int kind : {0, 1, 2}) {
    Draws draws(static_cast<uint64_t>(kind) + 1);
    Workload workload = Steady(6, 6000);
    for (float& work : workload.work) {
      if (kind == 1) work *= static_cast<float>(draws.LogNormal(0.8));
      if (kind == 2) work *= static_cast<float>(std::min(50.0, draws.Pareto(2)));
    }
    const Tuned tuned = Tune(workload);
    int changes = 0;
    for (size_t k = 1000; k < tuned.trace.settings.size(); ++k) {
      changes += tuned.trace.settings[k] != tuned.trace.settings[k - 1];
    }
    EXPECT_LE(changes, kind == 0 ? 1 : 8) << kind;
  }
}

TEST(Tuner, NeverChangesFixedSettings) {
  Trace trace;
  Fixed all({.depth = 2, .workers = 4, .reads = 8});
  Simulate(tuner_sim::MakeStepChange(), all, &trace);
  for (const TunerSettings& fixed :
       {TunerSettings{.depth = 1}, {.workers = 1}, {.reads = 2}, {3, 3, 3}}) {
    Tuner tuner({.fixed = fixed}, kLimits);
    for (const BatchRecord& record : trace.records) {
      tuner.Observe(record);
      ASSERT_TRUE(fixed.depth == 0 || tuner.settings().depth == fixed.depth);
      ASSERT_TRUE(fixed.workers == 0 || tuner.settings().workers == fixed.workers);
      ASSERT_TRUE(fixed.reads == 0 || tuner.settings().reads == fixed.reads);
    }
  }
}

TEST(Tuner, LimitsApplyAtOnceAndAreLiftedAgain) {
  Trace trace;
  Fixed all({.depth = 4, .workers = 8, .reads = 8});
  Simulate(Steady(5, 2000), all, &trace);
  Tuner tuner({.fixed = {}}, kLimits);
  size_t k = 0;
  for (; k < 1000; ++k) tuner.Observe(trace.records[k]);
  ASSERT_GE(tuner.settings().workers, 5);

  const auto decisions =
      tuner.SetLimits({.depth = 1, .workers = 2, .reads = 64}, trace.records[k].taken_ns);
  EXPECT_EQ(tuner.settings().workers, 2);
  EXPECT_EQ(tuner.settings().depth, 1);
  ASSERT_FALSE(decisions.empty());
  for (const TunerDecision& decision : decisions) {
    EXPECT_EQ(decision.reason, TunerDecision::Reason::kLimit);
  }
  EXPECT_GE(tuner.needs(kLimits).workers, 5);  // what it would have

  // With these settings the consumer does wait.
  Trace slow;
  Fixed few({.depth = 1, .workers = 2, .reads = 8});
  Simulate(Steady(5, 2000), few, &slow);
  for (; k < 1500; ++k) {
    tuner.Observe(slow.records[k]);
    ASSERT_LE(tuner.settings().workers, 2);
  }
  tuner.SetLimits(kLimits, slow.records[k].taken_ns);
  for (; k < 2000; ++k) tuner.Observe(slow.records[k]);
  EXPECT_GE(tuner.settings().workers, 5);
}

TEST(Tuner, SurvivesRandomRecords) {
  Draws draws(7);
  Tuner tuner({.fixed = {}}, kLimits);
  uint64_t now = 0;
  for (int k = 0; k < testing::Effort(20000); ++k) {
    const auto any = [&draws] {
      return draws.Chance(0.3) ? 0 : draws.Next() >> (1 + draws.Below(63));
    };
    BatchRecord record;
    record.rows = static_cast<uint32_t>(any());
    record.opened_ns = any(), record.complete_ns = any();
    record.asked_ns = any(), record.taken_ns = now += draws.Below(100'000'000);
    record.work_ns = any(), record.longest_ns = any(), record.mix_ns = any();
    record.read_ns = any(), record.longest_read_ns = any();
    record.reads = static_cast<uint32_t>(any()), record.reads_in_flight = any();
    tuner.Observe(record);
    if (draws.Chance(0.01)) {
      tuner.SetLimits({.depth = static_cast<int>(draws.Below(3000)) - 1,
                       .workers = static_cast<int>(draws.Below(70)) - 1,
                       .reads = static_cast<int>(draws.Below(300)) - 1},
                      record.taken_ns);
    }
    ASSERT_GE(tuner.settings().depth, 1);
    ASSERT_GE(tuner.settings().workers, 1);
    ASSERT_GE(tuner.settings().reads, 1);
  }
}

// Compares the replay, which knows batches only, with the pipeline, which knows every sample.
TEST(TunerModel, PredictsTheCostOfOtherSettings) {
  Draws draws(3);
  for (const double gap_ms : {0.5, 5.0, 7.0}) {
    Workload workload = Steady(gap_ms, 600);
    for (float& work : workload.work) work *= static_cast<float>(draws.LogNormal(0.5));
    ReadFrom(workload, 32, 0.5, 1);
    Trace trace;
    Fixed measured({.depth = 3, .workers = 4, .reads = 16});
    Simulate(workload, measured, &trace);
    TunerModel model;
    for (const BatchRecord& record : trace.records) model.Add(record);
    for (const TunerSettings& other :
         {TunerSettings{2, 2, 16}, {4, 6, 16}, {16, 8, 16}, {3, 4, 8}, {1, 8, 16}}) {
      Trace truth;
      Fixed fixed(other);
      Simulate(workload, fixed, &truth);
      const auto n = static_cast<size_t>(model.count());
      const auto real = static_cast<double>(truth.records.back().taken_ns -
                                            truth.records[truth.records.size() - n - 1].taken_ns);
      // If no two batches overlap, their ends are ragged, unlike a fluid's.
      EXPECT_NEAR(model.Replay(other).total / real, 1, other.depth == 1 ? 0.12 : 0.04)
          << gap_ms << ": " << other.depth << ", " << other.workers << ", " << other.reads;
    }
  }
}

TEST(ReadLatency, QueuedReadsAreNotUseful) {
  ReadLatency latency;
  for (int n : {2, 4, 8, 16}) {
    for (int k = 0; k < 20; ++k) latency.Add(n, n <= 4 ? 1e6 : n / 4.0 * 1e6);
  }
  EXPECT_NEAR(latency.At(3), 1e6, 1);
  EXPECT_NEAR(latency.At(12), 3e6, 1);
  EXPECT_GT(latency.At(32), 7e6);  // not measured: as the last doublings were
  EXPECT_GE(latency.Useful(), 4);
  EXPECT_LE(latency.Useful(), 6);
}

TEST(ReadLatency, MoreReadsAreUsefulWhileLatencyIsConstant) {
  ReadLatency latency;
  for (int n : {2, 4, 8}) {
    for (int k = 0; k < 20; ++k) latency.Add(n, 5e6);
  }
  EXPECT_GE(latency.Useful(), 14);
  EXPECT_LE(latency.Useful(), 16);
}

TEST(TunerModel, DetectsASlowerDiskButNotOtherSettings) {
  for (const bool slower : {false, true}) {
    TunerModel model;
    bool changed = false;
    for (uint64_t k = 1; k <= 300; ++k) {
      const uint64_t in_flight = k < 100 ? 8 : 16;  // twice as many wait in line twice as long
      const uint64_t latency = (in_flight + k % 3) * (slower && k > 250 ? 3 : 1) * 1'000'000;
      BatchRecord batch;
      batch.rows = batch.reads = 32;
      batch.opened_ns = batch.complete_ns = batch.asked_ns = batch.taken_ns = k * 10'000'000;
      batch.work_ns = 1'000'000;
      batch.read_ns = 32 * latency;
      batch.longest_read_ns = latency;
      batch.reads_in_flight = 32 * in_flight;
      model.Add(batch);
      changed |= model.CountSinceChange() != 0;
    }
    EXPECT_EQ(changed, slower);
  }
}

TEST(TunerDecision, TextSaysWhatAndWhy) {
  TunerDecision decision{.setting = TunerDecision::Setting::kDepth,
                         .reason = TunerDecision::Reason::kWaits,
                         .from = 4,
                         .to = 7,
                         .waited = 0.031,
                         .expected = 0.002,
                         .work_ms = 41,
                         .gap_ms = 18};
  EXPECT_EQ(
      TextOf(decision),
      "depth 4 → 7: the consumer waited 3.1% of the time, and would wait 0.2% with 7 (a batch "
      "takes 41 ms of workers' time, a step 18 ms)");
  decision.setting = TunerDecision::Setting::kReads;
  decision.reason = TunerDecision::Reason::kNoWait;
  decision.to = 2;
  decision.read_latency_ms = 0.25;
  EXPECT_EQ(TextOf(decision),
            "reads in flight 4 → 2: the consumer waited 3.1% of the time, and would wait no longer "
            "with 2 (a batch takes 41 ms of workers' time, a step 18 ms, a read 0.25 ms)");
  decision.reason = TunerDecision::Reason::kLimit;
  EXPECT_EQ(TextOf(decision),
            "reads in flight 4 → 2: no more is allowed now: other loaders need it, or memory is "
            "short");
}

TEST(TunerSim, SameSeedGivesTheSameRun) {
  const Workload a = tuner_sim::MakeWorkload(3, 5), b = tuner_sim::MakeWorkload(3, 5);
  EXPECT_EQ(a.work, b.work);
  EXPECT_EQ(a.gap, b.gap);
  EXPECT_EQ(Tune(a).outcome.seconds, Tune(b).outcome.seconds);
}

}  // namespace
}  // namespace stoker
