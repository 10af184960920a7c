// CombinedSource: the samples of several sources, one source behind another, in an order of their
// own if there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/remote/object_version.h"
#include "io/select/sample_order.h"
#include "io/source/source.h"

namespace stoker {

class CombinedSource final : public SampleSource {
 public:
  // `name` is for Describe(). Preconditions: there are sources, all with the same fields; all of
  // their files together are at most 2^32.
  CombinedSource(std::string name, std::vector<std::shared_ptr<const SampleSource>> sources,
                 std::shared_ptr<const SampleOrder> order);

  uint64_t size() const override { return parts_.back().end; }
  std::span<const Field> fields() const override { return parts_.front().source->fields(); }
  const SampleOrder* order() const override { return order_.get(); }
  int calls() const override { return calls_; }
  Status Load(uint64_t id, LoadedSample& loaded) const override;
  void AddCalled(std::vector<const SampleSource*>& called) const override;
  bool has_records() const override { return has_records_; }
  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> rows) const override;
  uint64_t files() const override { return parts_.back().file_end; }
  ByteRange RangeOf(uint64_t id) const override;
  bool has_row_ranges(uint64_t id) const override;
  bool may_have_crop_index() const override;
  ByteRange RangeOfRows(uint64_t id, int top, int bottom) const override;
  void PathOf(uint32_t file, std::string& path) const override;
  void NameOf(uint64_t id, std::string& name) const override;
  const ObjectVersions* objects() const override { return objects_ ? &*objects_ : nullptr; }
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override;
  std::span<const uint8_t> View(size_t field, uint64_t id) const override;
  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override;
  ImageFacts FactsOf(uint64_t id) const override;
  std::string Warning() const override;
  SkippedFiles Skipped() const override;
  // The classes of the sources, if all have the same; otherwise none.
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override;
  uint64_t Fingerprint() const override;
  std::string Describe() const override;

 private:
  struct Part {
    std::shared_ptr<const SampleSource> source;
    uint64_t begin = 0, end = 0;            // of its samples
    uint64_t file_begin = 0, file_end = 0;  // of its files
  };
  // Precondition: id < size().
  const Part& PartOf(uint64_t id) const;

  const std::string name_;
  std::vector<Part> parts_;
  int calls_ = 0;                          // the most of any source
  bool has_records_ = false;               // whether any source is; the others' records are images
  std::optional<ObjectVersions> objects_;  // of all sources; none: they have files only
  std::vector<std::string> classes_;
  const std::shared_ptr<const SampleOrder> order_;  // null: each sample once
};

}  // namespace stoker
