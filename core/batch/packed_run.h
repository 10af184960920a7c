// The sizes in a run of a packed JPEG (transforms/packed/format.h has the format), which decoders
// on the CPU and on devices read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace stoker::packed {

inline constexpr int kRunBlocks = 16;
inline constexpr int kRunGroups = 4;
inline constexpr int kGroupBlocks = 4;
inline constexpr int kQuads = 16;      // of a group
inline constexpr int kQuadWords = 16;  // four of each block
inline constexpr int kGroupWords = kQuads * kQuadWords;
inline constexpr int kMaxWidth = 12;

// The largest run. Unpacking one reads no byte after kRunReach, for any content.
inline constexpr size_t kRunBytes =
    3 + 2 * kMaxWidth + kRunGroups * (1 + kQuads + kQuads * kQuadWords * kMaxWidth / 8);
inline constexpr size_t kRunReach = kRunBytes + 32;

// A quad's index is 4 × (its pair of rows) + (its pair of columns). The first four are the top left
// quarter of the blocks.
inline constexpr std::array<uint8_t, kQuads> kQuadOrder = {0, 1,  4,  5, 8,  2,  3,  6,
                                                           9, 12, 13, 7, 10, 11, 14, 15};
inline constexpr int kPairs[4][2] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}};

// The coefficient that a word of a quad is: row × 8 + column. It is one of block word / 4, and its
// width is the one at word % 4.
constexpr int CoefficientOf(int quad, int word) {
  return kPairs[quad / 4][word % 2] * 8 + kPairs[quad % 4][word / 2 % 2];
}

constexpr int DcWidth(int code) { return code <= 10 ? code : code == 11 ? kMaxWidth : 0; }

}  // namespace stoker::packed
