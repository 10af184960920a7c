// Stager: batches go to the device while earlier ones are used.
//
//   host batches ─ copy (stager's stream) ─ finish (same stream) ─ event ─ DeviceBatch
//
// A thread of its own takes host batches as they are ready and issues copies of the next ones into
// a ring of device memory, which is allocated once. Only events order things: the copy into an
// entry waits, on the device, for the streams that used what was there; the consumer's stream waits
// for the entry's event. The host waits only where it would run ahead without bound: the stager's
// thread, before an entry whose last copy has not even begun is given its next one; the consumer,
// in Next, for a batch that nobody has issued yet.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/core/batch.h"
#include "engine/core/column_spec.h"
#include "engine/core/interrupt.h"
#include "engine/core/result.h"
#include "engine/core/trace.h"
#include "gpu/device_batch.h"

namespace stoker {

// Where host batches come from. One thread at a time.
class HostBatches {
 public:
  virtual ~HostBatches() = default;
  // As Loader::Next: an empty batch at the end of an epoch. Where `interrupt` asks: Cancelled.
  virtual Result<Batch> Next(const Interrupt& interrupt) = 0;
};

// What becomes of a host batch's columns.
struct StagePlan {
  std::vector<ColumnSpec> host;    // as they come; the last one may be RowWork (has_work)
  std::vector<ColumnSpec> device;  // as they are delivered: the first `device.size()` of them
  int64_t batch_size = 0;
  bool finishes =
      false;      // the first column becomes what `job` says; else all are copied as they are
  FinishJob job;  // pointers and rows are set for each batch
  bool has_work = false;
};

class DeviceRing;  // device memory for a few batches, and their events; shared with what is lent

struct StagerStats {
  uint64_t batches = 0;       // copied
  uint64_t copied_bytes = 0;  // to the device
  uint64_t ring_wait_ns = 0;  // the stager waited for an entry: the consumer is the limit
  uint64_t host_wait_ns = 0;  // the stager waited for a host batch: production is the limit
  uint64_t copy_wait_ns = 0;  // the stager waited for a copy to end: the link is the limit
  uint64_t device_bytes = 0;  // of the ring
};

class Stager {
 public:
  static constexpr int kFewestBuffers = 2, kMostBuffers = 64;

  // Device memory for `buffers` batches. InvalidArgument, ResourceExhausted.
  static Result<std::shared_ptr<DeviceRing>> MakeRing(std::shared_ptr<Device> device,
                                                      StagePlan plan, int buffers);

  // Uses `ring`, which no other stager that is alive uses. `source` outlives the stager.
  // across_epochs: goes on with the next epoch before the end of this one has been taken. Starts
  // its thread at the first Next.
  Stager(std::shared_ptr<DeviceRing> ring, HostBatches& source, bool across_epochs,
         const Trace* trace = nullptr);
  ~Stager();  // stops; waits for the copies that were issued, not for what consumers hold

  // The next batch in order; empty at the end of an epoch. Does not wait until it has arrived: its
  // event does. An error of the source takes the place of its batch, and the next call goes on;
  // after an error of the device all calls return it. ResourceExhausted when the caller holds all
  // entries of the ring (it never waits for itself); Cancelled after Stop, and by `interrupt`,
  // which loses nothing. One thread at a time.
  Result<DeviceBatch> Next(const Interrupt& interrupt = {});

  void Stop();  // any thread
  StagerStats Stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
