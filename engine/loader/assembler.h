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

#include "core/interrupt.h"
#include "core/result.h"
#include "core/slot_pool.h"
#include "engine/loader/batch_record.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/order.h"
#include "engine/watching/sample_times.h"

namespace stoker {

// Rows of a batch to fill: which, and where.
struct RowTicket {
  uint64_t batch = 0;  // its place in the sequence
  uint32_t row = 0;    // the first
  uint32_t rows = 1;
  Slot* slot = nullptr;
};

// What it took to fill rows, in nanoseconds.
struct RowCost {
  uint64_t work_ns = 0;          // a worker's time
  uint64_t longest_ns = 0;       // how long it had one of them in hand
  uint64_t read_ns = 0;          // of the read, from being claimed to being there
  uint32_t reads = 0;            // 0: they were in memory
  uint32_t reads_in_flight = 0;  // as BatchRecord has them
};

// The row of a batch that was finished last, or a row of those that were.
struct LastRow {
  SampleTimes times;
  uint64_t sample = 0;
};

class Assembler {
 public:
  // Produces the batches of `sequence`, at most `depth` of them at a time, and never more than
  // `most_depth`; the slot pool has `depth` working slots. `order` outlives it.
  Assembler(const EpochOrder& order, std::shared_ptr<SlotPool> pool, int depth, int most_depth,
            BatchSequence sequence);
  ~Assembler();  // precondition: every claimed row is finished

  // The next row to read, or up to `most` of one batch; none while all rows in production are
  // taken. Any thread; no lock.
  std::optional<RowTicket> Claim(uint32_t most = 1);

  // The rows are written, or failed: then the whole batch does, with the error of its lowest row.
  // Says whether they were the last that its batch missed: the batch is then the caller's alone,
  // until it is completed. Any thread; a lock only for failures.
  enum class Batched : uint8_t { kRowsMissing, kWhole, kFailed };
  Batched Finish(const RowTicket& ticket, const RowCost& cost, Status status);

  // The batch of this ticket, whose row was the last, can be delivered; `mix_ns`: mixing it
  // took. Precondition: Finish said that no row is missing.
  void Complete(const RowTicket& ticket, const SamplePath& last_row, uint64_t mix_ns);

  // From now on; opens what that allows. Precondition: 1 to most_depth, and as many working slots.
  void SetDepth(int depth);

  // Production stops short when the system has no memory for a slot, and where nothing more was
  // appended. Opens what the depth allows and says whether that was anything: then there are rows
  // to claim. ResourceExhausted when not even the next batch is open. Precondition: position().
  Result<bool> Reopen();

  // Waits for the next batch in order and opens another in its place. An error takes the place of a
  // batch with a bad row; the call after it delivers the next batch. Cancelled after Cancel(), and
  // when interrupted. Precondition: position(), and Reopen has succeeded since.
  Result<Batch> Take(const Interrupt& interrupt);

  // Of the batch, or the error in its place, that Take delivered last. Precondition: there was one.
  const BatchRecord& last() const { return last_; }
  const LastRow& last_row() const { return last_row_; }

  // The batch that Take would deliver next; none at the end of the sequence.
  std::optional<BatchName> position() const { return sequence_.At(next_); }

  // Precondition: the sequence takes them.
  void Append(BatchName batch) { sequence_.Append(batch); }
  Schedule schedule() const { return sequence_.schedule(); }

  // From now on Take returns Cancelled, at once, also where it waits already. Any thread.
  void Cancel();

 private:
  struct Entry {  // a batch in production
    Slot* slot = nullptr;
    std::atomic<uint64_t> rows{0};  // RowsTag: of which batch, and how many
    std::atomic<uint32_t> missing{0};
    // Of its rows so far.
    std::atomic<uint64_t> work_ns{0}, longest_ns{0};
    std::atomic<uint64_t> read_ns{0}, longest_read_ns{0}, reads{0}, reads_in_flight{0};
    uint64_t mix_ns = 0;
    uint64_t opened_ns = 0;
    uint64_t complete_ns = 0;  // under mutex_, as what follows
    SamplePath last_row;
    uint64_t last_sample = 0;
    bool complete = false;
    uint32_t failures = 0;
    uint32_t failed_row = 0;     // the lowest
    std::optional<Error> error;  // of failed_row
  };

  Entry& EntryOf(uint64_t batch) { return window_[batch % window_.size()]; }
  void OpenBatches();  // as many as the depth allows; under mutex_
  bool Open(Entry& entry, BatchName batch);
  void Record(const Entry& entry, uint64_t asked_ns);
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
  BatchRecord last_;                  // the consumer's
  LastRow last_row_;                  // of that
  std::mutex mutex_;
  std::condition_variable ready_;
  uint64_t depth_;          // under mutex_
  bool cancelled_ = false;  // under mutex_
};

}  // namespace stoker
