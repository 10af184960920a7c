#include "engine/pipeline/assembler.h"

#include <string>
#include <utility>

#include "engine/core/stage_times.h"

namespace stoker {

Assembler::Assembler(const EpochOrder& order, std::shared_ptr<SlotPool> pool, int depth,
                     uint64_t first, uint64_t last)
    : order_(order),
      pool_(std::move(pool)),
      first_(first),
      last_(last),
      batch_size_(order.options().batch_size),
      window_(static_cast<size_t>(depth)),
      next_(first) {
  std::lock_guard lock(mutex_);
  OpenBatches();
}

Assembler::~Assembler() {
  for (Entry& entry : window_) {
    if (entry.slot != nullptr) pool_->Abandon(entry.slot);
  }
}

void Assembler::OpenBatches() {
  uint64_t opened = opened_.load(std::memory_order_relaxed);
  for (uint64_t batch = first_ + opened; batch < last_ && batch < next_ + window_.size(); ++batch) {
    Slot* slot = pool_->Acquire();
    if (slot == nullptr) break;
    const uint64_t epoch = batch / order_.batches_per_epoch();
    const uint64_t index = batch % order_.batches_per_epoch();
    Entry& entry = EntryOf(batch);
    entry.slot = slot;
    entry.rows = order_.RowsIn(index);
    entry.failures = 0;
    entry.error.reset();
    slot->epoch = epoch;
    slot->index = index;
    slot->rows = entry.rows;
    for (Column& column : slot->columns) column.shape[0] = entry.rows;
    entry.missing.store(entry.rows, std::memory_order_relaxed);
    opened_.store(++opened, std::memory_order_release);
  }
}

std::optional<RowTicket> Assembler::Claim() {
  uint64_t claim = claimed_.load(std::memory_order_relaxed);
  while (claim < opened_.load(std::memory_order_acquire) * batch_size_) {
    if (!claimed_.compare_exchange_weak(claim, claim + 1, std::memory_order_relaxed)) continue;
    const uint64_t batch = first_ + claim / batch_size_;
    const auto row = static_cast<uint32_t>(claim % batch_size_);
    // An entry is not reused before its rows are finished, but one of a short batch may be: the
    // rows that it lacks are passed over by their number alone.
    if (row < order_.RowsIn(batch % order_.batches_per_epoch())) {
      return RowTicket{batch, row, EntryOf(batch).slot};
    }
    claim = claimed_.load(std::memory_order_relaxed);
  }
  return std::nullopt;
}

void Assembler::Finish(const RowTicket& ticket, Status status) {
  Entry& entry = EntryOf(ticket.batch);
  if (!status.ok()) {
    std::lock_guard lock(mutex_);
    if (entry.failures++ == 0 || ticket.row < entry.failed_row) {
      entry.failed_row = ticket.row;
      entry.error = std::move(status).error();
    }
  }
  if (entry.missing.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::lock_guard lock(mutex_);  // else Take could look, miss this, and sleep
  ready_.notify_one();
}

Result<bool> Assembler::Reopen() {
  std::lock_guard lock(mutex_);
  const uint64_t opened = opened_.load(std::memory_order_relaxed);
  OpenBatches();
  if (EntryOf(next_).slot == nullptr) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the system has no memory for a batch",
                 .advice = "Lower depth or batch_size"};
  }
  return opened_.load(std::memory_order_relaxed) != opened;
}

Result<Batch> Assembler::Take() {
  std::unique_lock lock(mutex_);
  Entry& entry = EntryOf(next_);
  const uint64_t before = NowNanoseconds();
  ready_.wait(lock,
              [&] { return cancelled_ || entry.missing.load(std::memory_order_acquire) == 0; });
  wait_ns_.fetch_add(NowNanoseconds() - before, std::memory_order_relaxed);
  if (cancelled_) return Error{Code::kCancelled, "the loader was stopped"};
  Result<Batch> batch = Deliver(entry);
  ++next_;
  OpenBatches();
  return batch;
}

Result<Batch> Assembler::Deliver(Entry& entry) {
  Slot* slot = std::exchange(entry.slot, nullptr);
  if (!entry.error) return pool_->Lend(slot);
  pool_->Abandon(slot);
  Error error = *std::move(entry.error);
  if (entry.failures > 1) {
    error.cause += " (and " + std::to_string(entry.failures - 1) + " more samples of its batch)";
  }
  return error;
}

void Assembler::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  ready_.notify_all();
}

}  // namespace stoker
