// The instruction sets that kernels are compiled for. To be included before Highway.
#pragma once

// Vectors with a length known only at run time would need another layout of the transposes.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL 1
