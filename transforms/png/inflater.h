// Inflater: decompresses the zlib data of a PNG (RFC 1950, 1951).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result/result.h"
#include "transforms/png/chunks.h"
#include "transforms/png/symbols.h"

namespace stoker::png {

// Takes and refuses what zlib does when the same number of bytes is wanted. Does not verify the
// checksum at the end: those of the chunks cover the same bytes. Allocates no memory, but is large:
// 125 KB, of which short data use little. Not thread-safe.
class Inflater {
 public:
  Inflater() = default;                // leaves the tables and the window uninitialized
  Inflater(const Inflater&) = delete;  // points into its window
  Inflater& operator=(const Inflater&) = delete;

  // `chunks`: IDAT chunks of `file`, complete and consecutive. `total`: the bytes that Next will
  // return; decompression stops before the byte after them. `file` must stay valid while Next is
  // called.
  void Start(std::span<const uint8_t> file, Range chunks, uint64_t total);

  // Returns the next bytes, at least one and at most `most`, valid until the next call.
  // kInflatedPadding bytes after them may be read. DataLoss, with the offset after what was read,
  // which may be many bytes after the cause: damaged, or truncated before `total` bytes, also if
  // the data end as they should. Precondition: fewer than `total` bytes were returned, and `most`
  // is not 0.
  Result<std::span<const uint8_t>> Next(size_t most);

  // The offset of the next byte to be read.
  uint64_t offset() const { return static_cast<uint64_t>(stream_.in - file_.data()); }

 private:
  enum class Block : uint8_t { kZlibHeader, kHeader, kStored, kCodes, kNone };
  enum class Outcome : uint8_t { kFine, kTruncated, kDamaged };

  Status Decompress(uint8_t* target);
  Outcome Step(uint8_t* target);
  Outcome ReadZlibHeader();
  Outcome ReadHeader();
  Outcome ReadStoredHeader();
  Outcome ReadCodes();
  Outcome CopyStored(uint8_t* target);
  Outcome DecodeBlock(uint8_t* target);
  Outcome LookAhead();
  Outcome DecodeSymbol();
  Outcome CopyMatch(uint32_t length_entry);
  void EndBlock() { block_ = last_ ? Block::kNone : Block::kHeader; }

  bool NextChunk();
  void Fill();
  bool Take(unsigned bits, uint32_t& value);
  bool Drop(unsigned bits);
  bool TakeValue(uint32_t entry, size_t& value);

  static constexpr size_t kHistory = size_t{32} << 10;  // the farthest that a match reaches back
  static constexpr size_t kPiece = size_t{64} << 10;    // decompressed at a time

  std::span<const uint8_t> file_;
  size_t next_chunk_ = 0, end_ = 0;  // offsets
  uint64_t wanted_ = 0;              // of `total`, not yet returned
  Stream stream_;
  const uint8_t* returned_ = nullptr;  // the end of what was returned
  Block block_ = Block::kNone;
  bool last_ = false;             // the block is the last one
  size_t stored_ = 0;             // bytes left of a block that is not compressed
  const Codes* codes_ = nullptr;  // of the block
  Codes defined_;                 // by the last block that defined codes
  std::array<uint8_t, kHistory + kPiece + kSymbolOutput> window_;
};

inline constexpr size_t kInflatedPadding = 16;

}  // namespace stoker::png
