// SamplesInFlight: a fixed pool of the samples that a loader reads and decodes. The settings limit
// how many are in use.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/batch/image.h"
#include "core/batch/index_set.h"
#include "core/memory/memory_budget.h"
#include "engine/memory/memory_manager.h"
#include "engine/metrics/sample_times.h"
#include "engine/production/batches/assembler.h"
#include "engine/production/samples/sample_cache.h"
#include "io/readers/reader.h"
#include "transforms/plan/plan.h"

namespace stoker {

// A sample from its claim until it is a row of its batch. Its pieces are read at the same time,
// each into its own buffer, and decoded by one worker. If its row is made of several samples, the
// pieces of the others follow its own.
struct SampleInFlight {
  ReadRequest read;  // of the first piece: its id in the source, the file's bytes, and their buffer
  std::vector<ReadRequest> other_reads;  // of further pieces; there may be more than it has now
  uint32_t pieces = 1;                   // how many it has; 1 also without images
  bool has_image = true;
  uint32_t begun = 0;               // how many have been handed to a reader, from the first on
  std::atomic<uint32_t> unread{0};  // of several: how many have not arrived, begun or not
  // By piece, if there can be several: 1 + the id of the sample that is being read, or 0.
  std::vector<std::atomic<uint64_t>> ids_being_read;
  // The samples of its row, each with all pieces of a sample of the source.
  RowSamples samples;
  bool reads_whole = false;  // pieces are read whole, because a part of one did not do
  DrawKey draw;              // the key of its random transforms, the same for all pieces
  RowClaim claim;            // the row that it becomes
  WorkToken work;            // while it is in progress
  SamplePath path;
  uint32_t reads_in_flight = 0;    // when this one was claimed, including it; 0 means in memory
  uint32_t substitutes = 0;        // unusable samples that had this row before
  uint32_t draws = 0;              // samples that were drawn as substitutes
  size_t image_at = 0;             // offset of the encoded image in its record, if it is in one
  std::span<const uint8_t> image;  // the encoded image of the first piece, in read.buffer
  CachedSample cached;

  // These are used while a worker decodes several pieces. The status of a piece's read becomes that
  // of its decoding.
  uint32_t unfinished = 0;
  std::vector<ImageSize> viewed;        // by piece: 0 × 0 if not known
  std::vector<size_t> other_images_at;  // as image_at, of further pieces
  uint32_t failed = 0;                  // the piece whose error is the sample's

  ReadRequest& read_of(size_t of_piece) { return of_piece == 0 ? read : other_reads[of_piece - 1]; }
  const ReadRequest& read_of(size_t of_piece) const {
    return of_piece == 0 ? read : other_reads[of_piece - 1];
  }
  // Precondition: a read of this sample.
  size_t PieceOf(const ReadRequest& of_piece) const {
    return &of_piece == &read ? 0 : static_cast<size_t>(&of_piece - other_reads.data()) + 1;
  }
  // Counts pieces that have arrived, or will not. Returns whether no other is missing; if one is,
  // the sample may end at any time.
  bool Arrive(uint32_t count) {
    return unread.fetch_sub(count, std::memory_order_acq_rel) == count;
  }
  uint64_t bytes_read() const;
  void FreeBuffers();
};

// Thread-safe. Each sample is free or belongs to the thread that took it: a reader thread first
// and, once it is ready, a worker. While pieces are read, it belongs to the thread that begins the
// next one; after the last has begun, to the thread whose piece arrives last.
class SamplesInFlight {
 public:
  // Buffers are reserved from `memory` when they are first used. `pieces`: how many a sample has; 0
  // means that samples are in memory and need no buffers. `parts`: the most samples that a row is
  // made of.
  SamplesInFlight(uint32_t count, MemoryBudget& memory, size_t pieces, size_t parts = 1);

  SampleInFlight& operator[](uint32_t index) { return samples_[index]; }
  // Precondition: a read of one of the samples.
  static uint32_t IndexOf(const ReadRequest& read) { return read.tag; }

