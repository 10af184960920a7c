#include "engine/device/shared_device_loader.h"

#include <utility>

#include "core/try.h"
#include "engine/device/stage_plan.h"
#include "engine/device/staging.h"
#include "gpu/nvtx.h"

namespace stoker {

Result<std::shared_ptr<SharedDeviceLoader>> SharedDeviceLoader::Open(
    LoaderOptions options, DeviceOptions device, std::shared_ptr<EpochCounter> epochs) {
  ASSIGN_OR_RETURN(LoaderOptions for_device,
                   ForDevice(std::move(options), device.device, device.buffers));
  ASSIGN_OR_RETURN(std::shared_ptr<SharedLoader> host,
                   SharedLoader::Open(std::move(for_device), std::move(epochs)));
  ListenForProfiler(host->options().runtime->trace());
  ASSIGN_OR_RETURN(StagePlan plan, StagePlanOf(host->options(), host->columns()));
  std::shared_ptr<SharedDeviceLoader> made(
      new SharedDeviceLoader(std::move(host), std::move(device), std::move(plan)));
  ASSIGN_OR_RETURN(made->idle_, made->MakeStaging());
  return made;
}

SharedDeviceLoader::SharedDeviceLoader(std::shared_ptr<SharedLoader> host, DeviceOptions device,
                                       StagePlan plan)
    : host_(std::move(host)), device_(std::move(device)), plan_(std::move(plan)) {}

SharedDeviceLoader::~SharedDeviceLoader() = default;

std::unique_ptr<DeviceCursor> SharedDeviceLoader::Iterate(std::optional<uint64_t> epoch,
                                                          bool repeat) {
  return std::unique_ptr<DeviceCursor>(new DeviceCursor(shared_from_this(), epoch, repeat));
}

Result<std::shared_ptr<Staging>> SharedDeviceLoader::MakeStaging() {
  ASSIGN_OR_RETURN(std::shared_ptr<DeviceRing> ring,
                   Stager::MakeRing(device_.device, plan_, device_.buffers));
  return std::make_shared<Staging>(std::move(ring), *host_);
}

Result<std::shared_ptr<Staging>> SharedDeviceLoader::Borrow(BatchName batch, bool repeat) {
  TRY(host_->options().runtime->CheckProcess());
  const Error was_stopped{Code::kCancelled, "the loader was stopped"};
  std::unique_lock lock(mutex_);
  if (stopped_) return was_stopped;
  std::shared_ptr<Staging> staging = std::exchange(idle_, nullptr);
  if (staging == nullptr) {
    lock.unlock();
    Result<std::shared_ptr<Staging>> made = MakeStaging();
    if (!made.ok()) return made;
    staging = *std::move(made);
    lock.lock();
    if (stopped_) return was_stopped;
  }
  busy_.push_back(staging);
  lock.unlock();
  staging->GoTo(batch, repeat);
  return staging;
}

void SharedDeviceLoader::Return(std::shared_ptr<Staging> staging) {
  if (!host_->options().runtime->CheckProcess().ok()) return;
  const std::lock_guard lock(mutex_);
  std::erase(busy_, staging);
  if (idle_ == nullptr && !stopped_) {
    idle_.swap(staging);
  } else {
    past_waits_ += staging->waits();
    past_ += staging->Stats();  // it goes with the argument, without the lock
  }
}

void SharedDeviceLoader::Stop() {
  if (!host_->options().runtime->CheckProcess().ok()) return;
  host_->Stop();
  std::vector<std::shared_ptr<Staging>> all;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    all = busy_;
    if (idle_ != nullptr) {
      past_ += idle_->Stats();
      past_waits_ += idle_->waits();
      all.push_back(std::exchange(idle_, nullptr));
    }
  }
  for (const std::shared_ptr<Staging>& staging : all) staging->End();
}

LoaderStats SharedDeviceLoader::Stats() const {
  LoaderStats stats = host_->Stats();
  if (!host_->options().runtime->CheckProcess().ok()) return stats;
  const std::lock_guard lock(mutex_);
  StagedWaits::Totals all = past_waits_;
  if (idle_ != nullptr) all += idle_->waits();
  for (const std::shared_ptr<Staging>& staging : busy_) all += staging->waits();
  all.PutInto(stats);
  return stats;
}

StagerStats SharedDeviceLoader::StageStats() const {
  if (!host_->options().runtime->CheckProcess().ok()) return {};
  const std::lock_guard lock(mutex_);
  StagerStats all = past_;
  const auto add = [&all](const Staging& staging) {
    const StagerStats one = staging.Stats();
    all += one;
    all.device_bytes += one.device_bytes;
  };
  if (idle_ != nullptr) add(*idle_);
  for (const std::shared_ptr<Staging>& staging : busy_) add(*staging);
  return all;
}

DeviceCursor::DeviceCursor(std::shared_ptr<SharedDeviceLoader> shared,
                           std::optional<uint64_t> epoch, bool repeat)
    : shared_(std::move(shared)), repeat_(repeat), epoch_(epoch) {}

DeviceCursor::~DeviceCursor() {
  LetGo();
  if (took_epoch_ && passed_ == 0) shared_->host().epochs().GiveBack(*epoch_);
}

void DeviceCursor::LetGo() {
  if (staging_ != nullptr) shared_->Return(std::exchange(staging_, nullptr));
}

Result<DeviceBatch> DeviceCursor::Next(const Interrupt& interrupt) {
  TRY(shared_->host().options().runtime->CheckProcess());
  if (index_ == shared_->host().batches_per_epoch()) return DeviceBatch();
  if (staging_ == nullptr) {
    if (!epoch_) {
      epoch_ = shared_->host().epochs().Take();
      took_epoch_ = true;
    }
    Result<std::shared_ptr<Staging>> staging = shared_->Borrow({*epoch_, index_}, repeat_);
    if (!staging.ok()) return std::move(staging).error();
    staging_ = *std::move(staging);
  }
  const uint64_t before = staging_->passed();
  Result<DeviceBatch> batch = staging_->Next(interrupt);
  const uint64_t passed = staging_->passed() - before;
  passed_ += passed;
  index_ += passed;
  if (index_ == shared_->host().batches_per_epoch()) LetGo();  // to where the next one finds it
  return batch;
}

Status DeviceCursor::Seek(BatchName batch) {
  const uint64_t most = shared_->host().batches_per_epoch();
  if (batch.index > most) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(batch.index) +
                                             " of an epoch that has " + std::to_string(most)};
  }
  LetGo();
  took_epoch_ = false;  // the caller knows better
  epoch_ = batch.epoch;
  index_ = batch.index;
  return {};
}

std::optional<BatchName> DeviceCursor::position() const {
  if (!epoch_) return std::nullopt;
  return BatchName{*epoch_, index_};
}

}  // namespace stoker
