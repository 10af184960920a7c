// Phase 1: the header, up to the first byte of entropy-coded data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/image.h"
#include "transforms/decode/orientation.h"
#include "transforms/jpeg/paths.h"

namespace stoker::jpeg {

// One component of the frame, and the tables that its scan uses.
struct Component {
  int id = 0;
  int columns = 1;  // sampling factors: blocks of an MCU
  int rows = 1;
  int quantisation = 0;
  int dc = 0;
  int ac = 0;
};

// A Huffman table as the file has it: 16 counts of codes, by length, and behind them the symbols.
// Points into the file; null where the file defines none.
using HuffmanSpec = const uint8_t*;

struct FrameHeader {
  ImageSize size;  // as stored
  Orientation orientation = Orientation::kNormal;
  int components = 0;  // 1 or 3
  std::array<Component, 3> component;
  std::array<std::array<uint16_t, 64>, 4> quantisation{};  // rows from top to bottom, not zig-zag
  std::array<HuffmanSpec, 4> dc{};
  std::array<HuffmanSpec, 4> ac{};
  int restart_interval = 0;  // MCUs; 0: none
  size_t scan_offset = 0;    // of the first byte of data

  // An MCU in blocks of the first component: 1 or 2. Of a gray image it is one block, whatever its
  // sampling factors say.
  int mcu_columns() const { return components == 1 ? 1 : component[0].columns; }
  int mcu_rows() const { return components == 1 ? 1 : component[0].rows; }
};

// The order in which a block's coefficients are coded: kZigZag[k] is row × 8 + column.
extern const std::array<uint8_t, 64> kZigZag;

// Strict: accepts only what libjpeg-turbo accepts too, with the same meaning, and of that only the
// kinds that the following phases decode. For all else the reason why not; `header` is then
// unspecified. Reads nothing outside `bytes`.
Fallback ParseHeader(std::span<const uint8_t> bytes, FrameHeader& header);

}  // namespace stoker::jpeg
