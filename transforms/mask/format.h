// The format of a packed mask: the values of a PNG of one channel, as the runs of its rows. Numbers
// are little-endian.
//
//   packed mask:  Header │ values, 2 bytes each │ end of each band, 4 bytes, from the first │ bands
//   band:         kBandRows rows, which refer to no others; the last band may have fewer
//   row:          1                    the runs of the row above
//                 0 │ first │ steps    others
//   first:        1                    the first run's value is that of the first run above
//                 0 │ index            of the value
//   step:         a code (StepCode) for where the next run begins: relative to a run above, or
//                 kLength │ n, 4 bits │ n bits │ index: 2^n + these bits pixels after the last one
//
// A row ends with the step that leads to the image's right edge, which has no index. Bits are read
// from the lowest of each byte. Above the first row of a band there are no runs.
//
// The steps are those of ITU-T Recommendation T.6 (fax group 4) for masks of any number of values:
// the edges of a region usually move by a few pixels from a row to the next, and a code of 1 to 6
// bits says by how many.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace stoker::packed_mask {

inline constexpr std::array<uint8_t, 7> kMagic = {0xF5, 's', 't', 'k', 'm', 's', 'k'};
inline constexpr uint8_t kVersion = 1;
inline constexpr int kBandRows = 64;

struct Header {
  std::array<uint8_t, 7> magic{};
  uint8_t version = 0;
  uint16_t width = 0, height = 0;  // as stored
  uint16_t last_value = 0;         // the largest index of a value
  uint8_t bits = 0;                // of the PNG's samples: 16, or 8 for all others
  uint8_t orientation = 0;         // the EXIF tag: 1 to 8
};
static_assert(sizeof(Header) == 16 && std::endian::native == std::endian::little);

// The next run above, to which a step refers, is the first one that begins after the last run of
// this row, has another value than that, and was not passed. If there is none, it is the end of the
// row.
struct StepCode {
  enum class Kind : uint8_t {
    kEdge,    // the run begins `shift` pixels after the next one above, and has its value
    kPass,    // no run begins; the next one above is passed
    kLength,  // as above
  };
  Kind kind = Kind::kEdge;
  int8_t shift = 0;
  uint8_t length = 0;  // bits
  uint8_t bits = 0;
};

inline constexpr int kMaxShift = 4;
inline constexpr std::array<StepCode, 11> kCodes = {{{StepCode::Kind::kEdge, 0, 1, 0b1},
                                                     {StepCode::Kind::kEdge, 1, 3, 0b110},
                                                     {StepCode::Kind::kEdge, -1, 3, 0b010},
                                                     {StepCode::Kind::kLength, 0, 4, 0b1100},
                                                     {StepCode::Kind::kPass, 0, 4, 0b0100},
                                                     {StepCode::Kind::kEdge, 2, 5, 0b11000},
                                                     {StepCode::Kind::kEdge, -2, 5, 0b01000},
                                                     {StepCode::Kind::kEdge, 3, 6, 0b110000},
                                                     {StepCode::Kind::kEdge, -3, 6, 0b010000},
                                                     {StepCode::Kind::kEdge, 4, 6, 0b100000},
                                                     {StepCode::Kind::kEdge, -4, 6, 0b000000}}};
inline constexpr int kLengthBits = 4;  // of n

// The code that the next bits begin with, by kMaxCodeBits of them.
inline constexpr int kMaxCodeBits = 6;
inline constexpr std::array<StepCode, 1 << kMaxCodeBits> kCodeOf = [] {
  std::array<StepCode, 1 << kMaxCodeBits> codes{};
  for (const StepCode& code : kCodes) {
    for (size_t bits = code.bits; bits < codes.size(); bits += size_t{1} << code.length) {
      codes[bits] = code;
    }
  }
  return codes;
}();

// Bits of an index.
inline int IndexBits(uint16_t last_value) { return std::bit_width(last_value); }

// A run of equal values in a row, which ends where the next one begins.
struct Run {
  int32_t begin = 0;
  int32_t value = 0;
};
// After the last run there is one that begins at the right edge. Rows without runs have only that.
inline constexpr int32_t kNoValue = -1;

}  // namespace stoker::packed_mask
