// DeviceRing: device memory for a few batches, allocated once, and the events that order its use.
//
//   free ─ Acquire ─ filled by the copier ─ Lend ─ leased ─ the last lease ends ─ free
//     if its users are unknown, or one of them is being captured: pending ─ Reclaim ─ free
//
// A leased entry keeps the ring, so tensors may outlive the copier and the loader. The memory is
// freed on the thread that releases the last entry, which may wait for the device. In a forked
// child nothing is returned and nothing is freed: it belongs to the parent.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"
#include "gpu/backend/own_process.h"
#include "gpu/staging/device_copier.h"
#include "gpu/staging/piece_copier.h"

namespace stoker {

// A stream that uses an entry.
struct StreamUse {
  DeviceStream stream;
  DeviceEvent consumed;  // recorded after its last use, when the lease ends
};

// An entry of a ring, and its batch.
struct RingEntry {
  // Constant.
  DeviceRing* ring = nullptr;
  size_t ring_index = 0;   // in the ring
  uint8_t* raw = nullptr;  // the host's columns, each at DeviceRing::offset
  DeviceEvent begun;       // before its copies, if the ring is timed
  DeviceEvent copied;      // after them
  DeviceEvent arrived;     // after all work that makes the batch
  DeviceEvent all_done;    // after everything, if its users are unknown

  // The source of the copies: held until they are done. Accessed by the copier's thread only.
  Batch host;
  size_t part = 0;        // of its parts, one for each device
  int64_t first_row = 0;  // of it: the entry has the rows from there on
  uint64_t copied_bytes = 0;

  // Set by the copier before each lease; except for the rows, `columns` is constant. With deferred
  // operations their data lies after `raw`, which the consumer does not see; otherwise in `raw`.
  std::vector<Column> columns;
  std::vector<uint64_t> sample_ids;
  int64_t rows = 0;
  BatchName name;
  uint64_t issued_ns = 0;  // when all its work had been issued (NowNanoseconds)

  // The first `used` of `uses` belong to this lease or, if it has ended, to the last one; the
  // others are kept for their events, up to the largest number of streams in one lease. Under
  // `mutex` while leased.
  std::mutex mutex;
  std::vector<StreamUse> uses;
  size_t used = 0;
  bool leased = false;
  bool unnamed = false;    // it may have users that are not in `uses` …
  bool named = false;      // … unless the program declared that it has none
  bool untracked = false;  // its users are unknown: until RecordAll's event is done
};

class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  // See DeviceCopier::MakeRing.
  static Result<std::shared_ptr<DeviceRing>> Make(std::shared_ptr<Device> device, CopyPlan plan,
                                                  int buffers, bool timed);
  ~DeviceRing();

  // Returns the entry that has been free for longest; waits for one. Returns null once `stop` is
  // true; the thread that sets it must call Wake.
  RingEntry* Acquire(const std::atomic<bool>& stop);
  void Wake();
  // Returns an acquired entry that is not lent; it is the next one to be acquired.
  void Abandon(RingEntry& entry);
  // Leases an acquired and filled entry; it is free again when the last copy of the result is
  // destroyed.
  std::shared_ptr<RingEntry> Lend(RingEntry& entry);

  // Frees the pending entries: those whose users were being captured, if they no longer are; those
  // whose users are unknown, for use after all work that the device has been given so far. Must be
  // called on the consumer's thread, which is not capturing a graph when it requests a batch: the
  // event recorded for the latter would invalidate the capture (Device::RecordAll). While another
  // thread captures, they stay pending: nothing is recorded if the capture can be seen; after each
  // capture that it failed to detect, it backs off, each time for twice as long.
  Status Reclaim();

  // Waits for the copies in flight and releases their host batches. Called when no copier uses the
  // ring any more.
  void ReleaseHosts();

  // Count a leased entry as held by the consumer, and return whether the consumer holds all
  // entries.
  void HandOut(const RingEntry& entry);
  bool AllHandedOut() const;

  const std::shared_ptr<Device>& device() const { return device_; }
  const CopyPlan& plan() const { return plan_; }
  // The copier's two streams. Kernels have a higher priority than the consumer's, so that a step
  // that fills the device does not delay the next batch; copies wait only for earlier copies and
  // for the kernel that reads the bytes they overwrite.
  DeviceStream copy_stream() const { return copy_stream_; }
  DeviceStream deferred_stream() const { return deferred_stream_; }
  PieceCopier& pieces() const { return *pieces_; }  // for the copy stream
  bool timed() const { return timed_; }
  size_t size() const { return entries_.size(); }
  RingEntry& entry(size_t ring_index) { return *entries_[ring_index]; }
  uint64_t bytes() const { return entry_bytes_ * entries_.size() + sample_bytes_; }
  uint64_t invalidated_captures() const;  // by Reclaim
  size_t row_bytes(size_t host_column) const { return row_bytes_[host_column]; }
  // The offset of a host column from the start of `raw`, which has the layout of a slot with all
  // columns in its slab.
  uint64_t offset(size_t host_column) const { return offsets_[host_column]; }
  // The offset of the crops, likewise, and the memory for the samples of one batch's, which the
  // deferred stream's work uses. Precondition: the plan has room for crops.
  uint64_t crops_offset() const { return crops_offset_; }
  uint8_t* samples() const { return samples_; }

  const OwnProcess& process() const { return process_; }

 private:
  DeviceRing(std::shared_ptr<Device> device, CopyPlan plan, bool timed);
  Status MakeStreams();
  Status AllocateSamples();
  Status AddEntry();
  void Return(RingEntry& entry);  // the last lease has ended; any thread
  // Records an event on each stream that used an entry that is no longer leased. Returns false if
  // one of them is being captured, or if the entry is untracked, which it becomes if a stream no
  // longer exists.
  bool RecordUses(RingEntry& entry) const;
  // Whether a stream that stoker may ask is being captured: the legacy default stream, for those
  // ordered with it, and those of leased batches whose users are known, which exist.
  bool SeesCapture();

  std::shared_ptr<Device> device_;
  const CopyPlan plan_;
  const bool timed_;
  const OwnProcess process_;
  std::vector<size_t> row_bytes_;
  std::vector<uint64_t> offsets_;
  std::vector<uint64_t> delivered_offsets_;  // of the device's columns, likewise
  uint64_t crops_offset_ = 0;
  uint64_t entry_bytes_ = 0;
  uint64_t sample_bytes_ = 0;
  uint8_t* samples_ = nullptr;
  DeviceStream copy_stream_, deferred_stream_;
  std::unique_ptr<PieceCopier> pieces_;
  std::vector<std::unique_ptr<RingEntry>> entries_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RingEntry*> free_;
  std::vector<RingEntry*> pending_;
  uint64_t all_refusals_ = 0;
  int refusals_ = 0;              // of RecordAll, consecutive
  uint64_t next_record_ns_ = 0;   // not before this time (NowNanoseconds)
  std::vector<bool> handed_out_;  // by index
  size_t handed_out_count_ = 0;
};

// Sets the counts that belong to the rings and not to one copier.
void AddRingStats(std::span<const std::shared_ptr<DeviceRing>> rings, DeviceCopyStats& stats);

}  // namespace stoker
