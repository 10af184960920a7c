// NVTX: shows spans as ranges in NVIDIA's profilers (Nsight).
#pragma once

#include "core/trace.h"

namespace stoker {

// If such a profiler has started the process, adds it to the trace's listeners. Ranges of batches
// are named "stoker.copy 2:17", epoch and index. Otherwise nothing happens: no library is loaded
// and no driver called, nor in a build without CUDA.
void ListenForProfiler(Trace& trace);

}  // namespace stoker
