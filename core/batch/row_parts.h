// RowParts: the positions of the parts of a file, so that a crop can be read without the rest.
//
// The file's rows of MCUs form 16 parts, with the header in the middle: the rows that a crop needs
// and the header are then one range, with few other rows in it.
//
//   part 0 │ … │ part 7 │ header │ part 8 │ … │ part 15
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker {

inline constexpr int kRowParts = 16;
inline constexpr int kPartBehindHeader = kRowParts / 2;

// Returns the first of the `rows` in a part; for kRowParts, the end. Parts may be empty. Each has a
// sixteenth of the rows, except that the first and the last have fewer, and those next to the
// header more: the usual centre crop leaves out a sixteenth on each side, less the rows that
// resampling blends in, and so needs neither the first part nor the last.
constexpr int FirstRowOf(int part, int rows) {
  if (part > kPartBehindHeader) return rows - FirstRowOf(kRowParts - part, rows);
  if (part == kPartBehindHeader) return rows / 2;
  return part == 0 ? 0 : static_cast<int>(int64_t{rows} * (4 * part - 1) / (4 * kRowParts));
}

struct RowParts {
  // Positions in the file, in units of kUnit bytes: parts 1 to 7 and the header begin at the first
  // eight, exactly, and the header and parts 8 to 14 end at the others, rounded up.
  static constexpr uint64_t kUnit = 64;
  std::array<uint16_t, kRowParts> at{};

  struct Bytes {
    uint64_t begin = 0, end = 0;
    friend bool operator==(const Bytes&, const Bytes&) = default;
  };

  // Whether these positions are possible in a file of this length.
  bool FitsIn(uint64_t file_bytes) const {
    return std::ranges::is_sorted(at) && at[7] < at[8] && (at.back() - 1) * kUnit < file_bytes;
  }

  // Returns the bytes with the header and the rows [top, bottom) of the file's `rows`.
  // Preconditions: FitsIn(file_bytes), top < bottom <= rows.
  Bytes Find(int top, int bottom, int rows, uint64_t file_bytes) const {
    int first = kPartBehindHeader, end = kPartBehindHeader;
    while (first > 0 && FirstRowOf(first, rows) > top) --first;
    while (end < kRowParts && FirstRowOf(end, rows) < bottom) ++end;
    const auto bytes_at = [this](int i) { return uint64_t{at[static_cast<size_t>(i)]} * kUnit; };
    return {.begin = first == 0 ? 0 : bytes_at(first - 1),
            .end = end == kRowParts ? file_bytes : std::min(bytes_at(end), file_bytes)};
  }
};
static_assert(sizeof(RowParts) == 32);

}  // namespace stoker
