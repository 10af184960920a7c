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

// Not thread-safe; the destructor counts as a call.
class Iterator {
 public:
  ~Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  // Waits for the next batch and returns it; an empty batch at the end, however often it is called.
  //
  // If a sample cannot be read or decoded, Next returns an error that names file, offset and cause
  // instead of the batch, and the call after it goes on with the next batch. Other errors:
  // ResourceExhausted when the caller already holds lent_batches (Next does not wait for them to be
  // released); Cancelled after Stop and when `interrupt` returned true; FailedPrecondition in a
  // forked child, and if batches go to a device.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // The same for a loader with a device; see Stager::Next. FailedPrecondition if it has none.
  Result<DeviceBatch> NextOnDevice(const Interrupt& interrupt = {});

  // The number of batches returned so far, including those replaced by an error; batches still on
  // their way to a device do not count. After an error that passed none (Cancelled, a limit) the
  // next call asks for the same batch again.
  uint64_t passed() const { return passed_; }

  // Sets the next batch. O(1), reads nothing. `index` may be batches_per_epoch(), the end. The
  // loader's epoch counter is not changed.
  Status Seek(BatchName batch);

  // The batch that the next call of Next returns; Seek to it resumes an iteration. {epoch,
  // batches_per_epoch()} at the end. None while no epoch has been assigned, and once batches were
  // appended.
  std::optional<BatchName> position() const;

  // From the first Append until Seek, exactly the appended batches are delivered, in the order of
  // the calls; Next returns an empty batch when none is left. FailedPrecondition if batches go to a
  // device.
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
  bool took_epoch_ = false;  // from the epoch counter
  Loader::Lease engine_;
};

}  // namespace stoker
