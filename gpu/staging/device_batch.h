// DeviceBatch: rows of samples on a device, lent to the consumer. DeviceCopyStats: the cost of
// copying batches there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "gpu/backend/device.h"

namespace stoker {

struct RingEntry;

// A lease on an entry of a DeviceRing, move-only; valid also after the loader and the copier have
// gone. A default-constructed one is empty and converts to false: the epoch has ended.
//
//   DeviceBatch batch = ...;
//   batch.WaitOn(stream);            // the stream's next work sees the whole batch
//   Launch(stream, batch.images().data);
//   batch.Release();  // at once; the memory is overwritten after this work of `stream`
//
// Call WaitOn before using the memory on a stream, and release the batch after issuing the last
// work that uses it. The host need not wait for anything. The stream must exist until then.
//
// Release never fails, and does not wait for the device; it may wait for locks of CUDA's. In a
// forked child it does nothing.
class DeviceBatch {
 public:
  DeviceBatch() = default;
  explicit DeviceBatch(std::shared_ptr<RingEntry> lease) : entry_(std::move(lease)) {}
  DeviceBatch(DeviceBatch&&) noexcept = default;
  DeviceBatch& operator=(DeviceBatch&&) noexcept = default;

  explicit operator bool() const { return entry_ != nullptr; }

  // Preconditions: the batch is not empty, and has a second column for labels(): as of Batch, it is
  // not the labels if samples have several encoded images.
  std::span<const Column> columns() const;  // `data` is on the device; C order, dense
  const Column& images() const { return columns()[0]; }
  const Column& labels() const { return columns()[1]; }
  const Column* column(std::string_view name) const { return FindColumn(columns(), name); }
  std::span<const uint64_t> sample_ids() const;
  int64_t rows() const;
  BatchName name() const;
  uint64_t epoch() const { return name().epoch; }
  uint64_t index() const { return name().index; }
  uint64_t issued_ns() const;  // when all its work had been issued (NowNanoseconds)
  const std::shared_ptr<Device>& device() const;

  // Later work of the stream sees the batch; the batch counts as used on the stream until it is
  // released. Any number of streams of its device, any thread. A thread's default stream cannot be
  // referred to by other threads: the batch is then untracked (below), regardless of other streams.
  Status WaitOn(DeviceStream stream) const;
  // For consumers whose streams are unknown or may be gone when they release the batch, as with
  // DLPack: the batch's memory is reused after all work that was issued to the device, on any
  // stream, when the next batch is requested. Releasing the batch then makes no call to the device,
  // except for the last batch of a ring whose loader has gone, because that frees memory.
  void MarkUntracked() const;
  // Passes the batch to a consumer by DLPack: later work of `stream` sees the whole batch. Without
  // a stream the host waits, so that work issued to any stream after this call sees it. (JAX's
  // alternative client and TensorFlow have a stream, but do not pass it.) Then calls MarkUntracked.
  Status GiveTo(std::optional<DeviceStream> stream) const;
  // Declares that only this stream, those of other calls and those of WaitOn and GiveTo use the
  // batch until it is released, and that they exist until then; overrides MarkUntracked. Does not
  // make the stream wait for the batch. Any thread. A stream that is being captured when the batch
  // is released must exist until a batch is requested after the capture.
  Status RecordStream(DeviceStream stream) const;
  // Blocks the host until the batch has arrived; the batch counts as used by the host.
  Status Wait() const;

  // Keeps the batch's memory alive. May be copied, and released on any thread.
  std::shared_ptr<const RingEntry> Owner() const { return entry_; }

  void Release() { entry_.reset(); }

 private:
  std::shared_ptr<RingEntry> entry_;
};

// The cost of copying batches to a device.
struct DeviceCopyStats {
  uint64_t batches = 0;       // copied, with all their parts
  uint64_t copied_bytes = 0;  // copied to the device
  // Duration of the copies that have ended, measured by the devices if the rings are timed. Copies
  // to several devices overlap: the sum may exceed the elapsed time.
  uint64_t copy_ns = 0;
  uint64_t timed_bytes = 0;   // of these copies
  uint64_t ring_wait_ns = 0;  // waiting for an entry: the consumer is the limit
  uint64_t host_wait_ns = 0;  // waiting for a host batch: production is the limit
  uint64_t copy_wait_ns = 0;  // waiting for a copy to end: the link is the limit
  uint64_t device_bytes = 0;  // of the rings
  // How often the rings have invalidated captures of CUDA graphs on other threads, which they could
  // not see (DeviceRing::Reclaim).
  uint64_t invalidated_captures = 0;

  // Adds all but device_bytes, which describes the rings.
  DeviceCopyStats& operator+=(const DeviceCopyStats& other) {
    batches += other.batches;
    copied_bytes += other.copied_bytes;
    copy_ns += other.copy_ns;
    timed_bytes += other.timed_bytes;
    ring_wait_ns += other.ring_wait_ns;
    host_wait_ns += other.host_wait_ns;
    copy_wait_ns += other.copy_wait_ns;
    invalidated_captures += other.invalidated_captures;
    return *this;
  }
};

}  // namespace stoker
