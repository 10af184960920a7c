// BatchSequence: the sequence of batches that a loader makes.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "core/batch/batch.h"

namespace stoker {

enum class Schedule {
  kEpochs,     // from the start through the epochs
  kSameEpoch,  // from the start; at its end the same epoch begins again
  kAppended,   // exactly the batches given to Append
};

// Not thread-safe.
class BatchSequence {
 public:
  // kEpochs ends before `end_epoch`; kSameEpoch never ends; kAppended ignores `from`. The epoch of
  // `from` ends after the index `end_index`; all others are whole and have `batches_per_epoch`
  // batches.
  BatchSequence(Schedule schedule, uint64_t batches_per_epoch, BatchName from, uint64_t end_index,
                uint64_t end_epoch);

  // The batch at index `number` of the sequence; nullopt past the end, or if it was not appended
  // yet.
  std::optional<BatchName> At(uint64_t number) const;

  // Precondition: schedule() is kAppended.
  void Append(BatchName batch) { appended_.push_back(batch); }

  // Drops the batches before index `before`: they will not be passed to At again.
  void Forget(uint64_t before);

  Schedule schedule() const { return schedule_; }

 private:
  Schedule schedule_;
  uint64_t batches_per_epoch_;
  BatchName from_;
  uint64_t end_index_;
  uint64_t end_epoch_;
  uint64_t forgotten_ = 0;  // number of batches before appended_.front()
  std::deque<BatchName> appended_;
};

}  // namespace stoker
