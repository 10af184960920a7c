#include "engine/device/staging.h"

#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "engine/device/stage_plan.h"
#include "gpu/backend/nvtx.h"
#include "gpu/staging/device_ring.h"

namespace stoker {

Result<Batch> Staging::Source::Next(const Interrupt& interrupt) {
  const uint64_t passed = producer_.passed();
  const uint64_t asked_ns = NowNanoseconds();
  Result<Batch> batch = producer_.Next(interrupt);
  if (!batch.ok()) {
    const std::lock_guard lock(mutex_);
    failures_.push_back({batch.error(), producer_.passed() != passed});
  } else if (*batch) {
    waits_.AddHostWait({batch->name(), asked_ns, NowNanoseconds(), producer_.waited()});
  }
  return batch;
}

bool Staging::Source::ReplacedBatch(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failures_.empty()) return false;
  const auto [first, replaced_batch] = failures_.front();
  if (first.code != error.code || first.cause != error.cause || first.file != error.file) {
    return false;
  }
  failures_.pop_front();
  return replaced_batch;
}

Result<std::unique_ptr<Staging>> Staging::Open(std::unique_ptr<Producer> producer,
                                               const ProducerOptions& own) {
  const LoaderOptions& options = producer->options();
  ListenForProfiler(options.runtime->trace());
  ASSIGN_OR_RETURN(StagePlan plan, StagePlanOf(options, own, producer->columns()));
  const DeviceOptions& to = *options.to_device;
  std::vector<std::shared_ptr<DeviceRing>> rings;
  for (const std::shared_ptr<Device>& device : to.devices) {
    ASSIGN_OR_RETURN(std::shared_ptr<DeviceRing> ring,
                     Stager::MakeRing(device, plan, to.buffers, to.timed));
    rings.push_back(std::move(ring));
  }
  return std::unique_ptr<Staging>(new Staging(std::move(rings), std::move(producer)));
}

Staging::Staging(std::vector<std::shared_ptr<DeviceRing>> rings, std::unique_ptr<Producer> producer)
    : producer_(std::move(producer)), rings_(std::move(rings)) {
  const std::lock_guard lock(ends_);
  Begin();
}

Status Staging::Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) {
  TRY(producer_->CheckSeek(batch));
  const std::lock_guard use(use_);
  needs_seek_ = true;
  Drop();
  TRY(producer_->Seek(batch, schedule, interrupt));
  needs_seek_ = false;
  next_ = batch;
  repeat_ = schedule == Schedule::kSameEpoch;
  at_end_ = false;
  const std::lock_guard lock(ends_);
  if (!ended_) Begin();
  return {};
}

// Requires ends_.
void Staging::Begin() {
  source_ = std::make_unique<Source>(*producer_, waits_);
  stager_ = std::make_unique<Stager>(
      rings_, *source_,
      StagerOptions{.across_epochs = true, .trace = &producer_->options().runtime->trace()});
}

Result<SplitBatch> Staging::NextOnDevices(const Interrupt& interrupt) {
  TRY(producer_->options().runtime->CheckProcess());
  const std::lock_guard use(use_);
  if (stager_ == nullptr) return Error{Code::kCancelled, "the loader was stopped"};
  Result<SplitBatch> batch = Take(interrupt);
  if (batch.ok() ? static_cast<bool>(*batch) : source_->ReplacedBatch(batch.error())) Pass();
  return batch;
}

// The end of an epoch is taken together with the next batch, not before: the stager reports it when
// a ring entry is free, and for that the consumer might have to release a batch.
Result<SplitBatch> Staging::Take(const Interrupt& interrupt) {
  Result<SplitBatch> batch = TakeStaged(*stager_, waits_, interrupt);
  if (!batch.ok() || *batch || !at_end_) return batch;
  at_end_ = false;
  return TakeStaged(*stager_, waits_, interrupt);
}

void Staging::Pass() {
  producer_->CountDelivered();
  ++passed_;
  if (++next_.index != producer_->batches_from(next_.start)) return;
  at_end_ = true;
  next_ = {repeat_ ? next_.epoch : next_.epoch + 1, 0};
}

void Staging::Stop() {
  producer_->Stop();
  End();
}

bool Staging::TryStop() {
  if (!producer_->TryStop()) return false;
  End();
  return true;
}

// Stops and joins the stager's thread; a waiting Next returns Cancelled.
void Staging::End() {
  {
    const std::lock_guard lock(ends_);
    ended_ = true;
    if (stager_ != nullptr) stager_->Stop();
  }
  const std::lock_guard use(use_);
  Drop();
  // Otherwise they would stay pinned as long as any tensor lives.
  for (const auto& ring : rings_) ring->ReleaseHosts();
}

// Requires use_.
void Staging::Drop() {
  std::unique_ptr<Source> source;
  std::unique_ptr<Stager> stager;  // destroyed first: it uses the source
  const std::lock_guard lock(ends_);
  source.swap(source_);
  stager.swap(stager_);
  if (stager == nullptr) return;
  stager->Stop();
  past_ += stager->Stats();
  waits_.Drop();
}

LoaderStats Staging::Stats() const {
  LoaderStats stats = producer_->Stats();
  waits_.totals().ReplaceWaitsOf(stats);
  return stats;
}

StagerStats Staging::StageStats() const {
  const std::lock_guard lock(ends_);
  StagerStats all = past_;
  if (stager_ != nullptr) all += stager_->Stats();
  AddRingStats(rings_, all);
  return all;
}

const std::vector<ColumnSpec>& Staging::columns() const { return rings_[0]->plan().device; }

}  // namespace stoker
