// Producer: samples, which are photographs on disk or arrays in memory, become batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/batch.h"
#include "core/column_spec.h"
#include "core/interrupt.h"
#include "core/result.h"
#include "engine/loader/batch_sequence.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "engine/watching/stats.h"

namespace stoker {

// Batches come in the order that (seed, epoch, rank, world) name, with the same bytes for any
// number of threads, any depth, any reader and any executor. Epochs follow each other without a
// pause: the next one is prefetched while the last batches of this one are taken.
//
//   auto loader = Producer::Open(options).value();
//   for (int epoch = 0; epoch < 3; ++epoch) {
//     while (Batch batch = loader->Next().value()) Train(batch.images(), batch.labels());
//   }
//
// One thread at a time calls Next, Seek, Append, position and passed; Stop and Stats may be called
// from any.
class Producer {
 public:
  // Checks every option and reserves the memory. Reads nothing and starts nothing: the first Next
  // does. InvalidArgument names the option; ResourceExhausted names the smallest budget that would
  // do.
  static Result<std::unique_ptr<Producer>> Open(LoaderOptions options,
                                                std::optional<ProducerOptions> own = {});

  // Stops, waits for what is in work (a sample each), and gives the memory back. Batches that are
  // still held stay valid.
  ~Producer();

  // The next batch; an empty one once after the last of each epoch, and always after the last epoch
  // where `epochs` limits them. Waits until the batch is complete.
  //
  // A bad sample makes its batch an error that names file, offset and cause; the call after it goes
  // on with the next batch. Other errors: ResourceExhausted when the caller already holds
  // lent_batches (it never waits for itself); Cancelled after Stop, and when `interrupt` said so;
  // FailedPrecondition in a forked child.
  Result<Batch> Next(const Interrupt& interrupt = {});

  // The next Next delivers batch `index` of `epoch`, and those after it follow: of the next epochs,
  // or of the same one again and again. Nothing is replayed: O(1), apart from waiting for the
  // samples that are in work.
  Status Seek(BatchName batch, Schedule schedule = Schedule::kEpochs);
  Status CheckSeek(BatchName batch) const;  // what Seek would refuse; changes nothing

  // From the first call on, and until Seek, exactly the appended batches are made and delivered, in
  // the order of the calls; Next is empty when there are none left, and nothing else marks the end
  // of an epoch.
  Status Append(BatchName batch);

  // The batch that the next Next delivers: with Seek, all that is needed to resume. Where there is
  // none (after the last epoch, or with nothing appended): the one that follows what was last
  // delivered, in the order of the epochs.
  BatchName position() const;

  // Batches that Next has passed so far, good ones and errors that took the place of one.
  uint64_t passed() const;

  // What the last Next that passed a batch waited, by cause; the same thread.
  WaitCauses waited() const;

  // Ends production; Next returns Cancelled, also one that waits now. Bounded by the time of the
  // samples in work.
  void Stop();

  LoaderStats Stats() const;
  uint64_t batches_per_epoch() const;
  uint32_t last_rows() const;  // of the last batch of an epoch; all others have batch_size
  const std::vector<ColumnSpec>& columns() const;
  const LoaderOptions& options() const;

 private:
  class Impl;
  explicit Producer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace stoker
