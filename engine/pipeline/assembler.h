// Assembler: rows become batches, in order. It knows which batches are in production, hands out
// their rows one by one, counts the rows that are missing, and delivers a batch when none is.
//
// A row's place in its batch is fixed before it is read, so workers write pixels to their final
// address and the order costs nothing. The batches in production are the only back-pressure.
//
// Claim, Finish and Complete may be called on any thread; all else on the consumer's, but Cancel.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/core/interrupt.h"
#include "engine/core/result.h"
#include "engine/core/slot_pool.h"
#include "engine/pipeline/batch_sequence.h"
#include "engine/pipeline/order.h"

namespace stoker {

// Rows of a batch to fill: which, and where.
struct RowTicket {
  uint64_t batch = 0;  // its place in the sequence
  uint32_t row = 0;    // the first
  uint32_t rows = 1;
  Slot* slot = nullptr;
};

class Assembler {
 public:
  // Produces the batches of `sequence`, at most `depth` of them at a time; the slot pool has that
  // many working slots. `order` outlives it.
  Assembler(const EpochOrder& order, std::shared_ptr<SlotPool> pool, int depth,
            BatchSequence sequence);
  ~Assembler();  // precondition: every claimed row is finished

  // The next row to read, or up to `most` of one batch; none while all rows in production are
  // taken. Any thread; no lock.
  std::optional<RowTicket> Claim(uint32_t most = 1);

  // The rows are written, or failed: then the whole batch does, with the error of its lowest row.
  // Says whether they were the last that its batch missed: the batch is then the caller's alone,
  // until it is completed. Any thread; a lock only for failures.
  enum class Batched : uint8_t { kRowsMissing, kWhole, kFailed };
  Batched Finish(const RowTicket& ticket, Status status);

  // The batch of this ticket can be delivered. Precondition: Finish said that no row is missing.
  void Complete(const RowTicket& ticket);

  // Production stops short when the system has no memory for a slot, and where nothing more was
  // appended. Opens what the depth allows and says whether that was anything: then there are rows
  // to claim. ResourceExhausted when not even the next batch is open. Precondition: position().
  Result<bool> Reopen();

  // Waits for the next batch in order and opens another in its place. An error takes the place of a
  // batch with a bad row; the call after it delivers the next batch. Cancelled after Cancel(), and
  // when interrupted. Precondition: position(), and Reopen has succeeded since.
  Result<Batch> Take(const Interrupt& interrupt);

  // The batch that Take would deliver next; none at the end of the sequence.
  std::optional<BatchName> position() const { return sequence_.At(next_); }

  // Precondition: the sequence takes them.
  void Append(BatchName batch) { sequence_.Append(batch); }
  Schedule schedule() const { return sequence_.schedule(); }

  // From now on Take returns Cancelled, at once, also where it waits already. Any thread.
  void Cancel();

  uint64_t wait_ns() const { return wait_ns_.load(std::memory_order_relaxed); }

 private:
  struct Entry {  // a batch in production
    Slot* slot = nullptr;
    std::atomic<uint64_t> rows{0};  // RowsTag: of which batch, and how many
    std::atomic<uint32_t> missing{0};
    bool complete = false;       // under mutex_
    uint32_t failures = 0;       // under mutex_
    uint32_t failed_row = 0;     // the lowest; under mutex_
    std::optional<Error> error;  // of failed_row; under mutex_
  };

  Entry& EntryOf(uint64_t batch) { return window_[batch % window_.size()]; }
  void OpenBatches();  // as many as the depth allows; under mutex_
  bool Wait(std::unique_lock<std::mutex>& lock, const Entry& entry, const Interrupt& interrupt);
  Result<Batch> Deliver(Entry& entry);

  const EpochOrder& order_;
  const std::shared_ptr<SlotPool> pool_;
  const uint64_t batch_size_;
  BatchSequence sequence_;  // the consumer's thread only
  std::vector<Entry> window_;
  std::atomic<uint64_t> claimed_{0};  // rows handed out, counted as if every batch were full
  std::atomic<uint64_t> opened_{0};   // batches opened
  uint64_t next_ = 0;                 // batch to deliver
  std::mutex mutex_;
  std::condition_variable ready_;
  bool cancelled_ = false;  // under mutex_
  std::atomic<uint64_t> wait_ns_{0};
};

}  // namespace stoker
