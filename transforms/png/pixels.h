// Pixels: converts a PNG's rows, as stored in the file, to 8-bit gray or RGB, to a mask's values,
// or unchanged.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "core/batch/image.h"
#include "transforms/png/chunks.h"

namespace stoker::png {

// Gamma and color profiles are ignored, and so is tRNS but for kOnWhite.
enum class Conversion : uint8_t {
  // Alpha is dropped, palettes are looked up (an index beyond the palette is black), gray of 1, 2
  // and 4 bits is scaled to 0…255, and of 16 bits the upper 8 are kept.
  kTo8Bits,
  kOnWhite,      // as kTo8Bits, and transparent colours are put onto white; of at most 8 bits
  kToIndices,    // one channel of at most 8 bits, to the same values with 8 bits
  kTo16Indices,  // one channel, to the same values with 16 bits, in the machine's byte order
  kNone,         // as kTo8Bits, but alpha is kept, and 16 bits, in the machine's byte order
};

class Pixels {
 public:
  // `palette`: the triples of a PLTE chunk; for Color::kPalette only. `transparency`: the content
  // of a tRNS chunk, two bytes for each channel or one for each colour of the palette; for
  // kOnWhite.
  Pixels(const Header& header, std::span<const uint8_t> palette, Conversion conversion,
         std::span<const uint8_t> transparency = {});

  // The layout of converted pixels; for kNone without alpha.
  PixelLayout layout() const { return layout_; }
  size_t pixel_bytes() const;  // of a converted pixel
  // Converts pixels [x, x + count) of a row (with its filter undone), and writes them to `to`.
  void Convert(const uint8_t* row, int x, int count, uint8_t* to) const;

 private:
  using Rgb = std::array<uint8_t, 3>;
  void Widen(const uint8_t* row, int x, int count, uint8_t* to) const;
  int SampleAt(const uint8_t* row, int x) const;  // of at most 8 bits
  void PutOnWhite(std::span<const uint8_t> transparency);
  void ReplaceTransparent(uint8_t* pixels, int count) const;

  PixelLayout layout_;
  bool unchanged_;
  bool palette_;
  int bits_;    // of a sample
  int step_;    // bytes from a pixel to the next, with 8 or 16 bits
  int sample_;  // bytes of a sample, with 8 or 16 bits
  std::array<Rgb, 256> colors_{};
  std::array<uint8_t, 256> grays_{};  // of samples of fewer than 8 bits
  std::optional<Rgb> transparent_;    // the gray or RGB of 8 bits that becomes white
};

}  // namespace stoker::png
