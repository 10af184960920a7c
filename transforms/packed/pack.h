// Packs JPEGs: their quantised coefficients, entropy-decoded once, in a form that takes a few SIMD
// instructions a block to unpack (format.h). A packed JPEG is an image file of its own, which
// ImageDecoder decodes to the same pixels; RestoreJpeg restores the JPEG.
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
class JpegPacker {
 public:
  // `budget`, if given, is charged for the memory of PackPixels during the packer's lifetime, and
  // must outlive it. (To restore a file, Pack needs a few times its size more.) `limits`: on the
  // scans of a progressive JPEG, and on the memory for its coefficients.
  explicit JpegPacker(MemoryBudget* budget = nullptr, const DecodeLimits& limits = {});
  ~JpegPacker();
  JpegPacker(JpegPacker&&) noexcept;
  JpegPacker& operator=(JpegPacker&&) noexcept;

  // Packs a file, restores it from the result and compares the two. `jpeg`: the whole file,
  // followed by kBufferPadding readable bytes.
  //
  // Unimplemented, with the reason, if this file must be stored unchanged: it is not a JPEG, or it
  // is damaged, stoker's own decoder does not support its kind (arithmetic, more than 8 bits, …),
  // it is beyond the limits, or it would not be restored to the byte. ResourceExhausted if the
  // budget or the system has no memory.
  Result<std::vector<uint8_t>> Pack(std::span<const uint8_t> jpeg);

  // Packs a file for its pixels alone: neither restores nor compares it, which saves a third of the
  // time, and so packs a few more files. The result is valid until the next call.
  Result<std::span<const uint8_t>> PackPixels(std::span<const uint8_t> jpeg);

  uint64_t memory_bytes() const;
  void FreeMemory();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Packs one file.
Result<std::vector<uint8_t>> PackJpeg(std::span<const uint8_t> jpeg);

}  // namespace stoker
