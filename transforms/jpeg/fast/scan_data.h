// Phase 2: the entropy-coded data, without the zeros that are stuffed behind each 0xFF byte.
//
// Ten kilobytes at a time, just ahead of the parser: they stay in the first-level cache, and the
// data behind the last row needed are never touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transforms/jpeg/fast/entropy.h"

namespace stoker::jpeg {

struct Destuffed {
  const uint8_t* from;  // the first byte that has not been taken: `end`, or where a marker begins
  uint8_t* to;          // behind the last byte written
};

// Copies [from, end), each 0xFF 0x00 as 0xFF, up to the first 0xFF that something else follows (or
// that is the last byte). Reads, and writes, up to 64 bytes more than it needs.
Destuffed Destuff(const uint8_t* from, const uint8_t* end, uint8_t* to);

// The plain twin.
Destuffed DestuffPlain(const uint8_t* from, const uint8_t* end, uint8_t* to);

class ScanData {
 public:
  // Data from anywhere in the scan: up to the end of the file, or of a run whose end is known. 64
  // bytes behind them can be read.
  void Start(std::span<const uint8_t> bytes);

  // Has what Start and Provide would begin with brought into the cache, so that it is there by
  // then.
  static void Prefetch(std::span<const uint8_t> bytes);

  // To be called when the parser has passed state.stop, and once in the beginning: provides more.
  // False when all data up to the next marker had been provided: the parser has used bits that are
  // not there.
  bool Provide(EntropyState& state);

  static bool Passed(const EntropyState& state) { return state.reader.Beyond(state.stop); }

  // Leaves what is left of this segment, goes past the marker RST`number`, and provides the first
  // data behind it. False when another marker comes, or none.
  bool Restart(int number, EntropyState& state);

  // Bits that the parser has used since Start, or since the last marker passed; and how many of
  // those provided are left.
  int64_t UsedBits(const EntropyState& state) const;
  int64_t UnusedBits(const EntropyState& state) const { return 8 * provided_ - UsedBits(state); }
  // What comes behind this segment, a marker or nothing, where all of the segment is provided: it
  // is as soon as less than kRoundBytes of it are left.
  std::optional<std::span<const uint8_t>> Behind() const;

 private:
  // Bytes of the file taken at a time. At worst half of them are stuffed zeros, and what is left
  // has to be more than a round may use: parsing stops that much before the end of what is
  // provided.
  static constexpr size_t kChunk = 2 * kRoundBytes + 64;
  static_assert(kChunk / 2 > kRoundBytes);

  void Append(EntropyState& state, size_t kept);

  const uint8_t* from_ = nullptr;  // the first byte that has not been provided
  const uint8_t* end_ = nullptr;
  bool at_marker_ = false;  // from_ is where the segment ends
  int64_t provided_ = 0;    // bytes of this segment, without stuffed zeros
  std::array<uint8_t, kRoundBytes + kChunk + kRoundBytes + 64> clean_{};
};

}  // namespace stoker::jpeg
