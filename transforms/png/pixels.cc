#include "transforms/png/pixels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "transforms/decode/on_white.h"

namespace stoker::png {

namespace {

bool KeepsIndices(Conversion conversion) {
  return conversion == Conversion::kToIndices || conversion == Conversion::kTo16Indices;
}

PixelLayout LayoutOf(const Header& header, Conversion conversion) {
  if (conversion == Conversion::kTo16Indices) return PixelLayout::kGray16;
  const bool gray = header.gray() || KeepsIndices(conversion);
  return gray ? PixelLayout::kGray : PixelLayout::kInterleaved;
}

uint16_t BigEndianAt(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }

}  // namespace

Pixels::Pixels(const Header& header, std::span<const uint8_t> palette, Conversion conversion,
               std::span<const uint8_t> transparency)
    : layout_(LayoutOf(header, conversion)),
      unchanged_(conversion == Conversion::kNone),
      palette_(header.color == Color::kPalette && !KeepsIndices(conversion)),
      bits_(header.bit_depth),
      step_(header.channels() * header.bit_depth / 8),
      sample_(header.bit_depth / 8) {
  for (size_t i = 0; palette_ && i < std::min<size_t>(palette.size() / 3, colors_.size()); ++i) {
    std::memcpy(colors_[i].data(), palette.data() + 3 * i, 3);
  }
  const int most = (1 << bits_) - 1, last = KeepsIndices(conversion) ? most : 255;
  for (int i = 0; bits_ < 8 && i <= most; ++i) {
    grays_[static_cast<size_t>(i)] = static_cast<uint8_t>(i * last / most);
  }
  if (conversion == Conversion::kOnWhite) PutOnWhite(transparency);
}

// Pillow compares the lower byte of tRNS with values of 8 bits, to which it scales gray of fewer
// bits, but of tRNS only that of 1 bit.
void Pixels::PutOnWhite(std::span<const uint8_t> transparency) {
  for (size_t i = 0; palette_ && i < std::min(transparency.size(), colors_.size()); ++i) {
    for (uint8_t& value : colors_[i]) value = OnWhite(value, transparency[i]);
  }
  if (palette_) return;
  if (bits_ < 8) {
    const bool one = transparency[0] != 0 || transparency[1] != 0;
    const int value = bits_ > 1 ? transparency[1] : one ? 255 : 0;
    for (uint8_t& gray : grays_) gray = gray == value ? 255 : gray;
    return;
  }
  transparent_.emplace();
  for (size_t c = 0; c < static_cast<size_t>(BytesPerPixel(layout_)); ++c) {
    (*transparent_)[c] = transparency[2 * c + 1];
  }
}

void Pixels::ReplaceTransparent(uint8_t* pixels, int count) const {
  const auto channels = static_cast<size_t>(BytesPerPixel(layout_));
  for (int i = 0; i < count; ++i, pixels += channels) {
    if (std::memcmp(pixels, transparent_->data(), channels) == 0)
      std::memset(pixels, 255, channels);
  }
}

size_t Pixels::pixel_bytes() const {
  const bool as_stored = unchanged_ && !palette_ && bits_ >= 8;
  return static_cast<size_t>(as_stored ? step_ : BytesPerPixel(layout_));
}

int Pixels::SampleAt(const uint8_t* row, int x) const {
  if (bits_ == 8) return row[x];
  const int each = 8 / bits_;  // samples in a byte, the first one in its highest bits
  return row[x / each] >> (8 - bits_ * (x % each + 1)) & ((1 << bits_) - 1);
}

// Converts to kGray16.
void Pixels::Widen(const uint8_t* row, int x, int count, uint8_t* to) const {
  for (int i = x; i < x + count; ++i, to += sizeof(uint16_t)) {
    const auto value =
        bits_ == 16 ? BigEndianAt(row + ptrdiff_t{2} * i) : static_cast<uint16_t>(SampleAt(row, i));
    std::memcpy(to, &value, sizeof(value));
  }
}

void Pixels::Convert(const uint8_t* row, int x, int count, uint8_t* to) const {
  if (layout_ == PixelLayout::kGray16) return Widen(row, x, count, to);
  if (palette_) {
    for (int i = 0; i < count; ++i, to += 3) {
      const Rgb& color = colors_[static_cast<size_t>(SampleAt(row, x + i))];
      to[0] = color[0];
      to[1] = color[1];
      to[2] = color[2];
    }
    return;
  }
  if (bits_ < 8) {
    for (int i = 0; i < count; ++i) *to++ = grays_[static_cast<size_t>(SampleAt(row, x + i))];
    return;
  }
  const uint8_t* from = row + static_cast<ptrdiff_t>(x) * step_;
  const int channels = BytesPerPixel(layout_);
  if (unchanged_ && bits_ == 16) {
    const size_t samples = static_cast<size_t>(count) * static_cast<size_t>(step_ / 2);
    for (size_t i = 0; i < samples; ++i, from += 2, to += 2) {
      const uint16_t sample = BigEndianAt(from);
      std::memcpy(to, &sample, sizeof(sample));
    }
    return;
  }
  if (unchanged_ || step_ == channels) {  // no channel is dropped
    std::memcpy(to, from, static_cast<size_t>(count) * static_cast<size_t>(step_));
    if (transparent_) ReplaceTransparent(to, count);
    return;
  }
  if (channels == 1) {
    for (int i = 0; i < count; ++i, from += step_) *to++ = *from;
    return;
  }
  for (int i = 0; i < count; ++i, from += step_, to += 3) {
    to[0] = from[0];
    to[1] = from[sample_];
    to[2] = from[ptrdiff_t{2} * sample_];
  }
}

}  // namespace stoker::png
