// The parts of a batch that is split among several devices: consecutive rows, divided evenly. If
// the rows do not divide, the first parts have one row more than the others, which may be empty.
#pragma once

#include <algorithm>
#include <cstdint>

namespace stoker {

// Returns the first row of part i; FirstRowOfPart(rows, parts, parts) is the end.
constexpr int64_t FirstRowOfPart(int64_t rows, int64_t i, int64_t parts) {
  return rows / parts * i + std::min(i, rows % parts);
}

// Returns the part that contains a row.
constexpr int64_t PartOfRow(int64_t rows, int64_t row, int64_t parts) {
  const int64_t larger = rows % parts, fewest = rows / parts;
  const int64_t in_larger = larger * (fewest + 1);
  return row < in_larger ? row / (fewest + 1) : larger + (row - in_larger) / fewest;
}

}  // namespace stoker
