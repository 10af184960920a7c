// Normal numbers (mean 0, deviation 1), identical on every machine: they use IEEE operations only.
// Constexpr, so that a kernel can call them.
#pragma once

#include <cstdint>

#include "core/numbers/philox.h"
#include "core/result/log.h"

namespace stoker {

// The quantile function: returns the number below which a normal number lies with probability u,
// for 2^-34 <= u <= 1 - 2^-34. Relative error below 1e-14. (Wichura: "Algorithm AS 241: The
// percentage points of the normal distribution", Applied Statistics 37, 1988) root(x) is the square
// root, correctly rounded.
template <typename Root>
constexpr double NormalQuantile(double u, Root root);

// NormalBlock returns the random words for the numbers 4 × block to 4 × block + 3 of a key;
// NormalOf turns one word into its number.
constexpr PhiloxBlock NormalBlock(uint64_t key, uint64_t block) {
  return Philox4x32({static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0},
                    {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)});
}
template <typename Root>
constexpr float NormalOf(uint32_t word, Root root) {
  return static_cast<float>(NormalQuantile((word + 0.5) * 0x1.0p-32, root));
}

// Returns number `index` of a key's sequence.
template <typename Root>
constexpr float NormalNumber(uint64_t key, uint64_t index, Root root) {
  const PhiloxBlock block = NormalBlock(key, index / 4);
  // There is no array with a variable index, because on a device it would be in memory.
  const uint32_t even = index % 4 < 2 ? block[0] : block[2];
  const uint32_t odd = index % 4 < 2 ? block[1] : block[3];
  return NormalOf(index % 2 == 0 ? even : odd, root);
}

// ---- Implementation.

// Evaluates a polynomial; coefficients in ascending order.
constexpr double ValueOf(const double (&coefficients)[8], double x) {
  double sum = 0;
  for (int i = 7; i >= 0; --i) sum = sum * x + coefficients[i];
  return sum;
}

// AS 241 (PPND16): the middle, r = 0.180625 − q².
constexpr double MiddleQuantile(double q, double r) {
  constexpr double kAbove[8] = {3.3871328727963666080e0, 1.3314166789178437745e2,
                                1.9715909503065514427e3, 1.3731693765509461125e4,
                                4.5921953931549871457e4, 6.7265770927008700853e4,
                                3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kBelow[8] = {1.0,
                                4.2313330701600911252e1,
                                6.8718700749205790830e2,
                                5.3941960214247511077e3,
                                2.1213794301586595867e4,
                                3.9307895800092710610e4,
                                2.8729085735721942674e4,
                                5.2264952788528545610e3};
  return q * ValueOf(kAbove, r) / ValueOf(kBelow, r);
}

// The tails, r = √−ln(share) − 1.6.
constexpr double TailQuantile(double r) {
  constexpr double kAbove[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kBelow[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
  return ValueOf(kAbove, r) / ValueOf(kBelow, r);
}

template <typename Root>
constexpr double NormalQuantile(double u, Root root) {
  const double q = u - 0.5;
  if (q >= -0.425 && q <= 0.425) return MiddleQuantile(q, 0.180625 - q * q);
  const double size = TailQuantile(root(-Log(q < 0 ? u : 1 - u)) - 1.6);
  return q < 0 ? -size : size;
}

}  // namespace stoker
