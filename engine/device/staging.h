// Staging: a ring of device memory, the stager that fills it, and the host's batches that it takes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "core/interrupt.h"
#include "core/result.h"
#include "engine/device/staged_waits.h"
#include "engine/loader/cursor.h"
#include "engine/loader/shared_loader.h"
#include "gpu/device_batch.h"
#include "gpu/stager.h"

namespace stoker {

// Batches from a place on, epoch after epoch, or the same epoch again and again: a new Cursor for
// each, so that the host's engine is found where it is.
class CursorBatches final : public HostBatches {
 public:
  CursorBatches(SharedLoader& shared, StagedWaits& waits, BatchName from, bool repeat)
      : shared_(shared), waits_(waits), next_(from), repeat_(repeat) {}

  Result<Batch> Next(const Interrupt& interrupt) override;

  // Where to go on behind an error that came out of Next, in the order in which they did; none: it
  // is not the next one of them, and somebody else's. Any thread.
  std::optional<BatchName> Passed(const Error& error);

 private:
  SharedLoader& shared_;
  StagedWaits& waits_;
  BatchName next_;
  const bool repeat_;
  std::unique_ptr<Cursor> cursor_;

  struct Failure {
    Error error;
    BatchName next;
  };
  std::mutex mutex_;
  std::deque<Failure> failures_;  // that the consumer has not seen yet
};

// One thread at a time, but for End and Stats.
class Staging {
 public:
  Staging(std::shared_ptr<DeviceRing> ring, SharedLoader& host)
      : host_(host), ring_(std::move(ring)) {}
  ~Staging() { End(); }

  // The next batch is this one; nothing is begun anew where it was anyway.
  void GoTo(BatchName batch, bool repeat);

  // As Stager::Next, but that epochs follow each other without a mark. Cancelled once ended.
  Result<DeviceBatch> Next(const Interrupt& interrupt);

  // Batches that Next has passed so far, good ones and errors that took the place of one.
  uint64_t passed() const { return passed_; }

  // Stops, and joins the stager's thread; a Next that waits is Cancelled.
  void End();
  StagerStats Stats() const;
  StagedWaits::Totals waits() const { return waits_.totals(); }

 private:
  Result<DeviceBatch> Take(const Interrupt& interrupt);
  void Pass(BatchName to);
  void Drop();

  SharedLoader& host_;
  const std::shared_ptr<DeviceRing> ring_;
  StagedWaits waits_;
  bool repeat_ = false;
  BatchName next_;       // that Next gives
  bool at_end_ = false;  // the stager has yet to say that the epoch before `next_` has ended
  uint64_t passed_ = 0;
  std::mutex use_;           // held in Next
  mutable std::mutex ends_;  // guards what follows; changed with both held
  std::unique_ptr<CursorBatches> source_;
  std::unique_ptr<Stager> stager_;
  bool ended_ = false;
  StagerStats past_;  // of stagers that are gone
};

}  // namespace stoker
