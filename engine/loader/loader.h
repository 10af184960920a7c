// Loader: makes batches of samples, which are photographs on disk or arrays in memory. Iterator:
// one iteration over a Loader.
//
// Each iteration is an Iterator with its own epoch: the requested one, or the next that no other
// iteration has taken. The BatchMakers belong to the Loader and not to its iterators: an iterator
// at the end of its epoch leaves its maker at the start of the next one, with the first batches
// already in production, and the next iterator continues with it. Concurrent iterators use one
// maker each, with its own memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/metrics/stats.h"
#include "engine/options/options.h"
#include "engine/order/epoch_counter.h"
#include "gpu/staging/device_batch.h"
#include "gpu/staging/split_batch.h"

namespace stoker {

class BatchMaker;
class Iterator;
class Sampler;
enum class Schedule;
struct ProducerOptions;

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
//   options.to_device = {.devices = {Device::Open({DeviceName::Kind::kCuda, 0}).value()}};
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
  // allocates device memory. It reads no sample and starts no thread; the first Next does. It
  // computes the source's fingerprint for states, so the program's arrays must not change from here
  // on. InvalidArgument names the option; ResourceExhausted names the smallest sufficient budget.
  // `epochs`: a counter shared with other loaders; null means the loader gets its own.
  static Result<std::shared_ptr<Loader>> Open(LoaderOptions options,
                                              std::shared_ptr<EpochCounter> epochs = {});
  ~Loader();

  EpochCounter& epochs() const { return *epochs_; }

  // `epoch`: the epoch to iterate; if not given, the loader's next place, at the first Next
  // (EpochCounter has the rule). `repeat`: expect the same epoch to be iterated again afterwards.
  std::unique_ptr<Iterator> Iterate(std::optional<uint64_t> epoch = {}, bool repeat = false);

  // Returns one batch by its name, without an iterator. Consecutive calls, and the first batch of
  // an epoch, trigger read-ahead across epochs, as an operating system reads ahead in a file; a
  // call elsewhere makes that one batch only. A batch that loses all its rows (on_bad) is returned
  // without rows. Two interleaved sequences are recognized. Concurrent calls wait for each other.
  // FailedPrecondition if batches go to a device.
  Result<Batch> BatchAt(BatchName batch, const Interrupt& interrupt = {});

  // StateAt returns the state of an iteration that continues with the batch `next`: a JSON object
  // of a few hundred bytes, with the options and a fingerprint of the samples. PlaceOf returns the
  // batch with which an iteration of this loader continues after a state. The state may come from
  // another world or batch size unless `same_ranks` is set. The batch's index is
  // batches_from(start) if nothing of the epoch is left for this rank. FailedPrecondition: the
  // state comes from a loader with other options or samples, and the message names each difference
  // with both values. InvalidArgument: the text is not a state (loader_state.h). Both functions are
  // O(1).
  Result<BatchName> PlaceOf(std::string_view state, bool same_ranks = false) const;
  std::string StateAt(BatchName next) const;

  // Returns each warning once: batch memory that should be pinned for a device is not; the caller
  // holds more memory than the budget while lent_batches sets no limit.
  std::optional<std::string> TakeWarning();
  // Returns, once, a warning that a cache keeps nothing, or fails because the disk is full or the
  // cache cannot be written.
  std::optional<std::string> TakeCacheWarning();

  // Releases the makers that no iterator uses, with their memory, for callers that switch to
  // another way of taking batches; the next iterator opens a new one.
  void ReleaseIdle();

  // Ends all iterations, including those that are waiting: they return Cancelled from now on. Waits
  // at most for the samples in progress; when it returns, no thread works for this loader.
  void Stop();

  LoaderStats Stats() const;          // of all makers, including closed ones
  DeviceCopyStats CopyStats() const;  // the same for the copies to the device
  uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  // The number of batches of an epoch that begins at the position `start` (BatchName::start).
  uint64_t batches_from(uint64_t start) const;
  // The number of rows of the last of these batches; 0 if there are none.
  uint32_t last_rows_from(uint64_t start) const;
  uint32_t last_rows() const { return last_rows_; }  // of the last batch of an epoch
  const std::vector<ColumnSpec>& columns() const { return columns_; }  // of the delivered batches
  // The current depth; that of one iteration if several are running.
  int depth() const { return Stats().depth; }
  const LoaderOptions& options() const { return options_; }

 private:
  friend class Iterator;
  struct State;  // the members that change, and their lock

  // Returns a borrowed maker to its loader, which must outlive it.
  struct ReturnMaker {
    Loader* loader = nullptr;
    void operator()(BatchMaker* maker) const;
  };
  using Borrowed = std::unique_ptr<BatchMaker, ReturnMaker>;

  Loader(LoaderOptions options, ProducerOptions producer, std::shared_ptr<EpochCounter> epochs);

  // Borrows a maker that continues at `batch`; for kAppended nothing is appended yet. `spare`: open
  // another maker instead of moving an idle one, while there are fewer than MaxIdle.
  Result<Borrowed> Borrow(BatchName batch, Schedule schedule, const Interrupt& interrupt,
                          bool spare = false);
  Result<Borrowed> FindMaker(BatchName batch, Schedule schedule, bool spare);
  std::shared_ptr<BatchMaker> TakeIdle(BatchName batch, Schedule schedule, bool spare);
  bool IdleAt(BatchName batch) const;
  void DestroyEnding();
  size_t MaxIdle() const { return options_.to_device ? 1 : 2; }  // device memory is scarce
  Status CheckBad() const;
  Result<Batch> MakeByName(BatchName batch, bool follows, const Interrupt& interrupt);
  void NotePinning(BatchMaker& maker);
  void NoteLent();
  uint64_t LentBytes() const;  // not counting batches on their way to a device
  Sampler Order() const;

  const LoaderOptions options_;
  const std::shared_ptr<EpochCounter> epochs_;
  uint64_t batches_per_epoch_ = 0;
  uint32_t last_rows_ = 0;
  std::vector<ColumnSpec> columns_;
  std::unique_ptr<State> state_;
};

// One iteration. Not thread-safe; the destructor counts as a call.
class Iterator {
 public:
  ~Iterator();
  Iterator(const Iterator&) = delete;
  Iterator& operator=(const Iterator&) = delete;

  // Waits for the next batch and returns it. At the end it returns an empty batch, however often it
  // is called.
  //
  // If a sample cannot be read or decoded, LoaderOptions::on_bad decides: by default Next returns
  // an error, with file, offset and cause, instead of the batch, and the call after it continues
  // with the next batch. A batch that loses all its rows is left out, unless it was appended. Other
  // errors: DataLoss, from then on, when more samples were substituted or dropped than
  // max_bad_fraction allows; the error of appending to bad_samples_file, until appending succeeds;
  // ResourceExhausted when the caller already holds lent_batches (Next does not wait for them to be
  // released); Cancelled after Stop and when `interrupt` returned true; FailedPrecondition in a
  // forked child, and if batches go to a device.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // Next for a loader with devices; see DeviceCopier::NextParts. FailedPrecondition if the loader
  // has none.
  Result<SplitBatch> NextOnDevices(const Interrupt& interrupt = {});
  // The same for a loader with one device, otherwise FailedPrecondition.
  Result<DeviceBatch> NextOnDevice(const Interrupt& interrupt = {});

  // Next in two steps, for callers that may fail to pass the batch on. Fetch returns the batch, or
  // the end, and the iteration stays where it is until Accept; if it is destroyed before that, the
  // batch counts as not delivered. (Errors that replace a batch need no Accept.) A caller that
  // failed calls Postpone, and later Resume, which returns false if the batch is no longer this
  // iteration's next one: another iteration has taken the place, or TakeBack, Seek or the first
  // Append has moved this one. Precondition of Fetch: the last fetched batch was accepted, or
  // Resume returned false.
  Result<Batch> Fetch(const Interrupt& interrupt);
  Result<SplitBatch> FetchOnDevices(const Interrupt& interrupt);
  Result<DeviceBatch> FetchOnDevice(const Interrupt& interrupt);
  void Accept();
  void Postpone() { ReturnPlace(); }
  bool Resume();
  // Undoes the last Accept: that batch did not arrive, and the next call makes it again. Does
  // nothing if it was already undone, if no batch was accepted since the last Seek, or with
  // appended batches.
  void TakeBack();
  // `position` follows the iteration from now on. `counts`: see `latest` in EpochCounter::Use.
  void ReportTo(std::shared_ptr<Position> position, bool counts);

  // The number of batches returned so far, including those replaced by an error; batches still on
  // their way to a device do not count. After an error that replaced no batch (Cancelled, a limit),
  // the next call asks for the same batch again.
  uint64_t passed() const { return passed_; }

  // Takes the loader's next place, and uses it up, before the first Next. Precondition: the
  // iteration has no epoch.
  BatchName Begin();

  // Sets the next batch. O(1), reads nothing. `index` may be batches_from(start), the end. The
  // loader's epoch counter is not changed.
  Status Seek(BatchName batch);

  // The batch that the next call of Next returns; Seek to it resumes an iteration. Its index is
  // batches_from(start) at the end. Nullopt while no epoch has been assigned, and once batches were
  // appended.
  std::optional<BatchName> position() const;

  // Returns the state that a program saves to resume: the next batch, as text. At the end of an
  // epoch, even if Next has not reported the end yet, the next batch is the first one of the
  // following epoch; before the first batch it is the first one of the loader's next epoch. Only
  // returned batches count, not those in production.
  std::string state() const;

  // Continues where the iteration of that state would, O(1), and makes the epoch after it the
  // loader's next one. If this iteration is destroyed before it has delivered a batch, the loader's
  // next iteration continues there. Next returns no batch if other ranks have the rest of the
  // state's epoch. Errors: those of Loader::PlaceOf; nothing is changed then.
  Status Restore(std::string_view state);

  // From the first Append until Seek, exactly the appended batches are delivered, in the order of
  // the calls; Next returns an empty batch when none is left. FailedPrecondition if batches go to a
  // device.
  Status Append(BatchName batch);

 private:
  friend class Loader;
  Iterator(std::shared_ptr<Loader> loader, std::optional<uint64_t> epoch, bool repeat);
  Status FindMaker(const Interrupt& interrupt);
  bool AtEnd() const { return !appended_ && index_ + fetched_ == loader_->batches_from(start_); }
  void TakePlace();
  void BeginAt(EpochCounter::Taken taken);
  void ReturnPlace();
  void SetPlace(BatchName batch);
  template <typename AnyBatch>
  using NextOf = Result<AnyBatch> (BatchMaker::*)(const Interrupt&);
  template <typename AnyBatch>
  Result<AnyBatch> FetchBy(NextOf<AnyBatch> next, const Interrupt& interrupt);
  template <typename AnyBatch>
  Result<AnyBatch> FetchHere(NextOf<AnyBatch> next, const Interrupt& interrupt);

  const std::shared_ptr<Loader> loader_;
  const bool repeat_;
  std::optional<uint64_t> epoch_;
  uint64_t index_ = 0;
  uint64_t start_ = 0;
  uint64_t passed_ = 0;
  uint64_t fetched_ = 0;  // batches that the maker has passed and the caller has not accepted
  bool pending_ = false;  // the last Fetch is neither accepted nor given up
  bool appended_ = false;
  std::optional<EpochCounter::Taken> taken_;  // the place, until it is used up
  struct Postponed {
    BatchName place;
    uint64_t fetched;
  };
  std::optional<Postponed> postponed_;
  struct Accepted {
    uint64_t batches = 0;
    std::optional<EpochCounter::Taken> used;
  };
  Accepted accepted_;
  std::shared_ptr<Position> reported_;  // or null
  bool counts_ = false;
  Loader::Borrowed maker_;
};

}  // namespace stoker
