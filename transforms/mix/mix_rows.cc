// Compiled once for each instruction set.
//
// [rows from the last] Row i needs the original row i − 1: rows are processed from the last to the
// first, so that only the last row's values have to be kept for row 0. Rows are processed in
// pieces, so that the kept values take a few KB on the stack, and a row is still in the cache when
// it serves as the previous row.
#include "transforms/mix/mix_rows.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/mix/mix_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "core/batch/image.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/resize/strip/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR

void Blend(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data) {
  MixRowsPlain(mix, row, rows, data);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vector = hn::Vec<Floats>;

// ---- Values to and from floats.

struct Bytes {
  using Value = uint8_t;
  using D = hn::Rebind<uint8_t, Floats>;
  static HWY_INLINE Vector Load(const Value* from) {
    return hn::ConvertTo(Floats(),
                         hn::PromoteTo(hn::RebindToSigned<Floats>(), hn::LoadU(D(), from)));
  }
  static HWY_INLINE void Store(Vector value, Value* to) {
    hn::StoreU(hn::DemoteTo(D(), hn::NearestInt(value)), D(), to);
  }
};

// With several NaN operands, the NaN that results from an addition depends on the machine.
HWY_INLINE Vector WithOneNaN(Vector value) {
  const auto nan = hn::BitCast(Floats(), hn::Set(hn::RebindToUnsigned<Floats>(), 0x7fc00000U));
  return hn::IfThenElse(hn::IsNaN(value), nan, value);
}

struct Float16 {
  using Value = uint16_t;
  using D = HalvesOf<Floats>;
  static HWY_INLINE Vector Load(const Value* from) {
    return FromFloat16Bits(Floats(), hn::LoadU(D(), from));
  }
  static HWY_INLINE void Store(Vector value, Value* to) {
    hn::StoreU(ToFloat16Bits(Floats(), WithOneNaN(value)), D(), to);
  }
};

struct BFloat16 {
  using Value = uint16_t;
  using D = HalvesOf<Floats>;
  static HWY_INLINE Vector Load(const Value* from) {
    return FromBFloat16Bits(Floats(), hn::LoadU(D(), from));
  }
  static HWY_INLINE void Store(Vector value, Value* to) {
    hn::StoreU(ToBFloat16Bits(Floats(), WithOneNaN(value)), D(), to);
  }
};

struct Float32 {
  using Value = float;
  static HWY_INLINE Vector Load(const Value* from) { return hn::LoadU(Floats(), from); }
  static HWY_INLINE void Store(Vector value, Value* to) {
    hn::StoreU(WithOneNaN(value), Floats(), to);
  }
};

// ---- Blending.

struct Weights {
  float own, others;
};

// Blends one vector of values; the result replaces `self`.
template <class As>
HWY_INLINE void BlendVector(typename As::Value* self, const typename As::Value* before, Vector own,
                            Vector others) {
  const auto weighted = hn::Mul(As::Load(self), own);
  As::Store(hn::Add(weighted, hn::Mul(As::Load(before), others)), self);
}

template <class As>
void BlendPiece(typename As::Value* self, const typename As::Value* before, size_t count,
                const Weights& weights) {
  constexpr size_t kLanes = hn::MaxLanes(Floats());
  using Value = typename As::Value;
  const Vector own = hn::Set(Floats(), weights.own), others = hn::Set(Floats(), weights.others);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) BlendVector<As>(self + i, before + i, own, others);
  if (i == count) return;
  alignas(64) Value rest[kLanes] = {}, rest_before[kLanes] = {};
  const size_t bytes = (count - i) * sizeof(Value);
  std::memcpy(rest, self + i, bytes);
  std::memcpy(rest_before, before + i, bytes);
  BlendVector<As>(rest, rest_before, own, others);
  std::memcpy(self + i, rest, bytes);
}

template <class As>
void BlendRows(const DrawnMix& mix, size_t count, size_t rows, void* data) {
  using Value = typename As::Value;
  constexpr size_t kPiece = 8192 / sizeof(Value);
  const Weights weights{static_cast<float>(mix.lam), static_cast<float>(1 - mix.lam)};
  alignas(64) Value last[kPiece];
  for (size_t at = 0; at < count; at += kPiece) {
    const size_t piece = std::min(kPiece, count - at);
    Value* const first = static_cast<Value*>(data) + at;
    std::memcpy(last, first + (rows - 1) * count, piece * sizeof(Value));
    for (size_t i = rows - 1; i > 0; --i) {
      BlendPiece<As>(first + i * count, first + (i - 1) * count, piece, weights);
    }
    BlendPiece<As>(first, last, piece, weights);
  }
}

void Blend(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data) {
  switch (row.dtype) {
    case DType::kF32:
      return BlendRows<Float32>(mix, row.count(), rows, data);
    case DType::kF16:
      return BlendRows<Float16>(mix, row.count(), rows, data);
    case DType::kBF16:
      return BlendRows<BFloat16>(mix, row.count(), rows, data);
    default:
      return BlendRows<Bytes>(mix, row.count(), rows, data);
  }
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Blend);

namespace {

constexpr size_t kPieceBytes = 8192;

// Replaces `bytes` of each row by those of the previous row.
void Roll(uint8_t* first, size_t bytes, size_t row_bytes, size_t rows) {
  alignas(64) uint8_t last[kPieceBytes];
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    const size_t piece = std::min(kPieceBytes, bytes - at);
    uint8_t* const column = first + at;
    std::memcpy(last, column + (rows - 1) * row_bytes, piece);
    for (size_t i = rows - 1; i > 0; --i) {
      std::memcpy(column + i * row_bytes, column + (i - 1) * row_bytes, piece);
    }
    std::memcpy(column, last, piece);
  }
}

void Paste(const Rect& box, const MixedRow& row, size_t rows, uint8_t* data) {
  const auto x = static_cast<size_t>(box.x), y = static_cast<size_t>(box.y);
  const auto width = static_cast<size_t>(box.width), height = static_cast<size_t>(box.height);
  const size_t pixel = row.values * SizeOf(row.dtype), line = row.width * pixel;
  for (size_t p = 0; p < row.planes; ++p) {
    for (size_t l = 0; l < height; ++l) {
      uint8_t* const first = data + (p * row.height + y + l) * line + x * pixel;
      Roll(first, width * pixel, row.bytes(), rows);
    }
  }
}

}  // namespace

void MixRows(const DrawnMix& mix, const MixedRow& row, size_t rows, void* data) {
  if (rows == 0) return;
  if (mix.cut) return Paste(mix.box, row, rows, static_cast<uint8_t*>(data));
  HWY_DYNAMIC_DISPATCH(Blend)(mix, row, rows, data);
}

}  // namespace stoker
#endif
