#include "engine/production/settings_controller.h"

#include <algorithm>
#include <utility>

#include "engine/options/options.h"
#include "engine/production/check_options.h"
#include "engine/production/producer_options.h"
#include "engine/runtime/runtime.h"

namespace stoker {

int MaxReads(const LoaderOptions& options, const RuntimeOptions& runtime_options) {
  const int calls = options.source->calls();
  return calls != 0 ? calls : runtime_options.all_reads();
}

int MaxDepth(const LoaderOptions& options, const ProducerOptions& own,
             const RuntimeOptions& runtime_options) {
  constexpr int kMaxPinned = 16, kUsualMaxDepth = 64, kMaxDepth = 4096;
  if (own.pinned_for != nullptr) return kMaxPinned;
  const int samples = RowsAhead(MaxReads(options, runtime_options), runtime_options.threads);
  return std::clamp(2 * samples / static_cast<int>(MostRows(options)), kUsualMaxDepth, kMaxDepth);
}

TunerLimits LimitsOf(const LoaderOptions& options, const Runtime& runtime,
                     const MemoryPlan& memory) {
  const RuntimeOptions& runtime_options = runtime.options();
  return {.depth = memory.max_depth,
          .workers = runtime_options.threads,
          .reads = MaxReads(options, runtime_options)};
}

TunerOptions TunerOptionsOf(const LoaderOptions& options, const Runtime& runtime) {
  TunerOptions tuner{.fixed = runtime.fixed(), .wait_target = options.wait_target};
  tuner.fixed.depth = options.depth;
  if (options.source->calls() != 0) tuner.fixed.reads = options.source->calls();
  return tuner;
}

SettingsController::SettingsController(const TunerOptions& options, const TunerLimits& most,
                                       MemoryLease& memory, SlotPool& slots,
                                       const LoaderTrace& trace, Apply apply)
    : most_(most),
      memory_(memory),
      slots_(slots),
      trace_(trace),
      apply_(std::move(apply)),
      room_(memory.plan().depth),
      tuner_(options, GrantedLimits()) {}

// Returns the limits that are left after the other loaders' shares.
TunerLimits SettingsController::GrantedLimits() const {
  const uint64_t batches = memory_.batch_bytes() / slots_.slot_bytes();
  TunerLimits granted = most_;
  granted.depth =
      static_cast<int>(std::clamp<uint64_t>(batches, 1, static_cast<uint64_t>(most_.depth)));
  if (last_taken_ns_ <= next_growth_ns_) granted.depth = std::min(granted.depth, room_);
  granted.workers = static_cast<int>(
      std::clamp<uint64_t>(memory_.workers(), 1, static_cast<uint64_t>(most_.workers)));
  return granted;
}

void SettingsController::Observe(const BatchRecord& batch) {
  {
    std::lock_guard lock(mutex_);
    waited_ += batch.waited;
    wait_ns_ += batch.taken_ns - batch.asked_ns;
    if (last_taken_ns_ != 0) consumer_ns_ += batch.asked_ns - last_taken_ns_;
  }
  last_taken_ns_ = batch.taken_ns;
  if (memory_.shared() && batch.taken_ns >= next_report_ns_) ReportNeeds(batch.taken_ns);
  const auto limited = tuner_.SetLimits(GrantedLimits(), batch.taken_ns);
  if (!limited.empty()) ApplyDecisions(limited);
  if (const auto decisions = tuner_.Observe(batch); !decisions.empty()) ApplyDecisions(decisions);
}

// Called rarely, because the tuner needs a millisecond or two to compute the needs.
void SettingsController::ReportNeeds(uint64_t now_ns) {
  constexpr uint64_t kReportEvery = 500'000'000;
  next_report_ns_ = now_ns + kReportEvery;
  const TunerSettings needs = tuner_.needs(most_);
  memory_.SetNeed({.workers = static_cast<uint64_t>(needs.workers),
                   .batch_bytes = static_cast<uint64_t>(needs.depth) * slots_.slot_bytes()},
                  now_ns);
}

// Applies the tuner's settings, to which these decisions led. If there is no room for the depth
// now, the depth is raised as far as there is room, and the tuner is told the limit. (A grant is a
// share, not free memory: another loader may still hold batches that its consumer has not taken, or
// samples may hold memory that was theirs before the line moved.)
void SettingsController::ApplyDecisions(std::span<const TunerDecision> decisions) {
  const int wanted = tuner_.settings().depth;
  const int room = TakeSlots(wanted);
  Keep(decisions, room);
  if (room < wanted) {
    constexpr uint64_t kLater = 1'000'000'000;
    next_growth_ns_ = last_taken_ns_ + kLater;
    room_ = room;
    Keep(tuner_.SetLimits(GrantedLimits(), last_taken_ns_), room);
  }
  apply_(tuner_.settings());
  std::lock_guard lock(mutex_);
  settings_ = tuner_.settings();
}

// Keeps the decisions for AddTo, except one for a depth beyond `room`: the decision for the limit,
// which follows, covers both. If there is no room at all it leads from a depth to the same one, and
// is not repeated while that lasts.
void SettingsController::Keep(std::span<const TunerDecision> decisions, int room) {
  for (TunerDecision decision : decisions) {
    if (decision.setting == TunerDecision::Setting::kDepth) {
      if (decision.to > room) continue;
      decision.from = settings_.depth;
      const bool refused = decision.from == decision.to;
      if (refused && refused_) continue;
      refused_ = refused;
    }
    trace_.Decision(decision);
    std::lock_guard lock(mutex_);
    if (decisions_.size() == kDecisionsKept) decisions_.erase(decisions_.begin());
    decisions_.push_back(decision);
    ++decisions_made_;
  }
}

// Takes slots for `depth` batches, or for as many as the budget has room for now. (The loop ends,
// because the present number of slots is reserved already.)
int SettingsController::TakeSlots(int depth) {
  while (!slots_.SetWorkingSlots(depth)) --depth;
  return depth;
}

void SettingsController::AddTo(LoaderStats& stats) const {
  std::lock_guard lock(mutex_);
  stats.waited += waited_;
  stats.wait_ns += wait_ns_;
  stats.consumer_ns += consumer_ns_;
  stats.decisions = decisions_;
  stats.decisions_made = decisions_made_;
  stats.depth = settings_.depth;
  stats.workers = settings_.workers;
  stats.reads = settings_.reads;
}

}  // namespace stoker
