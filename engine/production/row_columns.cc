#include "engine/production/row_columns.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/batch/batch_parts.h"
#include "core/result/try.h"
#include "engine/production/producer_parts.h"
#include "io/source/field.h"

namespace stoker {

namespace {

std::vector<size_t> ColumnsOfFields(const SampleSource& source,
                                    std::span<const ColumnSpec> columns) {
  std::vector<size_t> of(source.fields().size());
  for (size_t field = 0; field < of.size(); ++field) {
    of[field] = ColumnOfField(source, field, columns);
  }
  return of;
}

std::vector<size_t> ObjectFieldsOf(std::span<const Field> fields) {
  std::vector<size_t> of_objects;
  for (size_t field = 0; field < fields.size(); ++field) {
    if (fields[field].is_of_objects()) of_objects.push_back(field);
  }
  return of_objects;
}

// Returns the indices of the columns that a function adds. `map` may be null.
std::vector<size_t> AddedBy(const MapCaller* map, std::span<const ColumnSpec> columns) {
  std::vector<size_t> added;
  if (map == nullptr) return added;
  for (const ColumnSpec& column : map->columns()) {
    const auto found = std::ranges::find(columns, column.name, &ColumnSpec::name);
    added.push_back(static_cast<size_t>(found - columns.begin()));
  }
  return added;
}

}  // namespace

RowColumns::RowColumns(const LoaderOptions& options, const Sampler& sampler,
                       const std::optional<Plan>& plan, const std::optional<Mixer>& mixer,
                       const MapCaller* map, std::vector<ColumnSpec> columns)
    : source_(*options.source),
      sampler_(sampler),
      seed_(options.seed),
      plan_(plan),
      mixer_(mixer),
      map_(map != nullptr && map->calls() == 0 ? map : nullptr),
      columns_(std::move(columns)),
      field_columns_(ColumnsOfFields(source_, columns_)),
      object_fields_(ObjectFieldsOf(source_.fields())),
      planned_(PlannedFields(source_, plan_)),
      added_(AddedBy(map, columns_)),
      adds_labels_(AddsLabels(source_, plan_, map)),
      size_column_(SizeColumn(source_, plan_)),
      geometry_column_(GeometryColumn(source_, plan_)) {}

// The last columns are those of a device: the offsets of crops, if it decodes, and the deferred
// operations.
Result<OutputRows> RowColumns::RowsOf(Slot& slot, uint32_t row, uint64_t sample,
                                      Referred& referred) const {
  std::vector<void*>& other_rows = referred.other_rows;
  const size_t fields = field_columns_.size(), columns = slot.columns.size();
  other_rows.resize(plan_->views() - 1);
  for (size_t i = 0; i < other_rows.size(); ++i) other_rows[i] = slot.Row(fields + i, row);
  OutputRows rows{.row = slot.Row(0, row), .other_rows = other_rows};
  if (plan_->work_bytes() != 0) rows.work = slot.Row(columns - 1, row);
  if (size_column_) rows.size = static_cast<int32_t*>(slot.Row(*size_column_, row));
  if (geometry_column_) {
    rows.geometry = static_cast<float*>(slot.Row(*geometry_column_, row));
    rows.original_size = static_cast<int32_t*>(slot.Row(*geometry_column_ + 1, row));
  }
  if (plan_->options().decode_on_device) {
    rows.crops = CropsOf(slot, row);
    rows.crop_at = static_cast<uint64_t*>(slot.Row(columns - 2, row));
  }
  if (object_fields_.empty()) return rows;
  ASSIGN_OR_RETURN(const uint32_t objects, CountObjects(sample));
  rows.objects = ObjectsOf(sample, objects, referred);
  referred.kept.clear();
  for (const size_t field : object_fields_) {
    referred.kept.push_back(slot.Row(field_columns_[field], row));
  }
  referred.object_rows.to = referred.kept;
  referred.object_rows.kept = &slot.Objects(field_columns_[object_fields_.front()], row);
  return rows;
}

OutputRows RowColumns::RowsOfPiece(Slot& slot, uint32_t row, uint32_t piece, uint64_t sample,
                                   Referred& referred) const {
  OutputRows rows{.row = slot.Row(piece, row)};
  if (object_fields_.empty()) return rows;
  rows.objects = ObjectsOf(sample, *CountObjects(sample), referred);
  return rows;
}

// Returns the number of objects of a sample, for which there is room. A program may have its own
// source.
Result<uint32_t> RowColumns::CountObjects(uint64_t sample) const {
  std::optional<size_t> objects;
  for (const size_t field : object_fields_) {
    const ColumnSpec& column = columns_[field_columns_[field]];
    const size_t bytes = source_.View(field, sample).size(), each = column.object_bytes();
    const size_t count = bytes / each;
    if (bytes % each == 0 && count <= source_.max_objects() && count == objects.value_or(count)) {
      objects = count;
      continue;
    }
    return Error{Code::kDataLoss,
                 "the source has " + std::to_string(bytes) + " bytes of '" + column.name +
                     "' for sample " + std::to_string(sample) + ": an object has " +
                     std::to_string(each) + ", a sample at most " +
                     std::to_string(source_.max_objects()) + " objects, and as many of each field"};
  }
  return static_cast<uint32_t>(*objects);
}

// Returns the objects of a sample, without a place to write them.
const ObjectRows* RowColumns::ObjectsOf(uint64_t sample, uint32_t count, Referred& referred) const {
  referred.objects.clear();
  for (const size_t field : object_fields_) {
    referred.objects.push_back(source_.View(field, sample));
  }
  referred.object_rows = {.from = referred.objects, .count = count};
  return &referred.object_rows;
}

// Whether the row is mixed with one of another device's part.
bool RowColumns::MixesAcrossParts(const Slot& slot, int64_t row) const {
  const auto parts = static_cast<int64_t>(slot.crops.size());
  return mixer_ && parts > 1 &&
         row + 1 == FirstRowOfPart(slot.rows, PartOfRow(slot.rows, row, parts) + 1, parts);
}

// Returns where the crop of a row goes, or null if a worker must decode it.
CropRegion* RowColumns::CropsOf(Slot& slot, uint32_t row) const {
  if (slot.crops.empty() || MixesAcrossParts(slot, row)) return nullptr;
  return &slot.crops[static_cast<size_t>(
      PartOfRow(slot.rows, row, static_cast<int64_t>(slot.crops.size())))];
}

Status RowColumns::Write(const RowClaim& claim, std::span<const uint8_t> loaded,
                         StageTimes& times) const {
  TRY(WriteFields(claim, loaded));
  return MapRows(claim, times);
}

Status RowColumns::WriteFields(const RowClaim& claim, std::span<const uint8_t> loaded) const {
  Slot& slot = *claim.slot;
  const auto ids = std::span<const uint64_t>(slot.sample_ids).subspan(claim.row, claim.rows);
  if (!object_fields_.empty()) TRY(WriteObjects(claim));
  for (size_t field = planned_; field < field_columns_.size(); ++field) {
    if (source_.fields()[field].is_of_objects()) continue;
    const size_t column = field_columns_[field];
    const bool labels = mixer_ && field == mixer_->label_column();
    if (const size_t bytes = LoadedBytes(source_.fields()[field]); bytes != 0) {
      if (loaded.empty()) continue;
      if (labels) {
        TRY(mixer_->WriteLabel(loaded.data(), ids[0], slot, claim.row));
      } else if (IsString(source_.fields()[field].dtype)) {
        std::string_view string;
        std::memcpy(&string, loaded.data(), bytes);
        TRY(slot.SetString(column, claim.row, string));
      } else {
        std::memcpy(slot.Row(column, claim.row), loaded.data(), bytes);
      }
      loaded = loaded.subspan(bytes);
    } else if (labels) {
      TRY(mixer_->WriteLabels(source_, ids, slot, claim.row));
    } else {
      source_.FixedRows(field, ids, slot.Row(column, claim.row));
    }
  }
  if (adds_labels_) {
    std::fill_n(static_cast<int64_t*>(slot.Row(1, claim.row)), claim.rows, kNoLabel);
  }
  for (const size_t column : added_) {
    std::memset(slot.Row(column, claim.row), 0, columns_[column].row_bytes() * claim.rows);
  }
  return {};
}

// Counts the objects that the plan has written, or copies them if there is none.
Status RowColumns::WriteObjects(const RowClaim& claim) const {
  const Slot& slot = *claim.slot;
  for (uint32_t row = claim.row; row < claim.row + claim.rows; ++row) {
    const uint64_t sample = slot.sample_ids[row];
    int64_t count = 0;
    if (plan_) {
      count = slot.Objects(field_columns_[object_fields_.front()], row);
    } else {
      ASSIGN_OR_RETURN(count, CountObjects(sample));
    }
    for (const size_t field : object_fields_) {
      const size_t column = field_columns_[field];
      slot.Objects(column, row) = count;
      if (plan_ || count == 0) continue;
      const std::span<const uint8_t> from = source_.View(field, sample);
      std::memcpy(slot.Row(column, row), from.data(), from.size());
    }
  }
  return {};
}

Status RowColumns::MapRows(const RowClaim& claim, StageTimes& times) const {
  if (map_ == nullptr) return {};
  const Slot& slot = *claim.slot;
  const uint64_t before = NowNanoseconds();
  Status status;
  for (uint32_t row = claim.row; row < claim.row + claim.rows && status.ok(); ++row) {
    const uint64_t position = sampler_.PositionOf(slot.name(), row);
    status = map_->MapRow(MappedRow(columns_, slot, row, position, seed_));
  }
  times.map_ns += NowNanoseconds() - before;
  return status;
}

}  // namespace stoker
