// Our own JPEG decoder: a region of a photograph, to the bit as libjpeg-turbo decodes it.
//
//   header → scan data → Huffman tables → entropy (decode, skip) → inverse DCT → pixels → rows
//
// One row of MCUs at a time: those left of and right of the region are parsed and not stored, and
// nothing behind the last row that is needed is looked at. With a crop index (crop_index.h) those
// above, and nearly all beside, are not looked at either. docs/jpeg.md explains each phase.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "core/image.h"
#include "core/memory_budget.h"
#include "core/result.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/fast/crop_index.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/paths.h"

namespace stoker::jpeg {

struct McuRun;

// Tables, and the coefficients and samples of a row of MCUs, reused from image to image. One thread
// at a time.
//
// As McuParser, it says what is to be parsed next, and does the rest when it is asked again:
//
//   decoder.Start(bytes, header, region, sink, index);
//   while (McuRun* run = decoder.Next()) Parse(*run);
//   if (decoder.why() != Fallback::kNone) …
class RegionDecoder {
 public:
  // Memory is charged to `budget`, which outlives the decoder; null: it is not counted.
  explicit RegionDecoder(MemoryBudget* budget = nullptr);
  ~RegionDecoder();

  // `bytes`: the whole file, with kBufferPadding readable bytes behind; ParseHeader has accepted
  // it as `header`. `region` is not empty and lies inside the image. Rows are kGray for one
  // component and kPlanar RGB otherwise; the region covered is exactly the one asked for. All but
  // the region have to stay until Next has returned null.
  //
  // With an `index`, which was opened for this file, only the MCUs that the region needs are
  // parsed, and those between them and the index' places.
  //
  // Errors: the sink's, and ResourceExhausted. Next is null then.
  Status Start(std::span<const uint8_t> bytes, const FrameHeader& header, const Rect& region,
               RowSink& sink, const CropIndex* index = nullptr);

  // The MCUs to be parsed next; to be called again when they are at a stop. Null when all rows have
  // been delivered, and when something is not as it should be, in the file or in the index: why()
  // is then not kNone. To be decoded without the index then; and where there is none, libjpeg-turbo
  // is to say what; into the same sink begun anew.
  McuRun* Next();
  Fallback why() const;

  // Whether the data of all MCUs are sound, and zeros stand where the end-of-image marker should.
  // `bytes` and `header` as for Start, which has to be called afterwards. Goes through all data.
  bool EndsInPadding(std::span<const uint8_t> bytes, const FrameHeader& header);

  struct State;  // known to region_decoder.cc alone

 private:
  std::unique_ptr<State> state_;
};

}  // namespace stoker::jpeg
