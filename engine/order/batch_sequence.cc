#include "engine/order/batch_sequence.h"

namespace stoker {

BatchSequence::BatchSequence(Schedule schedule, uint64_t batches_per_epoch, BatchName from,
                             uint64_t end_index, uint64_t end_epoch)
    : schedule_(schedule),
      batches_per_epoch_(batches_per_epoch),
      from_(from),
      end_index_(end_index),
      end_epoch_(end_epoch) {}

std::optional<BatchName> BatchSequence::At(uint64_t number) const {
  if (schedule_ == Schedule::kAppended) {
    if (number < forgotten_ || number - forgotten_ >= appended_.size()) return std::nullopt;
    return appended_[number - forgotten_];
  }
  BatchName batch = from_;
  batch.index += number;
  if (batch.index >= end_index_) {
    const uint64_t later = batch.index - end_index_;
    batch = {from_.epoch, later % batches_per_epoch_};
    if (schedule_ == Schedule::kEpochs) batch.epoch += 1 + later / batches_per_epoch_;
  }
  if (schedule_ == Schedule::kEpochs && batch.epoch >= end_epoch_) return std::nullopt;
  return batch;
}

void BatchSequence::Forget(uint64_t before) {
  while (forgotten_ < before && !appended_.empty()) {
    appended_.pop_front();
    ++forgotten_;
  }
}

}  // namespace stoker
