#include "transforms/resize/filter_kernel.h"

#include <cstddef>

namespace stoker {

namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// Returns sin(πx), exactly 0 for whole x >= 0: the Taylor series around the nearest whole number;
// its first omitted term is below 2e-18.
constexpr double SineOfTurns(double x) {
  const int nearest = static_cast<int>(x + 0.5);
  const double r = (x - nearest) * kPi, square = r * r;
  double sum = 0.0;
  for (int n = 21; n >= 3; n -= 2) sum = (1.0 + sum) * -square / (n * (n - 1));
  return (nearest % 2 == 0 ? 1.0 : -1.0) * (r + r * sum);
}

constexpr double Sinc(double x) { return x == 0 ? 1.0 : SineOfTurns(x) / (kPi * x); }

constexpr size_t kTerms = LanczosKernel::kTerms;
using Terms = std::array<double, kTerms>;

constexpr double Lanczos(double x) { return Sinc(x) * Sinc(x / 3); }

// Returns the polynomial through the values at the Chebyshev points of [middle − ½, middle + ½]
// steps, in powers of the distance from the middle. (Newton's divided differences)
constexpr Terms PolynomialAround(double middle) {
  constexpr Terms kPoints = {-0x1.ee8dd4748bf15p-2, -0x1.6a09e667f3bcdp-2, -0x1.0907dc1930690p-3,
                             0x1.0907dc1930690p-3,  0x1.6a09e667f3bcdp-2,  0x1.ee8dd4748bf15p-2};
  Terms differences{}, terms{};
  for (size_t i = 0; i < kTerms; ++i) {
    differences[i] = Lanczos((middle + kPoints[i]) / LanczosKernel::kSteps);
  }
  for (size_t order = 1; order < kTerms; ++order) {
    for (size_t i = kTerms - 1; i >= order; --i) {
      differences[i] = (differences[i] - differences[i - 1]) / (kPoints[i] - kPoints[i - order]);
    }
  }
  for (size_t n = kTerms; n-- > 0;) {  // terms = terms × (x − point n) + difference n
    for (size_t i = kTerms - 1; i > 0; --i) terms[i] = terms[i - 1] - kPoints[n] * terms[i];
    terms[0] = differences[n] - kPoints[n] * terms[0];
  }
  return terms;
}

constexpr auto LanczosTerms() {
  std::array<Terms, 3 * LanczosKernel::kSteps> terms{};
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i] = PolynomialAround(static_cast<double>(i) + 0.5);
  }
  return terms;
}

}  // namespace

constinit const std::array<Terms, 3 * LanczosKernel::kSteps> LanczosKernel::kTable = LanczosTerms();

}  // namespace stoker
