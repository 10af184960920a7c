#include "engine/pipeline/tuner.h"

#include <algorithm>
#include <array>

#include "engine/pipeline/tuner_model.h"

namespace stoker {
namespace {

using What = TunerDecision::What;
using Because = TunerDecision::Because;

constexpr TunerSettings kStart{.depth = 2, .workers = 1, .reads = 8};
constexpr uint64_t kBetweenLooks = 50'000'000;  // ns, at least
constexpr int kBatchesBetweenLooks = 4;         // at least, unless they are slow
constexpr uint64_t kSlow = 1'000'000'000;       // ns
constexpr int kLooksBetweenChoices = 4;         // while nothing is amiss
constexpr int kHold = TunerModel::kWindow;      // batches before anything is made smaller
constexpr uint64_t kHoldTime = 1'000'000'000;   // ns

TunerSettings Most(const TunerSettings& a, const TunerSettings& b) {
  return {.depth = std::max(a.depth, b.depth),
          .workers = std::max(a.workers, b.workers),
          .reads = std::max(a.reads, b.reads)};
}

// The least in [low, high] that does; `high` where none does. More never does worse.
template <typename Does>
int Least(int low, int high, Does does) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (does(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return high;
}

}  // namespace

struct Tuner::State {
  State(const TunerOptions& given, const TunerLimits& allowed) : options(given), limits(allowed) {
    settings = Clamp(kStart);
  }

  TunerOptions options;
  TunerLimits limits;
  TunerSettings settings;
  TunerModel model;

  uint64_t looked_ns = 0;
  int since_look = 0;
  int looks = 0;

  TunerSettings peak;  // of what was chosen since `held`
  uint64_t hold_began_ns = 0;
  int held = 0;         // batches
  int hold = kHold;     // batches to hold for: longer each time that it was too short
  bool shrunk = false;  // the last change of size was to less

  std::array<TunerDecision, 4> decisions;
  size_t decided = 0;

  TunerSettings Within(const TunerSettings& wanted, const TunerLimits& most) const {
    const TunerSettings& fixed = options.fixed;
    return {
        .depth = fixed.depth ? fixed.depth : std::clamp(wanted.depth, 1, std::max(1, most.depth)),
        .workers = fixed.workers ? fixed.workers
                                 : std::clamp(wanted.workers, 1, std::max(1, most.workers)),
        .reads = fixed.reads ? fixed.reads : std::clamp(wanted.reads, 1, std::max(1, most.reads))};
  }
  TunerSettings Clamp(const TunerSettings& wanted) const { return Within(wanted, limits); }

  double Time(const TunerSettings& s) const { return model.Replay(s).total; }

  // Latency with more reads than were tried is unknown: a doubling at a time, and not beyond what
  // was seen to bring nothing.
  TunerSettings Top(const TunerLimits& most) const {
    int reads = settings.reads;
    const double knee = model.curve().knee();
    if (knee > 0) {
      reads = std::max(1, static_cast<int>(1.25 * knee + 0.5));
    } else if (2 * model.curve().most_seen() > reads) {
      reads = 2 * settings.reads;
    }
    return Within({.depth = most.depth, .workers = most.workers, .reads = reads}, most);
  }

  TunerSettings Choose(const TunerLimits& most) const {
    const TunerSettings top = Top(most);
    const TunerSettings& fixed = options.fixed;
    const double best = Time(top);
    const double tolerance = options.wait_target * best;
    TunerSettings s = top;
    if (!fixed.depth) {
      s.depth = Least(1, top.depth, [&](int depth) {
        return Time({depth, s.workers, s.reads}) <= best + 0.7 * tolerance;
      });
      s.depth = std::min(top.depth, s.depth + s.depth / 4);
    }
    if (!fixed.workers) {
      s.workers = Least(1, top.workers, [&](int workers) {
        return Time({s.depth, workers, s.reads}) <= best + 0.85 * tolerance;
      });
      s.workers = std::min(top.workers, static_cast<int>(1.1 * s.workers + 0.5));
    }
    if (!fixed.reads && model.reads_anything()) {
      s.reads = Least(1, top.reads, [&](int reads) {
        return Time({s.depth, s.workers, reads}) <= best + tolerance;
      });
      s.reads = std::min(top.reads, (5 * s.reads + 3) / 4);
    }
    if (!fixed.depth) {
      s.depth = Least(1, s.depth, [&](int depth) {
        return Time({depth, s.workers, s.reads}) <= best + tolerance;
      });
    }
    return s;
  }

