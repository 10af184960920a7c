// The memory layout of a batch's images.
#pragma once

#include <cstdint>

namespace stoker {

enum class Layout : uint8_t {
  kNhwc,  // (rows, height, width, 3): the channels of a pixel are neighbours
  kNchw,  // (rows, 3, height, width): one plane for each channel
};

constexpr const char* NameOf(Layout layout) { return layout == Layout::kNhwc ? "NHWC" : "NCHW"; }

}  // namespace stoker
