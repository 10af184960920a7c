#include "engine/loader/cursor.h"

#include <utility>

#include "core/try.h"

namespace stoker {

Cursor::Cursor(std::shared_ptr<SharedLoader> shared, std::optional<uint64_t> epoch, bool repeat)
    : shared_(std::move(shared)), repeat_(repeat), epoch_(epoch) {}

Cursor::~Cursor() {
  if (took_epoch_ && passed_ == 0) shared_->epochs().GiveBack(*epoch_);
}

std::optional<BatchName> Cursor::position() const {
  if (appended_ || !epoch_) return std::nullopt;
  return BatchName{*epoch_, index_};
}

Result<Batch> Cursor::Next(const Interrupt& interrupt) {
  if (!appended_ && index_ == shared_->batches_per_epoch()) return Batch();
  if (!engine_) {
    if (Status s = FindEngine(); !s.ok()) return std::move(s).error();
  }
  Loader& loader = engine_.loader();
  const uint64_t before = loader.passed();
  Result<Batch> batch = loader.Next(interrupt);
  const uint64_t passed = loader.passed() - before;
  passed_ += passed;
  index_ += passed;
  waited_ = loader.waited();
  if (!appended_ && index_ == shared_->batches_per_epoch()) {
    (void)loader.Next();  // says that the epoch has ended, and is done with it
    engine_ = {};         // back to where the next iteration finds it
  }
  if (batch.ok()) shared_->NoteLent();
  return batch;
}

Status Cursor::FindEngine() {
  if (!epoch_) {
    epoch_ = shared_->epochs().Take();
    took_epoch_ = true;
  }
  const Schedule schedule = repeat_ ? Schedule::kSameEpoch : Schedule::kEpochs;
  Result<SharedLoader::Lease> engine = shared_->Borrow({*epoch_, index_}, schedule);
  if (!engine.ok()) return std::move(engine).error();
  engine_ = *std::move(engine);
  return {};
}

Status Cursor::Seek(BatchName batch) {
  if (batch.index > shared_->batches_per_epoch()) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(batch.index) +
                                             " of an epoch that has " +
                                             std::to_string(shared_->batches_per_epoch())};
  }
  engine_ = {};
  took_epoch_ = false;  // the caller knows better
  appended_ = false;
  epoch_ = batch.epoch;
  index_ = batch.index;
  return {};
}

Status Cursor::Append(BatchName batch) {
  if (!appended_) {
    engine_ = {};
    ASSIGN_OR_RETURN(engine_, shared_->Borrow(batch, Schedule::kAppended));
    appended_ = true;
  }
  return engine_.loader().Append(batch.epoch, batch.index);
}

}  // namespace stoker
