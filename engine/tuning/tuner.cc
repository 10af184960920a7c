#include "engine/tuning/tuner.h"

#include <algorithm>
#include <array>

#include "engine/tuning/tuner_model.h"

namespace stoker {
namespace {

using DecisionReason = TunerDecision::Reason;

// Starts with all workers, because short jobs end before anything is learnt.
constexpr TunerSettings kStart{.depth = kFirstDepth, .workers = 1 << 30, .reads = 8};

// Losses of time, in units of TunerOptions::wait_target. A choice may lose kLoose instead of 1
// where that saves 30 % of the memory; nothing grows until kTooMuch is lost, a fifth more than
// any choice loses, so that no choice is made again at once.
constexpr double kLoose = 1.4;
constexpr double kTooMuch = 1.7;

// A look replays the model, which costs the consumer up to a millisecond: 2 % at most.
constexpr uint64_t kUpdateEvery = 50'000'000;  // ns
constexpr int kUpdateAfter = 4;                // batches at least,
constexpr uint64_t kSlow = 1'000'000'000;      // unless they took as many ns as this
constexpr int kChooseEvery = 4;  // updates, while nothing is amiss: a choice is 30 replays

// Smaller settings are chosen when they have been enough for this many batches, half of the
// model's, and a second at least, except at the start; twice as many after each shrinking that had
// to be undone. Workers shrink after a quarter of them: they cost nothing to grow again.
constexpr int kHold = 256;
constexpr uint64_t kHoldNs = 1'000'000'000;

// The model may be right about waits that are rarer than what was seen, but not by more than this
// factor. (Where reads stall it expects too much, and would buy memory for nothing.)
constexpr double kMaxBeyondSeen = 4;

// Losses are averaged over this many batches, four times the model's, so that rare waits count as
// rare. After a shrinking they soon show what the smaller settings lose.
constexpr int kLossBatches = 2048;
constexpr int kLossBatchesAfterShrinking = kHold / 2;

constexpr std::array kSettings = {&TunerSettings::depth, &TunerSettings::workers,
                                  &TunerSettings::reads};

TunerSettings MaxOf(TunerSettings a, const TunerSettings& b) {
  for (const auto setting : kSettings) a.*setting = std::max(a.*setting, b.*setting);
  return a;
}

// A setting that the user has fixed stays as it is.
TunerSettings ClampTo(TunerSettings wanted, const TunerSettings& fixed, const TunerLimits& most) {
  for (const auto setting : kSettings) {
    const int limit = std::max(1, most.*setting);
    wanted.*setting = fixed.*setting != 0 ? fixed.*setting : std::clamp(wanted.*setting, 1, limit);
  }
  return wanted;
}

// The best settings for the batches that a model remembers, at least one.
class Choice {
 public:
  Choice(const TunerModel& model, const TunerOptions& options, const TunerLimits& most)
      : model_(model),
        options_(options),
        top_(ClampTo({most.depth, most.workers, model.read_latency().Useful()}, options.fixed,
                     most)),
        best_(model.Replay(top_)) {}

  // Returns the share of time that is lost against the best settings, in units of wait_target.
  double Loss(const TunerSettings& settings) const {
    return (model_.Replay(settings).total / best_.total - 1) / options_.wait_target;
  }

  // Whether hardly any wait is left with the best settings.
  bool AvoidsWaits() const {
    return best_.waited <= options_.wait_target * (best_.total - best_.waited);
  }

  // Chooses the depth first, because batches are most of the memory, then workers, because others
  // could use the cores, then reads. Each is chosen with the best of those that follow, and leaves
  // them a part of the loss: a little deeper than needed while workers and reads are chosen, then
  // as shallow as those allow.
  TunerSettings Choose() const {
    TunerSettings s = top_;
    s.depth = MinDepth(s, 0.7);
    s.depth += s.depth / 4;
    s.workers = FindSmallest(s, &TunerSettings::workers, 0.8 * kLoose);
    s.workers += (s.workers + 3) / 8;
    s.reads = FindSmallest(s, &TunerSettings::reads, 0.9 * kLoose);
    s.reads += (s.reads + 2) / 4;
    s = ClampTo(s, options_.fixed, top_);
    s.depth = MinDepth(s, 1);
    return ClampTo(s, options_.fixed, top_);
  }

