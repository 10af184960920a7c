// Pixels in memory, and rectangles of them. Nothing here owns memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

struct ImageSize {
  int width = 0;   // pixels
  int height = 0;  // pixels
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// The largest width and height of an image: JPEG has no larger ones, and resizing's arithmetic
// relies on it.
inline constexpr int kMaxSidePixels = 65535;

// Columns [x, x + width), rows [y, y + height) of an image, in pixels.
struct Rect {
  int x = 0;
  int y = 0;
  int width = 0;
  int height = 0;
  ImageSize size() const { return {width, height}; }
  friend bool operator==(const Rect&, const Rect&) = default;
};

// How the pixels of an image lie in memory, with 8 bits a channel but for kGray16.
enum class PixelLayout : uint8_t {
  kGray,         // one plane, one byte a pixel
  kGray16,       // one plane, two bytes a pixel, in the machine's order: a mask alone
  kInterleaved,  // one plane, RGBRGB…
  kPlanar,       // three planes: R, G, B
};

constexpr int PlanesOf(PixelLayout layout) { return layout == PixelLayout::kPlanar ? 3 : 1; }
constexpr int BytesPerPixel(PixelLayout layout) {
  if (layout == PixelLayout::kGray16) return 2;
  return layout == PixelLayout::kInterleaved ? 3 : 1;
}

// A view of 8-bit pixels, which must stay readable until the call that uses it returns. Only the
// first PlanesOf(layout) planes are used, and no byte between rows is read.
template <typename Byte>
struct BasicImageView {
  PixelLayout layout = PixelLayout::kInterleaved;
  ImageSize size;
  std::array<Byte*, 3> plane{};       // the first row of each plane
  std::array<ptrdiff_t, 3> stride{};  // bytes from a row to the next; negative: bottom up
};
using ImageView = BasicImageView<const uint8_t>;
using MutableImageView = BasicImageView<uint8_t>;

}  // namespace stoker
