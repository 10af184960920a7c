#include <algorithm>
#include <array>
#include <bit>

#include "transforms/png/packed/tiles.h"

namespace stoker::packed_png {
namespace {

using Run = std::array<uint8_t, kTileColumns>;
using Block = std::span<const uint8_t, kBlockValues>;

// Residual i of a block.
uint8_t ResidualAt(std::span<const uint8_t> bits, int width, size_t i) {
  int value = 0;
  for (int bit = 0; bit < width; ++bit) {
    const size_t at = i * static_cast<size_t>(width) + static_cast<size_t>(bit);
    value |= (bits[at / 8] >> (at % 8) & 1) << bit;
  }
  const bool is_negative = width > 0 && value >> (width - 1) != 0;
  return static_cast<uint8_t>(is_negative ? value - (1 << width) : value);
}

// The index of the least width that residuals need.
unsigned WidthOf(Block residuals) {
  unsigned bits = 0, all = 0;  // without the sign, and with it
  for (const uint8_t residual : residuals) {
    all |= residual;
    bits |= (residual < 128 ? residual : 255U - residual);
  }
  const auto width = all == 0 ? 0U : static_cast<unsigned>(std::bit_width(bits)) + 1;
  return std::min(width, static_cast<unsigned>(kWidths.size()) - 1);
}

// Writes residuals, and returns the end of their bytes.
uint8_t* PutResiduals(Block residuals, int width, uint8_t* to) {
  uint32_t bits = 0;
  int held = 0;
  for (const uint8_t residual : residuals) {
    bits |= (residual & ((uint32_t{1} << width) - 1)) << held;
    for (held += width; held >= 8; held -= 8, bits >>= 8) *to++ = static_cast<uint8_t>(bits);
  }
  return to;
}

// Packs a run of differences to what is above, of which the first `count` matter.
uint8_t* PackRun(const Run& vertical, size_t count, uint8_t* to) {
  Run gradient{};
  for (size_t i = 0; i < count; ++i) {
    gradient[i] = static_cast<uint8_t>(vertical[i] - (i > 0 ? vertical[i - 1] : 0));
  }
  unsigned control = 0;
  uint8_t* const begin = to;
  to += 2;
  for (size_t b = 0; b < kRunBlocks; ++b) {
    const Block first(vertical.data() + b * kBlockValues, kBlockValues);
    const Block second(gradient.data() + b * kBlockValues, kBlockValues);
    const unsigned index = WidthOf(first), other = WidthOf(second);
    const unsigned least = std::min(index, other);
    control |= (least | (other < index ? kGradient : 0)) << (4 * b);
    to = PutResiduals(other < index ? second : first, kWidths[least], to);
  }
  begin[0] = static_cast<uint8_t>(control);
  begin[1] = static_cast<uint8_t>(control >> 8);
  return to;
}

// Adds a run to the values above, and removes it from `tile`. False if it ends too early.
bool AddRun(std::span<const uint8_t>& tile, Run& values) {
  if (tile.size() < 2) return false;
  const unsigned control = tile[0] | unsigned{tile[1]} << 8;
  tile = tile.subspan(2);
  uint8_t difference = 0;
  for (size_t b = 0; b < kRunBlocks; ++b) {
    const unsigned block = control >> (4 * b);
    const int width = kWidths[block & kWidthMask];
    const size_t bytes = static_cast<size_t>(width) * kBlockValues / 8;
    if (tile.size() < bytes) return false;
    for (size_t i = 0; i < kBlockValues; ++i) {
      const uint8_t residual = ResidualAt(tile, width, i);
      difference =
          static_cast<uint8_t>((block & kGradient) != 0 ? difference + residual : residual);
      uint8_t& value = values[b * kBlockValues + i];
      value = static_cast<uint8_t>(value + difference);
    }
    tile = tile.subspan(bytes);
  }
  return true;
}

}  // namespace

bool UnpackTilePlain(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
                     ptrdiff_t stride) {
  if (tile.size() < planes.count) return false;
  std::array<Run, kMaxPlanes> row;
  for (size_t p = 0; p < planes.count; ++p) row[p].fill(tile[p]);
  tile = tile.subspan(planes.count);
  for (int y = 0; y < rows; ++y, to += stride) {
    for (size_t p = 0; p < planes.count; ++p) {
      if (!AddRun(tile, row[p])) return false;
    }
    for (size_t i = 0; i < size_t{kTileColumns}; ++i) {
      for (size_t p = 0; p < planes.count; ++p) {
        const int green = planes.IsDifference(p) ? row[planes.Green(p)][i] : 0;
        to[i * planes.count + p] = static_cast<uint8_t>(row[p][i] + green);
      }
    }
  }
  return true;
}

uint8_t* PackTile(const uint8_t* from, ptrdiff_t stride, int columns, int rows,
                  const Planes& planes, uint8_t* to) {
  const auto n = static_cast<size_t>(columns);
  const auto take = [&](const uint8_t* row, size_t p, size_t count, Run& values) {
    const bool differs = planes.IsDifference(p);
    const size_t green = differs ? planes.Green(p) : p;
    for (size_t i = 0; i < count; ++i, row += planes.count) {
      values[i] = static_cast<uint8_t>(row[p] - (differs ? row[green] : 0));
    }
  };
  std::array<Run, kMaxPlanes> above;
  for (size_t p = 0; p < planes.count; ++p) {
    take(from, p, 1, above[p]);
    above[p].fill(above[p][0]);
    *to++ = above[p][0];
  }
  for (int y = 0; y < rows; ++y, from += stride) {
    for (size_t p = 0; p < planes.count; ++p) {
      Run values{}, vertical{};
      take(from, p, n, values);
      for (size_t i = 0; i < n; ++i) {
        const uint8_t value = values[i];
        vertical[i] = static_cast<uint8_t>(value - above[p][i]);
        above[p][i] = value;
      }
      to = PackRun(vertical, n, to);
    }
  }
  return to;
}

}  // namespace stoker::packed_png
