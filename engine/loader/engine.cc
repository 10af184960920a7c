#include "engine/loader/engine.h"

#include <optional>
#include <utility>

#include "core/result/try.h"
#include "engine/device/stage_plan.h"
#include "gpu/backend/nvtx.h"

namespace stoker {

Result<std::unique_ptr<Engine>> Engine::Open(LoaderOptions options,
                                             const ProducerOptions& producer_options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Producer> producer,
                   Producer::Open(std::move(options), producer_options));
  std::unique_ptr<Engine> engine(new Engine(std::move(producer)));
  Producer& host = *engine->producer_;
  if (!host.options().to_device) return engine;
  ListenForProfiler(host.options().runtime->trace());
  ASSIGN_OR_RETURN(StagePlan plan, StagePlanOf(host.options(), producer_options, host.columns()));
  const DeviceOptions& to = *host.options().to_device;
  std::vector<std::shared_ptr<DeviceRing>> rings;
  for (const std::shared_ptr<Device>& device : to.devices) {
    ASSIGN_OR_RETURN(std::shared_ptr<DeviceRing> ring,
                     Stager::MakeRing(device, plan, to.buffers, to.timed));
    rings.push_back(std::move(ring));
  }
  engine->staging_ = std::make_unique<Staging>(std::move(rings), host);
  return engine;
}

Engine::~Engine() {
  if (producer_->options().runtime->CheckProcess().ok()) return;
  (void)staging_.release();
  (void)producer_.release();
}

Result<SplitBatch> Engine::NextOnDevices(const Interrupt& interrupt) {
  TRY(producer_->options().runtime->CheckProcess());
  return staging_->Next(interrupt);
}

Status Engine::Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) {
  needs_seek_ = true;
  TRY(staging_ != nullptr ? staging_->Seek(batch, schedule, interrupt)
                          : producer_->Seek(batch, schedule, interrupt));
  schedule_ = schedule;
  needs_seek_ = false;
  return {};
}

bool Engine::IsAt(BatchName batch, Schedule schedule) const {
  return schedule_ == schedule && position() == batch;
}

Status Engine::Append(BatchName batch) { return producer_->Append(batch); }

std::optional<BatchName> Engine::position() const {
  if (needs_seek_) return std::nullopt;
  return staging_ != nullptr ? staging_->position() : producer_->position();
}

uint64_t Engine::passed() const {
  return staging_ != nullptr ? staging_->passed() : producer_->passed();
}

// With a device, the stager consumes the end-of-epoch marker itself.
void Engine::EndEpoch() {
  if (staging_ == nullptr) (void)producer_->Next();
}

void Engine::Stop() {
  producer_->Stop();
  if (staging_ != nullptr) staging_->End();
}

bool Engine::TryStop() {
  if (!producer_->TryStop()) return false;
  if (staging_ != nullptr) staging_->End();
  return true;
}

LoaderStats Engine::Stats() const {
  LoaderStats stats = producer_->Stats();
  if (staging_ != nullptr) staging_->waits().ReplaceWaitsOf(stats);
  return stats;
}

StagerStats Engine::StageStats() const {
  return staging_ != nullptr ? staging_->Stats() : StagerStats();
}

const std::vector<ColumnSpec>& Engine::columns() const {
  return staging_ != nullptr ? staging_->columns() : producer_->columns();
}

}  // namespace stoker
