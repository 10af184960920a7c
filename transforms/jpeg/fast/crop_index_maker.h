// Makes crop indexes: skips through whole photographs.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/crop_index.h"
#include "transforms/jpeg/paths.h"

namespace stoker::jpeg {

class McuParser;

// Holds tables, reused from image to image. One thread at a time.
class CropIndexMaker {
 public:
  explicit CropIndexMaker(int interval = IndexShape::kInterval);  // 1 to kMostInterval
  ~CropIndexMaker();

  // `file`: with kBufferPadding readable bytes behind. Replaces `packed`. Else why there can be no
  // index: the header is not one that our decoder accepts; or the data are damaged, more of them
  // come than the image needs, or something else follows than the end-of-image marker or, in its
  // place, zeros (kBits, kRestart); or a number is out of range (kCoefficient).
  Fallback Make(std::span<const uint8_t> file, std::vector<uint8_t>& packed);

 private:
  Fallback FindPlaces(std::span<const uint8_t> file, const FrameHeader& header,
                      const IndexShape& shape);

  const int interval_;
  std::unique_ptr<McuParser> parser_;
  std::vector<ScanPlace> places_;
};

// The plain twin: bit by bit, MCU by MCU. Same places where Make finds nothing amiss; otherwise
// none, or any.
std::vector<ScanPlace> FindPlacesPlain(std::span<const uint8_t> file, const FrameHeader& header,
                                       const IndexShape& shape);

}  // namespace stoker::jpeg
