// ArrayRequest: the array to make from an image. ArrayShape: the type and shape of that array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "transforms/spec/transform.h"

namespace stoker {

enum class ArrayMode : uint8_t {
  kRgb,        // for gray images, too; without alpha
  kGray,       // one value for a pixel, that of Pillow's convert("L") for kRgb
  kUnchanged,  // gray images gray, PNGs with alpha and 16 bits if they have them, all others RGB
};

// A request for an array of an image. All fields refer to the image as viewed.
struct ArrayRequest {
  ArrayMode mode = ArrayMode::kRgb;
  bool exif_orientation = true;
  std::optional<Rect> region{};    // the part to decode; nullopt means all of it
  std::optional<Resize> resize{};  // of the region
  // The array's type; for kRgb only. kU8: 0…255; kF16, kBF16, kF32: value / 255.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;
};

// The array: C order, no gaps.
struct ArrayShape {
  DType dtype = DType::kU8;    // kU16 for an unchanged PNG of 16 bits
  std::vector<int64_t> sides;  // {height, width, channels}, {3, height, width}, or gray {height,
                               // width}

  size_t bytes() const { return BytesOf(dtype, sides); }
};

}  // namespace stoker
