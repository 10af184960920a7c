#include "io/select/alias_table.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/hash/hash.h"

namespace stoker {

namespace {

constexpr uint64_t kCellUnits = uint64_t{1} << 32;

// Returns the sum, with the rounding error of each addition compensated (Kahan).
double SumOf(std::span<const double> weights, double divisor) {
  double sum = 0, lost = 0;
  for (const double weight : weights) {
    const double next = weight / divisor - lost;
    const double grown = sum + next;
    lost = (grown - sum) - next;
    sum = grown;
  }
  return sum;
}

// Returns each weight's share of weights.size() cells, in whole units that add up to exactly that.
// The rounding error of one share is carried to the next, unless that is 0.
std::vector<uint64_t> UnitsOfWeights(std::span<const double> weights) {
  const uint64_t total = weights.size() * kCellUnits;
  const auto heaviest = std::ranges::max_element(weights);
  const double scale = static_cast<double>(total) / SumOf(weights, *heaviest);
  std::vector<uint64_t> units(weights.size());
  uint64_t given = 0;
  double carry = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    const double exact = weights[i] / *heaviest * scale + carry;
    const double whole = std::min(std::floor(exact), static_cast<double>(total));
    carry = exact - whole;
    units[i] = static_cast<uint64_t>(whole);
    given += units[i];
  }
  units[static_cast<size_t>(heaviest - weights.begin())] += total - given;  // modulo 2^64
  return units;
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) : cells_(weights.size()) {
  std::vector<uint64_t> units = UnitsOfWeights(weights);
  // Numbers that do not fill a cell are at the front of the list, all others at its back.
  std::vector<uint32_t> list(units.size());
  size_t small = 0, large = list.size();
  for (uint32_t i = 0; i < units.size(); ++i) {
    list[units[i] < kCellUnits ? small++ : --large] = i;
  }
  // Fills up the cell of a number that is too small with one that is too large. There is one,
  // because the units of all of them together fill their cells exactly.
  while (small > 0) {
    const uint32_t i = list[--small];
    const uint32_t other = list[large];
    cells_[i] = {.threshold = static_cast<uint32_t>(units[i]), .alias = other};
    units[other] -= kCellUnits - units[i];
    if (units[other] < kCellUnits) {
      ++large;
      list[small++] = other;
    }
  }
  for (; large < list.size(); ++large) cells_[list[large]] = {.threshold = 0, .alias = list[large]};
}

uint64_t AliasTable::UnitsOf(uint32_t i) const {
  uint64_t units = cells_[i].threshold;
  for (const Cell& cell : cells_) {
    if (cell.alias == i) units += kCellUnits - cell.threshold;
  }
  return units;
}

uint64_t AliasTable::Hash() const {
  return Hash64(
      std::span(reinterpret_cast<const uint8_t*>(cells_.data()), cells_.size() * sizeof(Cell)));
}

}  // namespace stoker
