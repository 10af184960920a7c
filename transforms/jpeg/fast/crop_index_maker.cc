#include "transforms/jpeg/fast/crop_index_maker.h"

#include "transforms/jpeg/fast/mcu_parser.h"

namespace stoker::jpeg {

CropIndexMaker::CropIndexMaker(int interval)
    : interval_(interval), parser_(std::make_unique<McuParser>()) {}
CropIndexMaker::~CropIndexMaker() = default;

Fallback CropIndexMaker::FindEntryPoints(std::span<const uint8_t> file, const FrameHeader& header,
                                         const IndexShape& shape) {
  McuParser& parser = *parser_;
  entry_points_.clear();
  if (Fallback why = parser.Open(file, header); why != Fallback::kNone) return why;
  if (Fallback why = parser.Start(); why != Fallback::kNone) return why;
  for (int64_t entry_point = 0; entry_point < shape.entry_points(); ++entry_point) {
    if (entry_point != 0) {
      const int64_t count = shape.McuAt(entry_point) - shape.McuAt(entry_point - 1);
      parser.Skip(count);
      while (McuRun* const run = parser.Next()) Parse(*run);
      if (parser.why() != Fallback::kNone) return parser.why();
    }
    entry_points_.push_back(parser.Locate());
  }
  return parser.AtEndOfImage() || parser.EndsInPadding() ? Fallback::kNone : Fallback::kBits;
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
