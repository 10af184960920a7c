#include "engine/production/batches/assembler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/result/plural.h"
#include "core/time/stage_times.h"
#include "engine/metrics/critical_path.h"

namespace stoker {

namespace {

// Packs a batch's number in the sequence and its row count into one word, so that Claim reads both
// atomically. 2^43 batches last 200 years at a thousand per second.
constexpr int kRowsBits = 21;
constexpr uint64_t RowsTag(uint64_t number, uint32_t rows) { return number << kRowsBits | rows; }

void UpdateMax(std::atomic<uint64_t>& most, uint64_t to) {
  uint64_t now = most.load(std::memory_order_relaxed);
  while (now < to && !most.compare_exchange_weak(now, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

Assembler::Assembler(const Sampler& sampler, std::shared_ptr<SlotPool> pool, int depth,
                     int max_depth, BatchSequence sequence, const PatchCounts* places)
    : sampler_(sampler),
      places_(places),
      pool_(std::move(pool)),
      batch_size_(sampler.most_rows()),
      sequence_(std::move(sequence)),
      window_(static_cast<size_t>(max_depth)),
      depth_(static_cast<uint64_t>(depth)) {
  std::lock_guard lock(mutex_);
  OpenBatches();
}

// The slots must be back before others are taken.
void Assembler::Restart(int depth, BatchSequence sequence) {
  ReturnSlots();
  for (Entry& entry : window_) entry.rows.store(0, std::memory_order_relaxed);
  claimed_.store(0, std::memory_order_relaxed);
  opened_.store(0, std::memory_order_relaxed);
  next_ = 0;
  sequence_ = std::move(sequence);
  std::lock_guard lock(mutex_);
  depth_ = static_cast<uint64_t>(depth);
  OpenBatches();
}

void Assembler::ReturnSlots() {
  for (Entry& entry : window_) {
    if (entry.slot != nullptr) pool_->Abandon(std::exchange(entry.slot, nullptr));
  }
}

void Assembler::OpenBatches() {
  uint64_t opened = opened_.load(std::memory_order_relaxed);
  while (opened < next_ + depth_) {
    const std::optional<BatchName> batch = sequence_.At(opened);
    if (!batch) break;
    Entry& entry = EntryOf(opened);
    if (!Open(entry, *batch)) break;
    const auto rows = static_cast<uint32_t>(entry.slot->rows);
    entry.missing.store(rows, std::memory_order_relaxed);
    entry.rows.store(RowsTag(opened, rows), std::memory_order_relaxed);
    opened_.store(++opened, std::memory_order_release);
  }
}

// Returns false when the pool has no slot, or the system no memory for one.
bool Assembler::Open(Entry& entry, BatchName batch) {
  Slot* slot = pool_->Acquire();
  if (slot == nullptr) return false;
  slot->epoch = batch.epoch;
  slot->index = batch.index;
  slot->start = batch.start;
  slot->position = sampler_.PositionOf(batch, 0);
  slot->SetRows(sampler_.RowsIn(batch));
  if (slot->has_room()) {
    uint32_t longest = sampler_.LengthOf(batch);
    slot->starts.assign(1, 0);
    for (uint32_t row = 0; places_ != nullptr && row < slot->rows; ++row) {
      const uint32_t place = places_->PlaceOf(sampler_.At(batch, row).sample);
      longest = std::max(longest, place);
      slot->starts.push_back(slot->starts.back() + place);
    }
    slot->SetLongest(longest);
  }
  for (CropRegion& crops : slot->crops) crops.Clear();
  entry.slot = slot;
  entry.opened_ns = NowNanoseconds();
  for (auto* counter : {&entry.work_ns, &entry.longest_ns, &entry.read_ns, &entry.longest_read_ns,
                        &entry.reads, &entry.reads_in_flight}) {
    counter->store(0, std::memory_order_relaxed);
  }
  entry.complete = false;
  entry.failures = 0;
  entry.error.reset();
  entry.bad.clear();
  return true;
}

std::optional<RowClaim> Assembler::Claim(uint32_t most) {
  uint64_t claim = claimed_.load(std::memory_order_relaxed);
  while (claim < opened_.load(std::memory_order_acquire) * batch_size_) {
    const uint64_t batch = claim / batch_size_;
    const auto row = static_cast<uint32_t>(claim % batch_size_);
    const auto rows = static_cast<uint32_t>(std::min<uint64_t>(most, batch_size_ - row));
    if (!claimed_.compare_exchange_weak(claim, claim + rows, std::memory_order_relaxed)) continue;
    // An entry is not reused before all its rows are finished. Rows that a short batch does not
    // have are skipped: the tag shows how many rows it has, or that the entry belongs to a later
    // batch already.
    const uint64_t tag = EntryOf(batch).rows.load(std::memory_order_relaxed);
    if (tag > RowsTag(batch, row) && tag <= RowsTag(batch, static_cast<uint32_t>(batch_size_))) {
      const auto left = static_cast<uint32_t>(tag - RowsTag(batch, row));
      return RowClaim{batch, row, std::min(rows, left), EntryOf(batch).slot};
    }
    claim = claimed_.load(std::memory_order_relaxed);
  }
  return std::nullopt;
}

Assembler::BatchState Assembler::RowsDone(const RowClaim& claim, const RowCost& cost,
                                          Status status) {
  Entry& entry = EntryOf(claim.batch);
  if (!status.ok()) {
    std::lock_guard lock(mutex_);
    if (entry.failures++ == 0 || claim.row < entry.failed_row) {
      entry.failed_row = claim.row;
      entry.error = std::move(status).error();
    }
  }
  entry.work_ns.fetch_add(cost.work_ns, std::memory_order_relaxed);
  if (cost.reads != 0) {
    entry.read_ns.fetch_add(cost.read_ns, std::memory_order_relaxed);
    UpdateMax(entry.longest_read_ns, cost.read_ns);
    entry.reads.fetch_add(cost.reads, std::memory_order_relaxed);
    entry.reads_in_flight.fetch_add(cost.reads_in_flight, std::memory_order_relaxed);
  }
  UpdateMax(entry.longest_ns, cost.longest_ns);
  if (entry.missing.fetch_sub(claim.rows, std::memory_order_acq_rel) != claim.rows) {
    return BatchState::kRowsMissing;
  }
  entry.last_sample = claim.slot->sample_ids[claim.row];
  // The thread that wrote `error` decremented `missing` before this one did.
  return entry.error ? BatchState::kFailed : BatchState::kWhole;
}

void Assembler::AddBadRow(const RowClaim& claim, BadRow bad) {
  const std::lock_guard lock(mutex_);
  EntryOf(claim.batch).bad.push_back(std::move(bad));
}

// A row ends with one action: nothing follows a kDrop.
void Assembler::DropRows(const RowClaim& claim) {
  const std::vector<BadRow>& bad = EntryOf(claim.batch).bad;
  std::vector<uint32_t> dropped;
  for (const BadRow& row : bad) {
    if (row.action == OnBad::kDrop) dropped.push_back(row.row);
  }
  if (!dropped.empty()) claim.slot->DropRows(std::move(dropped));
}

void Assembler::Complete(const RowClaim& claim, const SamplePath& last_row, const BatchCost& cost,
                         Status status) {
  std::lock_guard lock(mutex_);
  Entry& entry = EntryOf(claim.batch);
  entry.work_ns.fetch_add(cost.mix_ns, std::memory_order_relaxed);
  entry.cost = cost;
  if (!status.ok()) entry.error = std::move(status).error();
  entry.last_row = last_row;
  entry.complete_ns = NowNanoseconds();
  entry.complete = true;
  ready_.notify_one();
}

void Assembler::SetDepth(int depth) {
  std::lock_guard lock(mutex_);
  depth_ = static_cast<uint64_t>(depth);
  OpenBatches();
}

Result<bool> Assembler::Reopen() {
  std::lock_guard lock(mutex_);
  const uint64_t opened = opened_.load(std::memory_order_relaxed);
  OpenBatches();
  if (EntryOf(next_).slot == nullptr) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "the system has no memory for a batch",
                 .advice = "Release batches sooner",
                 .changes = {{OptionChange::How::kLower, "batch_size"}}};
  }
  return opened_.load(std::memory_order_relaxed) != opened;
}

Result<Batch> Assembler::Take(const Interrupt& interrupt) {
  std::unique_lock lock(mutex_);
  Entry& entry = EntryOf(next_);
  const uint64_t asked = NowNanoseconds();
  const bool ready = Wait(lock, entry, interrupt);
  if (cancelled_) return Error{Code::kCancelled, "the loader was stopped"};
  if (!ready) return Error{Code::kCancelled, "the wait was interrupted"};
  Record(entry, asked);
  Result<Batch> batch = Deliver(entry);
  sequence_.Forget(++next_);
  OpenBatches();
  return batch;
}

void Assembler::Record(const Entry& entry, uint64_t asked_ns) {
  last_ = {.name = entry.slot->name(),
           .rows = static_cast<uint32_t>(entry.slot->rows),
           .opened_ns = entry.opened_ns,
           .complete_ns = entry.complete_ns,
           .asked_ns = asked_ns,
           .taken_ns = NowNanoseconds(),
           .work_ns = entry.work_ns.load(std::memory_order_relaxed),
           .longest_ns = entry.longest_ns.load(std::memory_order_relaxed),
           .mix_ns = entry.cost.mix_ns,
           .map_ns = entry.cost.map_ns,
           .map_calls = entry.cost.map_calls,
           .read_ns = entry.read_ns.load(std::memory_order_relaxed),
           .longest_read_ns = entry.longest_read_ns.load(std::memory_order_relaxed),
           .reads = static_cast<uint32_t>(entry.reads.load(std::memory_order_relaxed)),
           .reads_in_flight = entry.reads_in_flight.load(std::memory_order_relaxed),
           .waited = {}};
  last_row_ = {entry.last_row.times(), entry.last_sample};
  last_bad_ = entry.bad;
  std::ranges::stable_sort(last_bad_, {}, &BadRow::row);
  last_.waited = CausesOf({entry.last_row, entry.opened_ns, entry.complete_ns, entry.cost.whole_ns},
                          asked_ns, last_.taken_ns);
}

// Returns false when `interrupt` ended the wait.
bool Assembler::Wait(std::unique_lock<std::mutex>& lock, const Entry& entry,
                     const Interrupt& interrupt) {
  const auto done = [&] { return cancelled_ || entry.complete; };
  if (!interrupt) {
    ready_.wait(lock, done);
    return true;
  }
  while (!ready_.wait_for(lock, kInterruptInterval, done)) {
    lock.unlock();  // the callback may be slow, or call Stop
    const bool interrupted = interrupt();
    lock.lock();
    // An interrupted caller takes nothing: a batch that became ready meanwhile stays.
    if (interrupted) return false;
  }
  return true;
}

Result<Batch> Assembler::Deliver(Entry& entry) {
  Slot* slot = std::exchange(entry.slot, nullptr);
  if (!entry.error) return pool_->Lend(slot);
  pool_->Abandon(slot);
  Error error = *std::move(entry.error);
  if (entry.failures > 1) {
    const auto more = static_cast<uint64_t>(entry.failures - 1);
    error.cause += " (and " + std::to_string(more) + Plural(more, " more sample", " more samples") +
                   " of its batch)";
  }
  return error;
}

void Assembler::Cancel() {
  std::lock_guard lock(mutex_);
  cancelled_ = true;
  ready_.notify_all();
}

}  // namespace stoker
