// CoefficientRows: the coefficients of a whole image, row of MCUs by row of MCUs, and whether they
// are in the range of the inverse DCT.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/jpeg/fast/entropy/mcu_parser.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"

namespace stoker::jpeg {

// Reused from image to image.
class CoefficientRows {
 public:
  // `memory` is charged, and must outlive this.
  explicit CoefficientRows(MemoryBudget& memory)
      : coefficients_(memory), last_(memory), samples_(memory) {}

  // Lets the parser, which has been opened for `header`, decode to this memory: McuParser::Decode,
  // from column 0 to the last one of a row. ResourceExhausted.
  Status Start(const FrameHeader& header, McuParser& parser);

  // For coefficients in other memory: before each row, Place says where its groups are, all rows of
  // blocks one after another, and then last() takes k of each block's last coefficient, or a larger
  // one. ResourceExhausted.
  Status Start(const FrameHeader& header);
  void Place(int16_t* groups);
  uint8_t* last() { return last_.data(); }

  // The groups of a row of blocks of the row of MCUs: component by component, from the top down.
  const int16_t* groups(size_t block_row) const { return block_rows_[block_row].groups; }

  // Transforms the row that has been decoded, and sets it to zero for the next one. Returns false
  // if a number was out of range: libjpeg-turbo would decode the image.
  bool Transform();

  uint64_t memory_bytes() const {
    return coefficients_.capacity() + last_.capacity() + samples_.capacity();
  }
  void FreeMemory() {
    for (GrowingBuffer* buffer : {&coefficients_, &last_, &samples_}) buffer->Free();
  }

 private:
  struct BlockRow {
    size_t component = 0;
    int columns = 1;  // blocks of an MCU
    int count = 0;    // groups
    int16_t* groups = nullptr;
    uint8_t* last = nullptr;
  };
  void ListBlockRows(const FrameHeader& header);

  std::array<Quantiser, 3> quantiser_;
  std::array<BlockRow, 4> block_rows_;
  size_t rows_ = 0;             // of block_rows_
  size_t groups_ = 0;           // of all of them
  GrowingBuffer coefficients_;  // all zero unless a row has been decoded
  GrowingBuffer last_;
  GrowingBuffer samples_;
};

}  // namespace stoker::jpeg
