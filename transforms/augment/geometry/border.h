// Maps indices outside an image to pixels inside it, along one axis.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transforms/spec/fill.h"

namespace stoker {

// Reflects repeatedly if one reflection is not enough, like numpy.pad.
inline int64_t Reflected(int64_t at, int64_t size) {
  if (at < 0) at = -at;
  if (at < size) return at;
  const int64_t period = 2 * (size - 1);
  if (at <= period) return period - at;  // the common case, without a division
  if (size == 1) return 0;
  return std::min(at % period, period - at % period);
}

inline int64_t ReflectedWithEdge(int64_t at, int64_t size) {
  if (at < 0) at = -1 - at;
  if (at < size) return at;
  const int64_t in_period = at % (2 * size);
  return std::min(in_period, 2 * size - 1 - in_period);
}

// Returns an index in [0, size), or −1 for the fill.
inline int64_t Padded(int64_t at, int64_t size, Padding padding) {
  if (at >= 0 && at < size) return at;
  switch (padding) {
    case Padding::kConstant:
      return -1;
    case Padding::kEdge:
      return std::clamp<int64_t>(at, 0, size - 1);
    case Padding::kReflect:
      return Reflected(at, size);
    case Padding::kSymmetric:
      return ReflectedWithEdge(at, size);
    case Padding::kWrap:
      return (at % size + size) % size;
  }
  return -1;
}

}  // namespace stoker
