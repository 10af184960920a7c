// SelectedSource: the samples of other sources. All sources made of others are SelectedSources, so
// that functions of SampleSource are forwarded in one place.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/remote/object_version.h"
#include "io/select/id_list.h"
#include "io/select/sample_order.h"
#include "io/source/image_numbers.h"
#include "io/source/source.h"

namespace stoker {

// A test says which functions of SampleSource are not overridden.
class SelectedSource final : public SampleSource {
 public:
  // All samples, one source after another, or in the given order. `name` is for Describe().
  // Preconditions: there are sources, all with the same fields; all of their files together are at
  // most 2^32.
  SelectedSource(std::string name, std::vector<std::shared_ptr<const SampleSource>> sources,
                 std::shared_ptr<const SampleOrder> order);

  // Some of the samples of one source. Precondition: `ids` are ids of samples of `source`.
  SelectedSource(std::shared_ptr<const SampleSource> source, IdList ids);

  // All samples of one source, with facts about the images of which it knows no size, by number.
  // `warning`: follows the source's. Precondition: `facts` has one for each image.
  SelectedSource(std::shared_ptr<const SampleSource> source, ImageNumbers numbers,
                 std::vector<ImageFacts> facts, std::string warning);

  // The given ids, or null if all samples of the sources are selected.
  const IdList* ids() const { return ids_ ? &*ids_ : nullptr; }
  const std::shared_ptr<const SampleSource>& first() const { return parts_.front().source; }

  uint64_t size() const override { return ids_ ? ids_->size() : parts_.back().end; }
  std::span<const Field> fields() const override {
    return fields_.empty() ? first()->fields() : std::span<const Field>(fields_);
  }
  size_t PiecesOf(uint64_t id) const override;
  const SampleOrder* order() const override { return order_.get(); }
  uint32_t max_objects() const override { return max_objects_; }
  int calls() const override { return calls_; }
  Status Load(uint64_t id, LoadedSample& loaded) const override;
  void AddCalled(std::vector<const SampleSource*>& called) const override;
  bool has_records() const override { return has_records_; }
  Result<std::span<const uint8_t>> Unpack(uint64_t id, std::span<const uint8_t> record,
                                          std::span<uint8_t> rows) const override;
  Result<std::span<const uint8_t>> UnpackPiece(uint64_t id, size_t piece,
                                               std::span<const uint8_t> record) const override;
  uint64_t files() const override { return parts_.back().file_end; }
  ByteRange RangeOf(uint64_t id) const override;
  ByteRange RangeOfPiece(uint64_t id, size_t piece) const override;
  bool has_row_ranges(uint64_t id) const override;
  bool may_have_crop_index() const override;
  ByteRange RangeOfRows(uint64_t id, int top, int bottom) const override;
  void PathOf(uint32_t file, std::string& path) const override;
  void NameOf(uint64_t id, std::string& name) const override;
  void NameOfPiece(uint64_t id, size_t piece, std::string& name) const override;
  const ObjectVersions* objects() const override;
  void FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const override;
  std::span<const uint8_t> View(size_t field, uint64_t id) const override;
  std::span<const uint8_t> ReadCropIndex(uint64_t id, uint64_t most,
                                         GrowingBuffer& memory) const override;
  ImageFacts FactsOf(uint64_t id) const override;
  ImageFacts FactsOfPiece(uint64_t id, size_t piece) const override;
  Status CheckViewed(uint64_t id, ImageSize viewed) const override;
  std::string Warning() const override;
  SkippedFiles Skipped() const override;
  // The classes of the sources if all have the same, otherwise empty.
  const std::vector<std::string>& classes() const override;
  uint64_t memory_bytes() const override;
  uint64_t Fingerprint() const override;
  std::string Describe() const override;

 private:
  uint32_t MostObjects() const;
  struct Part {
    std::shared_ptr<const SampleSource> source;
    uint64_t begin = 0, end = 0;            // of its samples
    uint64_t file_begin = 0, file_end = 0;  // of its files

    // Returns the range of one of its samples, with the file's number among those of all parts.
    ByteRange WithFileOfSource(ByteRange range) const;
  };
  // A sample's part, and its id there.
  struct Location {
    const Part& part;
    uint64_t id = 0;
    const SampleSource& source() const { return *part.source; }
  };
  // Precondition: id < size().
  Location Find(uint64_t id) const;

  const std::string name_;
  std::vector<Part> parts_;
  int calls_ = 0;             // the most of any source
  uint32_t max_objects_ = 0;  // likewise
  bool has_records_ = false;  // whether any source has records; the others' are images
  bool same_classes_ = true;  // all sources have the first one's
  const std::vector<std::string> no_classes_;
  std::optional<ObjectVersions> objects_;  // of several sources, unless they have files only
  const std::shared_ptr<const SampleOrder> order_;  // null if each sample occurs once
  const std::optional<IdList> ids_;
  const uint64_t ids_hash_ = 0;
  std::vector<Field> fields_;            // empty if they are the first source's
  const ImageNumbers numbers_;           // of facts_
  const std::vector<ImageFacts> facts_;  // empty if they are the sources'
  const std::string warning_;
};

}  // namespace stoker
