#include "transforms/jpeg/fast/index/crop_index_maker.h"

#include <algorithm>
#include <new>

#include "core/numbers/divide_up.h"
#include "transforms/jpeg/fast/entropy/coefficient_rows.h"
#include "transforms/jpeg/fast/entropy/mcu_parser.h"

namespace stoker::jpeg {

CropIndexMaker::CropIndexMaker(int interval)
    : interval_(interval),
      parser_(std::make_unique<McuParser>()),
      rows_(std::make_unique<CoefficientRows>(unlimited_)) {}
CropIndexMaker::~CropIndexMaker() = default;

Fallback CropIndexMaker::FindEntryPoints(std::span<const uint8_t> file, const FrameHeader& header,
                                         const IndexShape& shape) {
  McuParser& parser = *parser_;
  entry_points_.clear();
  if (Fallback why = parser.Open(file, header); why != Fallback::kNone) return why;
  if (Fallback why = parser.Start(); why != Fallback::kNone) return why;
  if (!rows_->Start(header, parser).ok()) throw std::bad_alloc();  // as the vectors here would
  const int64_t across = DivideUp(header.size.width, 8 * header.mcu_columns());
  for (int64_t entry_point = 0; entry_point < shape.entry_points(); ++entry_point) {
    if (entry_point != 0) {
      const int64_t from = shape.McuAt(entry_point - 1), to = shape.McuAt(entry_point);
      if (Fallback why = Decode(from, to, across); why != Fallback::kNone) return why;
    }
    // With an index, the marker must come right here.
    if (shape.MarkerFollows(entry_point) && !parser.EndsSegment()) return Fallback::kRestart;
    entry_points_.push_back(parser.Locate());
  }
  return parser.AtEndOfImage() || parser.EndsInPadding() ? Fallback::kNone : Fallback::kBits;
}

// Decodes MCUs [from, to), perhaps of several rows of MCUs, which are `across` MCUs wide.
Fallback CropIndexMaker::Decode(int64_t from, int64_t to, int64_t across) {
  while (from < to) {
    const int64_t column = from % across, count = std::min(to - from, across - column);
    parser_->Decode(static_cast<int>(column), static_cast<int>(count));
    while (McuRun* const run = parser_->Next()) Parse(*run);
    if (parser_->why() != Fallback::kNone) return parser_->why();
    from += count;
    if (from % across == 0 && !rows_->Transform()) return Fallback::kCoefficient;
  }
  return Fallback::kNone;
}

Fallback CropIndexMaker::Make(std::span<const uint8_t> file, std::vector<uint8_t>& packed) {
  FrameHeader header;
  if (Fallback why = ParseHeader(file, header); why != Fallback::kNone) return why;
  const IndexShape shape(header, interval_);
  if (Fallback why = FindEntryPoints(file, header, shape); why != Fallback::kNone) return why;
  packed = PackCropIndex(file, header, shape, entry_points_);
  return packed.empty() ? Fallback::kCoefficient : Fallback::kNone;
}

}  // namespace stoker::jpeg
