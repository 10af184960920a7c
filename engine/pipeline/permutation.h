// A keyed permutation of [0, n) that needs no memory and can be entered anywhere.
#pragma once

#include <cstdint>

namespace stoker {

// A generalised Feistel network over a × a ≥ n with cycle walking (Black, Rogaway: "Ciphers with
// arbitrary finite domains", CT-RSA 2002). Small n walk inside a larger square, because Feistel
// networks on tiny halves are far from uniform. Not cryptographic. Value type; any thread.
class Permutation {
 public:
  // Precondition: n > 0. Different (seed, epoch) give unrelated permutations.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);

  // Precondition: i < n. Returns a number in [0, n); different i give different numbers.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Once(uint64_t i) const;

  uint64_t n_;
  uint64_t side_;  // a
  uint64_t key_;
};

}  // namespace stoker
