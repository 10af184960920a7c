// Assembler: collects rows into batches and delivers the batches in order. It knows which batches
// are in production, hands out their rows, counts the missing rows, and delivers a batch when it is
// complete.
//
// A row's position in its batch is fixed before it is read, so workers write pixels to their final
// address and keeping the order costs nothing. The number of batches in production is the only
// back-pressure.
//
// Claim, AddBadRow, RowsDone, DropRows, Complete and Cancel may be called on any thread; everything
// else only on the consumer's thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/slot_pool.h"
#include "core/result/result.h"
#include "engine/metrics/sample_times.h"
#include "engine/order/batch_sequence.h"
#include "engine/order/patch_counts.h"
#include "engine/order/sampler.h"
#include "engine/production/batches/bad_sample_log.h"
#include "engine/tuning/batch_record.h"

namespace stoker {

// A claim on consecutive rows of one batch, and the slot to write them to.
struct RowClaim {
  uint64_t batch = 0;  // its number in the sequence
  uint32_t row = 0;    // the first row
  uint32_t rows = 1;
  Slot* slot = nullptr;
};

// The cost of filling rows, in nanoseconds.
struct RowCost {
  uint64_t work_ns = 0;          // a worker's time
  uint64_t longest_ns = 0;       // the longest time that a worker spent on one of the rows
  uint64_t read_ns = 0;          // the read, from claim to completion
  uint32_t reads = 0;            // 0: the samples were in memory
  uint32_t reads_in_flight = 0;  // see BatchRecord
};

// The cost of a batch besides its rows, between its last row and its completion.
struct BatchCost {
  uint64_t mix_ns = 0;     // a worker's time for mixing, or padding a batch
  uint64_t whole_ns = 0;   // when it went to the program's function; 0 means it did not
  uint64_t map_ns = 0;     // the call of that function
  uint32_t map_calls = 0;  // how many such calls are made at a time
};

// The row of a batch that was finished last, or one of several finished at once.
struct LastRow {
  SampleTimes times;
  uint64_t sample = 0;
};

class Assembler {
 public:
  // Produces the batches of `sequence`, at most `depth` of them at a time and never more than
  // `max_depth`. The slot pool has `depth` working slots. `places`: the objects of each sample in
  // the placed column (Slot::placed); null if there is none. References must outlive the assembler.
  Assembler(const Sampler& sampler, std::shared_ptr<SlotPool> pool, int depth, int max_depth,
            BatchSequence sequence, const PatchCounts* places = nullptr);
  ~Assembler() { ReturnSlots(); }

  // Starts over with another sequence. Precondition: see ReturnSlots.
  void Restart(int depth, BatchSequence sequence);

  // Drops the batches that were not taken. Precondition: every claimed row is finished, and no
  // thread calls Claim until Restart.
  void ReturnSlots();

  // Claims the next row to read, or up to `most` rows of one batch. Returns nullopt while all rows
  // in production are claimed. Any thread; takes no lock.
  std::optional<RowClaim> Claim(uint32_t most = 1);

  // Reports that the rows were written, or failed; a failure fails the whole batch, with the error
  // of its lowest row. Returns whether the batch now has all its rows: it then belongs to the
  // caller alone until Complete. Any thread; takes a lock only for failures.
  enum class BatchState : uint8_t { kRowsMissing, kWhole, kFailed };
  BatchState RowsDone(const RowClaim& claim, const RowCost& cost, Status status);

  // Records that the claim's row had a bad sample. Must not be called after the row's RowsDone.
  // Any thread; takes a lock.
  void AddBadRow(const RowClaim& claim, BadRow bad);

  // Takes the rows with OnBad::kDrop out of the claim's batch. Precondition: RowsDone returned
  // kWhole.
  void DropRows(const RowClaim& claim);

  // Makes the claim's batch deliverable or, if `status` is an error, that error instead.
  // Precondition: RowsDone returned kWhole, or it returned kFailed and `status` is OK.
  void Complete(const RowClaim& claim, const SamplePath& last_row, const BatchCost& cost,
                Status status = {});

  // Sets the depth from now on and opens the batches that it allows. Precondition: `depth` is 1 to
  // max_depth, and the slot pool has as many working slots.
  void SetDepth(int depth);

  // Opens the batches that the depth allows, and returns whether any were opened, so that there are
  // new rows to claim. Production stops early when the system has no memory for a slot, or when
  // nothing more was appended. ResourceExhausted when not even the next batch could be opened.
  // Precondition: position() is set.
  Result<bool> Reopen();

  // Waits for the next batch in order and opens another to replace it. If a row of the batch
  // failed, the error is returned instead of the batch, and the next call delivers the batch after
  // it. Cancelled after Cancel(), and when interrupted. Precondition: position() is set, and Reopen
  // has succeeded since the last Take.
  Result<Batch> Take(const Interrupt& interrupt);

  // Describe the batch, or the error returned instead of it, that Take delivered last.
  // Precondition: Take has delivered one.
  const BatchRecord& last() const { return last_; }
  const LastRow& last_row() const { return last_row_; }
  const std::vector<BadRow>& last_bad() const { return last_bad_; }  // by row

  // The batch that Take would deliver next; nullopt at the end of the sequence.
  std::optional<BatchName> position() const { return sequence_.At(next_); }

  // Precondition: schedule() is kAppended.
  void Append(BatchName batch) { sequence_.Append(batch); }
  Schedule schedule() const { return sequence_.schedule(); }

  // Makes Take return Cancelled from now on, including a Take that is waiting. Any thread.
  void Cancel();

 private:
  struct Entry {  // a batch in production
    Slot* slot = nullptr;
    std::atomic<uint64_t> rows{0};  // RowsTag: which batch, and how many rows
    std::atomic<uint32_t> missing{0};
    // Accumulated over the rows finished so far.
    std::atomic<uint64_t> work_ns{0}, longest_ns{0};
    std::atomic<uint64_t> read_ns{0}, longest_read_ns{0}, reads{0}, reads_in_flight{0};
    BatchCost cost;
    uint64_t opened_ns = 0;
    uint64_t complete_ns = 0;  // this and the following: under mutex_
    SamplePath last_row;
    uint64_t last_sample = 0;
    bool complete = false;
    uint32_t failures = 0;
    uint32_t failed_row = 0;     // the lowest
    std::optional<Error> error;  // of failed_row
    std::vector<BadRow> bad;
  };

  Entry& EntryOf(uint64_t batch) { return window_[batch % window_.size()]; }
  void OpenBatches();  // as many as the depth allows; requires mutex_
  bool Open(Entry& entry, BatchName batch);
  void Record(const Entry& entry, uint64_t asked_ns);
  bool Wait(std::unique_lock<std::mutex>& lock, const Entry& entry, const Interrupt& interrupt);
  Result<Batch> Deliver(Entry& entry);

  const Sampler& sampler_;
  const PatchCounts* const places_;
  const std::shared_ptr<SlotPool> pool_;
  const uint64_t batch_size_;
  BatchSequence sequence_;  // the consumer's thread only
  std::vector<Entry> window_;
  std::atomic<uint64_t> claimed_{0};  // rows handed out, counted as if every batch were full
  std::atomic<uint64_t> opened_{0};   // batches opened
  uint64_t next_ = 0;                 // batch to deliver
  BatchRecord last_;                  // the consumer's
  LastRow last_row_;                  // the last row of `last_`
  std::vector<BadRow> last_bad_;      // the bad rows of `last_`
  std::mutex mutex_;
  std::condition_variable ready_;
  uint64_t depth_;          // under mutex_
  bool cancelled_ = false;  // under mutex_
};

}  // namespace stoker
