// CoefficientRows: the coefficients of a whole image, row of MCUs by row of MCUs, to see whether
// they are in the range of the inverse DCT.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transforms/jpeg/fast/entropy.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/inverse_dct.h"
#include "transforms/jpeg/fast/mcu_parser.h"

namespace stoker::jpeg {

// Reused from image to image.
class CoefficientRows {
 public:
  // Lets the parser, which has been opened for `header`, decode to this memory: McuParser::Decode,
  // from column 0 to the last one of a row.
  void Start(const FrameHeader& header, McuParser& parser);

  // Transforms the row that has been decoded, and sets it to zero for the next one. Returns false
  // if a number was out of range.
  bool Transform();

 private:
  struct BlockRow {
    size_t component = 0;
    int groups = 0;
    size_t first_group = 0;
  };
  struct alignas(64) Group {
    std::array<int16_t, kGroupStride> coefficients{};
  };

  std::array<Quantiser, 3> quantiser_;
  std::vector<BlockRow> block_rows_;
  std::vector<Group> groups_;
  std::vector<uint8_t> last_;
  std::vector<uint8_t> samples_;
};

}  // namespace stoker::jpeg
