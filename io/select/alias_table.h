// AliasTable: draws numbers with given probabilities in constant time (Walker: "An efficient method
// for generating discrete random variables with general distributions", ACM TOMS 1977; Vose: "A
// linear algorithm for generating random numbers with a given distribution", IEEE TSE 1991).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/numbers/random.h"

namespace stoker {

// Takes 8 bytes for each weight. Tables are made of whole numbers, so that they are the same on
// every machine. The probability of a number differs from its weight's share by at most 2^-32 of
// the mean share (the heaviest number's by 2^-20 of its own share, at 2^32 weights); a weight of 0
// has exactly the probability 0.
class AliasTable {
 public:
  // Precondition: 1 to 2^32 - 1 weights; each is finite and not negative, and not all are 0.
  explicit AliasTable(std::span<const double> weights);

  uint64_t Draw(RandomStream& random) const {
    const uint64_t i = random.Below(cells_.size());
    return random.Bits() >> 32 < cells_[i].threshold ? i : cells_[i].alias;
  }

  // Returns the probability of `i`, times size() · 2^32. O(size()).
  uint64_t UnitsOf(uint32_t i) const;

  uint64_t size() const { return cells_.size(); }
  uint64_t Hash() const;
  uint64_t memory_bytes() const { return cells_.capacity() * sizeof(Cell); }

 private:
  struct Cell {
    uint32_t threshold = 0;  // of 2^32: the share of the cell that belongs to its own number
    uint32_t alias = 0;      // the number that has the rest
  };
  std::vector<Cell> cells_;
};

}  // namespace stoker
