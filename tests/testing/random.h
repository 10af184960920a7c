// Deterministic random numbers for tests.
#pragma once

#include <cstdint>
#include <random>

namespace stoker::testing {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}

  // Inclusive on both ends.
  int Between(int low, int high) {
    return low + static_cast<int>(engine_() % static_cast<uint32_t>(high - low + 1));
  }
  bool OneIn(int n) { return Between(1, n) == 1; }

 private:
  std::mt19937 engine_;
};

}  // namespace stoker::testing
