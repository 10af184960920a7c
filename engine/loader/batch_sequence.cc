#include "engine/loader/batch_sequence.h"

namespace stoker {

BatchSequence::BatchSequence(Schedule schedule, uint64_t batches_per_epoch, BatchName start,
                             uint64_t end_epoch)
    : schedule_(schedule),
      batches_per_epoch_(batches_per_epoch),
      start_(start),
      end_epoch_(end_epoch) {}

std::optional<BatchName> BatchSequence::At(uint64_t number) const {
  if (schedule_ == Schedule::kAppended) {
    if (number < forgotten_ || number - forgotten_ >= appended_.size()) return std::nullopt;
    return appended_[number - forgotten_];
  }
  const uint64_t index = start_.index + number;
  BatchName batch{start_.epoch, index % batches_per_epoch_};
  if (schedule_ == Schedule::kSameEpoch) return batch;
  batch.epoch += index / batches_per_epoch_;
  if (batch.epoch >= end_epoch_) return std::nullopt;
  return batch;
}

void BatchSequence::Forget(uint64_t before) {
  while (forgotten_ < before && !appended_.empty()) {
    appended_.pop_front();
    ++forgotten_;
  }
}

}  // namespace stoker
