#include "engine/device/staging.h"

#include <utility>

#include "core/stage_times.h"
#include "gpu/device_ring.h"

namespace stoker {

Result<Batch> CursorBatches::Next(const Interrupt& interrupt) {
  if (cursor_ == nullptr) {
    cursor_ = shared_.Iterate(next_.epoch, repeat_);
    if (Status s = cursor_->Seek(next_); !s.ok()) return std::move(s).error();
  }
  const uint64_t asked_ns = NowNanoseconds();
  Result<Batch> batch = cursor_->Next(interrupt);
  if (!batch.ok()) {
    const std::lock_guard lock(mutex_);
    failures_.push_back({batch.error(), *cursor_->position()});
  } else if (!*batch) {
    cursor_.reset();
    next_ = {repeat_ ? next_.epoch : next_.epoch + 1, 0};
  } else {
    waits_.OfHost(
        {{batch->epoch(), batch->index()}, asked_ns, NowNanoseconds(), cursor_->waited()});
  }
  return batch;
}

std::optional<BatchName> CursorBatches::Passed(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failures_.empty()) return std::nullopt;
  const Error& first = failures_.front().error;
  if (first.code != error.code || first.cause != error.cause || first.file != error.file) {
    return std::nullopt;
  }
  const BatchName next = failures_.front().next;
  failures_.pop_front();
  return next;
}

void Staging::GoTo(BatchName batch, bool repeat) {
  const std::lock_guard use(use_);
  if (stager_ != nullptr && repeat_ == repeat && next_ == batch) return;
  Drop();
  next_ = batch;
  repeat_ = repeat;
  at_end_ = false;
  const std::lock_guard lock(ends_);
  if (ended_) return;
  source_ = std::make_unique<CursorBatches>(host_, waits_, batch, repeat);
  stager_ = std::make_unique<Stager>(
      ring_, *source_,
      StagerOptions{.across_epochs = true, .trace = &host_.options().runtime->trace()});
}

Result<DeviceBatch> Staging::Next(const Interrupt& interrupt) {
  const std::lock_guard use(use_);
  if (stager_ == nullptr) return Error{Code::kCancelled, "the loader was stopped"};
  Result<DeviceBatch> batch = Take(interrupt);
  if (!batch.ok()) {
    if (const std::optional<BatchName> next = source_->Passed(batch.error())) Pass(*next);
  } else if (*batch) {
    Pass({batch->epoch(), batch->index() + 1});
  }
  return batch;
}

// Epochs' ends are taken with the first batch behind them, not before: the stager says so when it
// has an entry free, for which the consumer might have to let go of a batch.
Result<DeviceBatch> Staging::Take(const Interrupt& interrupt) {
  Result<DeviceBatch> batch = TakeStaged(*stager_, waits_, interrupt);
  if (!batch.ok() || *batch || !at_end_) return batch;
  at_end_ = false;
  return TakeStaged(*stager_, waits_, interrupt);
}

void Staging::Pass(BatchName to) {
  passed_ += to.index - next_.index;
  next_ = to;
  if (to.index != host_.batches_per_epoch()) return;
  at_end_ = true;
  next_ = {repeat_ ? to.epoch : to.epoch + 1, 0};
}

void Staging::End() {
  if (!host_.options().runtime->CheckProcess().ok()) {  // a forked child's; nothing may be joined
    (void)stager_.release();
    (void)source_.release();
    return;
  }
  {
    const std::lock_guard lock(ends_);
    ended_ = true;
    if (stager_ != nullptr) stager_->Stop();
  }
  const std::lock_guard use(use_);
  Drop();
  ring_->LetGoOfHosts();  // else they would be kept, and pinned, as long as any tensor is
}

// Under use_.
void Staging::Drop() {
  std::unique_ptr<CursorBatches> source;
  std::unique_ptr<Stager> stager;  // first to go: it uses the source
  const std::lock_guard lock(ends_);
  source.swap(source_);
  stager.swap(stager_);
  if (stager == nullptr) return;
  stager->Stop();
  past_ += stager->Stats();
  waits_.Drop();
}

StagerStats Staging::Stats() const {
  const std::lock_guard lock(ends_);
  StagerStats all = past_;
  if (stager_ != nullptr) all += stager_->Stats();
  all.device_bytes = ring_->bytes();
  return all;
}

}  // namespace stoker
