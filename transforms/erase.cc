#include "transforms/erase.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "engine/core/random.h"
#include "transforms/draw.h"
#include "transforms/resize/half.h"

namespace stoker {

namespace {

using Polynomial = std::array<double, 8>;

double Evaluate(const Polynomial& coefficients, double x) {
  double sum = 0;
  for (size_t i = coefficients.size(); i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// The numerators and denominators of AS 241 (PPND16): the middle, and the tails.
constexpr Polynomial kMiddle = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                1.9715909503065514427e3, 1.3731693765509461125e4,
                                4.5921953931549871457e4, 6.7265770927008700853e4,
                                3.3430575583588128105e4, 2.5090809287301226727e3};
constexpr Polynomial kMiddleBelow = {1.0,
                                     4.2313330701600911252e1,
                                     6.8718700749205790830e2,
                                     5.3941960214247511077e3,
                                     2.1213794301586595867e4,
                                     3.9307895800092710610e4,
                                     2.8729085735721942674e4,
                                     5.2264952788528545610e3};
constexpr Polynomial kTail = {1.42343711074968357734e0,  4.63033784615654529590e0,
                              5.76949722146069140550e0,  3.64784832476320460504e0,
                              1.27045825245236838258e0,  2.41780725177450611770e-1,
                              2.27238449892691845833e-2, 7.74545014278341407640e-4};
constexpr Polynomial kTailBelow = {1.0,
                                   2.05319162663775882187e0,
                                   1.67638483018380384940e0,
                                   6.89767334985100004550e-1,
                                   1.48103976427480074590e-1,
                                   1.51986665636164571966e-2,
                                   5.47593808499534494600e-4,
                                   1.05075007164441684324e-9};

// The next number each time.
class Noise {
 public:
  explicit Noise(uint64_t key)
      : key_{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)} {}

  float Next() {
    const uint64_t block = next_ / 4;
    if (next_ % 4 == 0) {
      block_ = Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                          key_);
    }
    const double u = (block_[next_++ % 4] + 0.5) * 0x1.0p-32;
    return static_cast<float>(NormalQuantile(u));
  }

 private:
  std::array<uint32_t, 2> key_;
  PhiloxBlock block_{};
  uint64_t next_ = 0;
};

// Calls store(place, value) for every value of the box, channel by channel and row by row.
template <typename Value, typename Store>
void ForEach(const Rect& box, const RowFormat& format, uint8_t* row, const Value& value,
             const Store& store) {
  for (int c = 0; c < 3; ++c) {
    for (int y = box.y; y < box.y + box.height; ++y) {
      uint8_t* at = row + c * format.channel + y * format.down + box.x * format.along;
      for (int x = 0; x < box.width; ++x, at += format.along) store(at, value(c));
    }
  }
}

template <typename Value>
void FillBox(const Rect& box, const RowFormat& format, uint8_t* row, const Value& value) {
  const auto put = [](uint8_t* at, auto bits) { std::memcpy(at, &bits, sizeof(bits)); };
  switch (format.dtype) {
    case DType::kF32:
      return ForEach(box, format, row, value, put);
    case DType::kF16:
      return ForEach(box, format, row, value,
                     [&](uint8_t* at, float v) { put(at, Float16Bits(v)); });
    case DType::kBF16:
      return ForEach(box, format, row, value,
                     [&](uint8_t* at, float v) { put(at, BFloat16Bits(v)); });
    default:
      return ForEach(box, format, row, value,
                     [](uint8_t* at, float v) { *at = static_cast<uint8_t>(v); });
  }
}

}  // namespace

double NormalQuantile(double u) {
  const double q = u - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * Evaluate(kMiddle, r) / Evaluate(kMiddleBelow, r);
  }
  const double r = std::sqrt(-Log(q < 0 ? u : 1 - u)) - 1.6;
  const double size = Evaluate(kTail, r) / Evaluate(kTailBelow, r);
  return q < 0 ? -size : size;
}

void Erase(const Erasure& erasure, const RowFormat& format, uint8_t* row) {
  if (!erasure.noise) {
    return FillBox(erasure.box, format, row,
                   [&](int c) { return erasure.value[static_cast<size_t>(c)]; });
  }
  Noise noise(*erasure.noise);
  FillBox(erasure.box, format, row, [&](int) { return noise.Next(); });
}

}  // namespace stoker
