// NVTX: shows spans as ranges in NVIDIA's profilers (Nsight).
#pragma once

#include "core/time/trace.h"

namespace stoker {

// Adds the profiler to the trace's listeners if one has started the process. Ranges of batches are
// named "stoker.copy 2:17", with epoch and index. Otherwise, and in a build without CUDA, does
// nothing: no library is loaded and no driver called.
void ListenForProfiler(Trace& trace);

}  // namespace stoker
