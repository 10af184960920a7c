// The samples that a loader has on their way: a fixed set, used again and again, of which as many
// are in use as the settings allow.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/index_set.h"
#include "core/memory_budget.h"
#include "core/sample.h"
#include "engine/loader/assembler.h"
#include "engine/memory/memory_manager.h"
#include "engine/watching/sample_times.h"
#include "io/readers/reader.h"
#include "transforms/plan/plan.h"

namespace stoker {

// Room for the crop index of a photograph of 400 KB: few have more, so that the steady state
// allocates next to nothing.
inline constexpr size_t kCropIndexBytes = 8 << 10;

// A sample on its way.
struct SampleInFlight {
  ReadRequest read;  // the file's bytes, and the buffer they lie in
  SampleRef sample;
  DrawKey draw;      // what its random transforms depend on
  RowTicket ticket;  // the row that it becomes
  WorkToken work;    // while it is in work
  SamplePath path;
  uint32_t reads_in_flight = 0;  // when this one was claimed, itself among them; 0: in memory
  std::vector<uint8_t> crop_index;
};

// Each is free, or belongs to whoever has taken it: a reader thread, then, where it is ready, a
// worker. Any thread.
class SamplesInFlight {
 public:
  // Buffers are reserved from `memory`, when they are first used. `in_memory`: they need none.
  SamplesInFlight(uint32_t count, MemoryBudget& memory, bool in_memory);

  SampleInFlight& operator[](uint32_t index) { return samples_[index]; }
  uint32_t IndexOf(const ReadRequest& read) const;

  // From now on so many reads at a time, and so many in use; the buffers of those beyond go back to
  // the budget, where they are in use when they are given back.
  void SetLimits(uint32_t reads, uint32_t in_use);

  // A free one, with a buffer; none where as many are in use as may be. Where the budget has no
  // room for its buffer there will be one when a worker has done with another; the only one goes
  // without.
  std::optional<uint32_t> Take();
  void Give(uint32_t index);

  // Less than half of them are free: reads are begun many at a time, so that the reader thread
  // wakes, and enters the kernel, once for many samples. Who finds it so is starved until it is
  // not.
  bool TooFewFree();
  bool starved() const { return starved_.load(std::memory_order_seq_cst); }
  // Whether it is for the workers that there are too few.
  bool BehindWorkers() const;

  bool MayRead() const { return reading() < most_reading_.load(std::memory_order_relaxed); }
  void BeginRead(uint32_t index);
  void EndRead() { reading_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t reading() const { return reading_.load(std::memory_order_relaxed); }

  // Its bytes are there: it waits for a worker.
  void SetReady(uint32_t index);
  uint32_t ready() const { return ready_.available(); }
  // The one whose row is needed first: young rows that overtake old ones end no batch.
  std::optional<uint32_t> TakeReady();

  // Of those that are free.
  void FreeBuffers();

 private:
  uint32_t Free() const;  // that may be taken
  bool HasBuffer(GrowingBuffer& buffer);

  const bool in_memory_;
  std::vector<SampleInFlight> samples_;
  IndexSet free_;
  IndexSet ready_;
  std::vector<std::atomic<uint64_t>> places_;  // of the rows of those that are ready, in order
  std::atomic<bool> starved_{false};
  std::atomic<uint32_t> reading_{0};
  std::atomic<uint32_t> most_reading_;
  std::atomic<uint32_t> most_in_use_;
};

}  // namespace stoker
