// Clamped: std::clamp by value. Kernels cannot keep arguments passed by reference in registers.
#pragma once

#include <cstdint>

namespace stoker::decode {
namespace {

constexpr int32_t Clamped(int32_t value, int32_t least, int32_t most) {
  const int32_t raised = value < least ? least : value;
  return raised > most ? most : raised;
}

}  // namespace
}  // namespace stoker::decode
