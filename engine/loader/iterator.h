// Iterator: one iteration over a Loader.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/batch.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/loader.h"
#include "gpu/device_batch.h"

namespace stoker {

// One iteration. One thread at a time, the destructor included.
class Iterator {
 public:
  ~Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  // The next batch; an empty one at the end, again and again. Waits until the batch is complete.
  //
  // A bad sample makes its batch an error that names file, offset and cause; the call after it goes
  // on with the next batch. Other errors: ResourceExhausted when the caller already holds
  // lent_batches (it never waits for itself); Cancelled after Stop, and when `interrupt` said so;
  // FailedPrecondition in a forked child, and where batches go to a device.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // The same of a loader with a device; as Stager::Next. FailedPrecondition where it has none.
  Result<DeviceBatch> NextOnDevice(const Interrupt& interrupt = {});

  // Batches that were passed, good ones and errors that took the place of one; what is on its way
  // to a device is not. An error that passed none (Cancelled, a limit) leaves the next call where
  // this one was.
  uint64_t passed() const { return passed_; }

  // O(1), reads nothing. `index` may be batches_per_epoch(): the end. The epoch counter stays.
  Status Seek(BatchName batch);

  // Where the next Next goes on: with Seek, all that is needed to resume. {epoch,
  // batches_per_epoch()} at the end. None while no epoch is decided, and once batches were
  // appended.
  std::optional<BatchName> position() const;

  // From the first call on, and until Seek: exactly the appended batches, in the order of the
  // calls; Next is empty when there are none left. FailedPrecondition where batches go to a device.
  Status Append(BatchName batch);

 private:
  friend class Loader;
  Iterator(std::shared_ptr<Loader> loader, std::optional<uint64_t> epoch, bool repeat);
  Status FindEngine();
  template <typename AnyBatch>
  Result<AnyBatch> Take(Result<AnyBatch> (Engine::*next)(const Interrupt&),
                        const Interrupt& interrupt);

  const std::shared_ptr<Loader> loader_;
  const bool repeat_;
  std::optional<uint64_t> epoch_;
  uint64_t index_ = 0;
  uint64_t passed_ = 0;
  bool appended_ = false;
  bool took_epoch_ = false;  // from the counter
  Loader::Lease engine_;
};

}  // namespace stoker
