// ArrayRequest: the array to make from an image. ArrayShape: the type and shape of that array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/batch/channels.h"
#include "core/batch/dtype.h"
#include "core/batch/image.h"
#include "transforms/spec/transform.h"

namespace stoker {

// A request for an array of an image. All fields refer to the image as viewed.
struct ArrayRequest {
  Channels channels = Channels::kRgb;
  bool exif_orientation = true;
  std::optional<Rect> region{};    // the part to decode; nullopt means all of it
  std::optional<Resize> resize{};  // of the region
  // kU8: 0…255; kU16: 0…65535, of 8 bits × 257; kF16, kBF16, kF32: value / 255, or of 16 bits
  // value / 65535. Channels::kUnchanged has the file's own type, and kU8 here.
  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;  // not kNchw for Channels::kUnchanged
};

// The array: C order, no gaps.
struct ArrayShape {
  DType dtype = DType::kU8;
  std::vector<int64_t> sides;  // {height, width, channels}, {channels, height, width}, or of one
                               // channel {height, width}

  size_t bytes() const { return BytesOf(dtype, sides); }
};

}  // namespace stoker
