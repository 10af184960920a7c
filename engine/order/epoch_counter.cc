#include "engine/order/epoch_counter.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stoker {

namespace {

bool Earlier(const BatchName& a, const BatchName& b) {
  return std::tie(a.epoch, a.index, a.start) < std::tie(b.epoch, b.index, b.start);
}

bool IsInTheMiddle(const BatchName& place) { return place.index != 0 || place.start != 0; }

}  // namespace

std::optional<BatchName> Position::Get() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

void Position::Set(const BatchName& at) {
  const std::lock_guard lock(mutex_);
  position_ = at;
}

EpochCounter::Taken EpochCounter::Take() {
  const std::lock_guard lock(mutex_);
  return TakeFirst();
}

EpochCounter::Taken EpochCounter::TakeFirst() {
  BatchName place{next_, 0};
  if (free_.empty()) {
    ++next_;
  } else {
    place = free_.front();
    free_.erase(free_.begin());
  }
  taken_.push_back(place);
  return {place, order_};
}

void EpochCounter::Use(const Taken& taken, std::shared_ptr<const Position> latest) {
  const std::lock_guard lock(mutex_);
  if (taken.order != order_) return;
  std::erase(taken_, taken.place);
  if (latest != nullptr) latest_ = std::move(latest);
}

void EpochCounter::Return(const Taken& taken) {
  const std::lock_guard lock(mutex_);
  if (taken.order != order_) return;
  std::erase(taken_, taken.place);
  free_.insert(std::ranges::upper_bound(free_, taken.place, Earlier), taken.place);
}

BatchName EpochCounter::next_place() const {
  const std::lock_guard lock(mutex_);
  return free_.empty() ? BatchName{next_, 0} : free_.front();
}

std::optional<BatchName> EpochCounter::restored() const {
  const std::lock_guard lock(mutex_);
  return InTheMiddle();
}

std::optional<BatchName> EpochCounter::InTheMiddle() const {
  for (const auto* places : {&free_, &taken_}) {
    const auto found = std::ranges::find_if(*places, IsInTheMiddle);
    if (found != places->end()) return *found;
  }
  return std::nullopt;
}

void EpochCounter::set_next(uint64_t epoch) {
  const std::lock_guard lock(mutex_);
  const std::optional<BatchName> kept = InTheMiddle();
  ResetTo(kept && kept->epoch == epoch ? *kept : BatchName{epoch, 0});
}

void EpochCounter::Restore(BatchName place) {
  const std::lock_guard lock(mutex_);
  ResetTo(place);
}

EpochCounter::Taken EpochCounter::RestoreAndTake(BatchName place) {
  const std::lock_guard lock(mutex_);
  ResetTo(place);
  return TakeFirst();
}

void EpochCounter::ResetTo(BatchName place) {
  if (IsInTheMiddle(place)) return Reset({place}, place.epoch + 1);
  Reset({}, place.epoch);
}

void EpochCounter::Reset(std::vector<BatchName> free, uint64_t next) {
  free_ = std::move(free);
  taken_.clear();
  next_ = next;
  ++order_;
  latest_ = nullptr;
}

BatchName EpochCounter::first_unused() const {
  const std::lock_guard lock(mutex_);
  BatchName first{next_, 0};
  for (const auto* places : {&free_, &taken_}) {
    for (const BatchName& place : *places) first = std::min(first, place, Earlier);
  }
  return first;
}

void EpochCounter::SetLatest(std::shared_ptr<const Position> position) {
  const std::lock_guard lock(mutex_);
  latest_ = std::move(position);
}

std::optional<BatchName> EpochCounter::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_ != nullptr ? latest_->Get() : std::nullopt;
}

}  // namespace stoker
