// ReadFeed: order → reader. The next rows of the batches in production become read requests, in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/loader/assembler.h"
#include "engine/loader/options.h"
#include "engine/loader/order.h"
#include "engine/loader/samples_in_flight.h"
#include "io/readers/reader.h"

namespace stoker {

// Any thread; no lock. Each row is claimed once, by a sample that is given back where there is no
// row to claim.
class ReadFeed {
 public:
  // All of them outlive it. `run`: rows of samples in memory that a worker fills in one go, at
  // most.
  ReadFeed(const LoaderOptions& options, const EpochOrder& order, SamplesInFlight& samples,
           uint32_t run);

  // As many requests as there are rows, samples and allowed reads for; they count as being read.
  size_t Fill(Assembler& assembler, std::span<ReadRequest*> requests);

  // The next rows where samples are in memory, and need no reader: the sample that has claimed
  // them, or none.
  std::optional<uint32_t> NextRun(Assembler& assembler);

 private:
  const LoaderOptions& options_;
  const EpochOrder& order_;
  SamplesInFlight& samples_;
  const uint32_t run_;
};

}  // namespace stoker
