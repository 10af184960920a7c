// RegionDecoder: stoker's JPEG decoder. Decodes a region of a photograph bit-exactly as
// libjpeg-turbo does.
//
//   header → scan data → Huffman tables → entropy (decode, skip) → inverse DCT → pixels → rows
//
// It works on one row of MCUs at a time: those left and right of the region are parsed and not
// stored, and no data after the last needed row are read. With a crop index (crop_index.h) the rows
// above, and nearly all MCUs outside the region, are not read either. docs/jpeg.md explains each
// phase.
//
// A progressive JPEG has all of its scans decoded first (progressive/scan_decoder.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/batch/image.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_index.h"

namespace stoker::jpeg {

struct McuRun;

// Tables, and the coefficients and samples of a row of MCUs, are reused from image to image. Not
// thread-safe.
//
// Like McuParser, it returns what to parse next, and does the rest when it is called again:
//
//   decoder.Start(bytes, header, region, sink, index);
//   while (McuRun* run = decoder.Next()) Parse(*run);
//   if (decoder.why() != Fallback::kNone) …
class RegionDecoder {
 public:
  // Memory is charged to `budget`, which must outlive the decoder; null means it is not counted.
  // `limits`: on the number of scans.
  explicit RegionDecoder(MemoryBudget* budget = nullptr, const DecodeLimits& limits = {});
  ~RegionDecoder();

  // `bytes`: the whole file, followed by kBufferPadding readable bytes, which ParseHeader has
  // accepted as `header`. `region` must not be empty and lie inside the image, reduced by
  // `reduction` (at most its MaxReduction). Rows are kGray for one component, else RGB, kPlanar if
  // the sink takes planes and kInterleaved otherwise; exactly the requested region is covered. All
  // arguments except the region must stay valid until Next has returned null.
  //
  // A progressive JPEG is decoded here, and Next returns null. With an `index`, which must have
  // been opened for this file, only the MCUs that the region needs are parsed, and those between
  // them and the index's entry points.
  //
  // Errors: the sink's, and ResourceExhausted. Next returns null then.
  Status Start(std::span<const uint8_t> bytes, const FrameHeader& header, const Rect& region,
               Reduction reduction, RowSink& sink, const CropIndex* index = nullptr);

  // Returns the MCUs to parse next; to be called again when they are at a stop. Returns null when
  // all rows have been delivered, and on an error in the file or the index, when why() is not
  // kNone. The image must then be decoded without the index or, if there was none, by
  // libjpeg-turbo, which reports the error; into the same sink, begun again.
  McuRun* Next();
  Fallback why() const;

  // Whether the data of all MCUs are valid and followed by zeros instead of the end-of-image
  // marker. `bytes` and `header` are as for Start, which must be called afterwards. Reads all data.
  bool EndsInPadding(std::span<const uint8_t> bytes, const FrameHeader& header);

  struct State;  // known to region_decoder.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker::jpeg
