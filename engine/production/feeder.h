// Feeder: rows of the batches in production, in order → samples whose bytes have arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/batch/index_set.h"
#include "engine/memory/memory_manager.h"
#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "engine/production/batch_finisher.h"
#include "engine/production/batches/assembler.h"
#include "engine/production/batches/loader_trace.h"
#include "engine/production/lifecycle.h"
#include "engine/production/samples/read_queue.h"
#include "engine/production/samples/sample_cache.h"
#include "engine/production/samples/samples_in_flight.h"
#include "engine/production/samples/worker_tasks.h"
#include "engine/runtime/read_service.h"

namespace stoker {

// Each row is claimed by one sample. The feeder gives the sample to the workers when the reads of
// all its pieces have ended, and takes it back from them if it must be read again, until it ends.
// Samples taken back, and pieces for which a reader had no room, are read before new rows are
// claimed; when work ends, these samples end without a row: at once, or with the last of their
// reads in flight. Thread-safe; Pull and CompleteRead are called on reader threads, the rest on
// any.
class Feeder final : public ReadClient {
 public:
  struct Neighbours {  // all must outlive the feeder
    SamplesInFlight& samples;
    Assembler& assembler;
    WorkerTasks& workers;
    BatchFinisher& finisher;
    MemoryLease& memory;
    ReadService& reads;
    SampleCache* cache;  // may be null
    const Lifecycle& lifecycle;
    const LoaderTrace& trace;
  };

  // `plan`: which rows of an image a sample needs; nullopt means all. `run`: the maximum number of
  // rows in memory that a worker fills per task.
  Feeder(const LoaderOptions& options, const Sampler& order, const std::optional<Plan>& plan,
         uint32_t run, const Neighbours& neighbours);

  // Order → reader: claims rows while batches are open, half of the requests are free and the limit
  // on reads allows; BatchFinisher wakes a reader thread that stopped for lack of requests. Samples
  // in memory need no reader: they are handed to the workers from here.
  size_t Pull(std::span<ReadRequest*> requests) override;
  // Reader → workers, with the last of a sample's pieces.
  void CompleteRead(ReadRequest& read) override;

  // These take a sample back from a worker. It must be read again, from its first file on;
  void ReadAgain(uint32_t index);
  // its row gets the sample `substitute`, or keeps it with others that are drawn again;
  void Substitute(uint32_t index, uint64_t substitute);
  // or it found no memory, and waits without holding any.
  void Postpone(uint32_t index);

  // Ends the samples taken back but not yet pulled by a reader thread. Called when work ends.
  void DropWaiting();

 private:
  size_t PullAgain(std::span<ReadRequest*> requests);
  size_t PullPieces(uint32_t index, std::span<ReadRequest*> requests);
  size_t PullNew(std::span<ReadRequest*> requests);
  size_t PullRetry(std::span<ReadRequest*> requests);
  void SubmitRuns();
  void KeepRest(uint32_t index);
  bool HasNoBytes(uint32_t index) const;
  void SubmitUnread(uint32_t index);
  bool IsInCache(uint32_t index);
  void Submit(uint32_t index);
  void Requeue(uint32_t index);
  void DropPostponed();
  void DropAgain();
  void EndCancelled(uint32_t index);

  const bool in_memory_;  // the samples are in memory
  ReadQueue queue_;
  Neighbours to_;
  SamplesInFlight& samples_;
  IndexSet again_;  // to be read again, or pieces that have not begun
};

}  // namespace stoker
