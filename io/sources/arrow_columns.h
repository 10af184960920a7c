// The columns of an Arrow IPC file that become the fields of samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "core/result.h"
#include "io/sources/arrow.h"
#include "io/sources/arrow_batches.h"
#include "io/sources/arrow_schema.h"

namespace stoker {

struct ArrowColumn {
  std::string name;     // in a batch
  std::string in_file;  // in the file, for messages
  ArrowField field{};   // of an image in a struct: the field of its bytes
  ArrowPlace place{};   // of that, in a record batch
  // Of the structs that the field is in: each node and validity buffer.
  std::vector<ArrowPlace> around{};
  // Of a row; of the image without meaning.
  DType dtype{};
  std::vector<int64_t> row_shape{};  // at most 2^32 elements, so products with rows do not wrap
};

struct ArrowColumns {
  std::vector<ArrowColumn> columns;  // the image, the label if there is one, further ones
  bool has_label = false;
  std::vector<std::string> class_names;  // of Hugging Face's ClassLabel; empty: none
};

// The columns of a file that `options` name. Errors without a file: InvalidArgument (there is no
// such column, or several; it has a type that is not read, with what to do).
Result<ArrowColumns> ChooseArrowColumns(const ArrowBatches& file, const ArrowOptions& options);

}  // namespace stoker
