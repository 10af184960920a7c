// ScanWriter: codes coefficients as the entropy-coded data of a JPEG's scan, as libjpeg and most
// encoders do: every run of zeros, and of blocks without further coefficients, in the fewest codes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/progressive/scan_script.h"
#include "transforms/packed/format.h"
#include "transforms/packed/scan/pass_coding.h"
#include "transforms/packed/scan/scan_coding.h"

namespace stoker::packed {

// Reused from file to file. Not thread-safe.
class ScanWriter {
 public:
  // The scans of a file have these in common. All must stay valid until Finish.
  struct Target {
    const jpeg::FrameHeader& header;
    uint32_t choices;            // the encoder's (format.h)
    std::vector<uint8_t>& room;  // for the bytes of a row; all scans use it, one after another
  };

  // Begins the scan of a baseline JPEG, with the Huffman tables and the restart interval of its
  // header. Its bytes are appended to `out`, which must stay valid.
  void Start(const Target& target, std::vector<uint8_t>& out);

  // Begins a scan of a progressive JPEG.
  void Start(const Target& target, const jpeg::Scan& scan, std::vector<uint8_t>& out);

  // Writes the next row of MCUs of the image, from the first one on. Symbols without a code are
  // written as unspecified bits.
  void WriteRow(const BlockRows& rows, const McuWords& mcus);

  // Fills the last byte.
  void Finish();

 private:
  void Begin(const Target& target, std::vector<uint8_t>& out);
  void WriteBlocks(const BlockRows& rows, const McuWords& mcus);
  void WriteMcus(const BlockRows& rows, const McuWords& mcus);
  void Restart();
  void EndSegment();
  void Flush();

  const jpeg::FrameHeader* header_ = nullptr;
  uint32_t choices_ = 0;
  std::array<ScanCodes, 3> codes_;  // by component
  std::optional<jpeg::Scan> scan_;  // of a progressive JPEG
  Pass pass_;                       // of a baseline JPEG: the predictor alone
  int restart_interval_ = 0;        // MCUs of the scan
  int64_t mcu_ = 0;                 // the next one
  int block_row_ = 0;               // the next one, if scan_ has one component

  std::vector<uint8_t>* room_ = nullptr;  // bytes after which zeros are still to be stuffed
  BitSink bits_;                          // to the room
  std::vector<uint8_t>* out_ = nullptr;
};

}  // namespace stoker::packed
