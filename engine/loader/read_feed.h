// ReadFeed: order → reader. Makes read requests for the next rows of the batches in production, in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/loader/assembler.h"
#include "engine/loader/options.h"
#include "engine/loader/sampler.h"
#include "engine/loader/samples_in_flight.h"
#include "io/readers/reader.h"

namespace stoker {

// Thread-safe and lock-free. Each row is claimed by one sample; a sample that finds no row to claim
// is returned.
class ReadFeed {
 public:
  // The references must outlive it. `run`: the maximum number of rows in memory that a worker fills
  // per task.
  ReadFeed(const LoaderOptions& options, const Sampler& sampler, SamplesInFlight& samples,
           uint32_t run);

  // Fills as many requests as rows, free samples and the limit on reads allow; they count as reads
  // in flight from then on.
  size_t Fill(Assembler& assembler, std::span<ReadRequest*> requests);

  // Makes `read` the request of this sample of the source.
  void SetSample(ReadRequest& read, uint64_t sample) const;

  // For samples in memory, which need no reader: claims the next rows and returns the sample that
  // has claimed them, or none.
  std::optional<uint32_t> NextRun(Assembler& assembler);

 private:
  const LoaderOptions& options_;
  const Sampler& sampler_;
  SamplesInFlight& samples_;
  const uint32_t run_;
};

}  // namespace stoker
