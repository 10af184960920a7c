// Assembler: rows become batches, in order. It knows which batches are in production, hands out
// their rows one by one, counts the rows that are missing, and delivers a batch when none is.
//
// A row's place in its batch is fixed before it is read, so workers write pixels to their final
// address and the order costs nothing. The batches in production are the only back-pressure.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/core/result.h"
#include "engine/core/slot_pool.h"
#include "engine/pipeline/order.h"

namespace stoker {

// A row to fill: which, and where.
struct RowTicket {
  uint64_t batch = 0;  // counted over all epochs: epoch × batches_per_epoch + index
  uint32_t row = 0;
  Slot* slot = nullptr;
};

class Assembler {
 public:
  // Produces batches [first, last), at most `depth` of them at a time; the slot pool has that many
  // working slots. `order` outlives it.
  Assembler(const EpochOrder& order, std::shared_ptr<SlotPool> pool, int depth, uint64_t first,
            uint64_t last);
  ~Assembler();  // precondition: every claimed row is finished

  // The next row to read; none while all rows in production are taken. Any thread; no lock.
  std::optional<RowTicket> Claim();

  // The row is written, or it failed: then the whole batch does, with the error of its lowest row.
  // Any thread; a lock only for the last row of a batch and for failures.
  void Finish(const RowTicket& ticket, Status status);

  // Production stops short when the system has no memory for a slot. Opens what the depth allows
  // and says whether that was anything: then there are rows to claim. ResourceExhausted when not
  // even the next batch is open.
  Result<bool> Reopen();

  // Waits for the next batch in order and opens another in its place. An error takes the place of a
  // batch with a bad row; the call after it delivers the next batch. Cancelled after Cancel().
  // Precondition: position() < last, and Reopen has succeeded since. One thread at a time.
  Result<Batch> Take();

  // The batch that Take would deliver next, counted over all epochs.
  uint64_t position() const { return next_; }

  // From now on Take returns Cancelled, at once, also where it waits already. Any thread.
  void Cancel();

  uint64_t wait_ns() const { return wait_ns_.load(std::memory_order_relaxed); }

 private:
  struct Entry {  // a batch in production
    Slot* slot = nullptr;
    uint32_t rows = 0;
    std::atomic<uint32_t> missing{0};
    uint32_t failures = 0;       // under mutex_
    uint32_t failed_row = 0;     // the lowest; under mutex_
    std::optional<Error> error;  // of failed_row; under mutex_
  };

  Entry& EntryOf(uint64_t batch) { return window_[batch % window_.size()]; }
  void OpenBatches();  // as many as the depth allows; under mutex_
  Result<Batch> Deliver(Entry& entry);

  const EpochOrder& order_;
  const std::shared_ptr<SlotPool> pool_;
  const uint64_t first_;
  const uint64_t last_;
  const uint64_t batch_size_;
  std::vector<Entry> window_;
  std::atomic<uint64_t> claimed_{0};  // rows handed out, counted as if every batch were full
  std::atomic<uint64_t> opened_{0};   // batches opened, from first_
  uint64_t next_;                     // batch to deliver
  std::mutex mutex_;
  std::condition_variable ready_;
  bool cancelled_ = false;  // under mutex_
  std::atomic<uint64_t> wait_ns_{0};
};

}  // namespace stoker
