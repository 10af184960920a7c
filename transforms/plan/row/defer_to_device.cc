#include "transforms/plan/row/defer_to_device.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/batch/deferred_ops.h"

namespace stoker {

namespace {

ErasedBox BoxOf(const Erasure& erasure) {
  ErasedBox box;
  box.box = {erasure.box.x, erasure.box.y, erasure.box.width, erasure.box.height};
  std::copy(erasure.value.begin(), erasure.value.end(), box.value);
  box.noisy = erasure.noise ? 1 : 0;
  box.noise_key = erasure.noise.value_or(0);
  return box;
}

}  // namespace

void EraseAround(DrawnSample& drawn, ImageSize row) {
  const ImageSize image = drawn.size;
  const Rect right{image.width, 0, row.width - image.width, image.height};
  const Rect below{0, image.height, row.width, row.height - image.height};
  for (const Rect& box : {right, below}) drawn.erasures.push_back({.box = box, .noise = {}});
}

void DeferToDevice(DrawnSample& drawn, ImageSize whole, uint32_t boxes, void* work) {
  auto* const to = static_cast<uint8_t*>(work);
  DeferredOps row;
  // The worker executes a mirror that is a step, is followed by steps, or covers only a part of the
  // row.
  const bool is_last = drawn.steps.empty() && drawn.size == whole;
  if (is_last && std::exchange(drawn.geometry.mirror_columns, false)) row.mirror = 1;
  std::memcpy(to, &row, sizeof(row));
  for (size_t b = 0; b < boxes; ++b) {
    const ErasedBox box = b < drawn.erasures.size() ? BoxOf(drawn.erasures[b]) : ErasedBox();
    std::memcpy(to + DeferredOpsBytes(b), &box, sizeof(box));
  }
  drawn.erasures.clear();
}

}  // namespace stoker
