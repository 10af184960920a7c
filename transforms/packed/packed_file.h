// PackedFile: a packed JPEG (format.h) whose header and directory have been read, and RunReader,
// which goes through a row's runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/result/result.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/packed/format.h"

namespace stoker::packed {

// The error that a packed JPEG is damaged at `offset`.
Error Damaged(const std::string& what, size_t offset);

// Returns where the header of a packed JPEG, or of a range that is itself a packed JPEG, begins.
// `bytes`: its first sizeof(Start) bytes, or more. DataLoss, Unimplemented as of PackedFile::Open.
Result<size_t> FindHeader(std::span<const uint8_t> bytes);

// Points into the file's bytes, which must stay valid.
class PackedFile {
 public:
  PackedFile() = default;

  // `bytes`: the whole file, or a range of it that is a packed JPEG by itself, followed by
  // kBufferPadding readable bytes. DataLoss, with an offset, if the header is damaged or missing;
  // Unimplemented for another version.
  static Result<PackedFile> Open(std::span<const uint8_t> bytes);

  const jpeg::FrameHeader& frame() const { return frame_; }
  size_t jpeg_bytes() const { return fixed_.jpeg_bytes; }
  uint32_t choices() const { return fixed_.choices; }
  // The JPEG without its entropy-coded data: its header and its tail.
  std::span<const uint8_t> markers() const {
    return bytes_.subspan(header_at_ + sizeof(FixedPart),
                          size_t{fixed_.header_bytes} + fixed_.tail_bytes);
  }
  std::span<const uint8_t> header() const { return markers().first(fixed_.header_bytes); }
  std::span<const uint8_t> tail() const { return markers().last(fixed_.tail_bytes); }
  int mcu_rows() const { return mcu_rows_; }
  std::span<const uint8_t> bytes() const { return bytes_; }

  // The bytes of a row of MCUs. DataLoss if they are missing, or their checksum is wrong.
  Result<std::span<const uint8_t>> Row(int mcu_row) const;

  // Returns the positions of its rows; all 0 if the file is too long for these numbers.
  // Precondition: this is the whole file.
  RowParts row_parts() const;

 private:
  Status ReadHeader();
  Status CheckEnds() const;
  DirectoryEntry Entry(int mcu_row) const;
  size_t EndOf(int mcu_row) const { return mcu_row < 0 ? 0 : Entry(mcu_row).end; }
  size_t UpperBytes() const { return EndOf(MiddleRow(mcu_rows_) - 1); }  // of the upper half

  std::span<const uint8_t> bytes_;
  FixedPart fixed_{};
  jpeg::FrameHeader frame_;
  int mcu_rows_ = 0;
  size_t header_at_ = 0, directory_at_ = 0, rows_at_ = 0;
};

// Goes through the runs of a row of MCUs, row of blocks by row of blocks. It does not trust
// the sizes.
class RunReader {
 public:
  // Begins a row that has `runs`. `file` must stay valid. DataLoss.
  Status Start(const PackedFile& file, int mcu_row, int runs);

  void Skip(int runs);
  // Returns the next run, followed by readable bytes up to kRunReach, valid until the next call;
  // null if the sizes are wrong.
  const uint8_t* Next();

  Error WrongSizes() const;

 private:
  const uint8_t* file_ = nullptr;
  const uint8_t* size_ = nullptr;  // the next run's
  const uint8_t* run_ = nullptr;
  const uint8_t* row_end_ = nullptr;
  const uint8_t* readable_end_ = nullptr;
  bool wrong_ = false;
  std::array<uint8_t, kRunReach> copy_;  // of a run at the end of the file
};

}  // namespace stoker::packed