  bool Enough(const TunerSettings& s, const TunerLimits& most) const {
    const double best = Time(Top(most));
    return Time(s) <= best * (1 + 1.5 * options.wait_target);
  }

  void Look(uint64_t now) {
    if (const int fresh = model.Change()) {
      model.Forget(fresh);
      RestartHold(now);
      hold = kHold;
      held = kHold / 2;
    }
    const bool enough = Enough(settings, limits);
    if (enough && ++looks % kLooksBetweenChoices != 0) return;
    const TunerSettings chosen = Choose(limits);
    peak = Most(peak, chosen);
    if (!enough) {
      const TunerSettings more = Clamp(Most(settings, chosen));
      if (more != settings) {
        if (shrunk) hold = std::min(2 * hold, 64 * kHold);
        shrunk = false;
        RestartHold(now);
        Change(more, now);
      }
      return;
    }
    if (held < hold || now - hold_began_ns < kHoldTime) return;
    const TunerSettings less = Clamp(peak);
    RestartHold(now);
    if (less == settings) return;
    shrunk = true;
    Change(less, now);
  }

  void RestartHold(uint64_t now) {
    peak = {};
    held = 0;
    hold_began_ns = now;
  }

  void Change(const TunerSettings& to, uint64_t now) {
    const TunerSettings from = settings;
    settings = to;
    Decide(What::kDepth, from.depth, to.depth, now);
    Decide(What::kWorkers, from.workers, to.workers, now);
    Decide(What::kReads, from.reads, to.reads, now);
  }

  void Decide(What what, int from, int to, uint64_t now) {
    if (from == to) return;
    TunerDecision& decision = decisions[decided++];
    decision = {.what = what, .from = from, .to = to, .at_ns = now};
    decision.because = to > from ? Because::kWaits : Because::kNoWait;
    if (model.count() == 0) return;
    const TunerModel::Replayed observed = model.Observed(TunerModel::kWindow);
    const TunerModel::Replayed expected = model.Replay(settings);
    decision.waited = observed.total > 0 ? observed.waited / observed.total : 0;
    decision.expected = expected.total > 0 ? expected.waited / expected.total : 0;
    decision.work_ms = model.MedianWork() / 1e6;
    decision.gap_ms = model.MedianGap() / 1e6;
    decision.read_latency_ms = model.MeanLatency() / 1e6;
  }
};

Tuner::Tuner(const TunerOptions& options, const TunerLimits& limits)
    : state_(std::make_unique<State>(options, limits)) {}

Tuner::~Tuner() = default;

std::span<const TunerDecision> Tuner::Observe(const BatchRecord& batch) {
  State& s = *state_;
  s.decided = 0;
  s.model.Add(batch);
  ++s.since_look;
  ++s.held;
  const uint64_t now = batch.taken_ns;
  if (s.looked_ns == 0) s.looked_ns = batch.opened_ns;
  const uint64_t since = now - std::min(now, s.looked_ns);
  if (since < kBetweenLooks || (s.since_look < kBatchesBetweenLooks && since < kSlow)) return {};
  s.looked_ns = now;
  s.since_look = 0;
  s.Look(now);
  return {s.decisions.data(), s.decided};
}

std::span<const TunerDecision> Tuner::SetLimits(const TunerLimits& limits, uint64_t now_ns) {
  State& s = *state_;
  s.decided = 0;
  s.limits = limits;
  const TunerSettings within = s.Clamp(s.settings);
  if (within != s.settings) {
    s.Change(within, now_ns);
    for (size_t i = 0; i < s.decided; ++i) s.decisions[i].because = Because::kLimit;
  }
  return {s.decisions.data(), s.decided};
}

const TunerSettings& Tuner::settings() const { return state_->settings; }

TunerSettings Tuner::needs(const TunerLimits& most) const {
  const State& s = *state_;
  const TunerSettings now = s.Within(s.settings, most);
  if (s.model.count() == 0 || s.Enough(now, most)) return now;
  return Most(now, s.Choose(most));
}

double Tuner::Predict(const TunerSettings& settings) const {
  const State& s = *state_;
  if (s.model.count() == 0) return 0;
  const TunerModel::Replayed replayed = s.model.Replay(settings);
  return replayed.total > 0 ? replayed.waited / replayed.total : 0;
}

}  // namespace stoker
