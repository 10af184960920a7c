#include "io/memory/memory_columns.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/hash/hash.h"
#include "core/result/plural.h"
#include "core/result/try.h"

namespace stoker {

namespace {

constexpr size_t kMaxDimensions = 7;  // of a row; a batch has one more
constexpr int64_t kMaxRowBytes =
    int64_t{1} << 42;  // of a row, so that the product with the number of rows cannot overflow

// Returns the bytes that offsets count.
uint64_t UnitBytes(const ArrayColumn& column) {
  return Field::IsDrawn(column.kind) ? sizeof(uint32_t) : column.row_bytes();
}

// Checks that samples have their objects one after another.
Status CheckOffsets(const ArrayColumn& column) {
  for (uint64_t id = 0; id < column.samples; ++id) {
    const int64_t begin = column.offsets[id], end = column.offsets[id + 1];
    if (begin < 0 || end < begin) {
      return RefuseColumn(column,
                          "has offsets " + std::to_string(begin) + " and " + std::to_string(end) +
                              " for sample " + std::to_string(id),
                          "Offsets must not be negative, or decrease");
    }
    if (end - begin > kMaxObjects && !Field::IsDrawn(column.kind)) {
      return RefuseColumn(column, "has " + std::to_string(end - begin) + " objects in sample " +
                                      std::to_string(id) + "; at most " +
                                      std::to_string(kMaxObjects) + " are possible");
    }
  }
  return {};
}

Status CheckColumn(const ArrayColumn& column) {
  TRY(CheckRow(column));
  if (column.samples == 0) return RefuseColumn(column, "has no samples");
  if (column.offsets != nullptr) {
    TRY(CheckOffsets(column));
    if (column.offsets[column.samples] == column.offsets[0]) return {};  // no objects at all
  }
  if (column.data == nullptr) return RefuseColumn(column, "has no data");
  return {};
}

// Checks that two fields have the same objects.
Status CheckSameObjects(const ArrayColumn& one, const ArrayColumn& other) {
  if (one.offsets == other.offsets) return {};
  if (Field::IsDrawn(one.kind) || Field::IsDrawn(other.kind)) return {};
  for (uint64_t id = 0; id < one.samples; ++id) {
    const int64_t ours = one.offsets[id + 1] - one.offsets[id];
    const int64_t theirs = other.offsets[id + 1] - other.offsets[id];
    if (ours == theirs) continue;
    return RefuseColumn(one,
                        "has " + std::to_string(ours) + Plural(ours, " object", " objects") +
                            " in sample " + std::to_string(id) + ", but '" + other.name + "' has " +
                            std::to_string(theirs),
                        "All columns of objects describe the same objects");
  }
  return {};
}

// Checks that the column fits those before it.
Status CheckBeside(std::span<const ArrayColumn> others, const ArrayColumn& column) {
  for (const ArrayColumn& other : others) {
    if (other.samples != column.samples) {
      return RefuseColumn(column,
                          "has " + std::to_string(column.samples) +
                              Plural(column.samples, " sample", " samples") + ", but '" +
                              other.name + "' has " + std::to_string(other.samples),
                          "The first dimension counts the samples: make them equal");
    }
    if (other.name == column.name) return RefuseColumn(column, "was given twice");
    if (column.offsets != nullptr && other.offsets != nullptr) {
      TRY(CheckSameObjects(column, other));
    }
  }
  return {};
}

// Limits of a hash of parts: runs of neighbouring rows, and in each run rows and bytes. The rows
// may be far apart in a mapped file, where each can cost a read.
constexpr uint64_t kRuns = 16;
constexpr uint64_t kRunRows = 64;
constexpr uint64_t kRunBytes = 4096;

// Returns the `run`-th of kRuns evenly spread offsets from 0 to `last`.
uint64_t EvenlySpread(uint64_t run, uint64_t last) {
  return last / (kRuns - 1) * run + last % (kRuns - 1) * run / (kRuns - 1);
}

// Hashes everything if there are few rows of few bytes; otherwise runs of rows from the first to
// the last and, of long rows, parts from the first bytes of the first row to the last bytes of the
// last one.
uint64_t HashParts(const ArrayColumn& column, uint64_t hash) {
  const uint64_t row_bytes = column.row_bytes();
  const uint64_t bytes = std::min(row_bytes, kRunBytes);
  const uint64_t rows = std::min({kRunBytes / bytes, kRunRows, column.samples});
  for (uint64_t run = 0; run < kRuns; ++run) {
    const uint64_t first = EvenlySpread(run, column.samples - rows);
    const uint64_t offset = EvenlySpread(run, row_bytes - bytes);
    for (uint64_t row = first; row < first + rows; ++row) {
      hash = Hash64(std::span(column.Row(row) + offset, bytes), hash);
    }
  }
  return hash;
}

// Precondition: a row is one number.
uint64_t HashAll(const ArrayColumn& column, uint64_t hash) {
  std::array<uint8_t, 4096> together{};
  const uint64_t bytes = column.row_bytes();
  size_t filled = 0;
  for (uint64_t row = 0; row < column.samples; ++row) {
    std::memcpy(together.data() + filled, column.Row(row), bytes);
    filled += bytes;
    if (filled == together.size() || row + 1 == column.samples) {
      hash = Hash64(std::span(together).first(std::exchange(filled, 0)), hash);
    }
  }
  return hash;
}

// Hashes the objects of all samples, and how many each sample has.
uint64_t HashObjects(const ArrayColumn& column, uint64_t hash) {
  const auto as_bytes = [](const auto* data, uint64_t bytes) {
    return std::span(reinterpret_cast<const uint8_t*>(data), bytes);
  };
  const int64_t begin = column.offsets[0], end = column.offsets[column.samples];
  const std::array<int64_t, 3> described{static_cast<int64_t>(column.kind),
                                         static_cast<int64_t>(column.box_format),
                                         column.normalized ? 1 : 0};
  hash = Hash64(as_bytes(described.data(), sizeof(described)), hash);
  if (Field::IsDrawn(column.kind)) {
    const std::array<int64_t, 2> values{column.fill, column.crowd ? *column.crowd : -1};
    hash = Hash64(as_bytes(values.data(), sizeof(values)), hash);
  }
  hash = Hash64(as_bytes(column.flip_pairs.data(), column.flip_pairs.size() * 2), hash);
  for (uint64_t id = 0; id < column.samples; ++id) {
    const int64_t objects = column.offsets[id + 1] - begin;
    hash = Hash64(as_bytes(&objects, sizeof(objects)), hash);
  }
  if (begin == end) return hash;
  const auto* const data = static_cast<const uint8_t*>(column.data);
  return Hash64(as_bytes(data + static_cast<uint64_t>(begin) * UnitBytes(column),
                         static_cast<uint64_t>(end - begin) * UnitBytes(column)),
                hash);
}

// Hashes the text of each string, and its length.
uint64_t HashStrings(const ArrayColumn& column, uint64_t hash) {
  for (uint64_t row = 0; row < column.samples; ++row) {
    std::string_view text;
    std::memcpy(&text, column.Row(row), column.row_bytes());
    hash = Hash64(text, hash + text.size());
  }
  return hash;
}

}  // namespace

Status CheckRow(const ArrayColumn& column) {
  if (column.name.empty()) return RefuseColumn(column, "has no name");
  if (SizeOf(column.dtype) == 0) return RefuseColumn(column, "has an invalid element type");
  if (column.row_shape.size() > kMaxDimensions) {
    return RefuseColumn(column, "has rows of " + std::to_string(column.row_shape.size()) +
                                    " dimensions; at most " + std::to_string(kMaxDimensions) +
                                    " are possible");
  }
  if (IsString(column.dtype) && !column.row_shape.empty()) {
    return RefuseColumn(column, "has rows of several strings; one for each sample is possible");
  }
  auto bytes = static_cast<int64_t>(SizeOf(column.dtype));
  for (int64_t d : column.row_shape) {
    if (d < 1) return RefuseColumn(column, "has rows with a dimension of " + std::to_string(d));
    if (d >= kMaxRowBytes / bytes) return RefuseColumn(column, "has rows too large for any memory");
    bytes *= d;
  }
  return {};
}

Error RefuseColumn(const ArrayColumn& column, const std::string& cause, std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = "array '" + column.name + "' " + cause,
          .advice = std::move(advice)};
}

