// DecodePhases: runs the phases of stoker's JPEG decoder separately, on whole images; for
// decode_bench.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/huffman.h"
#include "transforms/jpeg/fast/entropy/scan_data.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/pixels/inverse_dct.h"

namespace stoker {

// Not thread-safe.
class DecodePhases {
 public:
  // Sets the input of the next calls: a file (followed by kBufferPadding readable bytes) whose
  // header ParseHeader has accepted, without restart intervals. Both must stay valid.
  void Use(std::span<const uint8_t> bytes, const jpeg::FrameHeader& header) {
    bytes_ = bytes;
    header_ = &header;
  }

  void Header();
  void Tables();   // all tables that the scan needs
  void Destuff();  // the whole scan
  void Skip() { Parse(false, false); }
  void Decode() { Parse(true, false); }
  void DecodeAndTransform() { Parse(true, true); }

 private:
  struct Row {  // of blocks
    int component;
    int groups;
    int16_t* coefficients;
    uint8_t* last;
  };

  void Parse(bool store, bool transform);
  void Prepare(int across);
  void AssignBlocks(int component, int across, size_t groups, int16_t* coefficients);
  void Transform();

  std::span<const uint8_t> bytes_;
  const jpeg::FrameHeader* header_ = nullptr;
  jpeg::FrameHeader parsed_;
  std::array<jpeg::DcTable, 4> dc_;
  std::array<jpeg::AcTable, 4> ac_;
  std::array<jpeg::SkipTable, 4> skip_;
  std::array<jpeg::Quantiser, 3> quantiser_;
  jpeg::ScanData data_;
  jpeg::EntropyState state_;
  std::vector<int16_t> coefficients_;
  std::vector<uint8_t> last_, clean_, samples_;
  std::array<Row, 4> rows_{};
  size_t row_count_ = 0;
};

}  // namespace stoker