 private:
  int MinDepth(const TunerSettings& s, double part) const {
    const int loose = FindSmallest(s, &TunerSettings::depth, kLoose * part);
    const int depth = std::min(FindSmallest(s, &TunerSettings::depth, part), loose * 7 / 5);
    // At a depth of one, waits show what the model missed, unless the consumer waits anyway.
    if (depth == 1 && !AvoidsWaits() && Loss({1, s.workers, s.reads}) > 0) return 2;
    return depth;
  }

  // Finds the least value of one setting that loses at most `loss`, by bisection: a larger value
  // never loses more.
  int FindSmallest(TunerSettings s, int TunerSettings::*setting, double loss) const {
    int low = 1, high = s.*setting;
    while (low < high) {
      const int middle = s.*setting = low + (high - low) / 2;
      if (Loss(s) <= loss) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return high;
  }

  const TunerModel& model_;
  const TunerOptions& options_;
  const TunerSettings top_;
  const TunerModel::Time best_;
};

}  // namespace

struct Tuner::State {
  TunerOptions options;
  TunerLimits limits;
  TunerSettings settings;
  TunerModel model;
  std::array<TunerDecision, kSettings.size()> decisions;
  size_t decided = 0;

  uint64_t looked_ns = 0;
  int64_t batches = 0;
  int since_update = 0, since_change = 0, updates = 0;

  double loss = 0;  // the mean of the last loss_batches
  int loss_batches = 0;

  TunerSettings peak;  // the most that was chosen since the hold began
  uint64_t hold_began_ns = 0;
  int64_t hold_began = 0;
  int hold = kHold;     // batches; doubled when shrinking had to be undone
  bool shrunk = false;  // by the last change

  TunerSettings Clamp(const TunerSettings& wanted) const {
    return ClampTo(wanted, options.fixed, limits);
  }

  void Update(uint64_t now) {
    if (const int fresh = model.CountSinceChange(); fresh != 0) {
      model.Forget(fresh);
      Hold(now);
      loss_batches = 0;
    }
    Decide(now);
  }

  // Hysteresis: grows when the mean loss is too much, and shrinks, by half at most, when smaller
  // settings would have been enough for long.
  void Decide(uint64_t now) {
    const Choice choice(model, options, limits);
    loss_batches = std::min(loss_batches + since_update, kLossBatches);
    const TunerModel::Time was = model.Observed(since_change);
    const double seen = was.waited / std::max(1.0, was.total - was.waited) / options.wait_target;
    double lost = std::min(choice.Loss(settings), kMaxBeyondSeen * seen);
    // At a depth of one no other batch hides what the model missed: all waits count, if a larger
    // depth is allowed and avoids them.
    const bool alone = settings.depth == 1 && Clamp(kStart).depth > 1 && choice.AvoidsWaits();
    if (alone) lost = std::max(lost, seen);
    loss += (lost - loss) * std::min(1.0, 1.0 * since_update / std::max(1, loss_batches));
    const bool enough = loss <= kTooMuch;
    if (enough && ++updates % kChooseEvery != 0) return;
    const TunerSettings chosen = choice.Choose();
    peak = MaxOf(peak, chosen);
    const int64_t held = batches - hold_began;
    const uint64_t held_ns = now - std::min(now, hold_began_ns);
    if (!enough) {
      TunerSettings more = MaxOf(settings, chosen);
      if (alone) more.depth = std::max(more.depth, 2);
      // Grows by half at most, or by two if that is more.
      more.depth = std::min(more.depth, std::max(settings.depth + 2, settings.depth * 3 / 2));
      if (Clamp(more) == settings) return;
      if (shrunk) hold = std::min(2 * hold, kLossBatches);
      Change(Clamp(more), now, DecisionReason::kWaits);
      loss = std::min(loss, 1.0);
    } else if (held_ns >= kHoldNs && held >= hold / 4) {
      const bool all = held >= hold;
      TunerSettings less = settings;
      for (const auto setting : kSettings) {
        if (!all && setting != &TunerSettings::workers) continue;
        less.*setting = std::min(less.*setting, std::max(peak.*setting, less.*setting / 2));
      }
      Change(Clamp(less), now, DecisionReason::kNoWait);
      if (all) Hold(now);
    }
  }

