// From a PNG's rows, as they lie in the file, to 8-bit gray or RGB.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/image.h"
#include "transforms/png/chunks.h"

namespace stoker::png {

// Alpha is left out, palettes are looked up (an index that they lack is black), 1, 2 and 4 bits of
// gray are stretched to 0…255, of 16 bits the upper 8 are kept. Gamma, colour profiles and tRNS do
// not matter.
class Pixels {
 public:
  // `palette`: triples, of a PLTE chunk; for Color::kPalette only.
  Pixels(const Header& header, std::span<const uint8_t> palette);

  PixelLayout layout() const { return layout_; }
  // Pixels [x, x + count) of a row (its filter undone), to `to`; layout() says what they become.
  void Convert(const uint8_t* row, int x, int count, uint8_t* to) const;

 private:
  using Rgb = std::array<uint8_t, 3>;
  int SampleAt(const uint8_t* row, int x) const;  // of at most 8 bits

  PixelLayout layout_;
  bool palette_;
  int bits_;    // of a sample
  int step_;    // bytes from a pixel to the next, with 8 or 16 bits
  int sample_;  // bytes of a sample, likewise
  std::array<Rgb, 256> colors_{};
  std::array<uint8_t, 256> grays_{};  // of samples of fewer than 8 bits
};

}  // namespace stoker::png
