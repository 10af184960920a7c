// BatchFinisher: rows that have ended → complete batches.
#pragma once

#include <cstdint>

#include "core/result/result.h"
#include "core/time/trace.h"
#include "engine/memory/memory_manager.h"
#include "engine/production/batches/assembler.h"
#include "engine/production/batches/map_threads.h"
#include "engine/production/decoder.h"
#include "engine/production/samples/samples_in_flight.h"
#include "engine/runtime/read_service.h"

namespace stoker {

// Every claimed row ends exactly once, written or failed, and its sample is then free. The thread
// that ends the last row of a batch mixes or pads the batch and hands it to the program's function,
// if there is one, or to the assembler. Thread-safe.
class BatchFinisher {
 public:
  // `maps`: null if the program has no function of whole batches. `wakes_early`: wake waiting
  // reader threads for every sample that becomes free. All references must outlive it.
  BatchFinisher(SamplesInFlight& samples, Assembler& assembler, Decoder& decoder, MapThreads* maps,
                MemoryLease& memory, ReadService& reads, bool wakes_early, const Trace& trace)
      : samples_(samples),
        assembler_(assembler),
        decoder_(decoder),
        maps_(maps),
        memory_(memory),
        reads_(reads),
        wakes_early_(wakes_early),
        trace_(trace) {}

  // The rows of the sample's claim are written, or failed. `work_ns`: the worker's time for them.
  // This may be the last access to the producer.
  void End(uint32_t sample, uint64_t work_ns, Status status, int worker);

 private:
  void Finish(const RowClaim& claim, const SamplePath& last_row, Assembler::BatchState state,
              int worker);

  SamplesInFlight& samples_;
  Assembler& assembler_;
  Decoder& decoder_;
  MapThreads* const maps_;
  MemoryLease& memory_;
  ReadService& reads_;
  const bool wakes_early_;
  const Trace& trace_;
};

}  // namespace stoker
