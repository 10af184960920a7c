// ScanDecoder: the coefficients of a region of a progressive JPEG, from all of its scans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "transforms/decode/decoding.h"
#include "transforms/jpeg/fast/entropy/scan_data.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/progressive/scan_pass.h"
#include "transforms/jpeg/fast/progressive/scan_script.h"

namespace stoker::jpeg {

// Reused from image to image. Not thread-safe.
class ScanDecoder {
 public:
  // Memory is charged to `budget`, which must outlive this.
  explicit ScanDecoder(MemoryBudget& budget) : coefficients_(budget), masks_(budget) {}

  // Chooses what to keep: the blocks of the geometry's MCUs. Both must stay valid until Decode has
  // returned. Then the caller grows the buffers.
  void Begin(const FrameHeader& header, const CropGeometry& geometry);
  std::array<Growth, 2> Growths();

  // Decodes all scans of `bytes`, the whole file. On an error in the file, returns why
  // libjpeg-turbo must decode it. (Rows below the region are parsed, too: libjpeg-turbo reports
  // errors there.)
  Fallback Decode(std::span<const uint8_t> bytes, int max_scans);

  // The groups of a row of MCUs of the region, consecutive: component by component, from the top
  // row of blocks down. The reader sets them to zero, or calls Clear.
  int16_t* Groups(int mcu_row) const;
  // Stores, for each block of those groups, k of its last coefficient, or a larger one.
  void StoreLast(int mcu_row, uint8_t* last) const;

  // Forgets the coefficients.
  void Clear();
  // Returns memory that most images do not need, or all.
  void FreeExcess();
  void FreeMemory();
  uint64_t memory_bytes() const { return coefficients_.capacity() + masks_.capacity(); }

 private:
  struct Plane {                // the blocks of a component
    int columns = 1, rows = 1;  // of an MCU
    int across = 0, down = 0;   // of the image
    uint64_t* masks = nullptr;  // row by row
    size_t first_group = 0;     // of the top row of blocks, in a row of MCUs
    int row_groups = 0;         // of a row of blocks
  };

  BlockSpan SpanOf(const Plane& plane, int block_row) const;
  Fallback DecodeScan(const Scan& scan);
  bool BuildTables(const Scan& scan);
  void ListSpans(const Scan& scan, int row);
  int DecodeSome(const Scan& scan, int from, int to);
  Fallback DecodeRow(const Scan& scan, int across, int64_t& segment_left);
  Fallback Restart();

  const FrameHeader* header_ = nullptr;
  const CropGeometry* geometry_ = nullptr;
  std::array<Plane, 3> plane_;
  size_t groups_ = 0;           // of a row of MCUs
  GrowingBuffer coefficients_;  // all zero before Decode
  GrowingBuffer masks_;

  // The scan that is being decoded.
  std::span<const uint8_t> bytes_;
  size_t end_ = 0;    // offset of the marker after its data
  int restarts_ = 0;  // markers so far
  ScanData data_;
  EntropyState state_;
  std::array<DcTable, 3> dc_;
  ScanTable ac_;
  AcScan ac_scan_;
  DcScan dc_scan_;
};

}  // namespace stoker::jpeg
