#include <utility>

#include "engine/pipeline/shared_loader.h"

namespace stoker {

Cursor::Cursor(std::shared_ptr<SharedLoader> shared, std::optional<uint64_t> epoch, bool repeat)
    : shared_(std::move(shared)), repeat_(repeat), epoch_(epoch) {}

Cursor::~Cursor() { LeaveEngine(); }

void Cursor::LeaveEngine() {
  if (engine_) shared_->Return(std::exchange(engine_, {}));
}

BatchName Cursor::position() {
  if (appended_) return engine_ ? engine_.loader->position() : BatchName{};
  if (!epoch_) epoch_ = shared_->epochs().Take();
  return {*epoch_, index_};
}

Result<Batch> Cursor::Next(const Interrupt& interrupt) {
  const BatchName here = position();
  const uint64_t per_epoch = shared_->batches_per_epoch();
  if (!appended_ && here.index == per_epoch) return Batch();
  if (!engine_) {
    const Schedule schedule = repeat_ ? Schedule::kSameEpoch : Schedule::kEpochs;
    Result<SharedLoader::Engine> engine = shared_->Borrow(here, schedule);
    if (!engine.ok()) return std::move(engine).error();
    engine_ = *std::move(engine);
  }
  Loader& loader = *engine_.loader;
  Result<Batch> batch = loader.Next(interrupt);
  if (appended_) return batch;
  if (loader.at_epoch_end()) {
    (void)loader.Next();  // says so, and is done with it
    index_ = per_epoch;
    LeaveEngine();
  } else {
    index_ = loader.position().index;
  }
  shared_->NoteLent();
  return batch;
}

Status Cursor::Seek(BatchName batch) {
  if (batch.index > shared_->batches_per_epoch()) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(batch.index) +
                                             " of an epoch that has " +
                                             std::to_string(shared_->batches_per_epoch())};
  }
  LeaveEngine();
  appended_ = false;
  epoch_ = batch.epoch;
  index_ = batch.index;
  shared_->epochs().Pass(batch.epoch);
  return {};
}

Status Cursor::Append(BatchName batch) {
  if (!appended_) {
    LeaveEngine();
    Result<SharedLoader::Engine> engine = shared_->Borrow(batch, Schedule::kAppended);
    if (!engine.ok()) return std::move(engine).error();
    engine_ = *std::move(engine);
    appended_ = true;
  }
  return engine_.loader->Append(batch.epoch, batch.index);
}

}  // namespace stoker
