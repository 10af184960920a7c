#include "io/sources/arrays.h"

#include <span>
#include <string>
#include <utility>

#include "core/try.h"
#include "io/sources/memory_columns.h"

namespace stoker {
namespace {

class ArraySource final : public SampleSource {
 public:
  explicit ArraySource(MemoryColumns columns) : columns_(std::move(columns)) {
    for (const ArrayColumn& column : columns_.columns()) fields_.push_back(FieldOf(column));
    if (fields_.size() == 2) fields_[1].is_label = true;
  }

  uint64_t size() const override { return columns_.columns()[0].samples; }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t, std::string& path) const override { path.clear(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return sizeof(*this); }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    columns_.CopyRows(field, ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return columns_.View(field, id);
  }

  uint64_t Fingerprint() const override { return columns_.Hash(/*all_numbers=*/false); }

  // "arrays(image: 60000 × uint8 (28, 28), label: 60000 × int64)"
  std::string Describe() const override {
    std::string text;
    for (const ArrayColumn& column : columns_.columns()) {
      text += (text.empty() ? "arrays(" : ", ") + DescribeColumn(column);
    }
    return text + ")";
  }

 private:
  const MemoryColumns columns_;
  std::vector<Field> fields_;               // by column
  const std::vector<std::string> classes_;  // empty: labels have no names
};

}  // namespace

Result<std::shared_ptr<const SampleSource>> Arrays(std::vector<ArrayColumn> columns,
                                                   std::shared_ptr<void> owner) {
  if (columns.empty() || columns.size() > 2) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::to_string(columns.size()) + " arrays were given",
                 .advice = "Give one (images), or two (images and labels)"};
  }
  ASSIGN_OR_RETURN(MemoryColumns made, MemoryColumns::Make(std::move(columns), std::move(owner)));
  return std::shared_ptr<const SampleSource>(std::make_shared<ArraySource>(std::move(made)));
}

}  // namespace stoker
