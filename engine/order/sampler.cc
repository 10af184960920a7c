#include "engine/order/sampler.h"

#include <algorithm>
#include <string>

#include "core/numbers/permutation.h"
#include "core/numbers/random.h"
#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker {
namespace {

// A stream number of random draws that no transform has; see also kOrderStream.
constexpr uint32_t kSubstituteStream = 0xfffd;

Error InvalidOrder(std::string cause, std::string advice) {
  return Error{
      .code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

Status Check(const SamplerOptions& options) {
  if (options.samples == 0 && options.tokens == nullptr) {
    return InvalidOrder("samples is 0: there is nothing to order", "");
  }
  if (options.samples > uint64_t{1} << 62) return InvalidOrder("samples is above 2^62", "");
  if (options.batch_size == 0) return InvalidOrder("batch_size is 0", "Give at least 1");
  if (options.world == 0) return InvalidOrder("world is 0", "Give the number of ranks, at least 1");
  if (options.rank >= options.world) {
    return InvalidOrder("rank is " + std::to_string(options.rank) + ", but world is " +
                            std::to_string(options.world),
                        "Ranks count from 0 to world - 1");
  }
  return {};
}

// Returns the number of positions into which `n` samples of an epoch are dealt out, over all ranks.
uint64_t PositionsOf(const SamplerOptions& options, uint64_t n) {
  const uint64_t world = options.world;
  switch (options.remainder) {
    case Remainder::kUneven:
      return n;
    case Remainder::kDrop:
      return n - n % world;
    case Remainder::kPad:
      return (n + world - 1) / world * world;
  }
  return n;
}

// Returns the number of rows that this rank gets of `n` samples.
uint64_t RowsOf(const SamplerOptions& options, uint64_t n) {
  const uint64_t positions = PositionsOf(options, n);
  if (options.drop_remainder) {
    return positions / options.world / options.batch_size * options.batch_size;
  }
  // The number of g < positions with g % world == rank.
  return (positions + options.world - 1 - options.rank) / options.world;
}

Error NoTokenBatch(const SamplerOptions& options) {
  const bool drops = options.drop_remainder;
  if (options.samples == 0) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = options.tokens->has_buckets()
                              ? "no step is full, and drop_remainder leaves the last one out"
                              : "the only batch is not full, and drop_remainder leaves it out",
                 .changes = {{OptionChange::How::kLower, "batch_tokens"},
                             {OptionChange::How::kLeaveOut, "drop_remainder"}}};
  }
  Error error =
      InvalidOrder("rank " + std::to_string(options.rank) + " has no batch: batch_tokens makes " +
                       std::to_string(options.samples) + (drops ? " full" : "") +
                       Plural(options.samples, " batch", " batches") + " for world " +
                       std::to_string(options.world),
                   drops ? "Use fewer ranks" : "Use fewer ranks, or remainder = pad");
  error.changes = {{OptionChange::How::kLower, "batch_tokens"}};
  if (drops) error.changes.push_back({OptionChange::How::kLeaveOut, "drop_remainder"});
  return error;
}

Error NoRows(const SamplerOptions& options) {
  const std::string samples =
      std::to_string(options.samples) + Plural(options.samples, " sample", " samples");
  if (options.drop_remainder) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "no full batch is left: " + samples + " for batches of " +
                          std::to_string(options.batch_size) + " and world " +
                          std::to_string(options.world),
                 .changes = {{OptionChange::How::kLower, "batch_size"},
                             {OptionChange::How::kLeaveOut, "drop_remainder"}}};
  }
  return InvalidOrder("rank " + std::to_string(options.rank) + " has no sample: " + samples +
                          " for world " + std::to_string(options.world),
                      "Use fewer ranks, or remainder = pad");
}

}  // namespace

Result<Sampler> Sampler::Make(const SamplerOptions& options) {
  TRY(Check(options));
  if (RowsOf(options, options.samples) == 0) {
    // In buckets there are fewer batches than ranks only if there are fewer samples, one in each.
    const bool of_samples =
        options.tokens == nullptr || (options.tokens->has_buckets() && options.samples != 0);
    return of_samples ? NoRows(options) : NoTokenBatch(options);
  }
  return Sampler(options);
}

uint64_t Sampler::RowsFrom(uint64_t start) const {
  return RowsOf(options_, options_.samples - std::min(start, options_.samples));
}

uint64_t Sampler::batches_from(uint64_t start) const {
  return (RowsFrom(start) + options_.batch_size - 1) / options_.batch_size;
}

TokenBatches::Rows Sampler::TokenRows(BatchName batch) const {
  const uint64_t number = batch.start + batch.index * options_.world + options_.rank;
  return options_.tokens->RowsOf(batch.epoch, number, options_.samples);
}

uint32_t Sampler::RowsIn(BatchName batch) const {
  if (options_.tokens != nullptr) return TokenRows(batch).count;
  const uint64_t left = RowsFrom(batch.start) - batch.index * options_.batch_size;
  return static_cast<uint32_t>(std::min<uint64_t>(left, options_.batch_size));
}

SamplerEntry Sampler::At(BatchName batch, uint32_t row) const {
  SamplerEntry entry;
  entry.position = PositionOf(batch, row);
  if (options_.tokens != nullptr) {
    entry.sample = options_.tokens->SampleAt(batch.epoch, entry.position);
    return entry;
  }
  const uint64_t index = entry.position % options_.samples;  // differs from position only with kPad
  entry.sample = options_.shuffle ? Permutation(options_.samples, options_.seed, batch.epoch)(index)
                 : options_.order == nullptr
                     ? index
                     : options_.order->At(options_.seed, batch.epoch, index);
  return entry;
}

uint64_t Sampler::SubstituteFor(uint64_t epoch, uint64_t position, uint32_t attempt) const {
  RandomStream random({options_.seed, epoch, position}, kSubstituteStream);
  for (uint32_t i = 0; i < attempt; ++i) (void)random.Bits();
  if (const TokenBatches* tokens = options_.tokens) {
    const uint64_t others = tokens->SubstitutesFor(position);
    return others == 0 ? tokens->SampleAt(epoch, position)
                       : tokens->Substitute(epoch, position, random.Below(others));
  }
  const uint64_t index = random.Below(options_.samples);
  return options_.order == nullptr ? index : options_.order->At(options_.seed, epoch, index);
}

}  // namespace stoker
