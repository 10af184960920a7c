// Resampling as it was before pixels were packed in words: each channel has its bytes of shared
// memory, and a thread converts one pixel at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "gpu/crops/clamped.h"

namespace stoker::decode {
namespace {

// The memory that the threads of a team share.
struct TileMemory {
  std::array<std::array<uint8_t, kTilePixels>, 3> pixel;
  std::array<std::array<int16_t, kTileMiddle>, 3> middle;
};

// A crop and its parts.
struct CropParts {
  const DeviceCrop* crop;
  const uint8_t* samples;
  const int32_t *row_starts, *column_starts;
  const WeightPair *row_weights, *column_weights;
};

// The pixels that a tile is computed from: of those that are resampled.
struct TileSource {
  int32_t x, y;
  uint32_t columns, rows;
};

constexpr TileSource SourceOf(const CropParts& parts, const CropTile& tile) {
  const int32_t x = parts.column_starts[tile.x], y = parts.row_starts[tile.y];
  const int32_t right = parts.column_starts[tile.x + tile.columns - 1] +
                        static_cast<int32_t>(2 * parts.crop->columns.pairs);
  const int32_t bottom =
      parts.row_starts[tile.y + tile.rows - 1] + static_cast<int32_t>(2 * parts.crop->rows.pairs);
  return {x, y, static_cast<uint32_t>(right - x), static_cast<uint32_t>(bottom - y)};
}

// ---- Upsampling and colours

// Sample (x, y) of a component.
constexpr int32_t SampleAt(const CropParts& parts, const CropPlane& plane, int32_t x, int32_t y) {
  const auto row = static_cast<uint32_t>(y - plane.y), column = static_cast<uint32_t>(x - plane.x);
  return parts.samples[plane.first * kGroupSamples + row * plane.stride + column];
}

// Returns the chroma of pixel (x, y): ¾ of the nearest sample, ¼ of the next, in each direction in
// which there are fewer samples than pixels. At the edges the outermost samples count twice.
constexpr int32_t ChromaAt(const CropParts& parts, const CropPlane& plane, int32_t x, int32_t y) {
  const bool wide = parts.crop->wide != 0, tall = parts.crop->tall != 0;
  const int32_t odd_x = x & 1, odd_y = y & 1;
  const int32_t near_x = wide ? x >> 1 : x, near_y = tall ? y >> 1 : y;
  const int32_t near = SampleAt(parts, plane, near_x, near_y);
  if (!wide && !tall) return near;
  const int32_t next_x = Clamped(near_x + 2 * odd_x - 1, 0, plane.last_x);
  if (!tall) return (3 * near + SampleAt(parts, plane, next_x, near_y) + 1 + odd_x) >> 2;
  const int32_t next_y = Clamped(near_y + 2 * odd_y - 1, 0, plane.last_y);
  const int32_t down = 3 * near + SampleAt(parts, plane, near_x, next_y);
  if (!wide) return (down + 1 + odd_y) >> 2;
  const int32_t next =
      3 * SampleAt(parts, plane, next_x, near_y) + SampleAt(parts, plane, next_x, next_y);
  return (3 * down + next + 8 - odd_x) >> 4;
}

constexpr uint8_t Byte(int32_t value) { return static_cast<uint8_t>(Clamped(value, 0, 255)); }

// Pixel (x, y) of the image to place `at` of the memory. kChannels: 3, or 1 if the image is gray.
template <uint32_t kChannels>
constexpr void ConvertPixel(const CropParts& parts, int32_t x, int32_t y, uint32_t at,
                            TileMemory& memory) {
  const auto& plane = parts.crop->plane;
  const int32_t luma = SampleAt(parts, plane[0], x, y);
  if constexpr (kChannels == 1) {
    memory.pixel[0][at] = static_cast<uint8_t>(luma);
    return;
  }
  constexpr int32_t kHalf = 1 << 15;
  const int32_t cb = ChromaAt(parts, plane[1], x, y) - 128;
  const int32_t cr = ChromaAt(parts, plane[2], x, y) - 128;
  memory.pixel[0][at] = Byte(luma + ((91881 * cr + kHalf) >> 16));
  memory.pixel[1][at] = Byte(luma + ((-22554 * cb - 46802 * cr + kHalf) >> 16));
  memory.pixel[2][at] = Byte(luma + ((116130 * cb + kHalf) >> 16));
}

// ---- Blending

// Adds the pixels from `at` on, `step` apart, by an output's weights.
template <uint32_t kChannels, typename Value, size_t kSize>
constexpr std::array<int32_t, kChannels> Blended(
    const std::array<std::array<Value, kSize>, 3>& from, uint32_t at, uint32_t step,
    const WeightPair* pairs, uint32_t count) {
  std::array<int32_t, kChannels> sum{};
  for (uint32_t i = 0; i < count; ++i) {
    const WeightPair pair = pairs[i];
    for (uint32_t c = 0; c < kChannels; ++c) {
      sum[c] += pair.first * from[c][at] + pair.second * from[c][at + step];
    }
    at += 2 * step;
  }
  return sum;
}

// Row `row` of the tile in column `column` of its source.
template <uint32_t kChannels>
constexpr void BlendDown(const CropParts& parts, const CropTile& tile, const TileSource& source,
                         uint32_t row, uint32_t column, TileMemory& memory) {
  const DeviceCrop& crop = *parts.crop;
  const uint32_t output = tile.y + row, pairs = crop.rows.pairs;
  const auto first = static_cast<uint32_t>(parts.row_starts[output] - source.y);
  const auto sum = Blended<kChannels>(memory.pixel, first * source.columns + column, source.columns,
                                      parts.row_weights + output * pairs, pairs);
  const int32_t half = 1 << (crop.middle_shift - 1);
  for (uint32_t c = 0; c < kChannels; ++c) {
    memory.middle[c][row * source.columns + column] =
        static_cast<int16_t>((sum[c] + half) >> crop.middle_shift);
  }
}

// Pixel (column, row) of the tile. `to`: the batch row.
template <uint32_t kChannels>
constexpr void BlendAlong(const CropParts& parts, const CropTile& tile, const TileSource& source,
                          uint32_t row, uint32_t column, const TileMemory& memory, uint8_t* to) {
  const DeviceCrop& crop = *parts.crop;
  const uint32_t output = tile.x + column, pairs = crop.columns.pairs;
  const auto first = static_cast<uint32_t>(parts.column_starts[output] - source.x);
  const auto sum = Blended<kChannels>(memory.middle, row * source.columns + first, 1,
                                      parts.column_weights + output * pairs, pairs);
  const int32_t half = 1 << (crop.last_shift - 1);
  uint8_t* const pixel = to + (crop.out + static_cast<int32_t>(output) * crop.along +
                               static_cast<int32_t>(tile.y + row) * crop.down);
  for (uint32_t c = 0; c < 3; ++c) pixel[c] = Byte((sum[c % kChannels] + half) >> crop.last_shift);
}

// ---- A team's work: one tile.

// Calls f(row, column) for each of a thread's share of rows × columns.
template <class Team, typename F>
constexpr void Share(const Team& team, uint32_t thread, uint32_t rows, uint32_t columns,
                     const F& f) {
  for (uint32_t i = thread; i < rows * columns; i += team.size()) f(i / columns, i % columns);
}

template <uint32_t kChannels, class Team>
constexpr void ResampleChannels(const Team& team, const CropParts& parts, const CropTile& tile,
                                TileMemory& memory, uint8_t* to) {
  const DeviceCrop& crop = *parts.crop;
  const TileSource source = SourceOf(parts, tile);
  team.Each([&](uint32_t thread) {
    Share(team, thread, source.rows, source.columns, [&](uint32_t row, uint32_t column) {
      // Taps without weight may lie one pixel beyond those that are resampled.
      const int32_t x = Clamped(source.x + static_cast<int32_t>(column), 0, crop.width - 1);
      const int32_t y = Clamped(source.y + static_cast<int32_t>(row), 0, crop.height - 1);
      ConvertPixel<kChannels>(parts, crop.x + x, crop.y + y, row * source.columns + column, memory);
    });
  });
  team.Each([&](uint32_t thread) {
    Share(team, thread, tile.rows, source.columns, [&](uint32_t row, uint32_t column) {
      BlendDown<kChannels>(parts, tile, source, row, column, memory);
    });
  });
  team.EachUnawaited([&](uint32_t thread) {
    Share(team, thread, tile.rows, tile.columns, [&](uint32_t row, uint32_t column) {
      BlendAlong<kChannels>(parts, tile, source, row, column, memory, to);
    });
  });
}

template <class Team>
constexpr void ResampleTile(const Team& team, const CropParts& parts, const CropTile& tile,
                            TileMemory& memory, uint8_t* to) {
  if (parts.crop->gray != 0) return ResampleChannels<1>(team, parts, tile, memory, to);
  ResampleChannels<3>(team, parts, tile, memory, to);
}

}  // namespace
}  // namespace stoker::decode
