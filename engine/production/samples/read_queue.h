// ReadQueue: order → reader. Makes read requests for the next rows of the batches in production, in
// order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "engine/options/options.h"
#include "engine/order/sampler.h"
#include "engine/production/batches/assembler.h"
#include "engine/production/samples/samples_in_flight.h"
#include "io/readers/reader.h"
#include "io/source/source.h"
#include "transforms/plan/plan.h"

namespace stoker {

// The bytes that a loader reads of the first piece of one of the source's samples: the part that
// this draw's crop needs. Of a further sample of a row, `draw` says which part it is. `plan`: the
// loader's transforms; null means all of the sample's bytes.
ByteRange RangeToRead(const SampleSource& source, const Plan* plan, uint64_t sample,
                      const DrawKey& draw);

// Thread-safe and lock-free. Each row is claimed by one sample; a sample that finds no row to claim
// is returned.
class ReadQueue {
 public:
  // The references must outlive it. `plan`: which rows of an image a sample needs; null means all.
  // `run`: the maximum number of rows in memory that a worker fills per task.
  ReadQueue(const LoaderOptions& options, const Sampler& sampler, const std::optional<Plan>& plan,
            SamplesInFlight& samples, uint32_t run);

  // Fills as many requests as rows, free samples and the limit on reads allow: all pieces of a
  // sample, then those of the next, of the last sample perhaps the first few. A sample counts as a
  // read in flight from then on, with any number of pieces.
  size_t Fill(Assembler& assembler, std::span<ReadRequest*> requests);

  // Fills requests for the next pieces of the sample. Returns how many: all, if there is room.
  size_t FillPieces(SampleInFlight& from, std::span<ReadRequest*> requests) const;

  // Points the first request at this sample of the source, to be read from its first piece on, and
  // draws the others of its row. Precondition: `to.draw` and `to.substitutes` are set; a substitute
  // keeps the draws of its position.
  void SetSample(SampleInFlight& to, uint64_t sample) const;

  // For samples in memory, which need no reader: claims the next rows and returns the sample that
  // has claimed them, or none.
  std::optional<uint32_t> NextRun(Assembler& assembler);

 private:
  void SetPiece(SampleInFlight& to, uint32_t piece) const;
  void Point(ReadRequest& read, const ByteRange& range) const;

  const LoaderOptions& options_;
  const Sampler& sampler_;
  const Plan* const plan_;
  const uint32_t pieces_;  // of a sample, at most
  SamplesInFlight& samples_;
  const uint32_t run_;
};

}  // namespace stoker
