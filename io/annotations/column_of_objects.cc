#include "io/annotations/column_of_objects.h"

namespace stoker {

ArrayColumn ColumnOfObjects(const char* name, DType dtype, const void* data,
                            const std::vector<int64_t>& offsets, Field::Kind kind) {
  ArrayColumn column{.name = name, .dtype = dtype, .row_shape = {}, .data = data};
  if (kind == Field::Kind::kBoxes) column.row_shape = {4};
  column.samples = offsets.size() - 1;
  column.offsets = offsets.data();
  column.kind = kind;
  return column;
}

}  // namespace stoker
