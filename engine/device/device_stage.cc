#include "engine/device/device_stage.h"

#include <utility>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "engine/device/copy_plan.h"
#include "gpu/backend/nvtx.h"
#include "gpu/staging/device_ring.h"

namespace stoker {

Result<Batch> DeviceStage::Source::Next(const Interrupt& interrupt) {
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

bool DeviceStage::Source::ReplacedBatch(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (failures_.empty()) return false;
  const auto [first, replaced_batch] = failures_.front();
  if (first.code != error.code || first.cause != error.cause || first.file != error.file) {
    return false;
  }
  failures_.pop_front();
  return replaced_batch;
}

Result<std::unique_ptr<DeviceStage>> DeviceStage::Open(std::unique_ptr<Producer> producer,
                                                       const ProducerOptions& own) {
  const LoaderOptions& options = producer->options();
  ListenForProfiler(options.runtime->trace());
  ASSIGN_OR_RETURN(CopyPlan plan, CopyPlanOf(options, own, producer->columns()));
  const DeviceOptions& to = *options.to_device;
  std::vector<std::shared_ptr<DeviceRing>> rings;
  for (const std::shared_ptr<Device>& device : to.devices) {
    ASSIGN_OR_RETURN(std::shared_ptr<DeviceRing> ring,
                     DeviceCopier::MakeRing(device, plan, to.buffers, to.timed));
    rings.push_back(std::move(ring));
  }
  return std::unique_ptr<DeviceStage>(new DeviceStage(std::move(rings), std::move(producer)));
}

DeviceStage::DeviceStage(std::vector<std::shared_ptr<DeviceRing>> rings,
                         std::unique_ptr<Producer> producer)
    : producer_(std::move(producer)), rings_(std::move(rings)) {
  const std::lock_guard lock(ends_);
  Begin();
}

Status DeviceStage::Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) {
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
void DeviceStage::Begin() {
  source_ = std::make_unique<Source>(*producer_, waits_);
  copier_ = std::make_unique<DeviceCopier>(
      rings_, *source_,
      DeviceCopierOptions{.across_epochs = true, .trace = &producer_->options().runtime->trace()});
}

Result<SplitBatch> DeviceStage::NextOnDevices(const Interrupt& interrupt) {
  TRY(producer_->options().runtime->CheckProcess());
  const std::lock_guard use(use_);
  if (copier_ == nullptr) return Error{Code::kCancelled, "the loader was stopped"};
  Result<SplitBatch> batch = Take(interrupt);
  if (batch.ok() ? static_cast<bool>(*batch) : source_->ReplacedBatch(batch.error())) Pass();
  return batch;
}

// The end of an epoch is taken together with the next batch, not before: the copier reports it when
// a ring entry is free, and for that the consumer might have to release a batch.
Result<SplitBatch> DeviceStage::Take(const Interrupt& interrupt) {
  Result<SplitBatch> batch = TakeFromCopier(*copier_, waits_, interrupt);
  if (!batch.ok() || *batch || !at_end_) return batch;
  at_end_ = false;
  return TakeFromCopier(*copier_, waits_, interrupt);
}

void DeviceStage::Pass() {
  producer_->CountDelivered();
  ++passed_;
  if (++next_.index != producer_->batches_from(next_.start)) return;
  at_end_ = true;
  next_ = {repeat_ ? next_.epoch : next_.epoch + 1, 0};
}

void DeviceStage::Stop() {
  producer_->Stop();
  End();
}

bool DeviceStage::TryStop() {
  if (!producer_->TryStop()) return false;
  End();
  return true;
}

// Stops and joins the copier's thread; a waiting Next returns Cancelled.
void DeviceStage::End() {
  {
    const std::lock_guard lock(ends_);
    ended_ = true;
    if (copier_ != nullptr) copier_->Stop();
  }
  const std::lock_guard use(use_);
  Drop();
  // Otherwise they would stay pinned as long as any tensor lives.
  for (const auto& ring : rings_) ring->ReleaseHosts();
}

// Requires use_.
void DeviceStage::Drop() {
  std::unique_ptr<Source> source;
  std::unique_ptr<DeviceCopier> copier;  // destroyed first: it uses the source
  const std::lock_guard lock(ends_);
  source.swap(source_);
  copier.swap(copier_);
  if (copier == nullptr) return;
  copier->Stop();
  past_ += copier->Stats();
  waits_.Drop();
}

LoaderStats DeviceStage::Stats() const {
  LoaderStats stats = producer_->Stats();
  waits_.totals().ReplaceWaitsOf(stats);
  return stats;
}

DeviceCopyStats DeviceStage::CopyStats() const {
  const std::lock_guard lock(ends_);
  DeviceCopyStats all = past_;
  if (copier_ != nullptr) all += copier_->Stats();
  AddRingStats(rings_, all);
  return all;
}

const std::vector<ColumnSpec>& DeviceStage::columns() const { return rings_[0]->plan().device; }

}  // namespace stoker
