// libjpeg-turbo behind a face that never lets a longjmp out: each step returns a Status.
//
// Mechanics only; what is allowed and what is worth decoding is decided in decoder.cc. One thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/image.h"
#include "core/result.h"
#include "transforms/jpeg/columns.h"
#include "transforms/jpeg/decoder.h"

namespace stoker {

struct JpegHeader {
  ImageInfo info;
  int imcu_width = 8;              // pixels of an interleaved MCU
  bool fancy_columns = false;      // some component is upsampled with its left and right neighbours
  uint64_t coefficient_bytes = 0;  // of the whole image, where there are several scans; else 0
  uint64_t library_bytes = 0;      // those included, what libjpeg-turbo takes until Finish, at most
  uint64_t least_scan_bits = 0;    // no complete first scan has fewer
  size_t scan_offset = 0;          // where the data of the first scan begin
};

class LibJpeg {
 public:
  static constexpr int kMaxRows = 16;  // of one Read

  LibJpeg();
  ~LibJpeg();
  LibJpeg(const LibJpeg&) = delete;
  LibJpeg& operator=(const LibJpeg&) = delete;

  // Forgets everything about the last image, and reads up to the first scan. `bytes` must stay
  // until Finish or the next ReadHeader. Allocates nothing that depends on the image's size.
  Result<JpegHeader> ReadHeader(std::span<const uint8_t> bytes);

  // Prepares for reading rows; of a file with several scans, decodes all of it to coefficients.
  // ResourceExhausted past `max_scans` scans. `padded`: the end-of-image marker is known to be all
  // that is missing, and taken as read where the bytes end.
  Status Start(int max_scans, bool padded = false);

  // Whether columns depend on others far away: coefficients that a progressive file lacks are being
  // guessed from the blocks around.
  bool guesses() const;

  // After Start, in this order, each at most once: columns that ColumnsToDecode gave; rows to leave
  // out at the top, fewer than all.
  Status Crop(Columns columns);
  Status Skip(int rows);

  // The next `count` rows, at most kMaxRows, of the cropped width into `rows`, which is kGray for
  // one component and kInterleaved RGB otherwise.
  Status Read(const MutableImageView& rows, int count);

  // Ends this image, finished or not, and gives its memory back to the system.
  void Finish();

  struct State;  // libjpeg's structures; known to libjpeg.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker
