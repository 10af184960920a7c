#include "engine/tuning/tuner.h"

#include <algorithm>
#include <array>
#include <optional>

#include "engine/tuning/tuner_choice.h"
#include "engine/tuning/tuner_model.h"

namespace stoker {
namespace {

using What = TunerDecision::What;
using Because = TunerDecision::Because;

constexpr TunerSettings kStart{.depth = 2, .workers = 0, .reads = 8};  // workers: all
constexpr uint64_t kBetweenLooks = 50'000'000;                         // ns, at least
constexpr int kBatchesBetweenLooks = 4;    // at least, unless they are slow
constexpr uint64_t kSlow = 1'000'000'000;  // ns
constexpr int kLooksBetweenChoices = 4;    // while nothing is amiss
constexpr int kHold = 256;                 // batches before anything is made smaller
constexpr double kGreat = 0.05;            // loss, for which memory is taken at once
constexpr int kLossBatches = 2048;         // that a mean loss is of
constexpr int kWatched = 96;               // batches that a trial takes, and that lead to one
constexpr int kWatchedAtMost = 384;
constexpr int kProbe = 16;                     // batches
constexpr double kWorthALook = 0.03;           // of the time, waited for storage
constexpr double kMoreThanSaid = 0.015;        // of the time
constexpr double kHelped = 0.6;                // of that
constexpr int64_t kPatience = 512;             // batches, before the same is tried again
constexpr int kStorageFresh = 8;               // batches that show what storage is like now
constexpr uint64_t kHoldTime = 1'000'000'000;  // ns, at least
constexpr uint64_t kLongHold = 5'000'000'000;  // ns; then a quarter of the batches will do

}  // namespace

struct Tuner::State {
  State(const TunerOptions& given, const TunerLimits& allowed) : options(given), limits(allowed) {
    settings = Clamp({kStart.depth, limits.workers, kStart.reads});  // what is too many, time tells
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
    bool probing = false;
    int64_t next_probe = 0, probe_patience = kPatience;  // batches
    bool suspected = false;
    bool trying = false;
    int knob = 0;  // depth, workers, reads
    TunerSettings before;
    double excess = 0;  // before it, of the time
    std::array<Knob, 3> knobs;
    TunerSettings floor;  // what has helped beyond what the model says
  };
  Guard guard;
  double loss = 0;
  int loss_batches = 0, since_loss = 0;
  int64_t batches = 0;
  int since_change = 0;

  std::array<TunerDecision, 4> decisions;
  size_t decided = 0;

  TunerSettings Clamp(const TunerSettings& wanted) const {
    return TunerChoice::Within(wanted, options.fixed, limits);
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
      guard.next_probe = batches + kWatched;
      loss_batches = 0;
    }
    if (!Watch(now)) Follow(now);
  }

  // Of the time, with the settings as they are; over more batches than the model remembers, so that
  // what is rare has the weight that it deserves.
  double LongRunLoss(const TunerChoice& choice) {
    const double now = choice.Loss(settings);
    loss_batches = std::min(loss_batches + since_loss, kLossBatches);
    loss += (now - loss) * std::min(1.0, since_loss / static_cast<double>(loss_batches));
    since_loss = 0;
    return loss;
  }

  // What the model says.
  void Follow(uint64_t now) {
    const TunerChoice choice(model, options, settings, limits);
    const bool enough = LongRunLoss(choice) <= choice.TooMuch();
    if (enough && ++looks % kLooksBetweenChoices != 0) return;
    const TunerSettings chosen = Most(choice.Choose(), guard.floor);
    peak = Most(peak, chosen);
    if (!enough) {
      TunerSettings more = Most(settings, chosen);
      // So many reads only make each other slower: fewer are more at once.
      if (model.curve().knee() > 0) more.reads = std::min(more.reads, choice.top().reads);
      if (loss < kGreat) more.depth = std::min(more.depth, settings.depth * 3 / 2 + 1);
      more = Clamp(more);
      if (more != settings) {
        if (shrunk) hold = std::min(2 * hold, 64 * kHold);
        shrunk = false;
        RestartHold(now);
        Change(more, now);
        loss = std::min(loss, options.wait_target);
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
    if (guard.probing) return EndProbe(now);
    const int least = std::max(kWatched, 2 * settings.depth);
    if (since_change < least || model.count() < least) return guard.trying;
    if (!guard.trying && BeginProbe(now)) return true;
    const int enough = std::min({since_change, model.count(), kWatchedAtMost});
    // Against what the model says of the same batches: then their own ups and downs do not matter.
    const TunerModel::Replayed was = model.Observed(enough);
    const TunerSettings& judged = guard.trying ? guard.before : settings;
    const double excess = was.total / model.Replay(judged, enough).total - 1;
    const double doubt = std::max(kMoreThanSaid, model.Longest(enough) / was.total);
    if (guard.trying) {
      guard.trying = false;
      Knob& knob = guard.knobs[guard.knob];
      if (excess < guard.excess - doubt * kHelped) {
        guard.floor = Most(guard.floor, Raised(guard.before, guard.knob));
        knob.patience = kPatience;
      } else {
        knob.not_before = batches + knob.patience;
        knob.patience *= 2;
        Change(Clamp(guard.before), now, Because::kTakenBack);
      }
      return true;
    }
    if (excess < doubt) {
      guard.suspected = false;
      return false;
    }
    // Measured again before it is believed: what was looked for among noise is found in noise.
    if (!guard.suspected) {
      guard.suspected = true;
      since_change = 0;
      return false;
    }
    guard.suspected = false;
    const bool storage = was.for_storage > was.waited / 2;
    for (const int k : storage ? std::array{2, 0, 1} : std::array{1, 0, 2}) {
      if (k == 2 && !storage) continue;
      const TunerSettings more = Clamp(Raised(settings, k));
      if (more == settings || batches < guard.knobs[k].not_before) continue;
      guard.before = settings;
      guard.knob = k;
      guard.excess = excess;
      guard.trying = true;
      Change(more, now, Because::kTried);
      return true;
    }
    return false;
  }

  // A short look at what the model cannot know. Storage is busy with all the reads there may be,
  // and nobody has seen what fewer would do; or it is what is waited for, and more were of no use,
  // once.
  bool BeginProbe(uint64_t now) {
    const ReadCurve& curve = model.curve();
    if (options.fixed.reads || batches < guard.next_probe) return false;
    if (curve.most_seen() < 0.8 * settings.reads) return false;
    int reads = settings.reads;
    const TunerModel::Replayed was = model.Observed(kWatched);
    if (curve.OnlyKnows(reads)) {
      reads = reads * 9 / 16;
    } else if (curve.knee() > 0 && was.for_storage > kWorthALook * was.total) {
      reads = 2 * reads;
    }
    const TunerSettings probed = Clamp({settings.depth, settings.workers, reads});
    if (probed == settings) return false;
    guard.next_probe = batches + guard.probe_patience;
    guard.probe_patience *= 2;
    guard.probing = true;
    guard.before = settings;
    Change(probed, now, Because::kTried);
    return true;
  }

  bool EndProbe(uint64_t now) {
    if (since_change < kProbe) return true;
    guard.probing = false;
    Change(Clamp(guard.before), now, Because::kTakenBack);
    return true;
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

  // `because`: where it is not what the model says.
  void Change(const TunerSettings& to, uint64_t now, std::optional<Because> because = {}) {
    if (to == settings) return;
    const TunerSettings from = settings;
    settings = to;
    since_change = 0;
    const size_t before = decided;
    Decide(What::kDepth, from.depth, to.depth, now);
    Decide(What::kWorkers, from.workers, to.workers, now);
    Decide(What::kReads, from.reads, to.reads, now);
    for (size_t i = before; because && i < decided; ++i) decisions[i].because = *because;
  }

  void Decide(What what, int from, int to, uint64_t now) {
    if (from == to) return;
    TunerDecision& decision = decisions[decided++];
    decision = {.what = what, .from = from, .to = to, .at_ns = now};
    if (model.count() == 0) return;
    const TunerModel::Replayed observed = model.Observed(TunerModel::kWindow);
    const TunerModel::Replayed expected = model.Replay(settings);
    decision.waited = observed.total > 0 ? observed.waited / observed.total : 0;
    decision.expected = expected.total > 0 ? expected.waited / expected.total : 0;
    decision.work_ms = model.MedianWork() / 1e6;
    decision.gap_ms = model.MedianGap() / 1e6;
    decision.read_latency_ms = model.MeanLatency() / 1e6;
    decision.because = WhyOf(decision);
  }

  Because WhyOf(const TunerDecision& decision) const {
    constexpr double kMuch = 0.05;  // is waited whatever is chosen
    const bool reads = decision.what == What::kReads;
    if (decision.to < decision.from) {
      return reads && model.curve().knee() > 0 ? Because::kSaturated : Because::kNoWait;
    }
    if (reads) return Because::kLatency;
    if (decision.expected <= kMuch) return Because::kWaits;
    const int most = decision.what == What::kDepth ? limits.depth : limits.workers;
    return decision.to == most ? Because::kMost : Because::kCannotKeepUp;
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
  ++s.since_loss;
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
  if (limits == s.limits) return {};
  s.limits = limits;
  s.loss_batches = 0;  // what is lost is judged anew: there may be more to win
  const TunerSettings within = s.Clamp(s.settings);
  if (within != s.settings) {
    s.Change(within, now_ns, Because::kLimit);
  }
  return {s.decisions.data(), s.decided};
}

const TunerSettings& Tuner::settings() const { return state_->settings; }

TunerSettings Tuner::needs(const TunerLimits& most) const {
  const State& s = *state_;
  const TunerSettings now = TunerChoice::Within(s.settings, s.options.fixed, most);
  if (s.model.count() == 0) return now;
  const TunerChoice choice(s.model, s.options, s.settings, most);
  return choice.Loss(now) <= choice.TooMuch() ? now : Most(now, choice.Choose());
}

}  // namespace stoker
