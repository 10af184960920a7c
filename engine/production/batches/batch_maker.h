// BatchMaker: gives a loader its batches, one after another. It is a Producer or, for a loader with
// devices, the DeviceStage that copies a Producer's batches to them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/order/batch_sequence.h"

namespace stoker {

class Producer;
struct LoaderStats;
struct SplitBatch;
struct DeviceCopyStats;

// Not thread-safe, except Cancel, Stop, TryStop, Stats and CopyStats.
class BatchMaker {
 public:
  virtual ~BatchMaker() = default;

  // Waits for the next batch: see Producer, and DeviceStage. Each is FailedPrecondition for batches
  // that the other one returns.
  virtual Result<Batch> Next(const Interrupt& interrupt);
  virtual Result<SplitBatch> NextOnDevices(const Interrupt& interrupt);

  // Makes Next deliver this batch next, followed by the batches after it. If it was interrupted,
  // nothing is produced until a Seek.
  virtual Status Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) = 0;

  // See Producer. FailedPrecondition if batches go to devices.
  virtual Status Append(BatchName batch);

  // The batch that Next returns next; nullopt after a Seek that was interrupted. Only batches that
  // Next returned count, not one still on its way to a device.
  virtual std::optional<BatchName> position() const = 0;
  virtual Schedule schedule() const = 0;
  virtual uint64_t passed() const = 0;

  // Must be called when the last batch of an epoch was returned: production of the next epoch
  // continues from here.
  virtual void EndEpoch() = 0;

  // Cancels pending waits, and begins no further call of the program's function. Does not wait.
  virtual void Cancel() = 0;
  // Cancels and waits: when it returns, no thread works for this maker.
  virtual void Stop() = 0;
  // Does what Stop does, but gives up after a while and returns false if samples or calls are still
  // in progress.
  [[nodiscard]] virtual bool TryStop() = 0;

  virtual LoaderStats Stats() const = 0;  // with a device, waits are those for device batches
  virtual DeviceCopyStats CopyStats() const;
  virtual const std::vector<ColumnSpec>& columns() const = 0;  // of the delivered batches

  virtual Producer& producer() = 0;  // of the batches on the host
};

}  // namespace stoker
