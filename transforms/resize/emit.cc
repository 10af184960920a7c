// Compiled once for each instruction set.
#include "transforms/resize/emit.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/resize/emit.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "transforms/resize/strip/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Emit(const ResampledRows& from, const RowFormat& format, uint8_t* out) {
  EmitRowsPlain(from, format, out);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Piece = hn::FixedTag<uint8_t, RowFormat::kPiece>;
using Floats = hn::CappedTag<float, RowFormat::kPiece>;
using Ints = hn::RebindToSigned<Floats>;
using Halves = hn::Rebind<uint16_t, Floats>;
constexpr size_t kLanes = hn::MaxLanes(Floats());

struct ToBFloat16 {
  HWY_INLINE hn::Vec<Halves> operator()(hn::Vec<Floats> value) const {
    return ToBFloat16Bits(Floats(), value);
  }
};

struct ToFloat16 {
  HWY_INLINE hn::Vec<Halves> operator()(hn::Vec<Floats> value) const {
    return ToFloat16Bits(Floats(), value);
  }
};

struct ToFloat32 {
  HWY_INLINE hn::Vec<Floats> operator()(hn::Vec<Floats> value) const { return value; }
};

// ---- A piece: 16 values.

// Returns the first lanes of a vector, as many as `d` has.
template <class D, class V>
HWY_INLINE hn::Vec<D> FirstLanes(D d, V values) {
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == hn::MaxLanes(D())) {
    return values;
  } else {
    return FirstLanes(d, hn::LowerHalf(values));
  }
}

// Returns lanes [i × kLanes, (i + 1) × kLanes) of a piece, as floats.
template <size_t i>
HWY_INLINE hn::Vec<Floats> Part(hn::Vec<Piece> values) {
  const auto part =
      FirstLanes(hn::Rebind<uint8_t, Floats>(), hn::ShiftRightBytes<i * kLanes>(Piece(), values));
  return hn::ConvertTo(Floats(), hn::PromoteTo(Ints(), part));
}

template <bool kStream, class V, class D>
HWY_INLINE void Put(V value, D d, hn::TFromD<D>* to) {
  if constexpr (kStream && sizeof(hn::TFromD<D>) * hn::MaxLanes(D()) >=
                               16) {  // streaming stores need 16 bytes
    hn::Stream(value, d, to);
  } else {
    hn::StoreU(value, d, to);
  }
}

struct AsBytes {
  static constexpr size_t kAlignment = RowFormat::kPiece;  // required for streaming
  using Value = uint8_t;
  AsBytes(const float*, const float*) {}
  template <bool kStream>
  HWY_INLINE void Store(hn::Vec<Piece> values, uint8_t* to) const {
    Put<kStream>(values, Piece(), to);
  }
};

template <typename T, class Round>
class AsFloats {
 public:
  static constexpr size_t kAlignment = kLanes * sizeof(T);
  using Value = T;
  AsFloats(const float* scale, const float* bias) : scale_(scale), bias_(bias) {}

  template <bool kStream>
  HWY_INLINE void Store(hn::Vec<Piece> values, T* to) const {
    StorePart<kStream, 0>(values, to);
    if constexpr (kLanes <= 8) StorePart<kStream, 1>(values, to);
    if constexpr (kLanes <= 4) {
      StorePart<kStream, 2>(values, to);
      StorePart<kStream, 3>(values, to);
    }
  }

 private:
  template <bool kStream, size_t i>
  HWY_INLINE void StorePart(hn::Vec<Piece> values, T* to) const {
    const Floats d;
    const auto scaled = hn::Mul(Part<i>(values), hn::Load(d, scale_ + i * kLanes));
    const auto result = hn::Add(scaled, hn::Load(d, bias_ + i * kLanes));
    Put<kStream>(Round()(result), hn::Rebind<T, Floats>(), to + i * kLanes);
  }

  const float* scale_;
  const float* bias_;
};

// ---- Sources of pieces.

struct Neighbours {
  HWY_INLINE hn::Vec<Piece> operator()(const uint8_t* values, int piece) const {
    return hn::LoadU(Piece(), values + ptrdiff_t{piece} * RowFormat::kPiece);
  }
};

