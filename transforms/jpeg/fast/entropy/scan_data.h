// Phase 2: removes the zeros stuffed after each 0xFF byte of the entropy-coded data.
//
// Works on ten kilobytes at a time, just ahead of the parser: they stay in the first-level cache,
// and data after the last needed row are never touched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transforms/jpeg/fast/entropy/entropy.h"

namespace stoker::jpeg {

struct Destuffed {
  const uint8_t* from;  // the first byte not taken: `end`, or the start of a marker
  uint8_t* to;          // after the last byte written
};

// Copies [from, end), each 0xFF 0x00 as 0xFF, up to the first 0xFF followed by another byte (or at
// the end). Reads and writes up to 64 bytes more than it needs.
Destuffed Destuff(const uint8_t* from, const uint8_t* end, uint8_t* to);

// The reference.
Destuffed DestuffPlain(const uint8_t* from, const uint8_t* end, uint8_t* to);

class ScanData {
 public:
  // Starts anywhere in the scan: `bytes` extend to the end of the file, or of a run whose end is
  // known. 64 bytes after them must be readable.
  void Start(std::span<const uint8_t> bytes);

  // Prefetches the data that Start and Provide will begin with.
  static void Prefetch(std::span<const uint8_t> bytes);

  // Provides more data. Must be called at the start and when the parser has passed state.stop.
  // Returns false if all data up to the next marker had been provided: the parser has used bits
  // that do not exist.
  bool Provide(EntropyState& state);

  static bool Passed(const EntropyState& state) { return state.reader.Beyond(state.stop); }

  // Skips the rest of this segment and the marker RST`number`, and provides the first data after
  // it. Returns false if there is another marker, or none.
  bool Restart(int number, EntropyState& state);

  // The number of bits that the parser has used since Start, or since the last marker; and how many
  // of the provided bits are left.
  int64_t UsedBits(const EntropyState& state) const;
  int64_t UnusedBits(const EntropyState& state) const { return 8 * provided_ - UsedBits(state); }
  // The bytes after this segment, a marker or nothing, once the whole segment is provided, which is
  // the case as soon as less than kRoundBytes of it are left.
  std::optional<std::span<const uint8_t>> Behind() const;
  // Whether a marker or nothing follows, after less than a byte.
  bool EndsSegment(const EntropyState& state) const;

 private:
  // Bytes of the file taken at a time. In the worst case half of them are stuffed zeros, and the
  // rest must be more than a round may use: parsing stops that much before the end of the provided
  // data.
  static constexpr size_t kChunk = 2 * kRoundBytes + 64;
  static_assert(kChunk / 2 > kRoundBytes);

  void Append(EntropyState& state, size_t kept);

  const uint8_t* from_ = nullptr;  // the first byte not yet provided
  const uint8_t* end_ = nullptr;
  bool at_marker_ = false;  // the segment ends at from_
  int64_t provided_ = 0;    // bytes of this segment so far, without stuffed zeros
  std::array<uint8_t, kRoundBytes + kChunk + kRoundBytes + 64> clean_{};
};

}  // namespace stoker::jpeg
