#include "engine/device/device_loader.h"

#include <mutex>
#include <string>
#include <utility>

#include "core/stage_times.h"
#include "core/try.h"
#include "engine/device/stage_plan.h"
#include "engine/device/staged_waits.h"
#include "engine/loader/loader.h"
#include "gpu/device_ring.h"
#include "gpu/nvtx.h"

namespace stoker {

namespace {

// A loader, which outlives it, as a stager's source.
class LoaderBatches final : public HostBatches {
 public:
  LoaderBatches(Loader& loader, StagedWaits& waits) : loader_(loader), waits_(waits) {}

  Result<Batch> Next(const Interrupt& interrupt) override {
    const uint64_t asked_ns = NowNanoseconds();
    Result<Batch> batch = loader_.Next(interrupt);
    if (batch.ok() && *batch) {
      waits_.OfHost(
          {{batch->epoch(), batch->index()}, asked_ns, NowNanoseconds(), loader_.waited()});
    }
    return batch;
  }

 private:
  Loader& loader_;
  StagedWaits& waits_;
};

}  // namespace

// … assembler → stager → consumer: the last part of the picture in the README.
class DeviceLoader::Impl {
 public:
  Impl(std::unique_ptr<Loader> loader, std::shared_ptr<DeviceRing> ring)
      : loader_(std::move(loader)), ring_(std::move(ring)), batches_(*loader_, waits_) {
    Restart();
  }

  ~Impl() {
    if (!Here()) {  // a forked child: the thread is its parent's
      (void)stager_.release();
      return;
    }
    stager_.reset();
    ring_->LetGoOfHosts();  // else they would be kept, and pinned, as long as any batch is
  }

  Result<DeviceBatch> Next(const Interrupt& interrupt) {
    return TakeStaged(*stager_, waits_, interrupt);
  }

  // What has been copied ahead is dropped.
  Status Seek(uint64_t epoch, uint64_t index) {
    TRY(loader_->CheckSeek(epoch, index));
    {
      std::lock_guard lock(mutex_);
      past_ += stager_->Stats();
      stager_.reset();
    }
    waits_.Drop();
    Status sought = loader_->Seek(epoch, index);
    Restart();
    return sought;
  }

  void Stop() {
    if (!Here()) return;
    std::lock_guard lock(mutex_);
    stopped_ = true;
    if (stager_ != nullptr) stager_->Stop();
    loader_->Stop();
  }

  LoaderStats Stats() const {
    LoaderStats stats = loader_->Stats();
    waits_.totals().PutInto(stats);
    return stats;
  }

  StagerStats StageStats() const {
    if (!Here()) return {};
    std::lock_guard lock(mutex_);
    StagerStats stats = past_;
    if (stager_ != nullptr) stats += stager_->Stats();
    stats.device_bytes = ring_->bytes();
    return stats;
  }

  const Loader& loader() const { return *loader_; }
  const std::vector<ColumnSpec>& columns() const { return ring_->plan().device; }

 private:
  bool Here() const { return loader_->options().runtime->CheckProcess().ok(); }

  void Restart() {
    std::lock_guard lock(mutex_);
    stager_ = std::make_unique<Stager>(
        ring_, batches_,
        StagerOptions{.across_epochs = true, .trace = &loader_->options().runtime->trace()});
    if (stopped_) stager_->Stop();
  }

  const std::unique_ptr<Loader> loader_;
  const std::shared_ptr<DeviceRing> ring_;
  StagedWaits waits_;
  LoaderBatches batches_;
  mutable std::mutex mutex_;        // guards what follows; the consumer's thread alone exchanges it
  std::unique_ptr<Stager> stager_;  // after the loader: it takes from it
  StagerStats past_;                // of stagers that are gone
  bool stopped_ = false;
};

Result<std::unique_ptr<DeviceLoader>> DeviceLoader::Open(LoaderOptions options,
                                                         DeviceOptions device) {
  ASSIGN_OR_RETURN(LoaderOptions for_device,
                   ForDevice(std::move(options), device.device, device.buffers));
  ASSIGN_OR_RETURN(std::unique_ptr<Loader> loader, Loader::Open(std::move(for_device)));
  ListenForProfiler(loader->options().runtime->trace());
  ASSIGN_OR_RETURN(StagePlan plan, StagePlanOf(loader->options(), loader->columns()));
  ASSIGN_OR_RETURN(
      std::shared_ptr<DeviceRing> ring,
      Stager::MakeRing(std::move(device.device), std::move(plan), device.buffers, device.timed));
  return std::unique_ptr<DeviceLoader>(
      new DeviceLoader(std::make_unique<Impl>(std::move(loader), std::move(ring))));
}

DeviceLoader::DeviceLoader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
DeviceLoader::~DeviceLoader() = default;

Result<DeviceBatch> DeviceLoader::Next(const Interrupt& interrupt) {
  return impl_->Next(interrupt);
}
Status DeviceLoader::Seek(uint64_t epoch, uint64_t index) { return impl_->Seek(epoch, index); }
void DeviceLoader::Stop() { impl_->Stop(); }
LoaderStats DeviceLoader::Stats() const { return impl_->Stats(); }
StagerStats DeviceLoader::StageStats() const { return impl_->StageStats(); }
uint64_t DeviceLoader::batches_per_epoch() const { return impl_->loader().batches_per_epoch(); }
const std::vector<ColumnSpec>& DeviceLoader::columns() const { return impl_->columns(); }

}  // namespace stoker
