#include "engine/memory/memory_plan.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/result/plural.h"

namespace stoker {

namespace {

// Far beyond any machine's memory, and small enough that adding a few does not overflow.
constexpr uint64_t kMax = uint64_t{1} << 60;

uint64_t Times(uint64_t count, uint64_t bytes) {
  return bytes != 0 && count > kMax / bytes ? kMax : count * bytes;
}

MemoryClaim SumOf(std::span<const MemoryClaim> claims) {
  MemoryClaim sum;
  for (const MemoryClaim& claim : claims) {
    sum.min_batches = std::min(kMax, sum.min_batches + claim.min_batches);
    sum.max_batches = std::min(kMax, sum.max_batches + claim.max_batches);
    sum.samples = std::min(kMax, sum.samples + claim.samples);
  }
  return sum;
}

// The bytes of a sample's read buffers.
uint64_t SampleBytes(const MemoryNeeds& needs) { return needs.pieces * kReadBufferBytes; }

MemoryClaim ClaimOf(const MemoryNeeds& needs) {
  const auto least = static_cast<uint64_t>(std::max(needs.depth, 1));
  const uint64_t batches = Times(least, needs.slot_bytes);
  return {.min_batches = batches,
          .max_batches = needs.depth != 0 ? batches : kMax,  // any depth may be useful
          .samples = Times(kSureReads, SampleBytes(needs)) +
                     Times(static_cast<uint64_t>(needs.threads), needs.workspace_bytes)};
}

MemoryShares Share(uint64_t budget, const MemoryClaim& sum) {
  const uint64_t spare = budget - std::min(budget, sum.samples);
  const uint64_t batches =
      std::max(sum.min_batches, std::min({budget / 2, sum.max_batches, spare}));
  return {batches, budget - std::min(budget, batches)};
}

Error NoRoom(const MemoryNeeds& needs, uint64_t budget, uint64_t minimum, bool alone) {
  const int batches = std::max(needs.depth, 1);
  std::vector<OptionChange> changes = {{OptionChange::How::kSetToAtLeast, "memory_budget", minimum},
                                       {OptionChange::How::kLower, "batch_size"},
                                       {OptionChange::How::kLower, "depth"},
                                       {OptionChange::How::kLower, "threads"}};
  if (needs.has_crops)
    changes.insert(changes.begin() + 2, {OptionChange::How::kLower, "crop_bytes"});
  return Error{
      .code = Code::kResourceExhausted,
      .cause = std::to_string(batches) + Plural(batches, " batch", " batches") + " of " +
               std::to_string(needs.slot_bytes) + " bytes and " + std::to_string(needs.threads) +
               Plural(needs.threads, " worker", " workers") +
               (needs.pieces > 1 ? " for rows of up to " + std::to_string(needs.pieces) + " images"
                                 : "") +
               (alone ? "" : ", next to the other iterations and loaders,") + " need at least " +
               std::to_string(minimum) + " bytes of working memory, and the budget is " +
               std::to_string(budget),
      .changes = std::move(changes)};
}

}  // namespace

MemoryShares ShareMemory(uint64_t budget, std::span<const MemoryClaim> claims) {
  return Share(budget, SumOf(claims));
}

// Beyond their minimum, samples get half of a large budget, or all that batches cannot use.
uint64_t BudgetForSample(uint64_t bytes, std::span<const MemoryClaim> claims) {
  const MemoryClaim sum = SumOf(claims);
  bytes = std::max(std::min(bytes, kMax), sum.samples);
  if (bytes == sum.samples) return bytes + sum.min_batches;
  return bytes + std::max(sum.min_batches, std::min(bytes - 1, sum.max_batches));
}

Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, uint64_t budget,
                              std::span<const MemoryClaim> others, uint64_t reserved) {
  constexpr uint32_t kMaxRequests = 1024;
  MemoryPlan plan;
  plan.claim = ClaimOf(needs);
  const MemoryClaim their = SumOf(others);
  const MemoryClaim sum = SumOf(std::array{their, plan.claim});
  const uint64_t taken = std::max(reserved, their.min_batches);
  const uint64_t own = plan.claim.min_batches + sum.samples;
  if (budget < own || budget - own < taken) {
    // The other loaders' batches get at most half of the budget, or what they have claimed.
    const uint64_t beside = others.empty() ? 0 : std::min(own, their.max_batches);
    return NoRoom(needs, budget, own + std::max(their.min_batches, beside), others.empty());
  }

  const MemoryShares shares = Share(budget, sum);
  plan.depth = plan.max_depth = needs.depth;
  if (needs.depth == 0) {
    const uint64_t slot = std::max<uint64_t>(needs.slot_bytes, 1);
    const uint64_t share = (shares.batches - their.min_batches) / slot;
    const uint64_t left = (budget - taken - sum.samples) / slot;  // at least 1
    const uint64_t now = (shares.batches - std::min(shares.batches, taken)) / slot;
    const uint64_t most = needs.at_once ? std::min(share, left) : share;
    plan.max_depth = static_cast<int>(std::clamp<uint64_t>(most, 1, needs.max_depth));
    plan.depth = static_cast<int>(std::clamp<uint64_t>(
        needs.at_once ? most : now, 1, std::min(needs.first_depth, plan.max_depth)));
  }
  if (needs.at_once) {
    plan.claim.min_batches = Times(static_cast<uint64_t>(plan.max_depth), needs.slot_bytes);
    plan.claim.max_batches = plan.claim.min_batches;
  }
  // Takes the useful number, using at most half of the memory left for them.
  const uint32_t wanted = std::min(needs.requests, kMaxRequests);
  const uint64_t spare = shares.samples - std::min(shares.samples, sum.samples);
  plan.requests =
      kSureReads + static_cast<uint32_t>(std::min<uint64_t>(wanted - std::min(wanted, kSureReads),
                                                            spare / 2 / SampleBytes(needs)));
  return plan;
}

}  // namespace stoker
