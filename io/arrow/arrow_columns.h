// The columns of an Arrow IPC file that become the fields of samples.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/batch/dtype.h"
#include "core/result/result.h"
#include "io/arrow/arrow.h"
#include "io/arrow/arrow_batches.h"
#include "io/arrow/arrow_schema.h"

namespace stoker {

struct ArrowColumn {
  std::string name;          // in a batch
  std::string in_file;       // in the file, for messages
  ArrowField field{};        // the field of encoded bytes if the image is a struct or a list
  ArrowPosition position{};  // the position of that field in a record batch
  // The structs that contain the field: the position of each one's node and validity buffer.
  std::vector<ArrowPosition> around{};
  // If rows are lists of images: the list, which contains all of these. kNone: a row is one image.
  ArrowField list{};
  ArrowPosition list_position{};
  // The type of a row; without meaning for the image.
  DType dtype{};
  std::vector<int64_t> row_shape{};  // at most 2^32 elements, so products with rows do not wrap

  bool is_list() const { return list.type != ArrowType::kNone; }
};

struct ArrowColumns {
  std::vector<ArrowColumn> columns;  // the image, the label if there is one, further ones
  bool has_label = false;
  std::vector<std::string> class_names;  // of Hugging Face's ClassLabel; empty means none
};

// Returns the columns of a file that `options` name. Errors without a file: InvalidArgument (no
// column has the name, or several have; its type is not supported, with what to do).
Result<ArrowColumns> ChooseArrowColumns(const ArrowBatches& file, const ArrowOptions& options);

}  // namespace stoker
