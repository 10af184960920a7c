// Controls: the tables with which SIMD code extracts the words of a quad, or the DC differences of
// a run, from packed bytes: each word's two bytes, and factors that shift it to the upper end of 16
// bits and back with its sign.
#pragma once

#include <array>
#include <cstdint>

#include "core/batch/packed_widths.h"
#include "transforms/packed/format.h"

namespace stoker::packed {

// For 16 words in two halves of 8. The bytes of each half are counted from where it begins, those
// of a quad from where the quad begins.
struct alignas(64) Control {
  std::array<uint8_t, 32> bytes{};
  std::array<uint8_t, 32> bytes_of_quad{};
  std::array<uint16_t, 16> up{};
  std::array<uint16_t, 16> down{};  // the upper 16 bits of a product count
};

struct Controls {
  std::array<Control, kTuples> quad;
  std::array<uint8_t, kTuples> second_half{};  // where it begins
  std::array<uint8_t, kTuples> size{};         // of a quad
  std::array<Control, 16> dc;                  // by code; its halves have DcWidth bytes
};

extern const Controls kControls;

}  // namespace stoker::packed
