// EpochCounter: decides where each iteration of a loader begins. Position: how far an iteration has
// come.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"

namespace stoker {

// The next batch of an iteration; nullopt while it has no epoch. Never blocks: a signal handler may
// call it while the iteration waits for a batch. May outlive the iteration.
class Position {
 public:
  std::optional<BatchName> Get() const;
  void Set(const BatchName& at);

 private:
  mutable std::mutex mutex_;
  std::optional<BatchName> position_;
};

// An iteration begins at a place: at batch 0 of an epoch, or where a restored state was saved, in
// the middle of one. It takes a place when its first batch is requested, and uses it up when the
// caller has that batch, the error that replaces it or, if nothing of the epoch is left, the end. A
// place that was taken and is not used up, because the request failed or the iteration was dropped,
// is free again. The earliest free place is the next one. So no epoch is repeated or skipped, and a
// restored place is kept until one of its batches is delivered. Only the program changes this
// order, by set_next and Restore.
//
// Thread-safe.
class EpochCounter {
 public:
  // A place that an iteration has taken.
  struct Taken {
    BatchName place;
    uint64_t order = 0;  // how often the program had changed the order
  };

  Taken Take();
  // Exactly one of these follows each Take. Neither has any effect after set_next or Restore.
  // `latest`: if not null, StatePlace describes this iteration from now on.
  void Use(const Taken& taken, std::shared_ptr<const Position> latest = nullptr);
  void Return(const Taken& taken);

  BatchName next_place() const;  // the place that Take would return
  uint64_t next() const { return next_place().epoch; }
  // The restored place, if it is in the middle of an epoch, until it is used up.
  std::optional<BatchName> restored() const;

  // Makes `epoch` the next one, even an earlier one. A restored place in its middle is kept.
  void set_next(uint64_t epoch);
  // Makes `place` the next one; the epoch after it follows.
  void Restore(BatchName place);
  Taken RestoreAndTake(BatchName place);  // no other iteration takes it in between

  // The place that a state saves: the next batch of the latest iteration that has delivered one;
  // failing that, a restored place that is not used up; otherwise the first free place. There is
  // only one: a program that resumes continues one of its concurrent iterations, then the epochs
  // after it. `latest_ended`: whether nothing is left after a batch.
  template <typename Ended>
  BatchName StatePlace(const Ended& latest_ended) const {
    if (const auto place = restored()) return *place;
    const BatchName unused = first_unused();  // first: an iteration may begin meanwhile
    const std::optional<BatchName> at = latest();
    return at && !latest_ended(*at) ? *at : unused;
  }
  // Notes that an iteration that took no place has delivered its first batch.
  void SetLatest(std::shared_ptr<const Position> position);

 private:
  // These require mutex_.
  Taken TakeFirst();
  std::optional<BatchName> InTheMiddle() const;
  void ResetTo(BatchName place);
  void Reset(std::vector<BatchName> free, uint64_t next);

  BatchName first_unused() const;
  std::optional<BatchName> latest() const;

  mutable std::mutex mutex_;
  uint64_t next_ = 0;  // all later epochs are free, too
  uint64_t order_ = 0;
  std::vector<BatchName> free_;  // earlier places, in order
  std::vector<BatchName> taken_;
  std::shared_ptr<const Position> latest_;
};

}  // namespace stoker
