// A keyed permutation of [0, n) that needs no memory and can be entered anywhere.
#pragma once

#include <cstdint>

namespace stoker {

// A generalised Feistel network over a × a ≥ n with cycle walking (Black, Rogaway: "Ciphers with
// arbitrary finite domains", CT-RSA 2002). Not cryptographic. Value type; any thread.
//
// Small n walk inside a square of 16 × 16, because Feistel networks on tiny halves are far from
// uniform: an entry costs 256 / n passes on average and never more than 257 − n. From n = 256 on it
// is 1 + 2/√n passes on average.
class Permutation {
 public:
  // Precondition: n > 0. Different (seed, epoch) give unrelated permutations. Costs as much as one
  // or two entries: it need not be kept.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);

  // Precondition: i < n. Returns a number in [0, n); different i give different numbers.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Once(uint64_t i) const;

  uint64_t n_;
  uint64_t side_;  // a
  uint64_t key_;
  uint64_t key_step_;  // odd; from round to round
};

}  // namespace stoker
