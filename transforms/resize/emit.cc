// Compiled once for each instruction set.
#include "transforms/resize/emit.h"

#include <cstddef>
#include <cstring>

// As in strip.cc.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#define HWY_WANT_AVX3_DL 1

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/emit.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Emit(const Block& block, const RowFormat& format, uint8_t* out) {
  EmitBlockPlain(block, format, out);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Piece = hn::FixedTag<uint8_t, RowFormat::kPiece>;
using Floats = hn::CappedTag<float, RowFormat::kPiece>;
using Ints = hn::RebindToSigned<Floats>;
using Uints = hn::RebindToUnsigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());

// ---- binary32 to 16 bits, ties to even. Highway 1.0.3 truncates to bfloat16, and to binary16
// where there is no instruction for it.

HWY_INLINE hn::Vec<Halves> Narrowed(hn::Vec<Uints> bits) {
  return hn::DemoteTo(Halves(), hn::BitCast(Ints(), bits));  // below 2^16
}

struct ToBFloat16 {
  HWY_INLINE hn::Vec<Halves> operator()(hn::Vec<Floats> value) const {
    const Uints d;
    const auto bits = hn::BitCast(d, value);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1));
    const auto rounded = hn::Add(hn::Add(bits, hn::Set(d, 0x7fff)), odd);
    return Narrowed(hn::ShiftRight<16>(rounded));
  }
};

struct ToFloat16 {
#if HWY_TARGET <= HWY_AVX2 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
  HWY_INLINE hn::Vec<Halves> operator()(hn::Vec<Floats> value) const {
    const hn::Rebind<hwy::float16_t, Floats> d;
    return hn::BitCast(Halves(), hn::DemoteTo(d, value));
  }
#else
  HWY_INLINE hn::Vec<Halves> operator()(hn::Vec<Floats> value) const {
    const Uints d;
    const auto bits = hn::BitCast(d, value);
    const auto sign = hn::And(bits, hn::Set(d, 0x80000000U));
    const auto size = hn::Xor(bits, sign);
    // Normal: the exponent's bias is 112 less, and 13 bits are rounded off; a carry is the next
    // exponent, or infinity, which everything from 2^16 on is.
    const auto odd = hn::And(hn::ShiftRight<13>(size), hn::Set(d, 1));
    const auto rebiased = hn::Add(hn::Sub(size, hn::Set(d, (112U << 23) - 0xfff)), odd);
    const auto is_large = Above(size, 0x477fffff);
    const auto normal = hn::IfThenElse(is_large, hn::Set(d, 0x7c00), hn::ShiftRight<13>(rebiased));
    // Subnormal: the last place of ½ is that of binary16's least numbers, so the addition rounds.
    const auto half = hn::Set(Floats(), 0.5F);
    const auto sum = hn::Add(hn::BitCast(Floats(), size), half);
    const auto small = hn::Sub(hn::BitCast(d, sum), hn::BitCast(d, half));
    const auto is_normal = Above(size, (113 << 23) - 1);
    return Narrowed(hn::Or(hn::IfThenElse(is_normal, normal, small), hn::ShiftRight<16>(sign)));
  }

 private:
  // Both below 2^31.
  static HWY_INLINE hn::Mask<Uints> Above(hn::Vec<Uints> value, int32_t limit) {
    return hn::RebindMask(Uints(), hn::Gt(hn::BitCast(Ints(), value), hn::Set(Ints(), limit)));
  }
#endif
};

struct ToFloat32 {
  HWY_INLINE hn::Vec<Floats> operator()(hn::Vec<Floats> value) const { return value; }
};

// ---- Where a piece goes: 16 values to `out`.

class AsBytes {
 public:
  static constexpr ptrdiff_t kBytes = 1;
  AsBytes(const RowFormat&, int) {}
  HWY_INLINE void Store(hn::Vec<Piece> values, uint8_t* out) const {
    hn::StoreU(values, Piece(), out);
  }
};

// The first lanes of a vector, as many as `d` has.
template <class D, class V>
HWY_INLINE hn::Vec<D> FirstLanes(D d, V values) {
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == hn::MaxLanes(D())) {
    return values;
  } else {
    return FirstLanes(d, hn::LowerHalf(values));
  }
}

// Lanes [i × kLanes, (i + 1) × kLanes) of a piece, as floats.
template <size_t i>
HWY_INLINE hn::Vec<Floats> Part(hn::Vec<Piece> values) {
  const auto part =
      FirstLanes(hn::Rebind<uint8_t, Floats>(), hn::ShiftRightBytes<i * kLanes>(Piece(), values));
  return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), part));
}

template <typename Value, class Round>
class AsFloats {
 public:
  static constexpr ptrdiff_t kBytes = sizeof(Value);
  AsFloats(const RowFormat& format, int piece)
      : scale_(format.scale[piece]), bias_(format.bias[piece]) {}

