// PackedPng: a packed PNG (format.h) whose header and directory have been read, and BandReader,
// which reads its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/png/chunks.h"
#include "transforms/png/packed/format.h"

namespace stoker::packed_png {

// The error that a packed PNG is damaged at `offset`.
Error Damaged(const std::string& what, uint64_t offset);

// Points into the file's bytes, which must stay valid.
class PackedPng {
 public:
  PackedPng() = default;

  // `bytes`: the whole file, followed by kBufferPadding readable bytes. DataLoss, with an offset,
  // if the header is damaged; Unimplemented for another version; the errors of png::ReadHeader and
  // png::ReadLayout.
  static Result<PackedPng> Open(std::span<const uint8_t> bytes);

  const png::Header& header() const { return header_; }
  const png::Layout& layout() const { return layout_; }  // of chunks()
  size_t png_bytes() const { return fixed_.png_bytes; }
  // The PNG with one empty IDAT chunk instead of its own.
  std::span<const uint8_t> chunks() const {
    return bytes_.subspan(sizeof(FixedPart), fixed_.chunk_bytes);
  }
  std::span<const uint8_t> recipe() const { return bytes_.last(fixed_.recipe_bytes); }

  // The bytes of a band. DataLoss if the checksum is wrong.
  Result<std::span<const uint8_t>> Band(int band) const;
  uint64_t OffsetOf(const uint8_t* at) const { return static_cast<uint64_t>(at - bytes_.data()); }

 private:
  Status ReadFixedPart();
  size_t EndOf(int band) const;

  std::span<const uint8_t> bytes_;
  FixedPart fixed_;
  png::Header header_;
  png::Layout layout_;
  size_t directory_at_ = 0, bands_at_ = 0;
};

// Not thread-safe.
class BandReader {
 public:
  explicit BandReader(MemoryBudget& budget) : memory_(budget) {}

  // The memory must grow by this before rows of images with this header are read: it holds a band.
  Growth Room(const png::Header& header);

  // Begins the rows of `region`. `file` must stay valid. Precondition: Room has grown.
  void Start(const PackedPng& file, const Rect& region);

  // Returns the next row as the PNG has it; the columns of the region are there. Valid until the
  // next call. DataLoss with an offset. Precondition: there are rows left.
  Result<const uint8_t*> Next();

 private:
  Status UnpackBand();

  GrowingBuffer memory_;
  const PackedPng* file_ = nullptr;
  Rect region_;
  int y_ = 0;                 // of the next row
  bool is_unpacked_ = false;  // the band of row y_
};

}  // namespace stoker::packed_png
