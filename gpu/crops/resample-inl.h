// The second kernel: turns samples into pixels of a batch row. A team of threads takes a tile of
// the output: it converts the source pixels of the tile to RGB, blends their rows, and blends the
// columns of the result. All of it stays in the team's memory.
//
// Upsampling and colours are those of transforms/jpeg/fast/pixels/pixels.h, blending that of
// transforms/resize/strip/strip.h. Team: as in unpack-inl.h, with `size()` threads.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "gpu/crops/clamped.h"

namespace stoker::decode {
namespace {

// A pixel after the vertical blend. Red and green wrap at 16 bits, blue does not: weights
// keep all three within them.
struct alignas(8) BlendedPixel {
  uint32_t red_green;  // green in the upper half
  int32_t blue;
};

// A word of memory, which a thread reads or writes at once.
struct alignas(4) Pixel {
  uint8_t red, green, blue, unused;
};

// The memory that the threads of a team share.
struct TileMemory {
  std::array<Pixel, kTilePixels> pixel;
  alignas(16) std::array<BlendedPixel, kTileMiddle> middle;
};

// A crop and its parts.
struct CropParts {
  const DeviceCrop* crop;
  const uint8_t* samples;
  const int32_t *row_starts, *column_starts;
  const WeightPair *row_weights, *column_weights;
};

// The pixels that a tile is computed from, as squares of two by two. The first pixel of a square
// has odd coordinates in the image: its four pixels then need the same chroma samples.
struct TileSource {
  int32_t x, y;            // the first pixel, in the image
  uint32_t columns, rows;  // of squares
};

constexpr TileSource SourceOf(const CropParts& parts, const CropTile& tile) {
  const DeviceCrop& crop = *parts.crop;
  const int32_t left = crop.x + parts.column_starts[tile.x];
  const int32_t top = crop.y + parts.row_starts[tile.y];
  const int32_t right = crop.x + parts.column_starts[tile.x + tile.columns - 1] +
                        static_cast<int32_t>(2 * crop.columns.pairs);
  const int32_t bottom =
      crop.y + parts.row_starts[tile.y + tile.rows - 1] + static_cast<int32_t>(2 * crop.rows.pairs);
  const int32_t x = ((left + 1) >> 1) * 2 - 1, y = ((top + 1) >> 1) * 2 - 1;
  return {x, y, static_cast<uint32_t>(right + 1 - x) / 2,
          static_cast<uint32_t>(bottom + 1 - y) / 2};
}

// ---- Upsampling and colours

// The sample of a line from which a pixel is computed.
struct SampleLine {
  int32_t first, last;  // the outermost samples, which count twice
  int32_t halved;       // 1 if there are half as many samples as pixels
  constexpr int32_t At(int32_t pixel) const { return Clamped(pixel >> halved, first, last); }
};

// The line of chroma samples. `last`: the component's last sample.
constexpr SampleLine ChromaLine(const SampleLine& luma, int32_t halved, int32_t last) {
  const int32_t before = (luma.first - halved) >> halved, after = (luma.last + halved) >> halved;
  return {before > 0 ? before : 0, after < last ? after : last, halved};
}

// Positions of samples in the crop's, in 32 bits that wrap.
struct SamplePlane {
  uint32_t origin, stride;
  constexpr uint32_t RowAt(int32_t y) const { return origin + static_cast<uint32_t>(y) * stride; }
};
constexpr SamplePlane PlaneOf(const CropPlane& plane) {
  return {plane.first * kGroupSamples - static_cast<uint32_t>(plane.y) * plane.stride -
              static_cast<uint32_t>(plane.x),
          plane.stride};
}

// The facts that all squares of a crop share.
struct CropImage {
  const uint8_t* samples;
  bool gray;
  SampleLine luma_x, luma_y, chroma_x, chroma_y;
  SamplePlane luma, cb;
  uint32_t cr;  // from a sample of Cb to that of Cr
};

constexpr CropImage ImageOf(const CropParts& parts) {
  const DeviceCrop& crop = *parts.crop;
  const SampleLine x{crop.x, crop.x + crop.width - 1, 0}, y{crop.y, crop.y + crop.height - 1, 0};
  const CropPlane& chroma = crop.plane[1];
  return {parts.samples,
          crop.gray != 0,
          x,
          y,
          ChromaLine(x, crop.wide, chroma.last_x),
          ChromaLine(y, crop.tall, chroma.last_y),
          PlaneOf(crop.plane[0]),
          PlaneOf(chroma),
          (crop.plane[2].first - chroma.first) * kGroupSamples};
}

// Cb, with Cr in the upper half: the values of a sample, or 16 times those of a pixel.
using ChromaPair = uint32_t;

constexpr ChromaPair ChromaAt(const CropImage& image, uint32_t at) {
  return image.samples[at] | uint32_t{image.samples[at + image.cr]} << 16;
}

// Two numbers along a row.
struct ChromaRow {
  ChromaPair left, right;
};

// The samples of the square from pixel (x, y) on.
constexpr std::array<ChromaRow, 2> ChromaOf(const CropImage& image, int32_t x, int32_t y) {
  constexpr ChromaRow kNoColor{0x800080, 0x800080};
  if (image.gray) return {kNoColor, kNoColor};
  const auto left = static_cast<uint32_t>(image.chroma_x.At(x));
  const auto right = static_cast<uint32_t>(image.chroma_x.At(x + 1));
  const uint32_t upper = image.cb.RowAt(image.chroma_y.At(y));
  const uint32_t lower = image.cb.RowAt(image.chroma_y.At(y + 1));
  return {ChromaRow{ChromaAt(image, upper + left), ChromaAt(image, upper + right)},
          ChromaRow{ChromaAt(image, lower + left), ChromaAt(image, lower + right)}};
}

// The weights of the nearest sample and of the next one, in quarters.
struct Quarters {
  uint32_t near, next;
};
constexpr Quarters QuartersOf(const SampleLine& line) {
  return line.halved != 0 ? Quarters{3, 1} : Quarters{4, 0};
}

constexpr ChromaRow Upsampled(const ChromaRow& row, Quarters of) {
  return {of.near * row.left + of.next * row.right, of.near * row.right + of.next * row.left};
}

// The rounding term, in both halves, for 16 times a pixel of a square.
constexpr ChromaPair Rounding(const CropImage& image, uint32_t column, uint32_t row) {
  const bool wide = image.chroma_x.halved != 0, tall = image.chroma_y.halved != 0;
  if (wide && tall) return (7 + column) * 0x10001;
  return (wide ? 8 - 4 * column : tall ? 8 - 4 * row : 0) * 0x10001;
}

// Returns the pixel for a luma sample and the pixel's `chroma`, which includes Rounding.
constexpr Pixel PixelOf(uint8_t sample, ChromaPair chroma) {
  constexpr int32_t kMost = (1 << 24) - 1, kHalf = 1 << 15;
  const int32_t luma = sample << 16;
  const auto cb = static_cast<int32_t>(chroma >> 4 & 0xfff);
  const auto cr = static_cast<int32_t>(chroma >> 20);
  const int32_t red = luma + 91881 * cr + (kHalf - 91881 * 128);
  const int32_t green = luma - 22554 * cb - 46802 * cr + (kHalf + (22554 + 46802) * 128);
  const int32_t blue = luma + 116130 * cb + (kHalf - 116130 * 128);
  return std::bit_cast<Pixel>(Clamped(red, 0, kMost) >> 16 |
                              (Clamped(green, 0, kMost) >> 8 & 0xff00) |
                              (Clamped(blue, 0, kMost) & 0xff0000));
}

// Converts row `row` of a square; its pixels begin at (x, y).
constexpr void ConvertRow(const CropImage& image, int32_t x, int32_t y, uint32_t row,
                          const ChromaRow& near, const ChromaRow& next, Pixel* to) {
  const Quarters of = QuartersOf(image.chroma_y);
  const uint32_t line = image.luma.RowAt(image.luma_y.At(y));
  to[0] = PixelOf(image.samples[line + static_cast<uint32_t>(image.luma_x.At(x))],
                  of.near * near.left + (of.next * next.left + Rounding(image, 0, row)));
  to[1] = PixelOf(image.samples[line + static_cast<uint32_t>(image.luma_x.At(x + 1))],
                  of.near * near.right + (of.next * next.right + Rounding(image, 1, row)));
}

// Converts a square, whose pixels begin at (x, y): its first row to `to`, and the second row
// `stride` pixels after it.
constexpr void ConvertSquare(const CropImage& image, int32_t x, int32_t y, Pixel* to,
                             uint32_t stride) {
  const Quarters of = QuartersOf(image.chroma_x);
  const std::array<ChromaRow, 2> chroma = ChromaOf(image, x, y);
  const ChromaRow first = Upsampled(chroma[0], of), second = Upsampled(chroma[1], of);
  ConvertRow(image, x, y, 0, first, second, to);
  ConvertRow(image, x, y + 1, 1, second, first, to + stride);
}

// ---- Blending

// The sums of an output's channels.
using Sums = std::array<int32_t, 3>;

constexpr BlendedPixel BlendedOf(const Sums& sums, int32_t shift) {
  return {(static_cast<uint32_t>(sums[0] >> shift) & 0xffff) |
              static_cast<uint32_t>(sums[1] >> shift) << 16,
          sums[2] >> shift};
}

constexpr Sums HalfOf(int32_t shift) {
  const int32_t half = 1 << (shift - 1);
  return {half, half, half};
}

constexpr void AddPixels(Pixel first, Pixel second, WeightPair pair, Sums& sums) {
  sums[0] += pair.first * first.red + pair.second * second.red;
  sums[1] += pair.first * first.green + pair.second * second.green;
  sums[2] += pair.first * first.blue + pair.second * second.blue;
}

constexpr void AddBlended(const BlendedPixel& pixel, int32_t weight, Sums& sums) {
  sums[0] += weight * static_cast<int16_t>(pixel.red_green);
  sums[1] += weight * (static_cast<int32_t>(pixel.red_green) >> 16);
  sums[2] += weight * pixel.blue;
}

// Along one axis, the taps of a tile's outputs.
struct TileTaps {
  const int32_t* starts;
  const WeightPair* weights;
  uint32_t pairs;  // of an output
  int32_t before;  // from the source's first pixel to the origin of starts
  constexpr uint32_t FirstOf(uint32_t output) const {
    return static_cast<uint32_t>(starts[output] + before);
  }
  constexpr const WeightPair* WeightsOf(uint32_t output) const { return weights + output * pairs; }
};

constexpr TileTaps RowTaps(const CropParts& parts, const CropTile& tile, const TileSource& source) {
  const uint32_t pairs = parts.crop->rows.pairs;
  return {parts.row_starts + tile.y, parts.row_weights + tile.y * pairs, pairs,
          parts.crop->y - source.y};
}
constexpr TileTaps ColumnTaps(const CropParts& parts, const CropTile& tile,
                              const TileSource& source) {
  const uint32_t pairs = parts.crop->columns.pairs;
  return {parts.column_starts + tile.x, parts.column_weights + tile.x * pairs, pairs,
          parts.crop->x - source.x};
}

// Row `row` of the tile in the columns of square `column`, of `columns`.
constexpr void BlendDown(const TileTaps& taps, int32_t shift, uint32_t row, uint32_t column,
                         uint32_t columns, TileMemory& memory) {
  const WeightPair* const weights = taps.WeightsOf(row);
  Sums left = HalfOf(shift), right = left;
  uint32_t at = taps.FirstOf(row) * columns + column;  // in pairs of pixels
  for (uint32_t i = 0; i < taps.pairs; ++i) {
    const WeightPair pair = weights[i];
    AddPixels(memory.pixel[2 * at], memory.pixel[2 * (at + columns)], pair, left);
    AddPixels(memory.pixel[2 * at + 1], memory.pixel[2 * (at + columns) + 1], pair, right);
    at += 2 * columns;
  }
  const uint32_t to = row * columns + column;
  memory.middle[2 * to] = BlendedOf(left, shift);
  memory.middle[2 * to + 1] = BlendedOf(right, shift);
}

constexpr uint8_t Byte(int32_t value) { return static_cast<uint8_t>(Clamped(value, 0, 255)); }

// The batch row, from a tile's first pixel on.
struct TileOutput {
  uint8_t* to;
  int32_t along, down;  // bytes to the next pixel
  int32_t shift;        // of the sums