  HWY_INLINE void Store(hn::Vec<Piece> values, uint8_t* out) const {
    auto* to = reinterpret_cast<Value*>(out);
    StorePart<0>(values, to);
    if constexpr (kLanes <= 8) StorePart<1>(values, to);
    if constexpr (kLanes <= 4) {
      StorePart<2>(values, to);
      StorePart<3>(values, to);
    }
  }

 private:
  template <size_t i>
  HWY_INLINE void StorePart(hn::Vec<Piece> values, Value* to) const {
    const Floats d;
    const auto scaled = hn::Mul(Part<i>(values), hn::Load(d, scale_ + i * kLanes));
    const auto result = hn::Add(scaled, hn::Load(d, bias_ + i * kLanes));
    hn::StoreU(Round()(result), hn::Rebind<Value, Floats>(), to + i * kLanes);
  }

  const float* scale_;
  const float* bias_;
};

// ---- From columns to pieces of rows.

// Transposes 16 columns, `step` bytes apart, and gives each row's 16 bytes to `store`.
template <class Store>
HWY_INLINE void ForEachRow(const uint8_t* HWY_RESTRICT columns, size_t step, int rows,
                           const Store& store) {
  const hn::CappedTag<uint8_t, kStripRows> d;
  constexpr int kHigh = 16;
  for (int r = 0; r < rows; r += static_cast<int>(hn::Lanes(d))) {
    hn::Vec<decltype(d)> a[16], b[16];
    for (size_t i = 0; i < 16; ++i) a[i] = hn::Load(d, columns + i * step + r);
    ShuffleRound(d, a, b);
    ShuffleRound(d, b, a);
    ShuffleRound(d, a, b);
    ShuffleRound(d, b, a);
    for (int i = 0; i < 16 && r + i < rows; ++i) {
#if HWY_MAX_BYTES >= 32
      store(r + i, hn::LowerHalf(Piece(), a[i]));
      if (r + i + kHigh < rows) store(r + i + kHigh, hn::UpperHalf(Piece(), a[i]));
#else
      (void)kHigh;
      store(r + i, a[i]);
#endif
    }
  }
}

// Byte i of piece p of gray pixels is gray value (16 p + i) / 3.
alignas(16) constexpr uint8_t kThrice[3][16] = {
    {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5},
    {5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10},
    {10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15}};

// All kStripPixels pixels of the block's rows; `out` has room for them.
template <class As>
HWY_INLINE void EmitWhole(const Block& block, const RowFormat& format, uint8_t* out) {
  const bool together = format.layout == Layout::kNhwc;
  for (int p = 0; p < 3; ++p) {
    const As as(format, p);
    uint8_t* const to = out + (together ? p * RowFormat::kPiece * As::kBytes : p * format.channel);
    if (block.channels == 3) {
      const size_t first = together ? RowFormat::kPiece : 1, step = together ? 1 : 3;
      ForEachRow(block.columns + static_cast<size_t>(p) * first * kStripRows, step * kStripRows,
                 block.rows, [&](int r, hn::Vec<Piece> values) HWY_ATTR {
                   as.Store(values, to + r * format.down);
                 });
    } else {
      const auto thrice = hn::Load(Piece(), kThrice[p]);
      ForEachRow(block.columns, kStripRows, block.rows, [&](int r, hn::Vec<Piece> gray) HWY_ATTR {
        as.Store(together ? hn::TableLookupBytes(gray, thrice) : gray, to + r * format.down);
      });
    }
  }
}

// A block that is not as wide: by way of one that is.
template <class As>
void EmitPart(const Block& block, const RowFormat& format, uint8_t* out) {
  constexpr ptrdiff_t kPlane = RowFormat::kPiece * As::kBytes, kRow = 3 * kPlane;
  alignas(64) uint8_t whole[kRow * kStripRows];
  RowFormat inside = format;
  inside.down = kRow;
  const bool together = format.layout == Layout::kNhwc;
  if (!together) inside.channel = kPlane;
  EmitWhole<As>(block, inside, whole);
  const auto bytes = static_cast<size_t>(block.pixels * format.along);
  for (int r = 0; r < block.rows; ++r) {
    for (int p = 0; p < (together ? 1 : 3); ++p) {
      std::memcpy(out + r * format.down + p * format.channel, whole + r * kRow + p * kPlane, bytes);
    }
  }
}

template <class As>
void EmitAs(const Block& block, const RowFormat& format, uint8_t* out) {
  if (block.pixels == kStripPixels) return EmitWhole<As>(block, format, out);
  EmitPart<As>(block, format, out);
}

void Emit(const Block& block, const RowFormat& format, uint8_t* out) {
  switch (format.dtype) {
    case DType::kF32:
      return EmitAs<AsFloats<float, ToFloat32>>(block, format, out);
    case DType::kF16:
      return EmitAs<AsFloats<uint16_t, ToFloat16>>(block, format, out);
    case DType::kBF16:
      return EmitAs<AsFloats<uint16_t, ToBFloat16>>(block, format, out);
    default:
      return EmitAs<AsBytes>(block, format, out);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Emit);

void EmitBlock(const Block& block, const RowFormat& format, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Emit)(block, format, out);
}

}  // namespace stoker
#endif