  void Hold(uint64_t now) {
    peak = {};
    hold_began = batches;
    hold_began_ns = now;
  }

  void Change(const TunerSettings& to, uint64_t now, DecisionReason reason) {
    if (to == settings) return;
    shrunk = reason == DecisionReason::kNoWait;
    TunerDecision decision{.reason = reason, .at_ns = now};
    if (model.count() != 0) {
      const TunerModel::Time was = model.Observed(model.count()), expected = model.Replay(to);
      const double to_ms = 1e-6 / model.count();
      decision.waited = was.waited / std::max(1.0, was.total);
      decision.expected = expected.waited / std::max(1.0, expected.total);
      decision.work_ms = was.work * to_ms;
      decision.gap_ms = (was.total - was.waited) * to_ms;
      decision.read_latency_ms = model.read_latency().At(settings.reads) * 1e-6;
    }
    for (size_t i = 0; i < kSettings.size(); ++i) {
      decision.setting = static_cast<TunerDecision::Setting>(i);
      decision.from = settings.*kSettings[i];
      decision.to = to.*kSettings[i];
      if (decision.from != decision.to) decisions[decided++] = decision;
    }
    settings = to;
    since_change = 0;
    if (reason == DecisionReason::kWaits) Hold(now);
    if (shrunk) loss_batches = std::min(loss_batches, kLossBatchesAfterShrinking);
  }
};

Tuner::Tuner(const TunerOptions& options, const TunerLimits& limits)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->limits = limits;
  state_->settings = state_->Clamp(kStart);
}

Tuner::~Tuner() = default;

std::span<const TunerDecision> Tuner::Observe(const BatchRecord& batch) {
  State& s = *state_;
  s.decided = 0;
  s.model.Add(batch);
  ++s.batches, ++s.since_update, ++s.since_change;
  const uint64_t now = batch.taken_ns;
  if (s.looked_ns == 0) s.looked_ns = batch.opened_ns;
  const uint64_t since = now - std::min(now, s.looked_ns);
  if (since < kUpdateEvery || (s.since_update < kUpdateAfter && since < kSlow)) return {};
  s.looked_ns = now;
  s.Update(now);
  s.since_update = 0;
  return {s.decisions.data(), s.decided};
}

std::span<const TunerDecision> Tuner::SetLimits(const TunerLimits& limits, uint64_t now_ns) {
  State& s = *state_;
  s.decided = 0;
  if (limits == s.limits) return {};
  s.limits = limits;
  s.loss_batches = 0;  // there may be more to win
  s.Change(s.Clamp(s.settings), now_ns, DecisionReason::kLimit);
  return {s.decisions.data(), s.decided};
}

const TunerSettings& Tuner::settings() const { return state_->settings; }

TunerSettings Tuner::needs(const TunerLimits& most) const {
  const State& s = *state_;
  const TunerSettings now = ClampTo(s.settings, s.options.fixed, most);
  if (s.model.count() == 0) return now;
  const Choice choice(s.model, s.options, most);
  return choice.Loss(now) <= kTooMuch ? now : MaxOf(now, choice.Choose());
}

}  // namespace stoker
