// Packs PNGs: their pixels as residuals of few bits, which SIMD undoes (format.h). A packed PNG is
// an image file of its own, which ImageDecoder decodes to the same pixels; RestorePng restores the
// PNG.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"

namespace stoker {

// Reuses its memory from file to file. Not thread-safe.
class PngPacker {
 public:
  // `budget`, if given, is charged for the memory of PackPixels during the packer's lifetime, and
  // for what Pack needs more, a few times the file's size, during the call. It must outlive the
  // packer.
  // `most_percent`: how large a packed PNG may be, in percent of the PNG's size.
  explicit PngPacker(MemoryBudget* budget = nullptr, const DecodeLimits& limits = {},
                     size_t most_percent = 150);
  ~PngPacker();
  PngPacker(PngPacker&&) noexcept;
  PngPacker& operator=(PngPacker&&) noexcept;

  struct Packed {
    std::vector<uint8_t> bytes;
    bool is_exact = false;  // the PNG is restored to the byte, otherwise an equal one is
  };

  // Packs a file, restores it from the result and compares the two. `png`: the whole file, followed
  // by kBufferPadding readable bytes.
  //
  // Unimplemented, with the reason, if this file must be stored unchanged: it is not a PNG, or it
  // is damaged, interlaced, has fewer than 8 bits, is beyond the limits, or would be too large.
  // ResourceExhausted if the budget or the system has no memory.
  Result<Packed> Pack(std::span<const uint8_t> png);

  // Packs a file for its pixels alone: it cannot be restored. The result is valid until the next
  // call.
  Result<std::span<const uint8_t>> PackPixels(std::span<const uint8_t> png);

  uint64_t memory_bytes() const;
  void FreeMemory();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stoker
