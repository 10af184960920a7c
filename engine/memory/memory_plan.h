// How the working memory of a Runtime is divided between batches and samples, and what a new loader
// gets of it (MemoryManager keeps to both).
//
//     budget ─┬─ batches   at most half; more only where one batch of each loader, or the depths
//             │            that users have fixed, need more
//             └─ samples   the rest: read buffers and workers' workspaces
//
// The line between the two moves when a loader is opened or closed, never with a tuner: so what one
// sample may take, and with it whether it is refused, depends on the budget and on nothing else.
// Batches are reserved as a loader's depth grows, and never take more than their share.
//
// Pure arithmetic. All numbers are bytes where nothing else is said.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"

namespace stoker {

inline constexpr uint64_t kReadBufferBytes = 256 << 10;  // grows for larger files
inline constexpr uint64_t kWorkspaceBytes = 2 << 20;     // of one worker; grows for wide images
inline constexpr uint32_t kSureReads = 2;                // a loader always has buffers for these
inline constexpr int kFirstDepth = 4;                    // where no depth is fixed
inline constexpr int kMostDepth = 64;                    // ever chosen, but for small batches

// A loader's part in the division.
struct MemoryClaim {
  uint64_t least_batches = 0;  // one batch; or all of the depth that a user has fixed
  uint64_t most_batches = 0;   // the same where a depth is fixed; else no less than half will do
  uint64_t samples = 0;        // kSureReads buffers, and a workspace for each worker
};

struct MemoryShares {
  uint64_t batches = 0;
  uint64_t samples = 0;
};

// Precondition: all least_batches and all samples fit into the budget.
MemoryShares ShareMemory(uint64_t budget, std::span<const MemoryClaim> claims);

// The smallest budget with which ShareMemory leaves `bytes` for samples.
uint64_t BudgetForSample(uint64_t bytes, std::span<const MemoryClaim> claims);

struct MemoryNeeds {
  uint64_t slot_bytes = 0;  // of one batch
  int depth = 0;            // that a user has fixed; 0: is chosen while it runs
  int threads = 0;
  uint32_t reads_in_flight = 0;  // of all reader threads together
  int most_depth = kMostDepth;   // that is worth having, where none is fixed
  uint64_t workspace_bytes = kWorkspaceBytes;
  bool at_once = false;  // all slots that it may ever have are reserved when it is opened
};

struct MemoryPlan {
  int depth = 0;       // batches in production to begin with: reserved when it is opened
  int most_depth = 0;  // that there may ever be: the assembler's window; `depth` if that is fixed
  uint32_t requests = 0;  // samples at most on their way: being read, waiting, being decoded
  MemoryClaim claim;
};

// What a new loader gets beside `others`, whose batches have `reserved` of the budget now. (Batches
// that wait for another loader's consumer cannot be taken away: they may be more than its share
// will be.) ResourceExhausted names the smallest budget with which the new loader opens, whatever
// the others do: room for one batch, two read buffers and a workspace for each thread, or for
// `depth` batches where a depth was asked for.
Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, uint64_t budget,
                              std::span<const MemoryClaim> others = {}, uint64_t reserved = 0);

}  // namespace stoker
