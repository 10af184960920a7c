#include "transforms/resize/half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace stoker {

namespace {

// Bits of the number of `fraction` bits and the least normal exponent `least` that is nearest.
uint16_t Nearest(float value, int fraction, int least, uint32_t infinity) {
  const auto sign = static_cast<uint32_t>(std::signbit(value)) << 15;
  if (value == 0) return static_cast<uint16_t>(sign);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  // In units of the last place; exact in a double. A carry goes into the exponent, as it should.
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

}  // namespace stoker
