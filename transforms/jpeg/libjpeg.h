// LibJpeg: a wrapper of libjpeg-turbo in which each step returns a Status; no longjmp leaves it.
//
// Contains no policy: decoder.cc decides what is allowed and what to decode. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/reduction.h"
#include "transforms/jpeg/columns.h"
#include "transforms/jpeg/decoder.h"

namespace stoker {

struct JpegHeader {
  ImageInfo info;
  int imcu_width = 8;              // pixels of an interleaved MCU
  bool fancy_columns = false;      // some component is upsampled with its left and right neighbours
  uint64_t coefficient_bytes = 0;  // of the whole image if it has several scans; otherwise 0
  uint64_t library_bytes =
      0;  // upper bound of what libjpeg-turbo allocates until Finish, these included
  uint64_t min_scan_bits = 0;  // a complete first scan has at least this many
  size_t scan_offset = 0;      // offset of the first scan's data
};

// The meaning of bytes that end before an end-of-image marker.
enum class JpegEnd : uint8_t {
  kError,      // the file is truncated: DataLoss
  kMarker,     // the end counts as the marker; nothing else is known to be missing
  kTruncated,  // the end counts as the marker even if data are missing; no damage is reported from
               // there on
};

class LibJpeg {
 public:
  static constexpr int kMaxRows = 16;  // per Read

  LibJpeg();
  ~LibJpeg();
  LibJpeg(const LibJpeg&) = delete;
  LibJpeg& operator=(const LibJpeg&) = delete;

  // Resets everything about the last image, and reads up to the first scan. `bytes` must stay valid
  // until Finish or the next ReadHeader. Allocates nothing that depends on the image's size.
  Result<JpegHeader> ReadHeader(std::span<const uint8_t> bytes);

  // Prepares for reading rows of the image, reduced by `reduction`; decodes a file with several
  // scans completely to coefficients. ResourceExhausted for more than `max_scans` scans. With
  // JpegEnd::kTruncated a segment (tables, a scan's header) that is incomplete at the end of the
  // bytes counts as missing. `gray`: only luma is wanted.
  Status Start(int max_scans, JpegEnd end = JpegEnd::kError, Reduction reduction = 1,
               bool gray = false);

  // Whether reading has arrived at the end of the bytes, so that `end` mattered.
  bool past_end() const;

  // Whether columns may depend on distant ones, because coefficients that a progressive file lacks
  // are estimated from surrounding blocks.
  bool guesses() const;

  // Call these after Start, in this order, each at most once, and not for reduced images: Crop
  // with the columns from ColumnsToDecode, and Skip with the number of rows to skip at the top,
  // less than all.
  Status Crop(Columns columns);
  Status Skip(int rows);

  // Reads the next `count` rows, at most kMaxRows, of the cropped width into `rows`, which is kGray
  // for one component, or if only luma is wanted, and kInterleaved RGB otherwise.
  Status Read(const MutableImageView& rows, int count);

  // Ends this image, complete or not, and frees its memory.
  void Finish();

  struct State;  // libjpeg's structures; known to libjpeg.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker
