#include "engine/production/samples/samples_in_flight.h"

#include <limits.h>

#include <algorithm>

#include "engine/memory/memory_plan.h"

namespace stoker {

namespace {

uint64_t OrderOf(const RowClaim& claim) { return claim.batch << 21 | claim.row; }

// The two counts in SamplesInFlight::tasks_.
constexpr uint64_t kOneReady = 1;
constexpr uint64_t kOneSurplus = uint64_t{1} << 32;
uint32_t ReadyIn(uint64_t tasks) { return static_cast<uint32_t>(tasks); }
uint32_t SurplusIn(uint64_t tasks) { return static_cast<uint32_t>(tasks >> 32); }

constexpr int kStateBits = 3;  // the lowest of SamplesInFlight::states_; the others are the id

bool GrowBuffer(ReadRequest& read) {
  return read.buffer.capacity() != 0 || read.buffer.Grow(kReadBufferBytes).ok();
}

bool GrowBuffers(SampleInFlight& sample) {
  return GrowBuffer(sample.read) && std::ranges::all_of(sample.other_reads, GrowBuffer);
}

}  // namespace

uint64_t SampleInFlight::bytes_read() const {
  uint64_t bytes = read.size;
  for (uint32_t i = 1; i < pieces; ++i) bytes += other_reads[i - 1].size;
  return bytes;
}

void SampleInFlight::FreeBuffers() {
  read.buffer.Free();
  for (ReadRequest& other : other_reads) other.buffer.Free();
}

SamplesInFlight::SamplesInFlight(uint32_t count, MemoryBudget& memory, size_t pieces, size_t parts)
    : in_memory_(pieces == 0),
      samples_(count),
      pieces_(static_cast<uint32_t>(std::max<size_t>(pieces, 1))),
      free_(count, IndexSet::Begin::kFull),
      ready_(count, IndexSet::Begin::kEmpty),
      rows_(count),
      states_(count),
      max_reading_(count),
      max_in_use_(count) {
  const size_t of_row = pieces_ * (in_memory_ ? 1 : parts);
  for (uint32_t index = 0; index < count; ++index) {
    SampleInFlight& sample = samples_[index];
    sample.pieces = pieces_;
    if (of_row > 1) {
      sample.other_reads.resize(of_row - 1);
      sample.other_images_at.resize(of_row - 1);
      sample.viewed.resize(of_row);
      sample.ids_being_read = std::vector<std::atomic<uint64_t>>(of_row);
    }
    for (size_t i = 0; i < of_row; ++i) {
      ReadRequest& read = sample.read_of(i);
      read.tag = index;
      read.buffer = GrowingBuffer(memory);
      if (!in_memory_) read.path.reserve(PATH_MAX);
    }
  }
}

void SamplesInFlight::SetLimits(uint32_t reads, uint32_t in_use) {
  in_use = std::clamp(in_use, std::min(kSureReads, free_.count()), free_.count());
  max_reading_.store(reads, std::memory_order_relaxed);
  max_in_use_.store(in_use, std::memory_order_relaxed);
  for (uint32_t i = in_use; i < free_.count(); ++i) {
    if (free_.TakeThis(i)) Give(i);
  }
}

// A caller that finds nothing sets the flag and then looks again, because a thread that returned a
// sample before the flag was set has not woken it.
std::optional<uint32_t> SamplesInFlight::Take() {
  while (true) {
    if (Free() == 0) {
      waiting_.store(true, std::memory_order_seq_cst);
      if (Free() == 0) return std::nullopt;
    }
    const std::optional<uint32_t> index = free_.Take();
    if (!index || in_memory_ || HasBuffers(samples_[*index])) return index;
    if (free_.available() + 1 == free_.count()) return index;
    free_.Give(*index);
    waiting_.store(true, std::memory_order_seq_cst);
    if (free_.available() != free_.count()) return std::nullopt;
  }
}

// If the budget has no room, frees idle buffers and tries again.
bool SamplesInFlight::HasBuffers(SampleInFlight& sample) {
  if (GrowBuffers(sample)) return true;
  FreeBuffers();
  if (GrowBuffers(sample)) return true;
  sample.FreeBuffers();  // those of some pieces are of no use
  return false;
}

void SamplesInFlight::Give(uint32_t index) {
  if (index >= max_in_use_.load(std::memory_order_relaxed)) samples_[index].FreeBuffers();
  free_.Give(index);
}

uint32_t SamplesInFlight::Free() const {
  const uint32_t most = max_in_use_.load(std::memory_order_relaxed);
  return most - std::min(most, free_.count() - free_.available());
}

bool SamplesInFlight::TooFewFree() {
  const uint32_t enough = (max_in_use_.load(std::memory_order_relaxed) + 1) / 2;
  if (Free() >= enough) {
    waiting_.store(false, std::memory_order_seq_cst);
    return false;
  }
  waiting_.store(true, std::memory_order_seq_cst);
  return Free() < enough;  // checked again: a worker may have missed the flag
}

bool SamplesInFlight::BehindWorkers() const {
  const uint32_t in_use = free_.count() - free_.available();
  return waiting_.load(std::memory_order_relaxed) && in_use > 2 * reading();
}

void SamplesInFlight::BeginRead(uint32_t index) {
  samples_[index].reads_in_flight = reading_.fetch_add(1, std::memory_order_relaxed) + 1;
}

void SamplesInFlight::SetState(uint32_t index, State state) {
  const SampleInFlight& sample = samples_[index];
  rows_[index].store(OrderOf(sample.claim), std::memory_order_relaxed);
  states_[index].store(sample.read.sample << kStateBits | static_cast<uint64_t>(state),
                       std::memory_order_relaxed);
}

void SamplesInFlight::SetReady(uint32_t index) {
  SetState(index, State::kReady);
  ready_.Give(index);
  tasks_.fetch_add(kOneReady, std::memory_order_release);
}

uint32_t SamplesInFlight::ready() const { return ReadyIn(tasks_.load(std::memory_order_relaxed)); }

SamplesInFlight::Snapshot SamplesInFlight::SnapshotOf(uint32_t index) const {
  const uint64_t word = states_[index].load(std::memory_order_relaxed);
  const SampleInFlight& sample = samples_[index];
  Snapshot snapshot{.sample = word >> kStateBits,
                    .unread = sample.unread.load(std::memory_order_relaxed),
                    .row = rows_[index].load(std::memory_order_relaxed),
                    .state = static_cast<State>(word & ((1U << kStateBits) - 1))};
  for (uint32_t piece = 0; piece < sample.ids_being_read.size(); ++piece) {
    const uint64_t id = sample.ids_being_read[piece].load(std::memory_order_relaxed);
    if (id == 0) continue;
    snapshot.sample = id - 1;
    snapshot.piece = piece % pieces_;
    break;
  }
  return snapshot;
}

std::optional<uint32_t> SamplesInFlight::TakeReady() {
  uint64_t tasks = tasks_.load(std::memory_order_relaxed);
  uint64_t left = 0;
  do {
    if (tasks == 0) return std::nullopt;
    left = tasks - (SurplusIn(tasks) != 0 ? kOneSurplus : kOneReady);
  } while (!tasks_.compare_exchange_weak(tasks, left, std::memory_order_acquire,
                                         std::memory_order_relaxed));
  if (SurplusIn(tasks) != 0) return std::nullopt;
  return TakeOldest();
}

std::optional<uint32_t> SamplesInFlight::TakeFurther(uint32_t least) {
  uint64_t tasks = tasks_.load(std::memory_order_relaxed);
  do {
    if (ReadyIn(tasks) < std::max(least, 1U)) return std::nullopt;
  } while (!tasks_.compare_exchange_weak(tasks, tasks - kOneReady + kOneSurplus,
                                         std::memory_order_acquire, std::memory_order_relaxed));
  return TakeOldest();
}

// Called by a thread that has counted one of the ready samples as its own, without knowing which.
// Searching once is not enough: the set has several words, so a thread may miss a sample that
// becomes ready in a word it has passed, while another thread takes one in a word it has not
// reached. It would find none, and the missed sample would have no task.
uint32_t SamplesInFlight::TakeOldest() {
  while (true) {
    std::optional<uint32_t> oldest;
    uint64_t first = ~uint64_t{0};
    ready_.ForEach([&](uint32_t index) {
      const uint64_t key = rows_[index].load(std::memory_order_relaxed);
      if (key >= first) return;
      first = key;
      oldest = index;
    });
    if (oldest && ready_.TakeThis(*oldest)) return *oldest;
  }
}

void SamplesInFlight::TrimBuffers(uint32_t index, const MemoryLease& lease) {
  const auto trim = [&lease](GrowingBuffer& buffer) {
    if (buffer.capacity() >= 2 * kReadBufferBytes && lease.scarce()) buffer.Free();
  };
  trim(samples_[index].read.buffer);
  for (ReadRequest& other : samples_[index].other_reads) trim(other.buffer);
}

void SamplesInFlight::FreeBuffers() {
  for (uint32_t i = 0; i < free_.count(); ++i) {
    if (!free_.TakeThis(i)) continue;
    samples_[i].FreeBuffers();
    free_.Give(i);
  }
}

}  // namespace stoker
