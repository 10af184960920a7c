// Divides the working memory of a Runtime between batches and samples, and computes the share of a
// new loader. MemoryManager enforces both.
//
//     budget ─┬─ batches   at most half; more only where one batch of each loader, or the depths
//             │            that users have fixed, need more
//             └─ samples   the rest: read buffers and workers' workspaces
//
// The line between the two moves when a loader is opened or closed, never because of a tuner. So
// whether a sample fits or is refused depends on the budget alone. Memory for batches is reserved
// as a loader's depth grows, and never exceeds their share.
//
// Pure functions. Numbers are bytes unless stated otherwise.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"

namespace stoker {

inline constexpr uint64_t kReadBufferBytes = 256 << 10;  // grows for larger files
inline constexpr uint64_t kWorkspaceBytes = 2 << 20;     // per worker; grows for wide images
inline constexpr uint64_t kPackerBytes = 1 << 20;        // per worker with a cache; grows likewise
inline constexpr uint32_t kSureReads = 2;  // samples whose buffers a loader always has

// The claim of one loader.
struct MemoryClaim {
  uint64_t min_batches = 0;  // one batch; or all batches of a fixed depth
  uint64_t max_batches = 0;  // the same if the depth is fixed; otherwise unlimited
  uint64_t samples = 0;      // the buffers of kSureReads samples, and a workspace for each worker
};

struct MemoryShares {
  uint64_t batches = 0;
  uint64_t samples = 0;
};

// Precondition: the sum of all min_batches and samples fits into the budget.
MemoryShares ShareMemory(uint64_t budget, std::span<const MemoryClaim> claims);

// The smallest budget with which ShareMemory leaves `bytes` for samples.
uint64_t BudgetForSample(uint64_t bytes, std::span<const MemoryClaim> claims);

struct MemoryNeeds {
  uint64_t slot_bytes = 0;  // of one batch
  bool has_crops = false;   // it has room for crops (DeviceOptions::crop_bytes)
  int depth = 0;            // fixed by the user; 0 means tuned
  uint32_t pieces = 1;      // of a row, at most: it has a buffer for each
  int threads = 0;
  uint32_t requests = 0;  // the most samples at a time that are useful
  int first_depth = 1;    // if none is fixed: the depth the tuner starts with,
  int max_depth = 1;      // and the largest useful depth
  uint64_t workspace_bytes = kWorkspaceBytes;
  bool at_once = false;  // reserve all slots it may ever have when it is opened
};

struct MemoryPlan {
  int depth = 0;          // at first; its slots are reserved when the loader is opened
  int max_depth = 0;      // the largest depth: the assembler's window; `depth` if that is fixed
  uint32_t requests = 0;  // the largest number of samples being read, waiting or being decoded
  MemoryClaim claim;
};

// Computes the share of a new loader next to `others`, whose batches hold `reserved` bytes of the
// budget now. (Batches that wait for another loader's consumer cannot be taken away, so they may
// exceed its share.) ResourceExhausted names the smallest budget with which the new loader opens,
// regardless of the others: room for one batch, the read buffers of two samples and a workspace for
// each thread, or for `depth` batches if a depth was given.
Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, uint64_t budget,
                              std::span<const MemoryClaim> others = {}, uint64_t reserved = 0);

}  // namespace stoker