// Byte i of the pieces p, p + 3, p + 6, … of gray pixels is gray value (16 p + i) / 3.
alignas(16) constexpr uint8_t kThrice[3][16] = {
    {0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5},
    {5, 5, 6, 6, 6, 7, 7, 7, 8, 8, 8, 9, 9, 9, 10, 10},
    {10, 11, 11, 11, 12, 12, 12, 13, 13, 13, 14, 14, 14, 15, 15, 15}};

struct GrayThrice {
  HWY_INLINE hn::Vec<Piece> operator()(const uint8_t* gray, int piece) const {
    const auto values = hn::LoadU(Piece(), gray + ptrdiff_t{piece} / 3 * RowFormat::kPiece);
    return hn::TableLookupBytes(values, hn::Load(Piece(), kThrice[piece % 3]));
  }
};

// Emits `count` adjacent values of a pixel row. `as[i]` is for the pieces i, i + 3, i + 6, …
template <bool kStream, class From, class As>
HWY_INLINE void EmitValues(const uint8_t* HWY_RESTRICT values, int count, const As (&as)[3],
                           typename As::Value* HWY_RESTRICT out) {
  constexpr int kPiece = RowFormat::kPiece;
  const From from;
  int piece = 0;
  for (; (piece + 3) * kPiece <= count; piece += 3, out += 3 * kPiece) {
    as[0].template Store<kStream>(from(values, piece), out);
    as[1].template Store<kStream>(from(values, piece + 1), out + kPiece);
    as[2].template Store<kStream>(from(values, piece + 2), out + 2 * kPiece);
  }
  int i = 0;
  for (; (piece + 1) * kPiece <= count; ++piece, ++i, out += kPiece) {
    as[i].template Store<kStream>(from(values, piece), out);
  }
  if (const int left = count - piece * kPiece; left > 0) {
    alignas(64) typename As::Value part[kPiece];
    as[i].template Store<false>(from(values, piece), part);
    std::memcpy(out, part, static_cast<size_t>(left) * sizeof(typename As::Value));
  }
}

template <class From, class As>
void EmitPlane(const ResampledRows& from, const RowFormat& format, const As (&as)[3], int count,
               const uint8_t* values, uint8_t* out) {
  for (int r = 0; r < from.rows; ++r, values += from.stride, out += format.down) {
    auto* to = reinterpret_cast<typename As::Value*>(out);
    if (format.stream && reinterpret_cast<uintptr_t>(out) % As::kAlignment == 0) {
      EmitValues<true, From>(values, count, as, to);
    } else {
      EmitValues<false, From>(values, count, as, to);
    }
  }
}

template <class As>
void EmitAs(const ResampledRows& from, const RowFormat& format, uint8_t* out) {
  const auto piece = [&format](int p) { return As(format.scale[p], format.bias[p]); };
  if (format.layout == Layout::kNhwc) {
    const As as[3] = {piece(0), piece(1), piece(2)};
    const int count = 3 * from.pixels;
    if (from.channels == 1) return EmitPlane<GrayThrice>(from, format, as, count, from.values, out);
    return EmitPlane<Neighbours>(from, format, as, count, from.values, out);
  }
  for (int c = 0; c < format.channels; ++c) {
    const As as[3] = {piece(c), piece(c), piece(c)};
    const uint8_t* values = from.values + (from.channels == 1 ? 0 : c * from.plane);
    EmitPlane<Neighbours>(from, format, as, from.pixels, values, out + c * format.channel);
  }
}

void Emit(const ResampledRows& from, const RowFormat& format, uint8_t* out) {
  switch (format.dtype) {
    case DType::kF32:
      return EmitAs<AsFloats<float, ToFloat32>>(from, format, out);
    case DType::kF16:
      return EmitAs<AsFloats<uint16_t, ToFloat16>>(from, format, out);
    case DType::kBF16:
      return EmitAs<AsFloats<uint16_t, ToBFloat16>>(from, format, out);
    default:
      return EmitAs<AsBytes>(from, format, out);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Emit);

void EmitRows(const ResampledRows& from, const RowFormat& format, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Emit)(from, format, out);
}

void FlushEmitted() { hwy::FlushStream(); }

}  // namespace stoker
#endif
