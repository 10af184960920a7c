// RowReader: the rows of a PNG, decompressed, with their filters undone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/png/chunks.h"

namespace stoker::png {

class Inflater;

// Not thread-safe.
class RowReader {
 public:
  explicit RowReader(MemoryBudget& budget) : memory_(budget) {}

  // The memory must grow by this before rows of images with this header are read: it holds an
  // Inflater and two rows.
  Growth Room(const Header& header);

  uint64_t memory_bytes() const { return memory_.capacity(); }
  void FreeMemory() { memory_.Free(); }

  // `file`: what `header` and `layout` were read from; it must stay valid while rows are read.
  // `total`: bytes of all rows that will be read, with their filter bytes; the last one counts up
  // to what is wanted of it. Precondition: Room has grown.
  void Start(std::span<const uint8_t> file, const Header& header, const Layout& layout,
             uint64_t total);

  // Begins rows of `columns` pixels: the image's, or those of a pass.
  void StartPass(int columns);

  // Returns the next row, valid until the next call. Only its first `columns` pixels are there;
  // later rows must not want more. DataLoss with the offset after what was decompressed.
  // Precondition: there are rows left.
  Result<const uint8_t*> Next(int columns);

 private:
  static size_t Stride(const Header& header);

  GrowingBuffer memory_;
  Inflater* inflater_ = nullptr;  // in `memory_`, like the rows
  Header header_;
  uint64_t left_ = 0;     // of `total`
  uint64_t started_ = 0;  // rows
  size_t row_bytes_ = 0;
  size_t pixel_ = 1;        // bytes from a sample to the same one of the next pixel, at least 1
  uint8_t* row_ = nullptr;  // the last row
  uint8_t* above_ = nullptr;
};

}  // namespace stoker::png
