// The parts of a batch that is split among several devices: consecutive rows, as many in each; if
// the rows cannot be divided, the first parts have one more than the others, which may have none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// The row at which part i of `parts` begins; for `parts` the end.
constexpr int64_t FirstRowOfPart(int64_t rows, int64_t i, int64_t parts) {
  return rows / parts * i + std::min(i, rows % parts);
}

// The part that a row is in.
constexpr int64_t PartOfRow(int64_t rows, int64_t row, int64_t parts) {
  const int64_t larger = rows % parts, fewest = rows / parts;
  const int64_t in_larger = larger * (fewest + 1);
  return row < in_larger ? row / (fewest + 1) : larger + (row - in_larger) / fewest;
}

}  // namespace stoker
