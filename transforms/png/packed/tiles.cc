// Compiled once for each instruction set.
#include "transforms/png/packed/tiles.h"

#include <array>

#include "transforms/png/packed/controls.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/png/packed/tiles.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::packed_png {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

bool Unpack(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
            ptrdiff_t stride) {
  return UnpackTilePlain(tile, planes, rows, to, stride);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::FixedTag<uint8_t, kBlockValues>;  // a block
using Words = hn::FixedTag<int16_t, kBlockValues / 2>;
using BlockBytes = hn::Vec<Bytes>;

// A plane's values of a row.
struct alignas(64) Values {
  std::array<uint8_t, kTileColumns> at;
};

// Takes words out of two bytes each.
HWY_INLINE hn::Vec<Words> TakeWords(BlockBytes bits, const Control& control, size_t first) {
  const Bytes d;
  const Words dw;
  const BlockBytes index = hn::Load(d, control.bytes.data() + 2 * first);
  const auto picked = hn::BitCast(dw, hn::TableLookupBytesOr0(bits, index));
  const hn::RebindToUnsigned<Words> du;
  const auto up = hn::BitCast(dw, hn::Load(du, control.up.data() + first));
  const auto down = hn::Set(dw, static_cast<int16_t>(control.down));
  return hn::MulHigh(hn::Mul(picked, up), down);
}

// The sum of each lane and all before it.
HWY_INLINE BlockBytes PrefixSum(BlockBytes v) {
  const Bytes d;
  v = hn::Add(v, hn::ShiftLeftBytes<1>(d, v));
  v = hn::Add(v, hn::ShiftLeftBytes<2>(d, v));
  v = hn::Add(v, hn::ShiftLeftBytes<4>(d, v));
  return hn::Add(v, hn::ShiftLeftBytes<8>(d, v));
}

// Adds a block's residuals to the values above. `last`: all lanes are the last difference of the
// block to the left; becomes that of this one.
HWY_INLINE void AddBlock(const uint8_t* bits, unsigned block, BlockBytes& last, uint8_t* values) {
  const Bytes d;
  const Control& control = kControls[block & kWidthMask];
  const BlockBytes all = hn::LoadU(d, bits);
  const auto lower = hn::BitCast(d, TakeWords(all, control, 0));
  const auto upper = hn::BitCast(d, TakeWords(all, control, kBlockValues / 2));
  const BlockBytes residuals = hn::ConcatEven(d, upper, lower);
  const BlockBytes sums = hn::Set(d, static_cast<uint8_t>(-(block / kGradient % 2)));
  const BlockBytes difference =
      hn::IfVecThenElse(sums, hn::Add(PrefixSum(residuals), last), residuals);
  last = hn::TableLookupBytes(difference, hn::Set(d, kBlockValues - 1));
  hn::Store(hn::Add(hn::Load(d, values), difference), d, values);
}

HWY_INLINE void StoreRow(const std::array<Values, kMaxPlanes>& row, const Planes& planes,
                         uint8_t* to) {
  const Bytes d;
  const bool has_colours = planes.has_colours;
  for (size_t i = 0; i < size_t{kTileColumns}; i += hn::Lanes(d)) {
    const auto at = [&](size_t p) { return hn::Load(d, row[p].at.data() + i); };
    uint8_t* const pixels = to + i * planes.count;
    if (planes.count == 1) {
      hn::StoreU(at(0), d, pixels);
    } else if (planes.count == 2) {
      hn::StoreInterleaved2(at(0), at(1), d, pixels);
    } else if (planes.count == 3) {
      hn::StoreInterleaved3(hn::Add(at(0), at(1)), at(1), hn::Add(at(2), at(1)), d, pixels);
    } else if (planes.count == 4 && has_colours) {
      hn::StoreInterleaved4(hn::Add(at(0), at(1)), at(1), hn::Add(at(2), at(1)), at(3), d, pixels);
    } else {
      for (size_t j = 0; j < hn::Lanes(d); ++j) {
        for (size_t p = 0; p < planes.count; ++p) {
          const int green = planes.IsDifference(p) ? row[planes.Green(p)].at[i + j] : 0;
          pixels[j * planes.count + p] = static_cast<uint8_t>(row[p].at[i + j] + green);
        }
      }
    }
  }
}

bool Unpack(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
            ptrdiff_t stride) {
  const uint8_t* at = tile.data();
  const uint8_t* const end = at + tile.size();
  if (tile.size() < planes.count) return false;
  std::array<Values, kMaxPlanes> row;
  for (size_t p = 0; p < planes.count; ++p) row[p].at.fill(*at++);
  for (int y = 0; y < rows; ++y, to += stride) {
    for (size_t p = 0; p < planes.count; ++p) {
      if (end - at < 2) return false;
      unsigned control = at[0] | unsigned{at[1]} << 8;  // read once: it may change
      at += 2;
      BlockBytes last = hn::Zero(Bytes());
      // The blocks have at most 64 bytes, which may lie after the end.
      for (size_t b = 0; b < kRunBlocks; ++b, control >>= 4) {
        AddBlock(at, control, last, row[p].at.data() + b * kBlockValues);
        at += 2 * kWidths[control & kWidthMask];
      }
      if (at > end) return false;
    }
    StoreRow(row, planes, to);
  }
  return true;
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::packed_png
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::packed_png {

HWY_EXPORT(Unpack);

bool UnpackTile(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
                ptrdiff_t stride) {
  return HWY_DYNAMIC_DISPATCH(Unpack)(tile, planes, rows, to, stride);
}

}  // namespace stoker::packed_png
#endif
