// Loader: samples, which are photographs on disk or arrays in memory, become batches.
//
// Each iteration is an Iterator with an epoch of its own: the next that nobody has taken, unless
// one was named. The engines, which make the batches, belong to the Loader and not to its
// iterators: an iterator at the end of its epoch leaves its engine at the start of the next one,
// with the first batches in production already, and the next iterator finds it there. Iterators
// that run side by side have an engine each, and memory for each.
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

// Batches come in the order that (seed, epoch, rank, world) name, with the same bytes for any
// number of threads, any depth, any reader and any executor.
//
//   auto loader = Loader::Open(options).value();
//   for (int epoch = 0; epoch < 3; ++epoch) {
//     auto batches = loader->Iterate();
//     while (Batch batch = batches->Next().value()) Train(batch.images(), batch.labels());
//   }
//
// With LoaderOptions::to_device batches arrive on a device, in the same order and with the same
// values: NextOnDevice gives them. Where they are not bytes, or are mixed, what a kernel can do
// (flip last, normalise, convert, erase, mix) is left to it, so that a quarter of the bytes of
// float32 cross the bus.
//
//   options.to_device = {.device = Device::Open({DeviceName::Kind::kCuda, 0}).value()};
//   …
//     while (DeviceBatch batch = batches->NextOnDevice().value()) {
//       batch.WaitOn({stream}).value();
//       Train(stream, batch.images(), batch.labels());
//     }
//
// Any thread. Its iterators keep it alive; batches outlive it.
class Loader : public std::enable_shared_from_this<Loader> {
 public:
  // Checks every option and reserves the memory; with a device, pins it and allocates memory there.
  // Reads nothing and starts nothing: the first Next does. InvalidArgument names the option;
  // ResourceExhausted names the smallest budget that would do.
  // `epochs`: a counter that outlives this object, or none.
  static Result<std::shared_ptr<Loader>> Open(LoaderOptions options,
                                              std::shared_ptr<EpochCounter> epochs = {});
  ~Loader();

  EpochCounter& epochs() { return *epochs_; }

  // `epoch`: iterate this one; none: the next that nobody has taken, decided at the first Next.
  // `repeat`: expect that the same epoch is iterated again afterwards.
  std::unique_ptr<Iterator> Iterate(std::optional<uint64_t> epoch = {}, bool repeat = false);

  // One batch by its name, without an iterator. Consecutive calls, and the first of an epoch, are
  // read ahead of, across epochs, the way an operating system reads ahead in a file; a call
  // elsewhere makes that one batch only. Two sequences may take turns. Calls on several threads
  // wait for each other. FailedPrecondition where batches go to a device.
  Result<Batch> BatchAt(BatchName batch, const Interrupt& interrupt = {});

  // Said once, and only where lent_batches sets no limit: the caller holds more than the memory
  // budget.
  std::optional<std::string> TakeWarning();

  // Gives back the memory of engines that no iterator has, for one who takes the batches another
  // way; the next iterator opens one anew.
  void LetIdleGo();

  // Ends all iterations, also those that wait now: Cancelled, from here on. Bounded by the time of
  // the samples in work; on return no thread works for this loader any more.
  void Stop();

  LoaderStats Stats() const;       // of all engines together, past ones included
  StagerStats StageStats() const;  // the same of the way to the device
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  uint32_t last_rows() const { return last_rows_; }  // of the last batch of an epoch
  const std::vector<ColumnSpec>& columns() const { return columns_; }  // of what is delivered
  int depth() const { return depth_; }  // batches in production for one iteration
  const LoaderOptions& options() const { return options_; }

 private:
  friend class Iterator;

  // An engine on loan goes back by itself. The loader outlives it.
  struct GiveBack {
    Loader* loader = nullptr;
    void operator()(Engine* engine) const;
  };
  using Lease = std::unique_ptr<Engine, GiveBack>;

  Loader(LoaderOptions options, ProducerOptions producer, std::shared_ptr<EpochCounter> epochs);

  // An engine that goes on at `batch`; for kAppended nothing is appended yet. `spare`: rather open
  // another than disturb an idle one, while there are fewer than MostIdle.
  Result<Lease> Borrow(BatchName batch, Schedule schedule, bool spare = false);
  Result<Lease> FindEngine(BatchName batch, Schedule schedule, bool spare);
  std::unique_ptr<Engine> TakeIdle(BatchName batch, Schedule schedule, bool spare);
  bool IdleAt(BatchName batch) const;
  size_t MostIdle() const { return options_.to_device ? 1 : 2; }  // memory of devices is dear
  Result<Batch> MakeByName(BatchName batch, bool follows, const Interrupt& interrupt);
  void NoteLent();

  const LoaderOptions options_;
  const ProducerOptions producer_;
  const std::shared_ptr<EpochCounter> epochs_;
  uint64_t batches_per_epoch_ = 0;
  uint32_t last_rows_ = 0;
  int depth_ = 0;
  std::vector<ColumnSpec> columns_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable by_name_;
  bool serving_by_name_ = false;               // one BatchAt at a time
  std::vector<std::unique_ptr<Engine>> idle_;  // the one used last is last
  std::vector<Engine*> busy_;                  // borrowed
  LoaderStats past_;                           // of engines that are gone
  StagerStats past_staged_;                    // and again
  bool stopped_ = false;
  bool warned_ = false;
  std::optional<std::string> warning_;
};

}  // namespace stoker
