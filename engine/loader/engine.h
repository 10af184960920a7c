// Engine: a producer and, where the loader has a device, the staging that takes its batches there.
// A Loader keeps a few, and each Iterator borrows one.
#pragma once

#include <cstdint>
#include <memory>

#include "core/batch.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/device/staging.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/options.h"
#include "engine/loader/producer.h"
#include "engine/loader/producer_options.h"
#include "engine/watching/stats.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

// One thread at a time; Stop, Stats and StageStats on any.
class Engine {
 public:
  // Reserves (and pins) the memory of batches and, with a device, allocates a ring there.
  static Result<std::unique_ptr<Engine>> Open(LoaderOptions options,
                                              const ProducerOptions& producer);
  ~Engine();  // in a forked child: touches nothing, for all of it is the parent's

  // As Producer::Next, or as Staging::Next. Precondition: the loader has no device, or has one.
  Result<Batch> Next(const Interrupt& interrupt) { return producer_->Next(interrupt); }
  Result<DeviceBatch> NextOnDevice(const Interrupt& interrupt);

  // As Producer's. The batches are those that Next, or NextOnDevice, has yet to give: what is on
  // its way to a device is not passed.
  Status Seek(BatchName batch, Schedule schedule);
  Status Append(BatchName batch);  // precondition: no device
  BatchName position() const;
  Schedule schedule() const { return schedule_; }
  uint64_t passed() const;

  // The last batch of an epoch was passed: the first ones of the next are produced from here on.
  void EndEpoch();

  // Cancels what is waited for. On return nothing works for this engine any more.
  void Stop();

  LoaderStats Stats() const;  // with a device, waits are for batches there
  StagerStats StageStats() const;

  const Producer& producer() const { return *producer_; }
  const std::vector<ColumnSpec>& columns() const;  // of what is delivered

 private:
  explicit Engine(std::unique_ptr<Producer> producer) : producer_(std::move(producer)) {}

  std::unique_ptr<Producer> producer_;
  std::unique_ptr<Staging> staging_;  // null: no device. After the producer: it takes from it
  Schedule schedule_ = Schedule::kEpochs;
};

}  // namespace stoker
