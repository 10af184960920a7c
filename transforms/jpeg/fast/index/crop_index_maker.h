// CropIndexMaker: creates crop indexes by decoding whole photographs to coefficients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/memory/memory_budget.h"
#include "transforms/decode/decoding.h"
#include "transforms/jpeg/fast/index/crop_index.h"

namespace stoker::jpeg {

class CoefficientRows;
class McuParser;

// Its tables are reused from image to image. Not thread-safe.
class CropIndexMaker {
 public:
  explicit CropIndexMaker(int interval = IndexShape::kInterval);  // 1 to kMaxInterval
  ~CropIndexMaker();

  // Makes the index of `file`, which must be followed by kBufferPadding readable bytes. On success
  // replaces `packed` and returns kNone; otherwise returns why there can be no index: the fast
  // decoder does not accept the header; or the data are damaged, or more than the image or the MCUs
  // before a restart marker need, or are followed by something other than the end-of-image marker
  // or zeros in its place (kBits, kRestart); or a number is out of range, a coefficient among them
  // (kCoefficient). So the fast decoder decodes all of any photograph that has an index.
  Fallback Make(std::span<const uint8_t> file, std::vector<uint8_t>& packed);

 private:
  Fallback FindEntryPoints(std::span<const uint8_t> file, const FrameHeader& header,
                           const IndexShape& shape);
  Fallback Decode(int64_t from, int64_t to, int64_t across);

  const int interval_;
  std::unique_ptr<McuParser> parser_;
  MemoryBudget unlimited_{MemoryBudget::kNoLimit};
  std::unique_ptr<CoefficientRows> rows_;
  std::vector<EntryPoint> entry_points_;
};

// The reference: bit by bit, MCU by MCU. Returns the same entry points where Make succeeds;
// otherwise the result is unspecified.
std::vector<EntryPoint> FindEntryPointsPlain(std::span<const uint8_t> file,
                                             const FrameHeader& header, const IndexShape& shape);

}  // namespace stoker::jpeg
