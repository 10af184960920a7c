// NVTX: NVIDIA's profilers (Nsight) see spans as ranges.
#pragma once

#include "core/trace.h"

namespace stoker {

// Where such a profiler has started the process: it listens from now on, beside those who do
// already. Ranges of batches are named "stoker.copy 2:17", epoch and index. Nothing else is done,
// no library loaded, no driver called; in a build without CUDA nothing at all.
void ListenForProfiler(Trace& trace);

}  // namespace stoker
