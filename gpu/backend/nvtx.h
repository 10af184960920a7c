// NVTX: shows spans as ranges in NVIDIA's profilers (Nsight).
#pragma once

#include "core/time/trace.h"

namespace stoker {

// Adds the profiler to the trace's listeners if one has started the process. Ranges of batches are
// named "stoker.copy 2:17", with epoch and index. Otherwise nothing happens: no library is loaded
// and no driver called. In a build without CUDA nothing ever happens.
void ListenForProfiler(Trace& trace);

}  // namespace stoker
