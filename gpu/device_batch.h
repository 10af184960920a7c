// DeviceBatch: rows of samples on a device, lent to whoever consumes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/batch.h"
#include "core/result.h"
#include "gpu/device.h"

namespace stoker {

struct StagedBatch;

// A lease on an entry of a DeviceRing, move-only; valid also after the loader and the stager have
// gone. A default-constructed one is empty and converts to false: the epoch has ended.
//
//   DeviceBatch batch = ...;
//   batch.WaitOn(stream);            // the stream's next work sees the whole batch
//   Launch(stream, batch.images().data);
//   batch.Release();  // at once; the memory is overwritten when `stream` has got that far
//
// Who uses the memory on a stream says so by WaitOn, before; and lets go after having issued the
// last work that uses it. Nothing need be waited for on the host. The stream exists until then.
//
// Letting go never fails and never waits. In a forked child it does nothing.
class DeviceBatch {
 public:
  DeviceBatch() = default;
  explicit DeviceBatch(std::shared_ptr<StagedBatch> lease) : staged_(std::move(lease)) {}
  DeviceBatch(DeviceBatch&&) noexcept = default;
  DeviceBatch& operator=(DeviceBatch&&) noexcept = default;

  explicit operator bool() const { return staged_ != nullptr; }

  // Preconditions of all below: the batch is not empty, and has a second column for labels().
  std::span<const Column> columns() const;  // `data` is the device's; C order, dense
  const Column& images() const { return columns()[0]; }
  const Column& labels() const { return columns()[1]; }
  std::span<const uint64_t> sample_ids() const;
  int64_t rows() const;
  uint64_t epoch() const;
  uint64_t index() const;
  uint64_t issued_ns() const;  // when all that makes it had been issued (NowNanoseconds)
  const std::shared_ptr<Device>& device() const;

  // What the stream is given from now on sees the batch; the batch counts as used on it until it is
  // let go. Any number of streams of its device, any thread. Of a thread's default stream another
  // thread could not name the end: with it the batch counts as used anyhow.
  Status WaitOn(DeviceStream stream) const;
  // For consumers of whose streams nothing is known, or which may be gone by the time they let go,
  // as all are that take a batch by DLPack: its memory is used again behind everything that the
  // device has been given when the next batch is asked for, on any stream. Letting go makes no call
  // to the device then, but for the last batch of a ring whose loader has gone: that frees memory.
  void UsedAnyhow() const;
  // The host waits until the batch has arrived; the batch counts as used by the host.
  Status Wait() const;

  // Keeps the batch, as the batch itself does. May be copied, and let go on any thread.
  std::shared_ptr<const StagedBatch> Owner() const { return staged_; }

  void Release() { staged_.reset(); }

 private:
  std::shared_ptr<StagedBatch> staged_;
};

}  // namespace stoker
