// BoxFormat: what the four numbers of a box are.
#pragma once

#include <cstdint>

namespace stoker {

// Coordinates are continuous: pixel i covers [i, i + 1].
enum class BoxFormat : uint8_t {
  kXyxy,    // left, top, right, bottom
  kXywh,    // left, top, width, height
  kCxcywh,  // center x, center y, width, height
};

// torchvision's names, in lower case.
constexpr const char* NameOf(BoxFormat format) {
  switch (format) {
    case BoxFormat::kXyxy:
      return "xyxy";
    case BoxFormat::kXywh:
      return "xywh";
    case BoxFormat::kCxcywh:
      return "cxcywh";
  }
  return "?";
}

}  // namespace stoker