Field FieldOf(const ArrayColumn& column) {
  return {.name = column.name,
          .kind = column.kind,
          .dtype = column.dtype,
          .row_shape = column.row_shape,
          .fill = column.fill,
          .crowd = column.crowd,
          .box_format = column.box_format,
          .normalized = column.normalized,
          .flip_pairs = column.flip_pairs};
}

std::string DescribeColumn(const ArrayColumn& column) {
  return column.name + ": " + std::to_string(column.samples) + " × " + DescribeRow(FieldOf(column));
}

Result<MemoryColumns> MemoryColumns::Make(std::vector<ArrayColumn> columns,
                                          std::shared_ptr<void> owner) {
  // Copies, because a program may change its own offsets later; equal ones are shared.
  std::vector<std::vector<int64_t>> offsets;
  for (ArrayColumn& column : columns) {
    if (column.offsets == nullptr) continue;
    const std::span<const int64_t> given(column.offsets, column.samples + 1);
    const auto is_equal = [&](const auto& kept) { return std::ranges::equal(kept, given); };
    auto found = std::ranges::find_if(offsets, is_equal);
    if (found == offsets.end()) found = offsets.emplace(found, given.begin(), given.end());
    column.offsets = found->data();
  }
  for (const ArrayColumn& column : columns) TRY(CheckColumn(column));
  for (size_t i = 0; i < columns.size(); ++i) {
    TRY(CheckBeside(std::span(columns).first(i), columns[i]));
    if (!columns[i].row_stride) {
      columns[i].row_stride = static_cast<int64_t>(columns[i].row_bytes());
    }
  }
  std::vector<Field> fields;
  fields.reserve(columns.size());
  for (const ArrayColumn& column : columns) fields.push_back(FieldOf(column));
  TRY(CheckObjects(fields));
  MemoryColumns made;
  for (const ArrayColumn& column : columns) {
    if (column.offsets == nullptr || Field::IsDrawn(column.kind)) continue;
    for (uint64_t id = 0; id < column.samples; ++id) {
      const auto objects = static_cast<uint32_t>(column.offsets[id + 1] - column.offsets[id]);
      made.max_objects_ = std::max(made.max_objects_, objects);
    }
    break;  // the others have the same objects
  }
  made.columns_ = std::move(columns);
  made.owner_ = std::move(owner);
  made.offsets_ = std::make_shared<const std::vector<std::vector<int64_t>>>(std::move(offsets));
  return made;
}

