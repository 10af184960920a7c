// Seeded random numbers of a few distributions, the same with every standard library.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace stoker::tuner_sim {

class Draws {
 public:
  explicit Draws(uint64_t seed) : state_(seed) {}

  // SplitMix64 (Steele, Lea, Flood 2014).
  uint64_t Next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }  // [0, 1)
  double Between(double low, double high) { return low + (high - low) * Uniform(); }
  double LogBetween(double low, double high) { return low * std::pow(high / low, Uniform()); }
  uint64_t Below(uint64_t n) { return Next() % n; }
  bool Chance(double p) { return Uniform() < p; }

  // Distributions with mean 1.
  double Exponential() { return -std::log1p(-Uniform()); }
  double LogNormal(double sigma) {
    const double normal =
        std::sqrt(-2 * std::log1p(-Uniform())) * std::cos(2 * std::numbers::pi * Uniform());
    return std::exp(sigma * normal - sigma * sigma / 2);
  }
  double Pareto(double alpha) { return (alpha - 1) / alpha * std::pow(1 - Uniform(), -1 / alpha); }

 private:
  uint64_t state_;
};

}  // namespace stoker::tuner_sim
