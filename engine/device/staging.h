// Staging: rings of device memory, one on each device, and the stager that fills them with batches
// of a producer.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/device/staged_waits.h"
#include "engine/order/batch_sequence.h"
#include "engine/production/producer.h"
#include "gpu/staging/split_batch.h"
#include "gpu/staging/stager.h"

namespace stoker {

// Not thread-safe, except End, Stats and waits.
class Staging {
 public:
  // The producer must outlive the Staging and be used by nothing else. Staging starts at the first
  // batch of epoch 0, and epochs follow each other.
  Staging(std::vector<std::shared_ptr<DeviceRing>> rings, Producer& producer);
  ~Staging() { End(); }

  // Like Producer::Seek, without kAppended. Pending batches are dropped unless the batch is
  // InvalidArgument.
  Status Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt = {});

  // Like Stager::NextParts, but epochs follow each other without a mark. Cancelled after End.
  Result<SplitBatch> Next(const Interrupt& interrupt);

  // The batch that Next returns next.
  BatchName position() const { return next_; }

  // The number of batches that Next has returned so far, including those replaced by an error.
  uint64_t passed() const { return passed_; }

  // Stops and joins the stager's thread; a waiting Next returns Cancelled.
  void End();

  StagerStats Stats() const;
  StagedWaits::Totals waits() const { return waits_.totals(); }
  const std::vector<ColumnSpec>& columns() const;  // on the device

 private:
  // Supplies the stager with the producer's batches, on the stager's thread.
  class Source final : public HostBatches {
   public:
    Source(Producer& producer, StagedWaits& waits) : producer_(producer), waits_(waits) {}

    Result<Batch> Next(const Interrupt& interrupt) override;

    // Whether this error, which Next returned, replaced a batch. Must be called for errors in the
    // order in which they came; the stager's own errors never replace one. Thread-safe.
    bool ReplacedBatch(const Error& error);

   private:
    struct Failure {
      Error error;
      bool replaced_batch;
    };

    Producer& producer_;
    StagedWaits& waits_;
    std::mutex mutex_;
    std::deque<Failure> failures_;  // not yet seen by the consumer
  };

  Result<SplitBatch> Take(const Interrupt& interrupt);
  void Pass();
  void Begin();
  void Drop();

  Producer& producer_;
  const std::vector<std::shared_ptr<DeviceRing>> rings_;
  StagedWaits waits_;
  bool repeat_ = false;  // repeat the same epoch
  BatchName next_;
  bool at_end_ = false;  // the stager has not yet reported the end of the epoch before `next_`
  uint64_t passed_ = 0;
  std::mutex use_;           // held by Next
  mutable std::mutex ends_;  // guards the members below, which change only with both locks held
  std::unique_ptr<Source> source_;
  std::unique_ptr<Stager> stager_;  // declared after the source, which it uses
  bool ended_ = false;
  StagerStats past_;  // of earlier stagers
};

}  // namespace stoker
