#include "core/numbers/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace stoker {

namespace {

// Returns the bits of the nearest number with `fraction` fraction bits and least normal exponent
// `least`.
uint16_t Nearest(float value, int fraction, int least, uint32_t infinity) {
  const auto sign = static_cast<uint32_t>(std::signbit(value)) << 15;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1U << (fraction - 1));
  if (value == 0) return static_cast<uint16_t>(sign);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  // The value in units of the last place, which a double holds exactly. A carry correctly
  // increments the exponent.
  const int exponent = std::max(std::ilogb(value), least);
  const double units = std::ldexp(std::fabs(static_cast<double>(value)), fraction - exponent);
  const double below = std::floor(units), rest = units - below;
  auto nearest = static_cast<uint32_t>(below);
  nearest += rest > 0.5 || (rest == 0.5 && nearest % 2 == 1) ? 1 : 0;
  const uint32_t bits = (static_cast<uint32_t>(exponent - least) << fraction) + nearest;
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

}  // namespace

uint16_t Float16Bits(float value) { return Nearest(value, 10, -14, 0x7c00); }

uint16_t BFloat16Bits(float value) { return Nearest(value, 7, -126, 0x7f80); }

float Float16Value(uint16_t bits) {
  const int exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
  const float sign = bits >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1f) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::copysign(std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const int implied = exponent == 0 ? 0 : 0x400;
  return sign * std::ldexp(static_cast<float>(implied + fraction), std::max(exponent, 1) - 25);
}

float BFloat16Value(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace stoker
