#include "engine/loader/loader.h"

#include <utility>

#include "core/result/try.h"
#include "engine/order/batch_sequence.h"
#include "engine/production/batches/batch_maker.h"

namespace stoker {

Iterator::Iterator(std::shared_ptr<Loader> loader, std::optional<uint64_t> epoch, bool repeat)
    : loader_(std::move(loader)), repeat_(repeat), epoch_(epoch) {}

Iterator::~Iterator() {
  if (taken_) loader_->epochs().Return(*taken_);
}

std::optional<BatchName> Iterator::position() const {
  if (appended_ || !epoch_) return std::nullopt;
  return BatchName{*epoch_, index_, start_};
}

Result<Batch> Iterator::Next(const Interrupt& interrupt) {
  Result<Batch> batch = Fetch(interrupt);
  if (batch.ok()) Accept();
  return batch;
}

Result<Batch> Iterator::Fetch(const Interrupt& interrupt) {
  if (loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader's batches go to a device",
                 .advice = "Take them by " + loader_->options().to_device->next_function() +
                           ", or open a loader without to_device"};
  }
  Result<Batch> batch = FetchBy(&BatchMaker::Next, interrupt);
  if (batch.ok()) loader_->NoteLent();
  return batch;
}

Result<SplitBatch> Iterator::NextOnDevices(const Interrupt& interrupt) {
  Result<SplitBatch> batch = FetchOnDevices(interrupt);
  if (batch.ok()) Accept();
  return batch;
}

Result<SplitBatch> Iterator::FetchOnDevices(const Interrupt& interrupt) {
  if (!loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader has no device",
                 .advice = "Take them by Next, or open a loader with to_device"};
  }
  Result<SplitBatch> batch = FetchBy(&BatchMaker::NextOnDevices, interrupt);
  if (batch.ok() && loader_->options().map != nullptr) loader_->NoteLent();  // it may keep batches
  return batch;
}

Result<DeviceBatch> Iterator::NextOnDevice(const Interrupt& interrupt) {
  Result<DeviceBatch> batch = FetchOnDevice(interrupt);
  if (batch.ok()) Accept();
  return batch;
}

Result<DeviceBatch> Iterator::FetchOnDevice(const Interrupt& interrupt) {
  if (const auto& to = loader_->options().to_device; to && to->devices.size() > 1) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "this loader splits its batches among " +
                          std::to_string(to->devices.size()) + " devices",
                 .advice = "Take them by NextOnDevices"};
  }
  ASSIGN_OR_RETURN(SplitBatch batch, FetchOnDevices(interrupt));
  return std::move(batch).Whole();
}

template <typename AnyBatch>
Result<AnyBatch> Iterator::FetchBy(NextOf<AnyBatch> next, const Interrupt& interrupt) {
  if (!epoch_ && !appended_) TakePlace();
  Result<AnyBatch> batch = FetchHere(next, interrupt);
  pending_ = batch.ok();
  if (!batch.ok()) ReturnPlace();  // another iteration may take it meanwhile
  return batch;
}

template <typename AnyBatch>
Result<AnyBatch> Iterator::FetchHere(NextOf<AnyBatch> next, const Interrupt& interrupt) {
  while (true) {
    TRY(loader_->CheckBad());
    if (AtEnd()) return AnyBatch();
    if (maker_ == nullptr) TRY(FindMaker(interrupt));
    const uint64_t before = maker_->passed();
    Result<AnyBatch> batch = ((*maker_).*next)(interrupt);
    const uint64_t passed = maker_->passed() - before;
    fetched_ += passed;
    if (AtEnd()) {
      maker_->EndEpoch();
      maker_.reset();  // returns it to the loader, for the next iteration
    }
    if (!batch.ok() && passed != 0) Accept();
    // A batch that was asked for by name is delivered even if it has lost all its rows.
    const bool left_out = !appended_ && batch.ok() && *batch && batch->rows() == 0;
    if (!left_out) return batch;
  }
}

