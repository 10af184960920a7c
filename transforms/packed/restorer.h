// JpegRestorer: restores JPEGs from packed ones, with memory that is reused. It goes through the
// rows once, and codes each for all scans.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/scan/scan_writer.h"

namespace stoker::packed {

// Not thread-safe.
class JpegRestorer {
 public:
  // Writes the JPEG to `out`. DataLoss; ResourceExhausted if the system has no memory.
  Status Restore(const PackedFile& file, std::vector<uint8_t>& out);

 private:
  struct Scan {
    ScanWriter writer;
    std::vector<uint8_t> bytes;           // its data, unless it is the first
    std::vector<uint8_t>* out = nullptr;  // `bytes`; of the first, the JPEG
    size_t header_end = 0;                // of the JPEG's header, the part before its data
  };

  Status StartScans(const PackedFile& file, std::vector<uint8_t>& out);
  Scan& AddScan(size_t header_end, std::vector<uint8_t>& out);
  Status RestoreRow(const PackedFile& file, int mcu_row, const BlockRows& rows);
  Status Reserve(const BlockRows& rows);

  MemoryBudget unlimited_{std::numeric_limits<uint64_t>::max()};
  GrowingBuffer memory_{unlimited_};
  std::array<int16_t*, 4> words_{};   // of each row of blocks
  std::array<uint64_t*, 4> masks_{};  // likewise
  int levels_ = 0;                    // of the masks; 0 of a baseline JPEG
  RunReader reader_;
  std::vector<uint8_t> room_;  // the writers'
  std::deque<Scan> scans_;     // of which `count_` are the file's; they stay where they are
  size_t count_ = 0;
  size_t bytes_ = 0;  // of the JPEG so far
};

}  // namespace stoker::packed
