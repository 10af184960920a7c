#include "bench/tuner_sim/controllers.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::tuner_sim {
namespace {

class Tuned : public Controller {
 public:
  explicit Tuned(const TunerLimits& limits) : tuner_(TunerOptions(), limits) {}
  TunerSettings Start() override { return tuner_.settings(); }
  TunerSettings Observe(const BatchRecord& record) override {
    tuner_.Observe(record);
    return tuner_.settings();
  }

 private:
  Tuner tuner_;
};

class HillClimber : public Controller {
 public:
  HillClimber(const Workload& workload, const TunerLimits& limits)
      : limits_(limits), reads_(workload.channels != 0) {}

  TunerSettings Start() override { return settings_; }

  TunerSettings Observe(const BatchRecord& record) override {
    Update(record);
    if (record.taken_ns < next_) return settings_;
    period_ = std::min(period_ * 2, 60e9);  // 10 ms at first, then less and less often
    next_ = record.taken_ns + static_cast<uint64_t>(period_);
    Climb();
    return settings_;
  }

 private:
  void Update(const BatchRecord& record) {
    const double share = 1 / std::min(100.0, ++seen_);
    const auto learn = [share](double& mean, double value) { mean += (value - mean) * share; };
    learn(work_, static_cast<double>(record.work_ns));
    learn(read_, static_cast<double>(record.read_ns));
    if (last_taken_ != 0) learn(gap_, static_cast<double>(record.asked_ns - last_taken_));
    last_taken_ = record.taken_ns;
  }

  // Returns the wait of a consumer that asks at random times, for a producer with random times and
  // so many places between them.
  static double Wait(double produce, double consume, double places) {
    if (produce <= 0) return 0;
    if (consume <= 0) return produce;
    const double ratio = consume / produce;  // > 1: places are full
    if (std::abs(ratio - 1) < 1e-6) return produce / (places + 1);
    return produce * (1 - ratio) / (1 - std::pow(ratio, places + 1));
  }

  double Latency(const TunerSettings& s) const {
    const double storage = read_ / s.reads;
    const double work = work_ / s.workers;
    const double waits = Wait(storage, work, s.depth);  // workers for storage
    return Wait(work + waits, gap_, s.depth);
  }

  void Climb() {
    for (;;) {
      const double now = Latency(settings_);
      std::array<TunerSettings, 3> steps{settings_, settings_, settings_};
      steps[0].depth = std::min(limits_.depth, settings_.depth + 1);
      steps[1].workers = std::min(limits_.workers, settings_.workers + 1);
      if (reads_) steps[2].reads = std::min(limits_.reads, settings_.reads + 1);
      const auto best = std::min_element(
          steps.begin(), steps.end(),
          [this](const auto& a, const auto& b) { return Latency(a) < Latency(b); });
      if (!(Latency(*best) < now)) return;
      settings_ = *best;
    }
  }

  const TunerLimits limits_;
  const bool reads_;
  TunerSettings settings_{.depth = 1, .workers = 1, .reads = 1};
  double seen_ = 0, work_ = 0, read_ = 0, gap_ = 0, period_ = 10e6;
  uint64_t last_taken_ = 0, next_ = 0;
};

}  // namespace

std::unique_ptr<Controller> MakeTuned(const TunerLimits& limits) {
  return std::make_unique<Tuned>(limits);
}

std::unique_ptr<Controller> MakeHillClimber(const Workload& workload, const TunerLimits& limits) {
  return std::make_unique<HillClimber>(workload, limits);
}

}  // namespace stoker::tuner_sim
