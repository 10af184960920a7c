#include "io/memory/memory_source.h"

#include <span>
#include <utility>
#include <vector>

namespace stoker {
namespace {

class MemorySource final : public SampleSource {
 public:
  MemorySource(MemoryColumns columns, MemorySourceOptions options)
      : columns_(std::move(columns)), options_(std::move(options)) {
    for (const ArrayColumn& column : columns_.columns()) fields_.push_back(FieldOf(column));
    if (options_.label) fields_[*options_.label].is_label = true;
  }

  uint64_t size() const override { return columns_.columns()[0].samples; }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t, std::string& path) const override { path.clear(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return sizeof(*this) + options_.owned_bytes; }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    columns_.CopyRows(field, ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return columns_.View(field, id);
  }

  uint32_t max_objects() const override { return columns_.max_objects(); }

  uint64_t Fingerprint() const override { return columns_.Hash(/*all_numbers=*/false); }

  // Returns "arrays(image: 60000 × uint8 (28, 28), label: 60000 × int64)".
  std::string Describe() const override {
    std::string text;
    for (const ArrayColumn& column : columns_.columns()) {
      text += (text.empty() ? options_.kind + "(" : ", ") + DescribeColumn(column);
    }
    return text + ")";
  }

 private:
  const MemoryColumns columns_;
  const MemorySourceOptions options_;
  std::vector<Field> fields_;               // by column
  const std::vector<std::string> classes_;  // empty: labels have no names
};

}  // namespace

std::shared_ptr<const SampleSource> MakeMemorySource(MemoryColumns columns,
                                                     MemorySourceOptions options) {
  return std::make_shared<MemorySource>(std::move(columns), std::move(options));
}

}  // namespace stoker
