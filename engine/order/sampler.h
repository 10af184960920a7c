// Sampler: decides which sample comes next. A pure function from (epoch, step, row) to a sample,
// with O(1) random access and no table of indices.
//
// A position g in [0, n) is an index into the epoch's order, which all ranks share. With W ranks
// and batches of B rows, step s covers the positions [sWB, (s+1)WB), and row j of rank r in it is g
// = sWB + jW + r.
//
// An epoch that other ranks, or batches of another size, have begun continues at the position where
// they stopped (BatchName::start): the n - start samples that are left of it are dealt out like an
// epoch of that many samples, so that g = start + sWB + jW + r.
//
// With TokenBatches the ranks share batches instead of samples: n is the number of batches, and
// step s has batch start + sW + r of the epoch.
#pragma once

#include <cstdint>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/order/token_batches.h"
#include "io/select/sample_order.h"

namespace stoker {

struct SamplerOptions {
  uint64_t samples = 0;  // n; of batches if there are `tokens`
  bool shuffle = false;
  // A custom order of n positions, neither the source's nor shuffled. It must outlive the sampler.
  const SampleOrder* order = nullptr;
  // If not null, these are the batches, instead of batch_size rows each; batch_size is then 1, and
  // `shuffle` is theirs. They must outlive the sampler.
  const TokenBatches* tokens = nullptr;
  uint64_t seed = 0;
  uint32_t batch_size = 1;  // B, rows per rank and step
  uint32_t rank = 0;        // r
  uint32_t world = 1;       // W
  Remainder remainder = Remainder::kUneven;
  bool drop_remainder = false;  // leave out a last batch that is not full on every rank
};

struct SamplerEntry {
  uint64_t position = 0;  // g, the key of random draws
  uint64_t sample = 0;    // index in the source
};

// Immutable and thread-safe. The same options give the same order on every machine.
class Sampler {
 public:
  // InvalidArgument names the option: no samples (or more than 2^62), rank >= world, batch_size 0,
  // or no batch for this rank (more ranks than samples; drop_remainder with a batch larger than a
  // rank's share).
  static Result<Sampler> Make(const SamplerOptions& options);

  // The number of batches of this rank in an epoch, including a last one that is not full. Steps
  // without a row for this rank do not count, so with kUneven the ranks may differ by one batch:
  // synchronous training needs kDrop, kPad or drop_remainder, which give all ranks the same number.
  uint64_t batches_per_epoch() const { return batches_from(0); }

  // The number of batches in what is left of an epoch from the position `start` on; 0 if nothing is
  // left for this rank.
  uint64_t batches_from(uint64_t start) const;

  // The number of rows of a batch: B, except perhaps in the last; with `tokens` any number.
  // Precondition: batch.index < batches_from(batch.start).
  uint32_t RowsIn(BatchName batch) const;

  // The length of the rows of a batch; 0 if it is not in buckets.
  uint32_t LengthOf(BatchName batch) const {
    return options_.tokens == nullptr ? 0 : TokenRows(batch).length;
  }

  // The most rows of a batch.
  uint32_t most_rows() const {
    return options_.tokens == nullptr ? options_.batch_size : options_.tokens->most_rows();
  }

  // The number of samples, or with `tokens` of batches, that all ranks together have in a step.
  uint64_t step() const { return uint64_t{options_.world} * options_.batch_size; }

  // The position that At returns; without `tokens` it is the same in each epoch.
  uint64_t PositionOf(BatchName batch, uint32_t row) const {
    if (options_.tokens != nullptr) return TokenRows(batch).position + row;
    return batch.start + (batch.index * options_.batch_size + row) * options_.world + options_.rank;
  }

  // Precondition: row < RowsIn(batch). O(1).
  SamplerEntry At(BatchName batch, uint32_t row) const;

  // More consecutive bad samples than this cannot be an accident.
  static constexpr uint32_t kMostSubstitutes = 16;

  // Returns a random sample to replace a bad one at this position, with the probabilities of the
  // order; with `tokens`, another one with which the batch stays within its budget, or the bad one
  // if none has as few. `attempt` is the number of substitutes tried before. O(1).
  uint64_t SubstituteFor(uint64_t epoch, uint64_t position, uint32_t attempt) const;

  const SamplerOptions& options() const { return options_; }

 private:
  explicit Sampler(const SamplerOptions& options) : options_(options) {}
  uint64_t RowsFrom(uint64_t start) const;
  TokenBatches::Rows TokenRows(BatchName batch) const;

  SamplerOptions options_;
};

}  // namespace stoker
