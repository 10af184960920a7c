// RunTranslated launches a translated kernel: in fiber_lanes.cc or thread_lanes.cc.
#pragma once

#include "tests/gpu/ptx/translated_kernel.h"

namespace stoker::testing::ptx {

// Returns when all threads have ended. False if CUDA refuses this number of blocks or threads.
bool RunTranslated(const TranslatedKernel& kernel, Extent blocks, Extent threads,
                   void* const* parameters);
void LoadTranslated(const TranslatedKernel& kernel);

}  // namespace stoker::testing::ptx
