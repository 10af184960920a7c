// Stager: batches go to the device while earlier ones are used.
//
//   host batches ─ copy (a stream of its own) ─ event ─ finish (another) ─ event ─ DeviceBatch
//
// A thread of its own takes host batches as they are ready and issues copies of the next ones into
// a ring of device memory, which is allocated once. Only events order things: the copy into an
// entry waits, on the device, for those who used what was there; the consumer's stream waits for
// the entry's event. The host waits only where it would run ahead without bound: the stager's
// thread, before an entry whose last copy is not done is given its next one; the consumer, in Next,
// for a batch that nobody has issued yet.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/batch.h"
#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "core/trace.h"
#include "gpu/device_batch.h"

namespace stoker {

// Where host batches come from. One thread at a time. Each is held until its copy is done: as many
// may be lent at once as the ring has entries, and one more.
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
  // Whether the first column becomes what `job` says; else all are copied as they are.
  bool finishes = false;
  FinishJob job;  // pointers and rows are set for each batch
  bool has_work = false;
};

class DeviceRing;  // device memory for a few batches, and their events; shared with what is lent

struct StagerStats {
  uint64_t batches = 0;       // copied
  uint64_t copied_bytes = 0;  // to the device
  uint64_t copy_ns = 0;       // of those, as the device tells; where the ring is timed
  uint64_t ring_wait_ns = 0;  // the stager waited for an entry: the consumer is the limit
  uint64_t host_wait_ns = 0;  // the stager waited for a host batch: production is the limit
  uint64_t copy_wait_ns = 0;  // the stager waited for a copy to end: the link is the limit
  uint64_t device_bytes = 0;  // of the ring

  // But for device_bytes, which are those of a ring and not of what was done with it.
  StagerStats& operator+=(const StagerStats& other) {
    batches += other.batches;
    copied_bytes += other.copied_bytes;
    copy_ns += other.copy_ns;
    ring_wait_ns += other.ring_wait_ns;
    host_wait_ns += other.host_wait_ns;
    copy_wait_ns += other.copy_wait_ns;
    return *this;
  }
};

struct StagerOptions {
  bool across_epochs = false;  // goes on with the next epoch before this one's end has been taken
  // How long Next waits for another thread to let go of a batch where the consumer holds all.
  std::chrono::milliseconds patience{2000};
  const Trace* trace = nullptr;
};

class Stager {
 public:
  static constexpr int kFewestBuffers = 2, kMostBuffers = 64;
  static Status CheckBuffers(int buffers);  // InvalidArgument beyond these

  // Device memory for `buffers` batches; `timed`: the device tells how long copies take.
  // InvalidArgument, ResourceExhausted.
  static Result<std::shared_ptr<DeviceRing>> MakeRing(std::shared_ptr<Device> device,
                                                      StagePlan plan, int buffers,
                                                      bool timed = false);

  // Uses `ring`, which no other stager that is alive uses. `source` and the trace outlive the
  // stager. Starts its thread at the first Next.
  Stager(std::shared_ptr<DeviceRing> ring, HostBatches& source, const StagerOptions& options = {});
  // Stops. Waits for nothing that the device does: host batches whose copies are on their way are
  // let go by the ring's next stager, by DeviceRing::LetGoOfHosts, or with the ring.
  ~Stager();

  // The next batch in order; empty at the end of an epoch. Does not wait until it has arrived: its
  // event does. An error of the source takes the place of its batch, and the next call goes on;
  // after an error of the device all calls return it. ResourceExhausted when the caller holds all
  // entries of the ring, and none comes back for a while; Cancelled after Stop, and by `interrupt`,
  // which loses nothing. One thread at a time.
  Result<DeviceBatch> Next(const Interrupt& interrupt = {});

  void Stop();  // any thread
  StagerStats Stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
