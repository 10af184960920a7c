// Compiled once for each instruction set.
#include "transforms/png/unfilter.h"

#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/png/unfilter.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker::png {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Undo(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
          uint8_t* row) {
  UnfilterPlain(filter, pixel, part, above, row);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

// A pixel, and bytes after it that do not matter.
using Pixel = hn::FixedTag<uint8_t, 8>;
using Words = hn::FixedTag<int16_t, 8>;
using PixelBytes = hn::Vec<Pixel>;
using PixelWords = hn::Vec<Words>;

HWY_INLINE PixelWords LoadWords(const uint8_t* from) {
  return hn::PromoteTo(Words(), hn::LoadU(Pixel(), from));
}

void UndoSub(size_t pixel, std::span<const uint8_t> part, uint8_t* row) {
  PixelBytes left = hn::LoadU(Pixel(), row - pixel);
  for (size_t i = 0; i < part.size(); i += pixel) {
    left = hn::Add(left, hn::LoadU(Pixel(), part.data() + i));
    hn::StoreU(left, Pixel(), row + i);
  }
}

void UndoUp(std::span<const uint8_t> part, const uint8_t* above, uint8_t* row) {
  const hn::CappedTag<uint8_t, 16> d;
  for (size_t i = 0; i < part.size(); i += hn::Lanes(d)) {
    hn::StoreU(hn::Add(hn::LoadU(d, above + i), hn::LoadU(d, part.data() + i)), d, row + i);
  }
}

// byte + (left + above) / 2 is the complement of (~left + ~above + 1) / 2 - byte.
void UndoAverage(size_t pixel, std::span<const uint8_t> part, const uint8_t* above, uint8_t* row) {
  PixelBytes left = hn::Not(hn::LoadU(Pixel(), row - pixel));
  for (size_t i = 0; i < part.size(); i += pixel) {
    const PixelBytes up = hn::Not(hn::LoadU(Pixel(), above + i));
    left = hn::Sub(hn::AverageRound(left, up), hn::LoadU(Pixel(), part.data() + i));
    hn::StoreU(hn::Not(left), Pixel(), row + i);
  }
}

// All bits of the words where a > b. The masks of AVX-512 would take longer.
HWY_INLINE PixelWords Greater(PixelWords a, PixelWords b) {
#if HWY_TARGET <= HWY_AVX3
  return PixelWords{_mm_cmpgt_epi16(a.raw, b.raw)};
#else
  return hn::VecFromMask(Words(), hn::Gt(a, b));
#endif
}

// Words whose upper bytes are zero, and stay so.
HWY_INLINE PixelWords AddBytes(PixelWords a, PixelWords b) {
  const hn::Repartition<uint8_t, Words> bytes;
  return hn::BitCast(Words(), hn::Add(hn::BitCast(bytes, a), hn::BitCast(bytes, b)));
}

// Paeth's predictor, for given pixels above and in the corner, as a function of the pixel to the
// left: that pixel itself, except between `above` and 3 corner - 2 above. There it is the greater
// of the two others if the pixel to the left is greater than the middle of the estimates' distances
// from them, (3 corner - above) / 2, otherwise the smaller; at the middle it is `above`.
void UndoPaeth(size_t pixel, std::span<const uint8_t> part, const uint8_t* above, uint8_t* row) {
  PixelWords left = LoadWords(row - pixel), corner = LoadWords(above - pixel);
  for (size_t i = 0; i < part.size(); i += pixel) {
    const PixelWords up = LoadWords(above + i), byte = LoadWords(part.data() + i);
    const PixelWords both = hn::Sub(hn::Add(hn::Add(corner, corner), corner), up);
    const PixelWords far = hn::Sub(both, up);
    const PixelWords low = hn::Min(up, far), high = hn::Max(up, far);
    const PixelWords middle = hn::ShiftRight<1>(hn::Add(both, Greater(up, corner)));
    const PixelWords smaller = AddBytes(hn::Min(up, corner), byte);
    const PixelWords greater = AddBytes(hn::Max(up, corner), byte);
    // From here on the chain: a comparison and two selections.
    const PixelWords other = hn::IfVecThenElse(Greater(left, middle), greater, smaller);
    const PixelWords between = hn::And(Greater(left, low), Greater(high, left));
    left = hn::IfVecThenElse(between, other, AddBytes(left, byte));
    hn::StoreU(hn::DemoteTo(Pixel(), left), Pixel(), row + i);
    corner = up;
  }
}

void Undo(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
          uint8_t* row) {
  switch (filter) {
    case Filter::kNone:
      std::memcpy(row, part.data(), part.size());
      return;
    case Filter::kSub:
      return UndoSub(pixel, part, row);
    case Filter::kUp:
      return UndoUp(part, above, row);
    case Filter::kAverage:
      return UndoAverage(pixel, part, above, row);
    case Filter::kPaeth:
      return UndoPaeth(pixel, part, above, row);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker::png
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker::png {

HWY_EXPORT(Undo);

void Unfilter(Filter filter, size_t pixel, std::span<const uint8_t> part, const uint8_t* above,
              uint8_t* row) {
  HWY_DYNAMIC_DISPATCH(Undo)(filter, pixel, part, above, row);
}

}  // namespace stoker::png
#endif
