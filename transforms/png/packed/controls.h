// The tables by which the blocks of a packed PNG are unpacked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "transforms/png/packed/format.h"

namespace stoker::packed_png {

// How the words of a block are taken out of its bytes: each out of two, by a multiplication that
// moves its highest bit up and one that moves it down again.
struct alignas(16) Control {
  std::array<uint8_t, 2 * kBlockValues> bytes;
  std::array<uint16_t, kBlockValues> up;
  uint16_t down;
};

constexpr Control ControlOf(unsigned width) {
  Control control{};
  for (unsigned i = 0; i < kBlockValues; ++i) {
    const unsigned bit = width * i;
    control.bytes[2 * i] = static_cast<uint8_t>(bit / 8);
    control.bytes[2 * i + 1] = static_cast<uint8_t>(bit / 8 < 15 ? bit / 8 + 1 : 0x80);
    control.up[i] = static_cast<uint16_t>(width == 0 ? 0 : 1 << (16 - width - bit % 8));
  }
  control.down = static_cast<uint16_t>(1 << width);
  return control;
}

inline constexpr auto kControls = [] {
  std::array<Control, kWidths.size()> controls{};
  for (size_t i = 0; i < kWidths.size(); ++i) controls[i] = ControlOf(kWidths[i]);
  return controls;
}();

}  // namespace stoker::packed_png
