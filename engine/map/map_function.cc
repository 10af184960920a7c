#include "engine/map/map_function.h"

#include <algorithm>

#include "core/batch/slot_pool.h"
#include "io/source/field.h"

namespace stoker {

void* MappedRow::data(size_t column) const {
  return columns_[column].is_ragged() ? slot_.Placed(column, row_) : slot_.Row(column, row_);
}

size_t MappedRow::objects(size_t column) const {
  if (!columns_[column].is_ragged()) return 1;
  return static_cast<size_t>(slot_.Objects(column, row_));
}

std::optional<size_t> MappedRow::column(std::string_view name) const {
  const auto found = std::ranges::find(columns_, name, &ColumnSpec::name);
  if (found == columns_.end()) return std::nullopt;
  return static_cast<size_t>(found - columns_.begin());
}

uint64_t MappedRow::sample() const { return slot_.sample_ids[row_]; }

BatchName MappedRow::batch() const { return slot_.name(); }

std::string MapFunction::InState() const {
  std::string text = Describe() + (calls() == 0 ? ", rows" : "");
  for (const ColumnSpec& column : columns()) {
    text += ", " + column.name + " " + DescribeRow(column.dtype, column.row_shape);
  }
  return text;
}

}  // namespace stoker
