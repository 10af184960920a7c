// DeviceRing: device memory for a few batches, allocated once, and the events that order its use.
//
//   free ─ Acquire ─ the stager's, who fills it ─ Lend ─ leased ─ the last lease goes ─ free
//                                       unsettled ─ Settle ─ free, where nobody knows who used it ┘
//
// What is leased keeps the ring, so tensors may outlive the stager and the loader, and the ring the
// last tensor. Its memory is freed by whoever lets go last, who may wait for the device then. In a
// forked child nothing comes home and nothing is freed: it is the parent's.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "core/batch.h"
#include "core/result.h"
#include "gpu/device.h"
#include "gpu/own_process.h"
#include "gpu/stager.h"

namespace stoker {

// A stream that uses an entry.
struct StreamUse {
  DeviceStream stream;
  DeviceEvent consumed;  // recorded behind its last use, when the lease goes
};

// An entry of a ring, and the batch in it.
struct StagedBatch {
  // Fixed.
  DeviceRing* ring = nullptr;
  size_t place = 0;             // in the ring
  uint8_t* raw = nullptr;       // the host's columns, each where DeviceRing::offset says
  uint8_t* finished = nullptr;  // the first column as it is delivered; null: as it came
  DeviceEvent begun;            // before its copies; where the ring is timed
  DeviceEvent copied;           // behind them
  DeviceEvent arrived;          // behind all that makes the batch
  DeviceEvent settled;          // behind everything, where nobody knows who has used it

  // What the copies read: held until they are done. The stager's thread's, or nobody's.
  Batch host;

  // Set by the stager before each lease; `columns` but for the rows is fixed.
  std::vector<Column> columns;
  std::vector<uint64_t> sample_ids;
  int64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t index = 0;
  uint64_t issued_ns = 0;  // when all that makes it had been issued (NowNanoseconds)

  // The first `used` of `uses` are of this lease, or, when it has gone, of the last one; the others
  // are kept for their events: as many as there were ever streams in one lease. Under `mutex` while
  // leased.
  std::mutex mutex;
  std::vector<StreamUse> uses;
  size_t used = 0;
  bool used_anyhow = false;  // by nobody knows whom: until RecordAll's event is done
};

class DeviceRing : public std::enable_shared_from_this<DeviceRing> {
 public:
  // As Stager::MakeRing.
  static Result<std::shared_ptr<DeviceRing>> Make(std::shared_ptr<Device> device, StagePlan plan,
                                                  int buffers, bool timed);
  ~DeviceRing();

  // The entry that has been free for longest; waits for one. Null once `stop` is true; who sets
  // that calls Wake.
  StagedBatch* Acquire(const std::atomic<bool>& stop);
  void Wake();
  // An acquired entry that was not filled is the next one to be acquired.
  void Abandon(StagedBatch& entry);
  // An acquired and filled entry is leased; it is free again when the last copy of this has gone.
  std::shared_ptr<StagedBatch> Lend(StagedBatch& entry);

  // Entries of which nobody knows who used them are free behind all that the device has been given
  // so far. For the consumer's thread, which is capturing no graph when it asks for a batch: the
  // event that this takes would spoil a capture. Where another thread is capturing: not yet.
  Status Settle();

  // Waits for the copies that are on their way, and lets go of what they read. When no stager uses
  // the ring any more.
  void LetGoOfHosts();

  // A leased entry is the consumer's from now on; and whether he holds all there are.
  void HandOut(const StagedBatch& entry);
  bool AllHandedOut() const;

  const std::shared_ptr<Device>& device() const { return device_; }
  const StagePlan& plan() const { return plan_; }
  // The stager's two. Kernels go ahead of the consumer's, so that a step that fills the device does
  // not hold up the next batch; copies have nothing to wait for but those of before.
  DeviceStream copy_stream() const { return copy_stream_; }
  DeviceStream finish_stream() const { return finish_stream_; }
  bool timed() const { return timed_; }
  size_t size() const { return entries_.size(); }
  StagedBatch& entry(size_t place) { return *entries_[place]; }
  uint64_t bytes() const { return entry_bytes_ * entries_.size(); }
  size_t row_bytes(size_t host_column) const { return row_bytes_[host_column]; }
  // Of a host column, from the start of `raw`: those of a slot whose columns all lie in its slab.
  uint64_t offset(size_t host_column) const { return offsets_[host_column]; }

  const OwnProcess& process() const { return process_; }

 private:
  DeviceRing(std::shared_ptr<Device> device, StagePlan plan, bool timed);
  Status MakeStreams();
  Status AddEntry();
  void Return(StagedBatch& entry);  // the last lease has gone; any thread

  std::shared_ptr<Device> device_;
  const StagePlan plan_;
  const bool timed_;
  const OwnProcess process_;
  std::vector<size_t> row_bytes_;
  std::vector<uint64_t> offsets_;
  uint64_t finished_offset_ = 0;  // of the finished column, behind the raw ones
  uint64_t entry_bytes_ = 0;
  DeviceStream copy_stream_, finish_stream_;
  std::vector<std::unique_ptr<StagedBatch>> entries_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StagedBatch*> free_;
  std::vector<StagedBatch*> unsettled_;
  std::vector<bool> handed_out_;  // by place
  size_t handed_out_count_ = 0;
};

}  // namespace stoker
