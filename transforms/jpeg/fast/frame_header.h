// Phase 1: parses the header, up to the first byte of entropy-coded data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/orientation.h"

namespace stoker::jpeg {

// A component of the frame, and the tables that its scan uses.
struct Component {
  int id = 0;
  int columns = 1;  // sampling factors: blocks per MCU
  int rows = 1;
  int quantisation = 0;
  int dc = 0;
  int ac = 0;
};

// A Huffman table as stored in the file: 16 counts of codes by length, followed by the symbols.
// Points into the file; null if the file does not define the table.
using HuffmanSpec = const uint8_t*;

enum class Process : uint8_t { kSequential, kProgressive };

struct FrameHeader {
  Process process = Process::kSequential;
  ImageSize size;  // as stored
  Orientation orientation = Orientation::kNormal;
  int components = 0;  // 1 or 3
  std::array<Component, 3> component;
  std::array<std::array<uint16_t, 64>, 4> quantisation{};  // rows from top to bottom, not zig-zag
  std::array<HuffmanSpec, 4> dc{};
  std::array<HuffmanSpec, 4> ac{};
  int restart_interval = 0;  // MCUs; 0 means none
  size_t scan_marker = 0;    // offset of the first scan's marker
  size_t scan_offset = 0;    // offset of the first byte of data

  // The size of an MCU in blocks of the first component: 1 or 2. For a gray image it is one block,
  // regardless of its sampling factors.
  int mcu_columns() const { return components == 1 ? 1 : component[0].columns; }
  int mcu_rows() const { return components == 1 ? 1 : component[0].rows; }
};

// The second bytes of the markers that the decoder knows (ITU-T T.81, table B.1).
enum Marker : uint8_t {
  kSof0 = 0xC0,  // baseline
  kSof1 = 0xC1,  // extended sequential
  kSof2 = 0xC2,  // progressive; up to SOF15 these are other processes, except DHT, JPG and DAC
  kDht = 0xC4,
  kSof15 = 0xCF,
  kSoi = 0xD8,
  kEoi = 0xD9,
  kSos = 0xDA,
  kDqt = 0xDB,
  kDri = 0xDD,
  kApp0 = 0xE0,
  kApp1 = 0xE1,
  kApp14 = 0xEE,
  kApp15 = 0xEF,
  kComment = 0xFE,
};

// Stores where the Huffman tables of a DHT segment begin. Returns false if it is malformed.
bool ReadHuffman(std::span<const uint8_t> segment, std::array<HuffmanSpec, 4>& dc,
                 std::array<HuffmanSpec, 4>& ac);

// The order in which a block's coefficients are coded: kZigZag[k] is row × 8 + column.
inline constexpr std::array<uint8_t, 64> kZigZag = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Parses the header. Accepts only files that libjpeg-turbo also accepts, with the same meaning, and
// only the kinds that the following phases decode; progressive ones if `accepted` says so, whose
// scans are read later (progressive/scan_script.h). Otherwise returns the reason; `header` is then
// unspecified. Reads nothing outside `bytes`.
Fallback ParseHeader(std::span<const uint8_t> bytes, FrameHeader& header,
                     Process accepted = Process::kSequential);

}  // namespace stoker::jpeg
