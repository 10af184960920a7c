#include "core/numbers/permutation.h"

#include <algorithm>
#include <cmath>

#include "core/numbers/random.h"

namespace stoker {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kMinSide = 16;
constexpr int kRounds = 8;

// Returns the smallest a with a × a ≥ n.
uint64_t SideOf(uint64_t n) {
  // The square root of a double may be off by one near 2^64, in either direction.
  auto side = static_cast<uint64_t>(std::sqrt(static_cast<double>(n)));
  while (Wide{side} * side < n) ++side;
  while (side > 1 && Wide{side - 1} * (side - 1) >= n) --side;
  return std::max(side, kMinSide);
}

// Returns a number that is uniform in [0, side) for a random key: two multiplications, each
// followed by a fold of its good high bits into the low ones (the shape of the finalisers in
// MurmurHash3 and SplitMix64).
uint64_t RoundFunction(uint64_t half, uint64_t key, uint64_t side) {
  uint64_t h = (half ^ key) * 0xBF58476D1CE4E5B9;
  h ^= h >> 32;
  h *= 0x94D049BB133111EB;
  h ^= h >> 29;
  return static_cast<uint64_t>((Wide{h} * side) >> 64);
}

}  // namespace

Permutation::Permutation(uint64_t n, uint64_t seed, uint64_t epoch) : n_(n), side_(SideOf(n)) {
  // Draws of transforms use the same generator, but their last counter word is never all ones.
  const PhiloxBlock block =
      Philox4x32({static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32), 0, ~0u},
                 {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  key_ = block[0] | uint64_t{block[1]} << 32;
  key_step_ = (block[2] | uint64_t{block[3]} << 32) | 1;
}

uint64_t Permutation::Encrypt(uint64_t i) const {
  uint64_t left = i / side_, right = i % side_;
  uint64_t key = key_;
  for (int round = 0; round < kRounds; ++round) {
    uint64_t sum = left + RoundFunction(right, key, side_);
    if (sum >= side_) sum -= side_;
    left = right;
    right = sum;
    key += key_step_;
  }
  return left * side_ + right;
}

uint64_t Permutation::operator()(uint64_t i) const {
  // Cycle walking: the cycle of i in the square returns to [0, n) at i at the latest.
  do {
    i = Encrypt(i);
  } while (i >= n_);
  return i;
}

}  // namespace stoker
