// How a loader divides its share of the working memory.
#pragma once

#include <cstdint>

#include "engine/core/result.h"

namespace stoker {

inline constexpr uint64_t kReadBufferBytes = 256 << 10;  // grows for larger files
inline constexpr uint64_t kWorkspaceBytes = 2 << 20;     // of one worker; grows for wide images

struct MemoryNeeds {
  uint64_t slot_bytes = 0;  // of one batch
  int depth = 0;            // wanted; 0: four, or as many as fit
  int threads = 0;
  uint32_t reads_in_flight = 0;  // of all reader threads together
  uint64_t workspace_bytes = kWorkspaceBytes;
};

struct MemoryPlan {
  int depth = 0;          // batches in production
  uint32_t requests = 0;  // read buffers: in flight, waiting for a worker, being decoded
};

// Divides `free_bytes`. ResourceExhausted names the smallest budget that would do: one batch, two
// read buffers and a workspace for each thread, or `depth` batches where a depth was asked for.
Result<MemoryPlan> PlanMemory(const MemoryNeeds& needs, uint64_t free_bytes);

}  // namespace stoker
