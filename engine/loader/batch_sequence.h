// BatchSequence: which batches a loader makes, one after another.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace stoker {

// A batch by its name: the same options make the same bytes of it, whenever it is made.
struct BatchName {
  uint64_t epoch = 0;
  uint64_t index = 0;  // in its epoch
  friend bool operator==(const BatchName&, const BatchName&) = default;
};

enum class Schedule {
  kEpochs,     // from the start through the epochs
  kSameEpoch,  // from the start; at its end the same epoch begins again
  kAppended,   // those that Append names, and no others
};

// One thread at a time.
class BatchSequence {
 public:
  // kEpochs ends before `end_epoch`; kSameEpoch never; kAppended ignores `start`.
  BatchSequence(Schedule schedule, uint64_t batches_per_epoch, BatchName start, uint64_t end_epoch);

  // The batch at `place`, counted from 0; none beyond the end, or where none was appended yet.
  std::optional<BatchName> At(uint64_t place) const;

  // Precondition: kAppended.
  void Append(BatchName batch) { appended_.push_back(batch); }

  // Places before this one will not be asked for again.
  void Forget(uint64_t before);

  Schedule schedule() const { return schedule_; }

 private:
  Schedule schedule_;
  uint64_t batches_per_epoch_;
  BatchName start_;
  uint64_t end_epoch_;
  uint64_t forgotten_ = 0;  // places before appended_.front()
  std::deque<BatchName> appended_;
};

}  // namespace stoker