  constexpr void Put(uint32_t row, uint32_t column, const Sums& sums) const {
    uint8_t* const pixel =
        to + (static_cast<int32_t>(column) * along + static_cast<int32_t>(row) * down);
    for (uint32_t c = 0; c < 3; ++c) pixel[c] = Byte(sums[c] >> shift);
  }
};
constexpr TileOutput OutputOf(const DeviceCrop& crop, const CropTile& tile, uint8_t* row) {
  return {row + (crop.out + tile.x * crop.along + tile.y * crop.down), crop.along, crop.down,
          crop.last_shift};
}

// Pixels (column, upper) and (column, lower) of the tile. `stride` is that of the middle pixels'
// rows.
constexpr void BlendAlong(const TileTaps& taps, const TileOutput& output, uint32_t upper,
                          uint32_t lower, uint32_t column, uint32_t stride,
                          const TileMemory& memory) {
  const WeightPair* const weights = taps.WeightsOf(column);
  const uint32_t first = taps.FirstOf(column);
  Sums above = HalfOf(output.shift), below = above;
  for (uint32_t i = 0; i < taps.pairs; ++i) {
    const WeightPair pair = weights[i];
    const BlendedPixel* const of_upper = &memory.middle[upper * stride + first + 2 * i];
    const BlendedPixel* const of_lower = &memory.middle[lower * stride + first + 2 * i];
    AddBlended(of_upper[0], pair.first, above);
    AddBlended(of_upper[1], pair.second, above);
    AddBlended(of_lower[0], pair.first, below);
    AddBlended(of_lower[1], pair.second, below);
  }
  output.Put(upper, column, above);
  output.Put(lower, column, below);
}

// ---- A team's work: one tile.

// Calls f(row, column) for each of a thread's share of rows × columns.
template <class Team, typename F>
constexpr void Share(const Team& team, uint32_t thread, uint32_t rows, uint32_t columns,
                     const F& f) {
  const uint32_t down = team.size() / columns, across = team.size() % columns;
  uint32_t column = thread % columns;
  for (uint32_t row = thread / columns; row < rows; row += down) {
    f(row, column);
    column += across;
    if (column < columns) continue;
    column -= columns;
    ++row;
  }
}

template <class Team>
constexpr void ResampleTile(const Team& team, const CropParts& parts, const CropTile& tile,
                            TileMemory& memory, uint8_t* to) {
  const TileSource source = SourceOf(parts, tile);
  const uint32_t rows = tile.rows, columns = tile.columns;
  team.Each([&](uint32_t thread) {
    const CropImage image = ImageOf(parts);
    Share(team, thread, source.rows, source.columns, [&](uint32_t row, uint32_t column) {
      ConvertSquare(image, source.x + static_cast<int32_t>(2 * column),
                    source.y + static_cast<int32_t>(2 * row),
                    &memory.pixel[2 * (2 * row * source.columns + column)], 2 * source.columns);
    });
  });
  team.Each([&](uint32_t thread) {
    const TileTaps taps = RowTaps(parts, tile, source);
    const int32_t shift = parts.crop->middle_shift;
    Share(team, thread, rows, source.columns, [&](uint32_t row, uint32_t column) {
      BlendDown(taps, shift, row, column, source.columns, memory);
    });
  });
  team.EachUnawaited([&](uint32_t thread) {
    const TileTaps taps = ColumnTaps(parts, tile, source);
    const TileOutput output = OutputOf(*parts.crop, tile, to);
    // Two rows have the weights of a column in common. The last row may come twice.
    Share(team, thread, (rows + 1) / 2, columns, [&](uint32_t two, uint32_t column) {
      const uint32_t lower = 2 * two + 1 < rows ? 2 * two + 1 : 2 * two;
      BlendAlong(taps, output, 2 * two, lower, column, 2 * source.columns, memory);
    });
  });
}

}  // namespace
}  // namespace stoker::decode
