#include "engine/pipeline/memory_plan.h"

#include <algorithm>
#include <string>

namespace stoker {

Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, uint64_t free_bytes) {
  constexpr int kDefaultDepth = 4;
  constexpr uint32_t kFewestRequests = 2;
  constexpr uint32_t kMostRequests = 1024;
  const auto threads = static_cast<uint64_t>(needs.threads);
  const uint64_t fixed = threads * needs.workspace_bytes + kFewestRequests * kReadBufferBytes;
  const uint64_t batches = static_cast<uint64_t>(std::max(needs.depth, 1));
  const uint64_t affordable = ~uint64_t{0} / 2 / batches;  // no overflow, whatever was asked for
  const uint64_t minimum = fixed + batches * std::min(needs.slot_bytes, affordable);
  if (free_bytes < minimum) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = std::to_string(batches) + " batch" + (batches == 1 ? "" : "es") + " of " +
                          std::to_string(needs.slot_bytes) + " bytes and " +
                          std::to_string(needs.threads) + " workers need at least " +
                          std::to_string(minimum) + " bytes of working memory, and " +
                          std::to_string(free_bytes) + " bytes of the budget are free",
                 .advice = "Set memory_budget to " + std::to_string(minimum) +
                           " or more, or lower batch_size, depth or threads"};
  }
  MemoryPlan plan;
  // Enough to keep every read slot busy while each worker has two samples in hand and one waiting;
  // at most half of what is left over for them.
  const uint64_t spare = free_bytes - minimum;
  const uint64_t wanted = std::min<uint64_t>(needs.reads_in_flight + 3 * threads, kMostRequests);
  plan.requests = kFewestRequests + static_cast<uint32_t>(std::min(wanted - kFewestRequests,
                                                                   spare / 2 / kReadBufferBytes));
  const uint64_t left = spare - (plan.requests - kFewestRequests) * kReadBufferBytes;
  plan.depth =
      needs.depth != 0
          ? needs.depth
          : static_cast<int>(std::min<uint64_t>(kDefaultDepth, 1 + left / needs.slot_bytes));
  return plan;
}

}  // namespace stoker
