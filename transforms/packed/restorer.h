// JpegRestorer: restores JPEGs from packed ones, with memory that is reused.
#pragma once

#include <cstdint>
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
  Status RestoreRow(const PackedFile& file, int mcu_row, const BlockRows& rows);
  Status Reserve(const BlockRows& rows);

  MemoryBudget unlimited_{std::numeric_limits<uint64_t>::max()};
  GrowingBuffer memory_{unlimited_};
  std::array<int16_t*, 4> words_{};  // of each row of blocks
  RunReader reader_;
  ScanWriter writer_;
};

}  // namespace stoker::packed