void Iterator::Accept() {
  index_ += fetched_;
  passed_ += fetched_;
  pending_ = false;
  accepted_ = {std::exchange(fetched_, 0), std::exchange(taken_, std::nullopt)};
  if (const auto next = position(); reported_ && next) reported_->Set(*next);
  const bool begins = std::exchange(counts_, false);
  if (accepted_.used) return loader_->epochs().Use(*accepted_.used, begins ? reported_ : nullptr);
  if (begins) loader_->epochs().SetLatest(reported_);
}

void Iterator::ReportTo(std::shared_ptr<Position> position, bool counts) {
  reported_ = std::move(position);
  counts_ = counts;
}

void Iterator::TakeBack() {
  const auto [batches, used] = std::exchange(accepted_, {});
  if (batches == 0 || appended_) return;
  passed_ -= batches;
  SetPlace({*epoch_, index_ - batches, start_});
  if (!used) return;
  epoch_.reset();
  loader_->epochs().Return(*used);
}

void Iterator::TakePlace() { BeginAt(loader_->epochs().Take()); }

void Iterator::BeginAt(EpochCounter::Taken taken) {
  postponed_.reset();
  taken_ = taken;
  SetPlace(taken.place);
}

BatchName Iterator::Begin() {
  TakePlace();
  Accept();
  return *position();
}

// Does nothing once the place is used up.
void Iterator::ReturnPlace() {
  if (!taken_) return;
  if (pending_) postponed_ = {taken_->place, fetched_};
  SetPlace({});
  epoch_.reset();
  loader_->epochs().Return(*std::exchange(taken_, std::nullopt));
}

bool Iterator::Resume() {
  if (!postponed_) return pending_;
  const Postponed before = *std::exchange(postponed_, std::nullopt);
  TakePlace();
  pending_ = taken_->place == before.place;
  if (pending_) fetched_ = before.fetched;
  return pending_;
}

void Iterator::SetPlace(BatchName batch) {
  maker_.reset();
  appended_ = false;
  epoch_ = batch.epoch;
  index_ = batch.index;
  start_ = batch.start;
  fetched_ = 0;
  pending_ = false;
  accepted_ = {};
}

Status Iterator::FindMaker(const Interrupt& interrupt) {
  const Schedule schedule = repeat_ ? Schedule::kSameEpoch : Schedule::kEpochs;
  const BatchName next{*epoch_, index_ + fetched_, start_};
  ASSIGN_OR_RETURN(maker_, loader_->Borrow(next, schedule, interrupt));
  return {};
}

Status Iterator::Seek(BatchName batch) {
  if (const uint64_t batches = loader_->batches_from(batch.start); batch.index > batches) {
    return Error{Code::kInvalidArgument, "Seek to batch " + std::to_string(batch.index) +
                                             " of an epoch that has " + std::to_string(batches)};
  }
  ReturnPlace();
  postponed_.reset();
  SetPlace(batch);
  return {};
}

std::string Iterator::state() const {
  const std::optional<BatchName> next = position();
  if (!next) return loader_->StateAt(loader_->epochs().next_place());
  const bool ended = next->index == loader_->batches_from(next->start);  // not what is only fetched
  return loader_->StateAt(ended ? BatchName{next->epoch + 1, 0} : *next);
}

Status Iterator::Restore(std::string_view state) {
  ASSIGN_OR_RETURN(const BatchName next, loader_->PlaceOf(state));
  BeginAt(loader_->epochs().RestoreAndTake(next));
  return {};
}

Status Iterator::Append(BatchName batch) {
  if (loader_->options().to_device) {
    return Error{.code = Code::kFailedPrecondition,
                 .cause = "batches that go to a device cannot be appended",
                 .advice = "Append to an iteration of a loader without to_device"};
  }
  if (!appended_) {
    ReturnPlace();
    postponed_.reset();
    fetched_ = 0;
    pending_ = false;
    maker_.reset();
    ASSIGN_OR_RETURN(maker_, loader_->Borrow(batch, Schedule::kAppended, {}));
    appended_ = true;
  }
  return maker_->Append(batch);
}

}  // namespace stoker
