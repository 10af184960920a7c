// A keyed permutation of [0, n) with O(1) random access and no table.
#pragma once

#include <cstdint>

namespace stoker {

// A generalised Feistel network over a × a ≥ n with cycle walking (Black, Rogaway: "Ciphers with
// arbitrary finite domains", CT-RSA 2002). Not cryptographic. Value type; any thread.
//
// A small n walks inside a square of 16 × 16, because Feistel networks on tiny halves are far from
// uniform: an entry costs 256 / n passes on average and never more than 257 − n. For n ≥ 256 it
// costs 1 + 2/√n passes on average.
class Permutation {
 public:
  // Precondition: n > 0. Different (seed, epoch) give unrelated permutations. Construction costs as
  // much as one or two lookups, so the object need not be cached.
  Permutation(uint64_t n, uint64_t seed, uint64_t epoch);

  // Precondition: i < n. Returns a number in [0, n), a different one for each i.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Encrypt(uint64_t i) const;

  uint64_t n_;
  uint64_t side_;  // a
  uint64_t key_;
  uint64_t key_step_;  // odd; added to the key in each round
};

}  // namespace stoker
