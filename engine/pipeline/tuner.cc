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
constexpr int kHold = 256;                      // batches before anything is made smaller
constexpr int kWatched = 64;                    // batches that a trial takes, and that lead to one
constexpr double kMoreThanSaid = 0.015;         // of the time
constexpr double kHelped = 0.01;                // of the time
constexpr int64_t kPatience = 512;              // batches, before the same is tried again
constexpr int kStorageFresh = 8;                // batches that show what storage is like now
constexpr uint64_t kHoldTime = 1'000'000'000;   // ns, at least
constexpr uint64_t kLongHold = 5'000'000'000;   // ns; then a quarter of the batches will do

TunerSettings Most(const TunerSettings& a, const TunerSettings& b) {
  return {.depth = std::max(a.depth, b.depth),
          .workers = std::max(a.workers, b.workers),
          .reads = std::max(a.reads, b.reads)};
}

TunerSettings Least(const TunerSettings& a, const TunerSettings& b) {
  return {.depth = std::min(a.depth, b.depth),
          .workers = std::min(a.workers, b.workers),
          .reads = std::min(a.reads, b.reads)};
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

  bool storage_changed = false;
  uint64_t looked_ns = 0;
  int since_look = 0;
  int looks = 0;

  TunerSettings peak;  // of what was chosen since `held`
  uint64_t hold_began_ns = 0;
  int held = 0;         // batches
  int hold = kHold;     // batches to hold for: longer each time that it was too short
  bool shrunk = false;  // the last change of size was to less

  struct Knob {
    int64_t not_before = 0;  // batch
    int64_t patience = kPatience;
  };
  struct Guard {
    bool trying = false;
    int knob = 0;  // depth, workers, reads
    TunerSettings before;
    double excess = 0;  // before it, of the time
    std::array<Knob, 3> knobs;
    TunerSettings floor;  // what has helped beyond what the model says
  };
  Guard guard;
  int64_t batches = 0;
  int since_change = 0;

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

  // Longer than the best by so much is as good. A batch more is much memory where there are few.
  double Slack(double best, int depth) const {
    return options.wait_target * best * (1 + 0.8 / depth);
  }

  // Memory first, for a batch is much of it; then workers, for others could use the cores; then
  // reads. Each is chosen with the others as good as they may be, and some slack left for them.
  TunerSettings Choose(const TunerLimits& most) const {
    const TunerSettings top = Top(most);
    const TunerSettings& fixed = options.fixed;
    const double best = Time(top);
    const auto does = [&](const TunerSettings& s, double part) {
      return Time(s) <= best + part * Slack(best, s.depth);
    };
    TunerSettings s = top;
    if (!fixed.depth) {
      s.depth = Least(1, top.depth, [&](int depth) {
        return does({depth, s.workers, s.reads}, 0.7);
      });
      s.depth = std::min(top.depth, s.depth + s.depth / 4);
    }
    if (!fixed.workers) {
      s.workers = Least(1, top.workers, [&](int workers) {
        return does({s.depth, workers, s.reads}, 0.85);
      });
      s.workers = std::min(top.workers, static_cast<int>(1.1 * s.workers + 0.5));
    }
    if (!fixed.reads && model.reads_anything()) {
      s.reads = Least(1, top.reads, [&](int reads) {
        return does({s.depth, s.workers, reads}, 1);
      });
      s.reads = std::min(top.reads, (5 * s.reads + 3) / 4);
    }
    if (!fixed.depth) {
      s.depth = Least(1, s.depth, [&](int depth) { return does({depth, s.workers, s.reads}, 1); });
    }
    return s;
  }

  bool Enough(const TunerSettings& s, const TunerLimits& most) const {
    const double best = Time(Top(most));
    return Time(s) <= best + 1.5 * Slack(best, s.depth);
  }

  void Look(uint64_t now) {
    const int fresh = storage_changed ? kStorageFresh : model.Change();
    storage_changed = false;
    if (fresh != 0) {
      model.Forget(fresh);
      RestartHold(now);
      hold = kHold;
      held = kHold / 2;
      guard = {};
    }
    if (!Watch(now)) Follow(now);
  }

  // What the model says.
  void Follow(uint64_t now) {
    const bool enough = Enough(settings, limits);
    if (enough && ++looks % kLooksBetweenChoices != 0) return;
    const TunerSettings chosen = Most(Choose(limits), guard.floor);
    peak = Most(peak, chosen);
    if (!enough) {
      TunerSettings more = Most(settings, chosen);
      // So many reads only make each other slower: fewer are more at once.
      if (model.curve().knee() > 0) more.reads = std::min(more.reads, Top(limits).reads);
      more = Clamp(more);
      if (more != settings) {
        if (shrunk) hold = std::min(2 * hold, 64 * kHold);
        shrunk = false;
        RestartHold(now);
        Change(more, now);
      }
      return;
    }
    const uint64_t for_ns = now - std::min(now, hold_began_ns);
    const bool few = held < hold && (held < hold / 4 || for_ns < kLongHold);
    if (few || for_ns < kHoldTime) return;
    const TunerSettings less = Clamp(Least(settings, peak));
    RestartHold(now);
    if (less == settings) return;
    shrunk = true;
    Change(less, now);
  }

  // What the model does not see: where more is waited than it says, for long, one step up is tried,
  // and kept only if it helped. Says whether a trial is on, or was just over.
  bool Watch(uint64_t now) {
    const int enough = std::max(kWatched, 2 * settings.depth);
    if (since_change < enough || model.count() < enough) return guard.trying;
    // Against what the model says of the same batches: then their own ups and downs do not matter.
    const TunerModel::Replayed was = model.Observed(enough);
    const TunerSettings& judged = guard.trying ? guard.before : settings;
    const double excess = was.total / model.Replay(judged, enough).total - 1;
    if (guard.trying) {
      guard.trying = false;
      Knob& knob = guard.knobs[guard.knob];
      if (excess < guard.excess - kHelped) {
        guard.floor = Most(guard.floor, Raised(guard.before, guard.knob));
        knob.patience = kPatience;
      } else {
        knob.not_before = batches + knob.patience;
        knob.patience *= 2;
        Change(Clamp(guard.before), now);
      }
      return true;
    }
    if (excess < kMoreThanSaid) return false;
    const bool storage = was.for_storage > was.waited / 2;
    for (const int k : storage ? std::array{2, 0, 1} : std::array{1, 0, 2}) {
      if (k == 2 && !storage) continue;
      const TunerSettings more = Clamp(Raised(settings, k));
      if (more == settings || batches < guard.knobs[k].not_before) continue;
      guard.before = settings;
      guard.knob = k;
      guard.excess = excess;
      guard.trying = true;
      Change(more, now);
      return true;
    }
    return false;
  }

  static TunerSettings Raised(TunerSettings s, int knob) {
    if (knob == 0) s.depth += 1 + s.depth / 4;
    if (knob == 1) s.workers += 1 + s.workers / 8;
    if (knob == 2) s.reads += 1 + s.reads / 2;
    return s;
  }

  void RestartHold(uint64_t now) {
    peak = {};
    held = 0;
    hold_began_ns = now;
  }

  void Change(const TunerSettings& to, uint64_t now) {
    const TunerSettings from = settings;
    settings = to;
    since_change = 0;
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
  s.storage_changed |= s.model.Add(batch);
  ++s.since_look;
  ++s.since_change;
  ++s.batches;
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
