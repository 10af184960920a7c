// The rows of Arrow IPC files: where images lie, and columns in memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "io/sources/arrow_batches.h"
#include "io/sources/arrow_columns.h"
#include "io/sources/input_file.h"
#include "io/sources/range_table.h"
#include "io/sources/string_rows.h"

namespace stoker {

// The rows of one column beside the image.
struct ArrowValues {
  std::vector<uint8_t> numbers{};  // dense; of labels int64
  StringRows texts{};              // in place of numbers, of text and binary
};

// The rows of all columns that were chosen.
struct ArrowTable {
  RangeTable images{};
  std::vector<ArrowValues> columns{};  // those behind the image

  void Append(ArrowTable other);
};

// Adds the rows of a record batch of `file`, which is the source's file `number`; `first_row`: the
// number of its first row in the file. Errors with the file and the batch's offset: DataLoss (it is
// damaged; a label without a class name, with its row), InvalidArgument (a null, or a label above
// 2^63 - 1, with its row).
Status AddBatch(const InputFile& file, uint32_t number, const ArrowBatch& batch, uint64_t first_row,
                const ArrowColumns& columns, ArrowTable& table);

}  // namespace stoker
