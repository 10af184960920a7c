// Staging: a ring of device memory, the stager that fills it, and the producer whose batches it
// takes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/device/staged_waits.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/producer.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

// One thread at a time, but for End, Stats and waits.
class Staging {
 public:
  // The producer outlives it, and is its own: at the first batch of epoch 0, and epochs follow.
  Staging(std::shared_ptr<DeviceRing> ring, Producer& producer);
  ~Staging() { End(); }

  // As Producer::Seek, but for kAppended. What was on its way is dropped, unless it is refused.
  Status Seek(BatchName batch, Schedule schedule);

  // As Stager::Next, but that epochs follow each other without a mark. Cancelled once ended.
  Result<DeviceBatch> Next(const Interrupt& interrupt);

  // The batch that Next gives.
  BatchName position() const { return next_; }

  // Batches that Next has passed so far, good ones and errors that took the place of one.
  uint64_t passed() const { return passed_; }

  // Stops, and joins the stager's thread; a Next that waits is Cancelled.
  void End();

  StagerStats Stats() const;
  StagedWaits::Totals waits() const { return waits_.totals(); }
  const std::vector<ColumnSpec>& columns() const;  // on the device

 private:
  // The producer's batches, as the stager takes them: on its thread.
  class Source final : public HostBatches {
   public:
    Source(Producer& producer, StagedWaits& waits) : producer_(producer), waits_(waits) {}

    Result<Batch> Next(const Interrupt& interrupt) override;

    // Whether this error, which came out of Next, took the place of a batch. Errors are asked about
    // in the order in which they came; those of the stager itself never did. Any thread.
    bool TookABatch(const Error& error);

   private:
    struct Failure {
      Error error;
      bool took_a_batch;
    };

    Producer& producer_;
    StagedWaits& waits_;
    std::mutex mutex_;
    std::deque<Failure> failures_;  // that the consumer has not seen yet
  };

  Result<DeviceBatch> Take(const Interrupt& interrupt);
  void Pass();
  void Begin();
  void Drop();

  Producer& producer_;
  const std::shared_ptr<DeviceRing> ring_;
  StagedWaits waits_;
  bool repeat_ = false;  // the same epoch again and again
  BatchName next_;
  bool at_end_ = false;  // the stager has yet to say that the epoch before `next_` has ended
  uint64_t passed_ = 0;
  std::mutex use_;           // held in Next
  mutable std::mutex ends_;  // guards what follows; changed with both held
  std::unique_ptr<Source> source_;
  std::unique_ptr<Stager> stager_;  // after the source: it uses it
  bool ended_ = false;
  StagerStats past_;  // of stagers that are gone
};

}  // namespace stoker
