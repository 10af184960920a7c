// UnfinishedWork: detects progress while a consumer waits, and names the unfinished work if there
// is none.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/batch/batch.h"
#include "engine/map/map_caller.h"
#include "engine/production/batches/map_threads.h"
#include "engine/production/samples/samples_in_flight.h"
#include "io/source/source.h"

namespace stoker {

// Looks at samples and calls in progress and changes nothing. Thread-safe.
class UnfinishedWork {
 public:
  // `map`: the program's function, or null. `maps`: the threads that call it with whole batches, or
  // null. All references must outlive it.
  UnfinishedWork(const SampleSource& source, const SamplesInFlight& samples, const MapCaller* map,
                 const MapThreads* maps)
      : source_(source), samples_(samples), map_(map), maps_(maps) {}

  // Returns a hash that changes with any progress. Allocates nothing: a wait is part of the steady
  // state.
  uint64_t State() const;

  // Says which work has not ended, and names the files of the samples that are needed first.
  std::string Describe() const;

 private:
  std::string FilesOf(std::vector<SamplesInFlight::Snapshot> samples) const;

  const SampleSource& source_;
  const SamplesInFlight& samples_;
  const MapCaller* const map_;
  const MapThreads* const maps_;
};

// Returns the beginning of a line for the log: how long nothing has moved.
std::string AwaitedInVain(BatchName batch, uint64_t patience_ns);

}  // namespace stoker
