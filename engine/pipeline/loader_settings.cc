// A loader's settings while it runs: the tuner learns from each batch, and what it decides is done.
#include <algorithm>

#include "engine/pipeline/loader_impl.h"

namespace stoker {

// What there may be at most, now that others have had their say.
TunerLimits Loader::Impl::Granted() const {
  const uint64_t batches = tenant_->batch_bytes() / slots_->slot_bytes();
  TunerLimits granted = most_;
  granted.depth =
      static_cast<int>(std::clamp<uint64_t>(batches, 1, static_cast<uint64_t>(most_.depth)));
  granted.workers = static_cast<int>(
      std::clamp<uint64_t>(tenant_->workers(), 1, static_cast<uint64_t>(most_.workers)));
  return granted;
}

void Loader::Impl::Learn(const BatchRecord& batch) {
  {
    std::lock_guard lock(told_mutex_);
    told_.waited += batch.waited;
    told_.wait_ns += batch.taken_ns - batch.asked_ns;
    if (last_taken_ns_ != 0) told_.consumer_ns += batch.asked_ns - last_taken_ns_;
  }
  last_taken_ns_ = batch.taken_ns;
  trace_.Batch(batch, assembler_->last_row(), settings_);
  Follow(tuner_.Observe(batch));
  if (batch.taken_ns < share_again_ns_) return;
  constexpr uint64_t kShareEvery = 50'000'000;
  share_again_ns_ = batch.taken_ns + kShareEvery;
  const TunerSettings needs = tuner_.needs(most_);
  tenant_->Ask({.workers = static_cast<uint64_t>(needs.workers),
                .batch_bytes = static_cast<uint64_t>(needs.depth) * slots_->slot_bytes()});
  Follow(tuner_.SetLimits(Granted(), batch.taken_ns));
}

void Loader::Impl::Follow(std::span<const TunerDecision> decisions) {
  if (decisions.empty()) return;
  trace_.Decisions(decisions);
  {
    std::lock_guard lock(told_mutex_);
    for (const TunerDecision& decision : decisions) {
      if (told_.decisions.size() == kDecisionsKept) told_.decisions.erase(told_.decisions.begin());
      told_.decisions.push_back(decision);
      ++told_.decisions_made;
    }
  }
  Settle();
}

// Brings the loader to the tuner's settings. Where the budget has no room for them now, the depth
// stays, and the tuner is told.
void Loader::Impl::Settle() {
  TunerSettings wanted = tuner_.settings();
  if (wanted.depth != settings_.depth && !slots_->SetWorkingSlots(wanted.depth)) {
    TunerLimits limits = Granted();
    limits.depth = settings_.depth;
    (void)tuner_.SetLimits(limits, last_taken_ns_);
    wanted = tuner_.settings();
    (void)slots_->SetWorkingSlots(wanted.depth);  // not more than there were
  }
  if (assembler_ != nullptr) assembler_->SetDepth(wanted.depth);
  const auto workers = static_cast<uint32_t>(wanted.workers);
  for (uint32_t sent = at_work_.SetLimit(workers); sent > 0; --sent) SendWorker(0);
  SetReads(static_cast<uint32_t>(wanted.reads), workers);
  std::lock_guard lock(told_mutex_);
  settings_ = wanted;
}

// While each worker has two samples in hand and one waiting, the others can be on their way.
void Loader::Impl::SetReads(uint32_t reads, uint32_t workers) {
  if (in_memory_) return;
  most_reading_.store(reads, std::memory_order_relaxed);
  const uint32_t requests = std::clamp(reads + 3 * workers, kSureReads, free_samples_.count());
  most_requests_.store(requests, std::memory_order_relaxed);
  for (uint32_t i = requests; i < free_samples_.count(); ++i) {
    if (free_samples_.TakeThis(i)) GiveRequest(i);
  }
}

uint32_t Loader::Impl::FreeRequests() const {
  const uint32_t most = most_requests_.load(std::memory_order_relaxed);
  const uint32_t in_use = free_samples_.count() - free_samples_.available();
  return most - std::min(most, in_use);
}

bool Loader::Impl::MayRead() const {
  return reading_.load(std::memory_order_relaxed) < most_reading_.load(std::memory_order_relaxed);
}

// Whether it is for the workers that there are too few free requests.
bool Loader::Impl::BehindWorkers() const {
  const uint32_t in_use = free_samples_.count() - free_samples_.available();
  return starved_.load(std::memory_order_relaxed) &&
         in_use > 2 * reading_.load(std::memory_order_relaxed);
}

// One that has a buffer. Where the budget has no room for it, there will be one when a worker has
// done with another; the only one goes without, and is postponed if the reader finds none either.
std::optional<uint32_t> Loader::Impl::TakeRequest() {
  if (FreeRequests() == 0) return std::nullopt;
  const std::optional<uint32_t> index = free_samples_.Take();
  if (!index || in_memory_) return index;
  GrowingBuffer& buffer = samples_[*index].read.buffer;
  if (buffer.capacity() != 0 || buffer.Grow(kReadBufferBytes).ok()) return index;
  if (free_samples_.available() + 1 == free_samples_.count()) return index;
  free_samples_.Give(*index);
  starved_.store(true, std::memory_order_seq_cst);
  return std::nullopt;
}

// Buffers beyond those that may be in use go back to the budget.
void Loader::Impl::GiveRequest(uint32_t index) {
  if (index >= most_requests_.load(std::memory_order_relaxed)) samples_[index].read.buffer.Free();
  free_samples_.Give(index);
}

// Reads are pulled many at a time, so that the reader thread wakes, and enters the kernel, once for
// many samples instead of once for each.
bool Loader::Impl::TooFewFree() {
  const uint32_t enough = (most_requests_.load(std::memory_order_relaxed) + 1) / 2;
  if (FreeRequests() >= enough) {
    starved_.store(false, std::memory_order_seq_cst);
    return false;
  }
  starved_.store(true, std::memory_order_seq_cst);
  return FreeRequests() < enough;  // looked at again: a worker may have missed the flag
}

}  // namespace stoker
