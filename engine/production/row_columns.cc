#include "engine/production/row_columns.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "core/batch/batch_parts.h"
#include "core/batch/object_shapes.h"
#include "core/result/try.h"
#include "engine/production/producer_parts.h"
#include "io/source/field.h"
#include "transforms/plan/row/pad_batch.h"

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

// Returns the indices of the fields for which a test is true.
std::vector<size_t> FieldsThat(bool (Field::*is)() const, std::span<const Field> fields) {
  std::vector<size_t> found;
  for (size_t field = 0; field < fields.size(); ++field) {
    if ((fields[field].*is)()) found.push_back(field);
  }
  return found;
}

Error WrongClass(const Field& mask, size_t object, int64_t number) {
  return {.code = Code::kInvalidArgument,
          .cause = "object " + std::to_string(object) + " is of class " + std::to_string(number) +
                   ", which '" + mask.name + "', a mask of " + NameOf(mask.dtype) + ", cannot hold",
          .advice = "Ask for masks of uint16, or number the classes from 0"};
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
      object_fields_(FieldsThat(&Field::is_of_objects, source_.fields())),
      drawn_fields_(FieldsThat(&Field::is_drawn, source_.fields())),
      planned_(PlannedFields(source_, plan_)),
      places_(PlacesOf(source_, plan_)),
      added_(AddedBy(map, columns_)),
      adds_labels_(AddsLabels(options, plan_, map)),
      size_column_(SizeColumn(source_, plan_)),
      geometry_column_(GeometryColumn(source_, plan_)) {}

// The images of a field follow each other.
std::vector<RowColumns::PlaceInRow> RowColumns::PlacesOf(const SampleSource& source,
                                                         const std::optional<Plan>& plan) {
  std::vector<PlaceInRow> places(plan ? source.pieces() : 0);
  for (size_t piece = 0; piece < places.size(); ++piece) {
    const auto [field, image] = source.PlaceOf(piece);
    places[piece] = {.column = field, .offset = image * plan->piece(piece).row_bytes()};
  }
  return places;
}

// The last columns are those of a device: the offsets of crops, if it decodes, and the deferred
// operations.
Result<OutputRows> RowColumns::RowsOf(Slot& slot, uint32_t row, uint64_t sample,
                                      Buffers& buffers) const {
  std::vector<void*>& other_rows = buffers.other_rows;
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
  // The objects of further samples follow this one's, also after an error.
  slot.Objects(field_columns_[object_fields_.front()], row) = 0;
  ASSIGN_OR_RETURN(rows.objects, ObjectRowsOf(slot, row, sample, buffers));
  return rows;
}

Result<OutputRows> RowColumns::RowsOfPart(Slot& slot, uint32_t row, uint64_t sample,
                                          Buffers& buffers) const {
  OutputRows rows{.row = slot.Row(0, row)};
  if (object_fields_.empty()) return rows;
  ASSIGN_OR_RETURN(rows.objects, ObjectRowsOf(slot, row, sample, buffers));
  return rows;
}

// Returns the objects of a sample, and where they and the masks that they make are written.
Result<const ObjectRows*> RowColumns::ObjectRowsOf(Slot& slot, uint32_t row, uint64_t sample,
                                                   Buffers& buffers) const {
  ASSIGN_OR_RETURN(const ObjectRows* const objects, ObjectsOf(sample, buffers));
  buffers.kept.clear();
  for (const size_t field : object_fields_) {
    buffers.kept.push_back(slot.Row(field_columns_[field], row));
  }
  buffers.object_rows.to = buffers.kept;
  buffers.object_rows.kept = &slot.Objects(field_columns_[object_fields_.front()], row);
  TRY(AddMasks(slot, row, sample, buffers));
  return objects;
}

OutputRows RowColumns::RowsOfPiece(Slot& slot, uint32_t row, uint32_t piece,
                                   Buffers& buffers) const {
  const PlaceInRow& place = places_[piece];
  OutputRows rows{.row = static_cast<uint8_t*>(slot.Row(place.column, row)) + place.offset};
  if (object_fields_.empty()) return rows;
  buffers.object_rows.to = {};
  buffers.object_rows.kept = nullptr;
  buffers.object_rows.masks = {};
  rows.objects = &buffers.object_rows;
  return rows;
}

// Adds the masks that are drawn from the sample's objects.
Status RowColumns::AddMasks(Slot& slot, uint32_t row, uint64_t sample, Buffers& buffers) const {
  const size_t count = buffers.object_rows.count;
  buffers.masks.clear();
  buffers.values.clear();
  buffers.values.reserve(count * drawn_fields_.size());  // spans of it stay valid
  for (const size_t field : drawn_fields_) {
    const Field& of = source_.fields()[field];
    buffers.masks.push_back({.shapes = source_.View(field, sample),
                             .normalized = of.normalized,
                             .background = of.fill,
                             .bytes = SizeOf(of.dtype),
                             .row = slot.Row(field_columns_[field], row)});
    if (of.kind == Field::Kind::kInstances) continue;
    TRY(AddValues(of, buffers));
    buffers.masks.back().values = std::span(buffers.values).last(count);
  }
  buffers.object_rows.masks = buffers.masks;
  return {};
}

// Adds the values that all objects have in a semantic mask.
Status RowColumns::AddValues(const Field& field, Buffers& buffers) const {
  const auto number_in = [&](const char* name, size_t object) {
    for (size_t i = 0; i < object_fields_.size(); ++i) {
      const Field& of = source_.fields()[object_fields_[i]];
      if (of.name != name) continue;
      return of.ClassNumberIn(buffers.objects[i].data() + object * of.row_bytes());
    }
    return int64_t{0};
  };
  const int64_t most = field.dtype == DType::kU8 ? UINT8_MAX : UINT16_MAX;
  ShapeReader shapes(buffers.masks.back().shapes);
  for (size_t object = 0; object < buffers.object_rows.count; ++object) {
    const bool has_object = shapes.NextObject();
    const bool is_crowd = field.crowd && number_in("iscrowd", object) != 0;
    const int64_t number = is_crowd ? *field.crowd : number_in("labels", object);
    const bool fits = 0 <= number && number <= most;
    if (!fits && has_object && shapes.NextPart()) return WrongClass(field, object, number);
    buffers.values.push_back(static_cast<uint16_t>(number));
  }
  return {};
}

// Returns the objects of a sample, for which there is room, without a place to write them. A
// program may have its own source.
Result<const ObjectRows*> RowColumns::ObjectsOf(uint64_t sample, Buffers& buffers) const {
  buffers.objects.clear();
  std::optional<size_t> objects;
  for (const size_t field : object_fields_) {
    const ColumnSpec& column = columns_[field_columns_[field]];
    const std::span<const uint8_t> view = source_.View(field, sample);
    const size_t bytes = view.size(), each = column.object_bytes(), count = bytes / each;
    if (bytes % each != 0 || count > source_.max_objects() || count != objects.value_or(count)) {
      return Error{Code::kDataLoss, "the source has " + std::to_string(bytes) + " bytes of '" +
                                        column.name + "' for sample " + std::to_string(sample) +
                                        "; expected are objects of " + std::to_string(each) +
                                        " bytes, at most " + std::to_string(source_.max_objects()) +
                                        ", and the same number in each field"};
    }
    objects = count;
    buffers.objects.push_back(view);
  }
  buffers.object_rows = {.from = buffers.objects, .count = static_cast<uint32_t>(*objects)};
  return &buffers.object_rows;
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
    const Field& of = source_.fields()[field];
    if (of.is_of_objects() || of.is_drawn()) continue;
    const size_t column = field_columns_[field];
    const bool labels = mixer_ && field == mixer_->label_column();
    if (const size_t bytes = LoadedBytes(of); bytes != 0) {
      if (loaded.empty()) continue;
      if (labels) {
        TRY(mixer_->WriteLabel(loaded.data(), ids[0], slot, claim.row));
      } else if (IsString(of.dtype)) {
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
  Buffers buffers;
  for (uint32_t row = claim.row; row < claim.row + claim.rows; ++row) {
    int64_t count = slot.Objects(field_columns_[object_fields_.front()], row);
    if (!plan_) {
      ASSIGN_OR_RETURN(const ObjectRows* const objects, ObjectsOf(slot.sample_ids[row], buffers));
      count = objects->count;
    }
    for (size_t i = 0; i < object_fields_.size(); ++i) {
      const size_t column = field_columns_[object_fields_[i]];
      slot.Objects(column, row) = count;
      if (plan_ || count == 0) continue;
      std::memcpy(slot.Row(column, row), buffers.objects[i].data(), buffers.objects[i].size());
    }
  }
  return {};
}

void RowColumns::Pad(Slot& slot) const {
  const std::span<const int32_t> sizes(static_cast<const int32_t*>(slot.Row(*size_column_, 0)),
                                       2 * static_cast<size_t>(slot.rows));
  const ImageSize size =
      slot.rows == 0 ? plan_->output_size() : LargestOf(sizes, plan_->multiple());
  for (size_t i = 0; i < planned_; ++i) {
    const Plan& piece = plan_->piece(i);
    FinishBatch(piece, slot.Row(i, 0), sizes, size);
    slot.SetRowShape(i, piece.row_shape(size));
  }
  for (const size_t field : drawn_fields_) {
    const size_t column = field_columns_[field];
    const Field& of = source_.fields()[field];
    BatchRows rows{.data = static_cast<uint8_t*>(slot.Row(column, 0)),
                   .reserved_bytes = columns_[column].row_bytes(),
                   .pixel_bytes = SizeOf(of.dtype)};
    std::memcpy(rows.padding.data(), &of.fill, rows.pixel_bytes);
    PadBatch(rows, sizes, size);
    slot.SetRowShape(column, std::array<int64_t, 2>{size.height, size.width});
  }
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
