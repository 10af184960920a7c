// A loader's settings while it runs: the tuner learns from each batch, and what it decides is done.
#include <algorithm>

#include "engine/loader/producer_impl.h"

namespace stoker {

// What there may be at most, now that others have had their say.
TunerLimits Producer::Impl::Granted() const {
  const uint64_t batches = tenant_->batch_bytes() / slots_->slot_bytes();
  TunerLimits granted = most_;
  granted.depth =
      static_cast<int>(std::clamp<uint64_t>(batches, 1, static_cast<uint64_t>(most_.depth)));
  if (last_taken_ns_ < room_again_ns_) granted.depth = std::min(granted.depth, room_);
  granted.workers = static_cast<int>(
      std::clamp<uint64_t>(tenant_->workers(), 1, static_cast<uint64_t>(most_.workers)));
  return granted;
}

void Producer::Impl::Learn(const BatchRecord& batch) {
  {
    std::lock_guard lock(told_mutex_);
    told_.waited += batch.waited;
    told_.wait_ns += batch.taken_ns - batch.asked_ns;
    if (last_taken_ns_ != 0) told_.consumer_ns += batch.asked_ns - last_taken_ns_;
  }
  last_taken_ns_ = batch.taken_ns;
  trace_.Batch(batch, assembler_->last_row(), settings_);
  Follow(tuner_.Observe(batch));
  if (!tenant_->alone() && batch.taken_ns >= share_again_ns_) Share(batch.taken_ns);
  Follow(tuner_.SetLimits(Granted(), batch.taken_ns));
}

// Says what is needed: seldom, for it takes the tuner a millisecond or two to know.
void Producer::Impl::Share(uint64_t now_ns) {
  constexpr uint64_t kShareEvery = 500'000'000;
  share_again_ns_ = now_ns + kShareEvery;
  const TunerSettings needs = tuner_.needs(most_);
  tenant_->Ask({.workers = static_cast<uint64_t>(needs.workers),
                .batch_bytes = static_cast<uint64_t>(needs.depth) * slots_->slot_bytes()},
               now_ns);
}

void Producer::Impl::Follow(std::span<const TunerDecision> decisions) {
  if (decisions.empty()) return;
  Tell(decisions);
  Settle();
}

void Producer::Impl::Tell(std::span<const TunerDecision> decisions) {
  trace_.Decisions(decisions);
  std::lock_guard lock(told_mutex_);
  for (const TunerDecision& decision : decisions) {
    if (told_.decisions.size() == kDecisionsKept) told_.decisions.erase(told_.decisions.begin());
    told_.decisions.push_back(decision);
    ++told_.decisions_made;
  }
}

// Takes slots for so many batches, or for as many as the budget has room for now.
int Producer::Impl::DeepestOf(int depth) {
  if (depth == settings_.depth) return depth;
  while (depth > settings_.depth && !slots_->SetWorkingSlots(depth)) --depth;
  (void)slots_->SetWorkingSlots(depth);  // not more than there are
  return depth;
}

// Brings the loader to the tuner's settings. Where the budget has no room for them now, the depth
// stays, and the tuner is told.
void Producer::Impl::Settle() {
  TunerSettings wanted = tuner_.settings();
  const int room = DeepestOf(wanted.depth);
  if (room < wanted.depth) {
    constexpr uint64_t kLater = 1'000'000'000;
    room_again_ns_ = last_taken_ns_ + kLater;
    room_ = room;
    Tell(tuner_.SetLimits(Granted(), last_taken_ns_));
    wanted = tuner_.settings();
  }
  if (assembler_ != nullptr) assembler_->SetDepth(wanted.depth);
  const auto workers = static_cast<uint32_t>(wanted.workers);
  for (uint32_t sent = at_work_.SetLimit(workers); sent > 0; --sent) SendWorker();
  // While each worker has two samples in hand and one waiting, the others can be on their way.
  const auto reads = static_cast<uint32_t>(wanted.reads);
  if (!in_memory_) samples_.SetLimits(reads, reads + 3 * workers);
  std::lock_guard lock(told_mutex_);
  settings_ = wanted;
}

}  // namespace stoker
