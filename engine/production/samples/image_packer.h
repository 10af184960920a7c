// ImagePacker: packs images of the formats that can be packed, for their pixels alone.
#pragma once

#include <cstdint>
#include <span>

#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/format.h"
#include "transforms/packed/pack.h"
#include "transforms/png/packed/pack.h"

namespace stoker {

// Not thread-safe.
class ImagePacker {
 public:
  // `budget` must outlive the packer.
  ImagePacker(MemoryBudget* budget, const DecodeLimits& limits)
      : jpeg_(budget, limits), png_(budget, limits) {}

  // See JpegPacker and PngPacker.
  Result<std::span<const uint8_t>> PackPixels(std::span<const uint8_t> image) {
    return SniffFormat(image) == ImageFormat::kPng ? png_.PackPixels(image)
                                                   : jpeg_.PackPixels(image);
  }

  uint64_t memory_bytes() const { return jpeg_.memory_bytes() + png_.memory_bytes(); }
  void FreeMemory() {
    jpeg_.FreeMemory();
    png_.FreeMemory();
  }

 private:
  JpegPacker jpeg_;
  PngPacker png_;
};

}  // namespace stoker
