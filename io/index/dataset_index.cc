#include "io/index/dataset_index.h"

#include <algorithm>
#include <new>
#include <optional>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "io/index/image_list_sections.h"

namespace stoker {

using dataset_index::Facts;

namespace {

constexpr SectionFileKind kIndexFile = {.magic = dataset_index::kMagic,
                                        .version = dataset_index::kVersion,
                                        .article = "an",
                                        .name = "index",
                                        .remake = "Run `stoker index` again",
                                        .other_version = "Run `stoker index` again",
                                        .give = "Give the file that `stoker index` wrote"};

}  // namespace

Status DatasetIndex::ReadSections() {
  TRY(file_->Require({sections::kCropIndexes, sections::kFacts, sections::kSkipped}));
  TRY(ReadImageList(*file_, list_));
  TRY(file_->ReadColumn(
      sections::kFacts, facts_, [&](uint64_t n) { return n == list_.files.size(); },
      [](size_t) { return true; }));
  return ReadSkipped();
}

Status DatasetIndex::ReadSkipped() {
  std::string packed;
  TRY(file_->ReadColumn(
      sections::kSkipped, packed, [](uint64_t n) { return n <= dataset_index::kMaxSkipped; },
      [](size_t) { return true; }));
  std::optional<SkippedFiles> skipped = SkippedFiles::Unpack(packed);
  if (!skipped) return file_->Damaged("its list of skipped files");
  list_.skipped = *std::move(skipped);
  return {};
}

Result<DatasetIndex> DatasetIndex::Open(const std::string& path) {
  try {
    ASSIGN_OR_RETURN(SectionFile file, SectionFile::Open(path, kIndexFile));
    DatasetIndex index(std::move(file));
    TRY(index.ReadSections());
    return index;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the index", path};
  }
}

ImageFacts DatasetIndex::FactsOf(uint32_t image) const {
  constexpr uint32_t kUnknown = ~uint32_t{0};
  const Facts& facts = facts_[image];
  const bool in_exif = facts.orientation >= 1 && facts.orientation <= 8;
  return {.file_bytes = facts.file_bytes == kUnknown ? 0 : facts.file_bytes,
          .width = facts.width,
          .height = facts.height,
          .orientation = in_exif ? facts.orientation : uint8_t{1},
          .format = facts.format};
}

// Checked here and not when opening, because it costs nothing.
DatasetIndex::Record DatasetIndex::RecordOf(uint32_t image) const {
  const uint64_t begin = image == 0 ? 0 : facts_[image - 1].record_end;
  const uint64_t end = facts_[image].record_end;
  const bool inside = begin <= end && end <= file_->At(sections::kCropIndexes).bytes;
  return inside ? Record{begin, end - begin} : Record{};
}

std::span<const uint8_t> DatasetIndex::Read(uint32_t image, uint64_t most,
                                            GrowingBuffer& memory) const {
  const auto [begin, bytes] = RecordOf(image);
  if (bytes == 0 || bytes > most || !memory.Grow(bytes).ok()) return {};
  const std::span record(memory.data(), bytes);
  const uint64_t offset = file_->At(sections::kCropIndexes).offset + begin;
  if (!file_->ReadAt(offset, record).ok()) return {};
  return record;
}

Result<DatasetIndexWriter> DatasetIndexWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(SectionFileWriter file, SectionFileWriter::Create(path, 3 + kImageListSections));
  return DatasetIndexWriter(std::move(file));
}

Status DatasetIndexWriter::Add(const ImageFacts& facts, std::span<const uint8_t> record) {
  constexpr uint64_t kUnknown = ~uint32_t{0};
  const uint64_t bytes = facts.file_bytes == 0 ? kUnknown : std::min(facts.file_bytes, kUnknown);
  record_bytes_ += record.size();
  facts_.push_back({.record_end = record_bytes_,
                    .file_bytes = static_cast<uint32_t>(bytes),
                    .width = facts.width,
                    .height = facts.height,
                    .orientation = facts.orientation,
                    .format = facts.format});
  return file_.Write(record);
}

Result<uint64_t> DatasetIndexWriter::Commit(const ImageList& list) {
  file_.AddWritten(sections::kCropIndexes);
  TRY(AddImageList(list, file_));
  TRY(file_.Add(sections::kFacts, sections::ColumnBytes(facts_)));
  TRY(file_.Add(sections::kSkipped, sections::ColumnBytes(list.skipped.Pack())));
  return file_.Commit(kIndexFile, list.Fingerprint());
}

}  // namespace stoker
