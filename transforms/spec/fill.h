// Fill and Padding: the pixels around an image.
#pragma once

#include <array>
#include <cstdint>

namespace stoker {

// Pixels to add at each side.
struct Margins {
  int left = 0;
  int top = 0;
  int right = 0;
  int bottom = 0;
  friend bool operator==(const Margins&, const Margins&) = default;
};

using Fill = std::array<uint8_t, 3>;  // red, green, blue

// The modes of torchvision's padding_mode, and kWrap, which only affine transforms have.
enum class Padding : uint8_t {
  kConstant,   // the fill
  kEdge,       // the last pixel, again and again
  kReflect,    // mirrored, the last pixel once: dcb|abcd|cba
  kSymmetric,  // mirrored, the last pixel twice: cba|abcd|dcb
  kWrap,       // from the opposite side: bcd|abcd|abc
};

}  // namespace stoker