void MemoryColumns::CopyRows(size_t column, std::span<const uint64_t> ids, void* rows) const {
  const ArrayColumn& from = columns_[column];
  const size_t bytes = from.row_bytes();
  auto* to = static_cast<uint8_t*>(rows);
  for (const uint64_t id : ids) {
    std::memcpy(to, from.Row(id), bytes);
    to += bytes;
  }
}

std::span<const uint8_t> MemoryColumns::View(size_t column, uint64_t id) const {
  const ArrayColumn& of = columns_[column];
  if (of.offsets == nullptr) return {of.Row(id), of.row_bytes()};
  const auto begin = static_cast<uint64_t>(of.offsets[id]);
  const auto objects = static_cast<uint64_t>(of.offsets[id + 1]) - begin;
  if (objects == 0) return {};
  return {static_cast<const uint8_t*>(of.data) + begin * UnitBytes(of), objects * UnitBytes(of)};
}

uint64_t MemoryColumns::Hash(bool all_numbers, uint64_t seed) const {
  uint64_t hash = seed + columns_.size();
  for (const ArrayColumn& column : columns_) {
    hash = Hash64(DescribeColumn(column), hash);
    if (IsString(column.dtype)) {
      hash = HashStrings(column, hash);
    } else if (column.offsets != nullptr) {
      hash = HashObjects(column, hash);
    } else {
      const bool all = all_numbers && column.row_shape.empty();
      hash = all ? HashAll(column, hash) : HashParts(column, hash);
    }
  }
  return hash;
}

}  // namespace stoker
