#include "io/sources/arrays.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "core/hash.h"
#include "core/plural.h"
#include "core/try.h"

namespace stoker {
namespace {

constexpr size_t kMaxDimensions = 7;  // of a row; a batch has one more
constexpr int64_t kMaxRowBytes =
    int64_t{1} << 42;  // of a row, so that the product with the number of rows cannot overflow

Error Refuse(const ArrayColumn& column, const std::string& cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = "array '" + column.name + "' " + cause,
          .advice = std::move(advice)};
}

Status CheckColumn(const ArrayColumn& column) {
  if (column.name.empty()) return Refuse(column, "has no name");
  if (SizeOf(column.dtype) == 0) return Refuse(column, "has an invalid element type");
  if (column.row_shape.size() > kMaxDimensions) {
    return Refuse(column, "has rows of " + std::to_string(column.row_shape.size()) +
                              " dimensions; at most " + std::to_string(kMaxDimensions) +
                              " are possible");
  }
  auto bytes = static_cast<int64_t>(SizeOf(column.dtype));
  for (int64_t d : column.row_shape) {
    if (d < 1) return Refuse(column, "has rows with a dimension of " + std::to_string(d));
    if (d >= kMaxRowBytes / bytes) return Refuse(column, "has rows too large for any memory");
    bytes *= d;
  }
  if (column.samples == 0) return Refuse(column, "has no samples");
  if (column.data == nullptr) return Refuse(column, "has no data");
  return {};
}

Status CheckColumns(const std::vector<ArrayColumn>& columns) {
  if (columns.empty() || columns.size() > 2) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::to_string(columns.size()) + " arrays were given",
                 .advice = "Give one (images), or two (images and labels)"};
  }
  for (const ArrayColumn& column : columns) {
    if (Status s = CheckColumn(column); !s.ok()) return s;
  }
  const ArrayColumn &first = columns.front(), &last = columns.back();
  if (first.samples != last.samples) {
    return Refuse(last,
                  "has " + std::to_string(last.samples) +
                      Plural(last.samples, " sample", " samples") + ", but '" + first.name +
                      "' has " + std::to_string(first.samples),
                  "The first dimension counts the samples: make them equal");
  }
  if (columns.size() == 2 && first.name == last.name) return Refuse(last, "was given twice");
  return {};
}

Field FieldOf(const ArrayColumn& column) {
  return {.name = column.name, .dtype = column.dtype, .row_shape = column.row_shape};
}

std::string DescribeColumn(const ArrayColumn& column) {
  return column.name + ": " + std::to_string(column.samples) + " × " + DescribeRow(FieldOf(column));
}

// Limits of a fingerprint: runs of neighbouring rows, and in each run rows and bytes. The rows may
// be far apart in a mapped file, where each can cost a read.
constexpr uint64_t kRuns = 16;
constexpr uint64_t kRunRows = 64;
constexpr uint64_t kRunBytes = 4096;

// The `run`-th of kRuns evenly spread offsets from 0 to `last`.
uint64_t EvenlySpread(uint64_t run, uint64_t last) {
  return last / (kRuns - 1) * run + last % (kRuns - 1) * run / (kRuns - 1);
}

// Hashes the rows' type and content: everything if there are few rows of few bytes, otherwise runs
// of rows from the first to the last and, of long rows, parts from the first bytes of the first row
// to the last bytes of the last one. It does not depend on the rows' stride.
uint64_t HashOf(const ArrayColumn& column, uint64_t seed) {
  uint64_t hash = Hash64(DescribeColumn(column), seed);
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

class ArraySource final : public SampleSource {
 public:
  ArraySource(std::vector<ArrayColumn> columns, std::shared_ptr<void> owner)
      : columns_(std::move(columns)), owner_(std::move(owner)) {
    for (const ArrayColumn& column : columns_) fields_.push_back(FieldOf(column));
    if (fields_.size() == 2) fields_[1].is_label = true;
  }

  uint64_t size() const override { return columns_[0].samples; }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t, std::string& path) const override { path.clear(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return sizeof(*this); }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    const ArrayColumn& column = columns_[field];
    const size_t bytes = column.row_bytes();
    auto* to = static_cast<uint8_t*>(rows);
    for (const uint64_t id : ids) {
      std::memcpy(to, column.Row(id), bytes);
      to += bytes;
    }
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return {columns_[field].Row(id), columns_[field].row_bytes()};
  }

  uint64_t Fingerprint() const override {
    uint64_t hash = columns_.size();
    for (const ArrayColumn& column : columns_) hash = HashOf(column, hash);
    return hash;
  }

  // "arrays(image: 60000 × uint8 (28, 28), label: 60000 × int64)"
  std::string Describe() const override {
    std::string text;
    for (const ArrayColumn& column : columns_) {
      text += (text.empty() ? "arrays(" : ", ") + DescribeColumn(column);
    }
    return text + ")";
  }

 private:
  const std::vector<ArrayColumn> columns_;
  std::vector<Field> fields_;  // by column
  const std::shared_ptr<void> owner_;
  const std::vector<std::string> classes_;  // empty: labels have no names
};

}  // namespace

Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner) {
  TRY(CheckColumns(columns));
  for (ArrayColumn& column : columns) {
    if (!column.row_stride) column.row_stride = static_cast<int64_t>(column.row_bytes());
  }
  return std::shared_ptr<const SampleSource>(
      std::make_shared<ArraySource>(std::move(columns), std::move(owner)));
}

}  // namespace stoker
