// Engine: a producer and, if the loader has a device, the staging that copies its batches there. A
// Loader keeps a few engines; each Iterator borrows one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/device/staging.h"
#include "engine/metrics/stats.h"
#include "engine/options/options.h"
#include "engine/order/batch_sequence.h"
#include "engine/production/producer.h"
#include "engine/production/producer_options.h"
#include "gpu/staging/split_batch.h"
#include "gpu/staging/stager.h"

namespace stoker {

// Not thread-safe, except Cancel, Stop, TryStop, Stats and StageStats.
class Engine {
 public:
  // Reserves (and pins) the memory for batches and, with devices, allocates a ring of device
  // buffers on each.
  static Result<std::unique_ptr<Engine>> Open(LoaderOptions options,
                                              const ProducerOptions& producer);
  ~Engine();  // does nothing in a forked child, where everything belongs to the parent

  // See Producer::Next and Staging::Next. Precondition of Next: the loader has no device; of
  // NextOnDevices: it has one or more.
  Result<Batch> Next(const Interrupt& interrupt) { return producer_->Next(interrupt); }
  Result<SplitBatch> NextOnDevices(const Interrupt& interrupt);

  // See Producer. These functions count the batches that Next or NextOnDevices returned: a batch
  // still on its way to a device is not passed.
  Status Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt = {});
  Status Append(BatchName batch);             // precondition: the loader has no device
  std::optional<BatchName> position() const;  // none after a Seek that failed, until the next one
  // Whether Next returns this batch, followed by those of the schedule.
  bool IsAt(BatchName batch, Schedule schedule) const;
  uint64_t passed() const;

  // Must be called when the last batch of an epoch was returned: production of the next epoch
  // continues from here.
  void EndEpoch();

  // Cancels pending waits, and begins no further call of the program's function. Waits for nothing.
  void Cancel() { producer_->Cancel(); }

  // Cancel; when it returns no thread works for this engine any more.
  void Stop();
  // Does what Stop does, but gives up after a while and returns false if samples or calls are still
  // in progress.
  [[nodiscard]] bool TryStop();

  LoaderStats Stats() const;  // with a device, waits are those for device batches
  StagerStats StageStats() const;

  const Producer& producer() const { return *producer_; }
  const std::vector<ColumnSpec>& columns() const;  // of the delivered batches

 private:
  explicit Engine(std::unique_ptr<Producer> producer) : producer_(std::move(producer)) {}

  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Staging> staging_;  // null: no device. Declared after the producer, which it uses
  Schedule schedule_ = Schedule::kEpochs;
  bool needs_seek_ = false;  // the last one failed, and nothing is produced
};

}  // namespace stoker
