// Compiled once for each instruction set.
#include "transforms/augment/geometry/affine.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <string>

#include "transforms/augment/geometry/elastic.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/geometry/affine.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void MapAll(const Tile& from, const Affine& affine, const Displacement&, uint8_t*, const Tile& to) {
  MapPlain(from, affine, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, 16>;
using Ints = hn::RebindToSigned<Floats>;
using Bytes = hn::Rebind<uint8_t, Floats>;
using Interleaved = hn::CappedTag<uint8_t, 64>;
using Values = hn::Vec<Floats>;
using Pixels = hn::Vec<Ints>;
constexpr size_t kLanes = hn::MaxLanes(Floats());
static_assert(hn::MaxLanes(Interleaved()) <= kTileOverread);

// ---- A copy of the image with four bytes per pixel, surrounded by a column on the left and a row
// above, and two of each on the other sides. All channels of a pixel are read at once, outside as
// well as inside. For kConstant the surroundings are the fill, and the fourth byte is 1 inside;
// otherwise they are the opposite sides, and only kWrap gives them weight.

uint32_t PixelOf(const Fill& fill) {
  return fill[0] | static_cast<uint32_t>(fill[1]) << 8 | static_cast<uint32_t>(fill[2]) << 16;
}

void CopyRow(const Tile& from, int y, uint32_t* to) {
  const Interleaved d;
  const auto inside = hn::Set(d, 1);
  const size_t second = from.channels > 1 ? 1 : 0, last = from.channels - 1;
  for (int x = 0; x < from.size.width; x += static_cast<int>(hn::MaxLanes(d))) {
    const auto red = hn::LoadU(d, from.row(0, y) + x);
    const auto green = hn::LoadU(d, from.row(second, y) + x);
    const auto blue = hn::LoadU(d, from.row(last, y) + x);
    hn::StoreInterleaved4(red, green, blue, inside, d, reinterpret_cast<uint8_t*>(to + x));
  }
}

// Vectors may write beyond a row's end, where later rows are written. Returns the position of the
// first pixel.
const int32_t* CopyWith(uint32_t outside, const Tile& from, uint32_t* copy) {
  const auto [width, height] = from.size;
  const ptrdiff_t stride = width + 3;
  uint32_t* row = std::fill_n(copy, stride, outside);
  for (int y = 0; y < height; ++y, row += stride) {
    row[0] = outside;
    CopyRow(from, y, row + 1);
    row[width + 1] = row[width + 2] = outside;
  }
  std::fill_n(row, 2 * stride, outside);
  return reinterpret_cast<const int32_t*>(copy + stride + 1);
}

// As CopyWith, but with the opposite sides around the image. kWrap blends with them; the other
// modes give them weight 0, so one copy serves all of these.
const int32_t* CopyWrapped(const Tile& from, uint32_t* copy) {
  const auto [width, height] = from.size;
  const ptrdiff_t stride = width + 3;
  uint32_t* row = copy + stride;
  for (int y = 0; y < height; ++y, row += stride) {
    CopyRow(from, y, row + 1);
    row[0] = row[width];
    row[width + 1] = row[1];
    row[width + 2] = row[1 + 1 % width];
  }
  std::copy_n(row - stride, stride, copy);
  std::copy_n(copy + stride, stride, row);
  std::copy_n(copy + stride + stride * (1 % height), stride, row + stride);
  return reinterpret_cast<const int32_t*>(copy + stride + 1);
}

// ---- Positions.

// Rounds values in [−1, 2^22] to the nearest integer, ties to even.
HWY_INLINE Pixels Nearest(Values values) {
  const auto magic = hn::Set(Floats(), 0x1.8p23F);
  return hn::Sub(hn::BitCast(Ints(), hn::Add(values, magic)), hn::BitCast(Ints(), magic));
}

HWY_INLINE Values Along(Values column, float step, float start) {
  const Floats d;
  return hn::Add(hn::Mul(hn::Set(d, step), column), hn::Set(d, start));
}

HWY_INLINE Values Divisor(Values column, float step, float start) {
  const auto divisor = Along(column, step, start);
  return hn::IfThenElse(hn::Eq(divisor, hn::Zero(Floats())),
                        hn::Set(Floats(), AffineSource::kLeastDivisor), divisor);
}

// How positions are computed. kFolded: an axis may have a period; kDivided: a projective map;
// kMoved: by Affine::noise.
enum class Places : uint8_t { kStraight, kFolded, kDivided, kMoved };

template <Places places>
HWY_INLINE Values Sampled(Values at, const AffineAxis& axis) {
  const Floats d;
  if (places == Places::kFolded && axis.period > 0) {
    const auto period = hn::Set(d, axis.period), first = hn::Set(d, axis.start);
    at = hn::Sub(at, first);
    at = hn::Sub(at, hn::Mul(period, hn::Floor(hn::Div(at, period))));
    if (axis.is_mirrored) {
      const auto middle = hn::Set(d, axis.period / 2);
      at = hn::Sub(middle, hn::Abs(hn::Sub(at, middle)));
    }
    at = hn::Add(at, first);
  }
  return hn::Min(hn::Max(at, hn::Set(d, axis.low)), hn::Set(d, axis.high));
}

// ---- Pixels.

struct Source {
  const int32_t* first;
  int stride;
  Fill fill;
  Displacement moved;
  HWY_INLINE Pixels Index(Pixels x, Pixels y) const {
    return hn::Add(hn::Mul(y, hn::Set(Ints(), stride)), x);
  }
};

template <int channel>
HWY_INLINE Pixels Channel(Pixels pixels) {
  return hn::And(hn::ShiftRight<8 * channel>(pixels), hn::Set(Ints(), 255));
}

// `pixel`: the value of a channel at kLanes positions.
struct NearestPixels {
  HWY_INLINE NearestPixels(const Source& source, Values x, Values y)
      : pixels(hn::GatherIndex(Ints(), source.first, source.Index(Nearest(x), Nearest(y)))) {}
  template <int channel>
  HWY_INLINE Pixels Get() const {
    return Channel<channel>(pixels);
  }
  Pixels pixels;
};

struct BilinearPixels {
  HWY_INLINE BilinearPixels(const Source& source, Values x, Values y) {
    const Ints d;
    const auto left = hn::Floor(x), top = hn::Floor(y);
    right_part = hn::Sub(x, left);
    lower_part = hn::Sub(y, top);
    const auto index = source.Index(hn::ConvertTo(d, left), hn::ConvertTo(d, top));
    upper_left = hn::GatherIndex(d, source.first, index);
    upper_right = hn::GatherIndex(d, source.first + 1, index);
    lower_left = hn::GatherIndex(d, source.first + source.stride, index);
    lower_right = hn::GatherIndex(d, source.first + source.stride + 1, index);
  }
  template <int channel>
  HWY_INLINE Pixels Get() const {
    return Nearest(Value<channel>());
  }
  template <int channel>
  HWY_INLINE Values Value() const {
    const auto above = Between<channel>(upper_left, upper_right);
    const auto below = Between<channel>(lower_left, lower_right);
    return hn::Add(above, hn::Mul(lower_part, hn::Sub(below, above)));
  }
  template <int channel>
  HWY_INLINE Values Between(Pixels left, Pixels right) const {
    const auto a = hn::ConvertTo(Floats(), Channel<channel>(left));
    const auto b = hn::ConvertTo(Floats(), Channel<channel>(right));
    return hn::Add(a, hn::Mul(right_part, hn::Sub(b, a)));
  }
  Values right_part, lower_part;
  Pixels upper_left, upper_right, lower_left, lower_right;
};

// Affine::fade. Pixels outside are zero.
struct FadedPixels {
  HWY_INLINE FadedPixels(const Source& source, Values x, Values y)
      : pixels(source, x, y), inside(pixels.template Value<3>()), fill(source.fill) {}
  template <int channel>
  HWY_INLINE Pixels Get() const {
    const auto outside = hn::Set(Floats(), static_cast<float>(fill[channel]));
    const auto change = hn::Sub(pixels.template Value<channel>(), outside);
    return Nearest(hn::Add(hn::Mul(inside, change), outside));
  }
  BilinearPixels pixels;
  Values inside;
  Fill fill;
};

// `to`: rows of each channel.
template <size_t channels, class Pixels>
HWY_INLINE void Store(const Pixels& pixels, uint8_t* const (&to)[channels], int x) {
  hn::StoreU(hn::DemoteTo(Bytes(), pixels.template Get<0>()), Bytes(), to[0] + x);
  if constexpr (channels == 3) {
    hn::StoreU(hn::DemoteTo(Bytes(), pixels.template Get<1>()), Bytes(), to[1] + x);
    hn::StoreU(hn::DemoteTo(Bytes(), pixels.template Get<2>()), Bytes(), to[2] + x);
  }
}

template <class PixelsAt, Places places, size_t channels = 3>
void MapRows(const Source& source, const AffineSource& map, AffineAxis across, AffineAxis down,
             const Tile& to) {
  const Floats d;
  const auto [width, height] = to.size;
  for (int y = 0; y < height; ++y) {
    const float start_x = map.StartX(y), start_y = map.StartY(y);
    const float start_divisor = places == Places::kDivided ? map.StartDivisor(y) : 1;
    uint8_t* row[channels];
    for (size_t c = 0; c < channels; ++c) row[c] = to.row(c, y);
    for (int x = 0; x < width; x += static_cast<int>(kLanes)) {
      const auto column = hn::Add(hn::Iota(d, static_cast<float>(x)), hn::Set(d, map.first_column));
      auto at_x = Along(column, map.step_x, start_x), at_y = Along(column, map.step_y, start_y);
      if constexpr (places == Places::kDivided) {
        const auto divisor = Divisor(column, map.step_divisor, start_divisor);
        at_x = hn::Div(at_x, divisor);
        at_y = hn::Div(at_y, divisor);
      }
      if constexpr (places == Places::kMoved) {
        const ptrdiff_t at = static_cast<ptrdiff_t>(y) * width + x;
        at_x = hn::Add(at_x, hn::LoadU(d, source.moved.x + at));
        at_y = hn::Add(at_y, hn::LoadU(d, source.moved.y + at));
      }
      const PixelsAt pixels(source, Sampled<places>(at_x, across), Sampled<places>(at_y, down));
      if (const auto left = static_cast<size_t>(width - x); left >= kLanes) {
        Store<channels>(pixels, row, x);
      } else {
        uint8_t part[channels][kLanes];
        uint8_t* parts[channels];
        for (size_t c = 0; c < channels; ++c) parts[c] = part[c];
        Store<channels>(pixels, parts, 0);
        for (size_t c = 0; c < channels; ++c) std::memcpy(row[c] + x, part[c], left);
      }
    }
  }
}

template <class PixelsAt, size_t channels = 3>
void MapPadded(const Source& source, const AffineSource& map, const AffineAxis& across,
               const AffineAxis& down, const Tile& to) {
  const bool folds = across.period > 0 || down.period > 0;
  (source.moved.x != nullptr ? MapRows<PixelsAt, Places::kMoved, channels>
   : map.is_projective       ? MapRows<PixelsAt, Places::kDivided, channels>
   : folds                   ? MapRows<PixelsAt, Places::kFolded, channels>
           : MapRows<PixelsAt, Places::kStraight, channels>)(source, map, across, down, to);
}

void MapAll(const Tile& from, const Affine& affine, const Displacement& moved, uint8_t* scratch,
            const Tile& to) {
  const AffineSource map(affine, from.size, to.size);
  const AffineAxis across(affine.padding, from.size.width);
  const AffineAxis down(affine.padding, from.size.height);
  const bool constant = affine.padding == Padding::kConstant;
  const bool fade = affine.fade && constant && affine.interpolation == Interpolation::kBilinear;
  const uint32_t outside = fade ? 0 : PixelOf(affine.fill);
  auto* copy = reinterpret_cast<uint32_t*>(scratch);
  const Source source{constant ? CopyWith(outside, from, copy) : CopyWrapped(from, copy),
                      from.size.width + 3, affine.fill, moved};
  if (to.channels == 1) {
    MapPadded<NearestPixels, 1>(source, map, across, down, to);
  } else if (affine.interpolation == Interpolation::kNearest) {
    MapPadded<NearestPixels>(source, map, across, down, to);
  } else if (fade) {
    MapPadded<FadedPixels>(source, map, across, down, to);
  } else {
    MapPadded<BilinearPixels>(source, map, across, down, to);
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(MapAll);

Result<size_t> AffineScratchBytes(ImageSize size) {
  const int64_t pixels = (int64_t{size.width} + 3) * (int64_t{size.height} + 3);
  if (pixels > INT_MAX) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "an image of " + std::to_string(size.width) + " x " +
                          std::to_string(size.height) + " is too large for an affine transform"};
  }
  return static_cast<size_t>(pixels) * sizeof(uint32_t) + 4 * kTileOverread;
}

void MapTo(const Tile& from, const Affine& affine, const Displacement& moved, uint8_t* scratch,
           const Tile& to) {
  HWY_DYNAMIC_DISPATCH(MapAll)(from, affine, moved, scratch, to);
}

}  // namespace stoker
#endif