  // Sets the limits on reads in flight and on samples in use. Buffers of samples beyond the limit
  // return to the budget; those in use do so when their sample is returned.
  void SetLimits(uint32_t reads, uint32_t in_use);

  // Takes a free sample with its buffers; nullopt if the limit is reached, or if the budget has no
  // room for them (there will be room when a worker finishes another sample). If it is the only
  // sample in use it is returned without buffers.
  std::optional<uint32_t> Take();
  void Give(uint32_t index);

  // Returns whether fewer than half of the samples are free. Reads are submitted many at a time, so
  // that a reader thread wakes, and enters the kernel, once for many samples. A true result also
  // sets waiting(), until a later call returns false.
  bool TooFewFree();
  bool waiting() const { return waiting_.load(std::memory_order_seq_cst); }
  // Whether samples are scarce because the workers hold most of them.
  bool BehindWorkers() const;

  bool MayRead() const { return reading() < max_reading_.load(std::memory_order_relaxed); }
  void BeginRead(uint32_t index);
  void EndRead() { reading_.fetch_sub(1, std::memory_order_relaxed); }
  uint32_t reading() const { return reading_.load(std::memory_order_relaxed); }

  // Marks a sample whose bytes have arrived: it waits for a worker. The caller sends a task after
  // each call.
  void SetReady(uint32_t index);
  uint32_t ready() const;
  // For a task: takes the ready sample whose row is needed first, because completing later rows
  // first finishes no batch. Returns nullopt if the task is surplus.
  std::optional<uint32_t> TakeReady();
  // For a worker that has a sample: takes a further one, if at least `least` are ready, and makes
  // the next task to begin surplus. Otherwise tasks whose samples are taken would take samples that
  // become ready later, and ever more tasks would queue up, followed by those of other loaders.
  std::optional<uint32_t> TakeFurther(uint32_t least);

  // The stage that a sample is in, for reports of stalls: set by the thread that owns the sample,
  // read by any.
  enum class State : uint8_t { kNone, kReading, kReady, kWorking, kPostponed };
  void SetState(uint32_t index, State state);
  struct Snapshot {
    uint64_t sample = 0;  // the id, of the one that is read; unknown for samples in memory
    uint32_t piece = 0;   // the first of its pieces that is being read
    uint32_t unread = 0;  // pieces that have not arrived
    uint64_t row = 0;     // which row it becomes: lower for those that are needed earlier
    State state = State::kNone;
  };
  Snapshot SnapshotOf(uint32_t index) const;
  uint32_t count() const { return free_.count(); }

  // Frees those of the sample's buffers that have grown if memory is scarce; otherwise a few large
  // files would hold it.
  void TrimBuffers(uint32_t index, const MemoryLease& lease);
  // Frees the buffers of the free samples.
  void FreeBuffers();

 private:
  uint32_t Free() const;  // how many may be taken
  bool HasBuffers(SampleInFlight& sample);
  uint32_t TakeOldest();

  const bool in_memory_;
  std::vector<SampleInFlight> samples_;
  const uint32_t pieces_;  // of a sample, at least 1
  IndexSet free_;
  IndexSet ready_;
  // Counts the samples in ready_ that no thread is about to take, and the surplus tasks (times
  // 2^32). Their sum is the number of tasks that have not taken a sample or found that they are
  // surplus. Both counts are in one word, because a task that saw only one of them change could
  // leave a sample without a task.
  std::atomic<uint64_t> tasks_{0};
  std::vector<std::atomic<uint64_t>> rows_;    // Snapshot::row
  std::vector<std::atomic<uint64_t>> states_;  // the rest of Snapshot
  std::atomic<bool> waiting_{false};
  std::atomic<uint32_t> reading_{0};
  std::atomic<uint32_t> max_reading_;
  std::atomic<uint32_t> max_in_use_;
};

}  // namespace stoker
