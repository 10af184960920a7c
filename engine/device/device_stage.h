// DeviceStage: rings of device memory, one per device, and the copier that fills them with a
// producer's batches.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/device/copy_waits.h"
#include "engine/metrics/stats.h"
#include "engine/order/batch_sequence.h"
#include "engine/production/batches/batch_maker.h"
#include "engine/production/producer.h"
#include "engine/production/producer_options.h"
#include "gpu/staging/device_copier.h"
#include "gpu/staging/split_batch.h"

namespace stoker {

class DeviceStage final : public BatchMaker {
 public:
  // Allocates a ring of device buffers on each device of the producer's options. DeviceStage starts
  // at the first batch of epoch 0, and epochs follow each other.
  static Result<std::unique_ptr<DeviceStage>> Open(std::unique_ptr<Producer> producer,
                                                   const ProducerOptions& own);
  ~DeviceStage() override { End(); }

  // Like DeviceCopier::NextParts, but epochs follow each other without a mark. Cancelled after
  // Stop.
  Result<SplitBatch> NextOnDevices(const Interrupt& interrupt) override;

  // Like Producer::Seek, without kAppended. Pending batches are dropped, except on InvalidArgument.
  Status Seek(BatchName batch, Schedule schedule, const Interrupt& interrupt) override;
  std::optional<BatchName> position() const override {
    return needs_seek_ ? std::nullopt : std::optional(next_);
  }
  Schedule schedule() const override { return repeat_ ? Schedule::kSameEpoch : Schedule::kEpochs; }
  uint64_t passed() const override { return passed_; }
  void EndEpoch() override {}  // the copier consumes the end-of-epoch marker itself

  void Cancel() override { producer_->Cancel(); }
  void Stop() override;
  [[nodiscard]] bool TryStop() override;

  LoaderStats Stats() const override;
  DeviceCopyStats CopyStats() const override;
  const std::vector<ColumnSpec>& columns() const override;  // on the device
  Producer& producer() override { return *producer_; }

 private:
  DeviceStage(std::vector<std::shared_ptr<DeviceRing>> rings, std::unique_ptr<Producer> producer);

  // Supplies the copier with the producer's batches, on the copier's thread.
  class Source final : public HostBatches {
   public:
    Source(Producer& producer, CopyWaits& waits) : producer_(producer), waits_(waits) {}

    Result<Batch> Next(const Interrupt& interrupt) override;

    // Whether this error, which Next returned, replaced a batch. Must be called for errors in the
    // order in which they came; the copier's own errors never replace one. Thread-safe.
    bool ReplacedBatch(const Error& error);

   private:
    struct Failure {
      Error error;
      bool replaced_batch;
    };

    Producer& producer_;
    CopyWaits& waits_;
    std::mutex mutex_;
    std::deque<Failure> failures_;  // not yet seen by the consumer
  };

  Result<SplitBatch> Take(const Interrupt& interrupt);
  void Pass();
  void End();
  void Begin();
  void Drop();

  const std::unique_ptr<Producer> producer_;  // used by nothing else
  const std::vector<std::shared_ptr<DeviceRing>> rings_;
  CopyWaits waits_;
  bool repeat_ = false;      // repeat the same epoch
  bool needs_seek_ = false;  // the last one was interrupted, and nothing is produced
  BatchName next_;
  bool at_end_ = false;  // the copier has not yet reported the end of the epoch before `next_`
  uint64_t passed_ = 0;
  std::mutex use_;           // held by Next
  mutable std::mutex ends_;  // guards the members below, which change only with both locks held
  std::unique_ptr<Source> source_;
  std::unique_ptr<DeviceCopier> copier_;  // declared after the source, which it uses
  bool ended_ = false;
  DeviceCopyStats past_;  // of earlier copiers
};

}  // namespace stoker
