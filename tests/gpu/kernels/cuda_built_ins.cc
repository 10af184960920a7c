#include "tests/gpu/kernels/cuda_built_ins.h"

#include <cmath>

#include "core/numbers/half.h"
#include "tests/gpu/kernels/cuda_bf16.h"
#include "tests/gpu/kernels/cuda_fp16.h"

namespace {

constexpr uint16_t kNan = 0x7fff;  // CUDA converts every NaN to it; stoker's are others

}  // namespace

float __fmul_rn(float a, float b) { return a * b; }
float __fadd_rn(float a, float b) { return a + b; }
double __dsqrt_rn(double x) { return std::sqrt(x); }

__half __float2half_rn(float value) {
  return {std::isnan(value) ? kNan : stoker::Float16Bits(value)};
}
__half2 __floats2half2_rn(float a, float b) { return {__float2half_rn(a), __float2half_rn(b)}; }
float __half2float(__half value) { return stoker::Float16Value(value.bits); }
uint16_t __half_as_ushort(__half value) { return value.bits; }
__half __ushort_as_half(uint16_t bits) { return {bits}; }

__nv_bfloat16 __float2bfloat16_rn(float value) {
  return {std::isnan(value) ? kNan : stoker::BFloat16Bits(value)};
}
__nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
  return {__float2bfloat16_rn(a), __float2bfloat16_rn(b)};
}
uint16_t __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }

// No call here fails.
cudaError_t cudaGetLastError() { return cudaSuccess; }
