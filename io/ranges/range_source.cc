#include "io/ranges/range_source.h"

#include <span>
#include <utility>

#include "core/hash/hash.h"

namespace stoker {

namespace {

class RangeSource final : public SampleSource {
 public:
  explicit RangeSource(RangeSourceParts parts) : parts_(std::move(parts)) {
    fields_.push_back({.name = "image",
                       .kind = Field::Kind::kImage,
                       .count = parts_.numbers.Most(),
                       .varies = parts_.numbers.vary()});
    for (const ArrayColumn& column : parts_.columns.columns()) fields_.push_back(FieldOf(column));
    if (parts_.has_label) fields_[1].is_label = true;
    uint64_t hash = parts_.columns.Hash(/*all_numbers=*/true, parts_.images.HashLengths());
    for (const std::string& name : parts_.class_names) hash = Hash64(name, hash);
    fingerprint_ = parts_.numbers.Hash(hash);
  }

  uint64_t size() const override {
    return vary() ? parts_.numbers.ends().size() : parts_.images.size();
  }
  uint64_t files() const override { return parts_.paths.size() + (vary() ? 1 : 0); }
  std::span<const Field> fields() const override { return fields_; }
  size_t PiecesOf(uint64_t id) const override { return parts_.numbers.CountOf(id); }
  ByteRange RangeOf(uint64_t id) const override {
    if (PiecesOf(id) == 0) return {.file = NoFile(), .length = 0};
    return RangeOfPiece(id, 0);
  }
  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override {
    return parts_.images[parts_.numbers.Begin(id) + piece];
  }
  void PathOf(uint32_t file, std::string& path) const override {
    path.assign(file == NoFile() ? std::string_view() : parts_.paths[file]);
  }
  void NameOf(uint64_t id, std::string& name) const override { NameOfPiece(id, 0, name); }
  void NameOfPiece(uint64_t id, size_t piece, std::string& name) const override {
    name.clear();
    if (piece >= PiecesOf(id) || !vary()) return;
    name.append("image ").append(std::to_string(piece)).append(" of its sample");
  }
  const ObjectVersions* objects() const override {
    return parts_.objects ? &*parts_.objects : nullptr;
  }
  const std::vector<std::string>& classes() const override { return parts_.class_names; }
  uint64_t Fingerprint() const override { return fingerprint_; }
  std::string Describe() const override { return parts_.described; }

  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override {
    parts_.columns.CopyRows(field - 1, ids, rows);
  }

  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    return parts_.columns.View(field - 1, id);
  }

  uint64_t memory_bytes() const override {
    uint64_t bytes = sizeof(*this) + parts_.paths.memory_bytes() + parts_.images.memory_bytes() +
                     parts_.numbers.memory_bytes() + parts_.column_bytes +
                     parts_.described.capacity();
    bytes += parts_.class_names.capacity() * sizeof(std::string);
    for (const std::string& name : parts_.class_names) bytes += name.capacity();
    return bytes + (parts_.objects ? parts_.objects->memory_bytes() : 0);
  }

 private:
  bool vary() const { return parts_.numbers.vary(); }
  // The number of the file that samples without images have.
  uint32_t NoFile() const { return static_cast<uint32_t>(parts_.paths.size()); }

  const RangeSourceParts parts_;
  std::vector<Field> fields_;  // the image, and the columns
  uint64_t fingerprint_ = 0;
};

}  // namespace

std::shared_ptr<const SampleSource> MakeRangeSource(RangeSourceParts parts) {
  return std::make_shared<RangeSource>(std::move(parts));
}

}  // namespace stoker
