// Runs the kernel's code on the CPU, one thread after the other.
#include <cmath>
#include <cstring>

#include "core/numbers/half.h"
#include "gpu/ops/deferred_ops-inl.h"

namespace stoker {

namespace deferred {
namespace {

// Multiplications and additions are rounded separately: all of stoker is compiled with
// -ffp-contract=off.
struct HostMachine {
  static float Multiply(float a, float b) { return a * b; }
  static float Add(float a, float b) { return a + b; }
  static float Nearest(float value) { return std::nearbyint(value); }
  static double Root(double x) { return std::sqrt(x); }
  static uint32_t Float16(float value) { return Float16Bits(value); }
  static uint32_t BFloat16(float value) { return BFloat16Bits(value); }
  static uint32_t Float16s(float a, float b) { return Float16(a) | Float16(b) << 16; }
  static uint32_t BFloat16s(float a, float b) { return BFloat16(a) | BFloat16(b) << 16; }
  static float Float16Value(uint32_t bits) {
    return stoker::Float16Value(static_cast<uint16_t>(bits));
  }
  template <size_t kWords>
  static void Load(const uint8_t* from, uint32_t (&words)[kWords]) {
    std::memcpy(words, from, sizeof(words));
  }
  static void Store(uint8_t* to, const uint32_t (&words)[4]) {
    std::memcpy(to, words, sizeof(words));
  }
  static void StoreParts(uint8_t* to, const uint32_t (&parts)[3][4]) {
    std::memcpy(to, parts, sizeof(parts));
  }
  template <typename T>
  static void Put(uint8_t* to, T bits) {
    std::memcpy(to, &bits, sizeof(bits));
  }
};

template <DType kType, Layout kLayout, Extent kExtent>
void Run(const DeferredOpsJob& job) {
  const bool groups = InGroups<kType>(job);
  const uint32_t units = groups ? PixelsOf(job) / kGroup<kType> : PixelsOf(job);
  for (int64_t row = 0; row < job.rows; ++row) {
    for (uint32_t unit = 0; unit < units; ++unit) {
      if (groups) {
        ApplyDeferredToGroup<HostMachine, kType, kLayout, kExtent>(job, row, unit);
      } else {
        ApplyDeferredToPixel<HostMachine, kType, kLayout, kExtent>(job, row, unit);
      }
    }
  }
}

}  // namespace
}  // namespace deferred

void ApplyDeferredOnHost(const DeferredOpsJob& job) {
  const auto run = [&](auto type, auto layout, auto extent) {
    deferred::Run<type.value, layout.value, extent.value>(job);
  };
  deferred::WithKernel(job.dtype, job.layout, deferred::ExtentOf(job), run);
}

}  // namespace stoker
