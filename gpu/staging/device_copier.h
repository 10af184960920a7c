// DeviceCopier: copies batches to the device while earlier ones are used.
//
//   host batches ─ copy (a stream of its own) ─ event ─ deferred operations (another) ─ event ─
//   DeviceBatch
//
// If the device decodes, too, some rows of the first column are copied, and the others are decoded
// there, before the deferred operations and without waiting for the entry's last users.
//
// A thread takes host batches when they are ready and issues their copies into a ring of device
// memory, which is allocated once. Events order everything, on the device: the copy into an entry
// waits until the entry's last batch has been finished, and the deferred operations wait for its
// last users; without deferred operations, the copy does. The consumer's stream waits for the
// entry's event. With several devices, each has a ring and streams of its own, and a part of every
// batch. The host blocks only in two places: the copier's thread, before it fills an entry
// whose last copy is not done, and the consumer, in Next, for a batch that has not been issued yet.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch/batch.h"
#include "core/batch/crop_region.h"
#include "core/result/result.h"
#include "gpu/ops/deferred_ops_job.h"
#include "gpu/staging/device_batch.h"
#include "gpu/staging/piece_copier.h"
#include "gpu/staging/split_batch.h"

namespace stoker {

// The source of host batches. One thread at a time. Each batch is held until all its copies are
// done: up to one more than a ring has entries may be lent at once.
class HostBatches {
 public:
  virtual ~HostBatches() = default;
  // Does what Iterator::Next does: an empty batch marks the end of an epoch. Cancelled if
  // `interrupt` returns true.
  virtual Result<Batch> Next(const Interrupt& interrupt) = 0;
};

// How a host batch's columns reach the device.
struct CopyPlan {
  std::vector<ColumnSpec> host;    // the host's columns; the last one may be DeferredOps (has_work)
  std::vector<ColumnSpec> device;  // the delivered columns: the first `device.size()` of the host's
  int64_t batch_size = 0;          // on one device
  // Whether the first column is transformed by `job`; otherwise all are copied unchanged.
  bool has_deferred_ops = false;
  DeferredOpsJob job;  // pointers and rows are set for each batch
  bool has_work = false;
  // Room for crops, which the device decodes to rows of the first column before the job. If there
  // is any, there are deferred operations with work; batches are in one slab; and the host's
  // next-to-last column has the position of each row's crop in the region of the row's part, or
  // decode::kNoCrop, as for a row that another device mixes with its own (has_row_before).
  CropRoom crops{};
  // Whether the row before the part's first one (before row 0: the batch's last) is copied, too,
  // because the job mixes each row with the one before it. It comes last, where the job looks for
  // the row before row 0. Only its first column and its work, the last one, are copied: the job
  // reads no other.
  bool has_row_before = false;
  // The most bytes copied before other copies get a turn (PieceCopier); for benchmarks.
  size_t piece_bytes = PieceCopier::kPieceBytes;
};

class Trace;
class DeviceRing;  // device memory for a few batches, and their events; shared with leases

struct DeviceCopierOptions {
  bool across_epochs = false;  // continues into the next epoch before this one's end has been taken
  // How long Next waits for another thread to release a batch if the consumer holds them all.
  std::chrono::milliseconds patience{2000};
  const Trace* trace = nullptr;
};

class DeviceCopier {
 public:
  static constexpr int kFewestBuffers = 2, kMaxBuffers = 64;
  static Status CheckBuffers(int buffers);  // otherwise InvalidArgument

  // Allocates device memory for `buffers` batches; `timed`: the device measures the copies.
  // InvalidArgument, ResourceExhausted.
  static Result<std::shared_ptr<DeviceRing>> MakeRing(std::shared_ptr<Device> device, CopyPlan plan,
                                                      int buffers, bool timed = false);

  // Splits batches among `rings`, one or more of the same plan, which no other live copier uses.
  // `source` and the trace must outlive the copier. The first Next starts its thread.
  DeviceCopier(std::vector<std::shared_ptr<DeviceRing>> rings, HostBatches& source,
               const DeviceCopierOptions& options = {});
  DeviceCopier(std::shared_ptr<DeviceRing> ring, HostBatches& source,
               const DeviceCopierOptions& options = {});
  // Stops. Does not wait for the device: host batches whose copies are in flight are released by
  // the ring's next copier, by DeviceRing::ReleaseHosts, or with the ring.
  ~DeviceCopier();

  // Returns the next batch in order; an empty one at the end of an epoch. Does not wait for the
  // batch's arrival, which its event signals. An error of the source replaces its batch, and the
  // next call continues; after an error of the device all calls return that error.
  // ResourceExhausted if the caller holds all entries of a ring and releases none for a while;
  // Cancelled after Stop, and by `interrupt`, which loses nothing. One thread at a time.
  Result<SplitBatch> NextParts(const Interrupt& interrupt = {});
  Result<DeviceBatch> Next(const Interrupt& interrupt = {});  // precondition: one ring

  void Stop();  // any thread
  DeviceCopyStats Stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
