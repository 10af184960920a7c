// Reads the rows of Arrow IPC files: the byte ranges of images, and columns in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/arrow/arrow_batches.h"
#include "io/arrow/arrow_columns.h"
#include "io/files/input_file.h"
#include "io/memory/string_rows.h"
#include "io/source/range_table.h"

namespace stoker {

// The rows of one column other than the image.
struct ArrowValues {
  std::vector<uint8_t> numbers{};  // dense; labels are int64
  StringRows texts{};              // used instead of numbers for text and binary
};

// The rows of the chosen columns.
struct ArrowTable {
  RangeTable images{};
  std::vector<uint64_t> ends{};        // of rows that are lists of images: ImageNumbers::ends
  std::vector<ArrowValues> columns{};  // those after the image

  uint64_t rows() const { return ends.empty() ? images.size() : ends.size(); }
  void Append(ArrowTable other);
};

// Adds the rows of a record batch of `file`, which is file `number` of the source; `first_row`: the
// number of the batch's first row in the file. Errors with the file and the batch's offset:
// DataLoss (damaged; a label without a class name, with its row), InvalidArgument (a null, a label
// above 2^63 - 1, or more than kMostPieces images, with the row).
Status AddBatch(const InputFile& file, uint32_t number, const ArrowBatch& batch, uint64_t first_row,
                const ArrowColumns& columns, ArrowTable& table);

}  // namespace stoker
