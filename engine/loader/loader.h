// Loader: makes batches of samples, which are photographs on disk or arrays in memory.
//
// Each iteration is an Iterator with its own epoch: the one that was named, or the next that no
// other iteration has taken. The engines, which make the batches, belong to the Loader and not to
// its iterators: an iterator at the end of its epoch leaves its engine at the start of the next
// one, with the first batches in production already, and the next iterator continues with it.
// Iterators that run side by side use one engine each, with its own memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/batch.h"
#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/epoch_counter.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/watching/stats.h"
#include "gpu/stager.h"

namespace stoker {

class Engine;
class Iterator;

// The order of batches depends only on (seed, epoch, rank, world); order and bytes are the same for
// any number of threads, any depth, any reader and any executor.
//
//   auto loader = Loader::Open(options).value();
//   for (int epoch = 0; epoch < 3; ++epoch) {
//     auto batches = loader->Iterate();
//     while (Batch batch = batches->Next().value()) Train(batch.images(), batch.labels());
//   }
//
// With LoaderOptions::to_device, NextOnDevice delivers the batches on a device, in the same order
// and with the same values. Unless the batches are plain uint8, the final operations (flip,
// normalize, convert, erase, mix) are deferred to a kernel on the device, so that only a quarter of
// the bytes of float32 cross the bus.
//
//   options.to_device = {.device = Device::Open({DeviceName::Kind::kCuda, 0}).value()};
//   …
//     while (DeviceBatch batch = batches->NextOnDevice().value()) {
//       batch.WaitOn({stream}).value();
//       Train(stream, batch.images(), batch.labels());
//     }
//
// Thread-safe. Iterators keep the loader alive; batches may outlive it.
class Loader : public std::enable_shared_from_this<Loader> {
 public:
  // Checks every option and reserves the memory; with a device it also pins host memory and
  // allocates device memory. It reads nothing and starts no thread; the first Next does.
  // InvalidArgument names the option; ResourceExhausted names the smallest sufficient budget.
  // `epochs`: a counter shared with other loaders; null: the loader gets its own.
  static Result<std::shared_ptr<Loader>> Open(LoaderOptions options,
                                              std::shared_ptr<EpochCounter> epochs = {});
  ~Loader();

  EpochCounter& epochs() { return *epochs_; }

  // `epoch`: the epoch to iterate; none: the next that no iteration has taken, chosen at the first
  // Next. `repeat`: expect the same epoch to be iterated again afterwards.
  std::unique_ptr<Iterator> Iterate(std::optional<uint64_t> epoch = {}, bool repeat = false);

  // Returns one batch by its name, without an iterator. Consecutive calls, and the first batch of
  // an epoch, trigger read-ahead across epochs, as an operating system reads ahead in a file; a
  // call elsewhere makes that one batch only. Two interleaved sequences are recognized. Concurrent
  // calls wait for each other. FailedPrecondition if batches go to a device.
  Result<Batch> BatchAt(BatchName batch, const Interrupt& interrupt = {});

  // Returns a warning once, and only if lent_batches sets no limit: the caller holds more memory
  // than the budget.
  std::optional<std::string> TakeWarning();

  // Releases the engines that no iterator uses, with their memory, for callers that take the
  // batches in another way; the next iterator opens a new one.
  void LetIdleGo();

  // Ends all iterations, including those that are waiting: they return Cancelled from now on. Waits
  // at most for the samples in progress; when it returns no thread works for this loader any more.
  void Stop();

  LoaderStats Stats() const;       // of all engines, including closed ones
  StagerStats StageStats() const;  // the same for the copies to the device
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint32_t last_rows() const { return last_rows_; }  // of the last batch of an epoch
  const std::vector<ColumnSpec>& columns() const { return columns_; }  // of the delivered batches
  int depth() const { return depth_; }  // prefetch depth of one iteration
  const LoaderOptions& options() const { return options_; }

 private:
  friend class Iterator;

  // Returns a borrowed engine to its loader, which must outlive it.
  struct GiveBack {
    Loader* loader = nullptr;
    void operator()(Engine* engine) const;
  };
  using Lease = std::unique_ptr<Engine, GiveBack>;

  Loader(LoaderOptions options, ProducerOptions producer, std::shared_ptr<EpochCounter> epochs);

  // Borrows an engine that continues at `batch`; for kAppended nothing is appended yet. `spare`:
  // open another engine rather than disturb an idle one, while there are fewer than MostIdle.
  Result<Lease> Borrow(BatchName batch, Schedule schedule, bool spare = false);
  Result<Lease> FindEngine(BatchName batch, Schedule schedule, bool spare);
  std::unique_ptr<Engine> TakeIdle(BatchName batch, Schedule schedule, bool spare);
  bool IdleAt(BatchName batch) const;
  size_t MostIdle() const { return options_.to_device ? 1 : 2; }  // device memory is scarce
  Result<Batch> MakeByName(BatchName batch, bool follows, const Interrupt& interrupt);
  void NoteLent();

  const LoaderOptions options_;
  const ProducerOptions producer_;
  const std::shared_ptr<EpochCounter> epochs_;
  uint64_t batches_per_epoch_ = 0;
  uint32_t last_rows_ = 0;
  int depth_ = 0;
  std::vector<ColumnSpec> columns_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable by_name_;
  bool serving_by_name_ = false;               // one BatchAt at a time
  std::vector<std::unique_ptr<Engine>> idle_;  // most recently used last
  std::vector<Engine*> busy_;                  // borrowed
  LoaderStats past_;                           // of closed engines
  StagerStats past_staged_;                    // of closed engines
  bool stopped_ = false;
  bool warned_ = false;
  std::optional<std::string> warning_;
};

}  // namespace stoker
