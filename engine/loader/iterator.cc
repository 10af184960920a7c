#include "engine/loader/loader.h"

#include <utility>

#include "core/try.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/engine.h"

namespace stoker {

Iterator::Iterator(std::shared_ptr<Loader> loader, std::optional<uint64_t> epoch, bool repeat)
    : loader_(std::move(loader)), repeat_(repeat), epoch_(epoch) {}

Iterator::~Iterator() {
  if (took_epoch_ && passed_ == 0) loader_->epochs().Return(*epoch_);
}

std::optional<BatchName> Iterator::position() const {
  if (appended_ || !epoch_) return std::nullopt;
  return BatchName{*epoch_, index_, start_};
}

Result<Batch> Iterator::Next(const Interrupt& interrupt) {
  if (loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader's batches go to a device",
                 .advice = "Take them by " + loader_->options().to_device->next_function() +
                           ", or open a loader without to_device"};
  }
  Result<Batch> batch = Take(&Engine::Next, interrupt);
  if (batch.ok()) loader_->NoteLent();
  return batch;
}

Result<SplitBatch> Iterator::NextOnDevices(const Interrupt& interrupt) {
  if (!loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader has no device",
                 .advice = "Take them by Next, or open a loader with to_device"};
  }
  Result<SplitBatch> batch = Take(&Engine::NextOnDevices, interrupt);
  if (batch.ok() && loader_->options().map != nullptr) loader_->NoteLent();  // it may keep batches
  return batch;
}

Result<DeviceBatch> Iterator::NextOnDevice(const Interrupt& interrupt) {
  if (const auto& to = loader_->options().to_device; to && to->devices.size() > 1) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader splits its batches among " +
                          std::to_string(to->devices.size()) + " devices",
                 .advice = "Take them by NextOnDevices"};
  }
  ASSIGN_OR_RETURN(SplitBatch batch, NextOnDevices(interrupt));
  return std::move(batch).Whole();
}

template <typename AnyBatch>
Result<AnyBatch> Iterator::Take(Result<AnyBatch> (Engine::*next)(const Interrupt&),
                                const Interrupt& interrupt) {
  while (true) {
    TRY(loader_->CheckBad());
    if (AtEnd()) return AnyBatch();
    if (engine_ == nullptr) TRY(FindEngine(interrupt));
    const uint64_t before = engine_->passed();
    Result<AnyBatch> batch = ((*engine_).*next)(interrupt);
    const uint64_t passed = engine_->passed() - before;
    passed_ += passed;
    index_ += passed;
    if (AtEnd()) {
      engine_->EndEpoch();
      engine_.reset();  // returns it to the loader, for the next iteration
    }
    // A batch that was asked for by name is delivered even if it has lost all its rows.
    const bool left_out = !appended_ && batch.ok() && *batch && batch->rows() == 0;
    if (!left_out) return batch;
  }
}

Status Iterator::FindEngine(const Interrupt& interrupt) {
  if (!epoch_) {
    epoch_ = loader_->epochs().Take();
    took_epoch_ = true;
  }
  const Schedule schedule = repeat_ ? Schedule::kSameEpoch : Schedule::kEpochs;
  ASSIGN_OR_RETURN(engine_, loader_->Borrow({*epoch_, index_, start_}, schedule, interrupt));
  return {};
}

Status Iterator::Seek(BatchName batch) {
  if (const uint64_t batches = loader_->batches_from(batch.start); batch.index > batches) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(batch.index) +
                                             " of an epoch that has " + std::to_string(batches)};
  }
  engine_.reset();
  took_epoch_ = false;  // the caller chose the epoch
  appended_ = false;
  epoch_ = batch.epoch;
  index_ = batch.index;
  start_ = batch.start;
  return {};
}

std::string Iterator::state() const {
  const std::optional<BatchName> next = position();
  if (!next) return loader_->StateAt({loader_->epochs().next(), 0});
  return loader_->StateAt(AtEnd() ? BatchName{next->epoch + 1, 0} : *next);
}

Status Iterator::Restore(std::string_view state) {
  ASSIGN_OR_RETURN(const BatchName next, loader_->PlaceOf(state));
  TRY(Seek(next));
  loader_->epochs().set_next(next.epoch + 1);
  return {};
}

Status Iterator::Append(BatchName batch) {
  if (loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "batches that go to a device cannot be appended",
                 .advice = "Append to an iteration of a loader without to_device"};
  }
  if (!appended_) {
    engine_.reset();
    ASSIGN_OR_RETURN(engine_, loader_->Borrow(batch, Schedule::kAppended, {}));
    appended_ = true;
  }
  return engine_->Append(batch);
}

}  // namespace stoker
