#include "io/index/dataset_index.h"

#include <algorithm>
#include <new>
#include <optional>

#include "core/batch/image.h"
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

// An index of any source, which SizedByHeaders writes.
constexpr SectionFileKind kSizesFile = [] {
  SectionFileKind kind = kIndexFile;
  kind.remake = kind.other_version = "Remove the file: it is written again";
  kind.give = "Give the index of this source, or a file that is not there yet";
  return kind;
}();

bool IsSize(const ImageFacts& facts) {
  const auto [least, most] = std::minmax(facts.width, facts.height);
  return most == 0 || (least >= 1 && most <= kMaxSidePixels);
}

ImageFacts Unpacked(const Facts& facts) {
  constexpr uint32_t kUnknown = ~uint32_t{0};
  const bool in_exif = facts.orientation >= 1 && facts.orientation <= 8;
  return {.file_bytes = facts.file_bytes == kUnknown ? 0 : facts.file_bytes,
          .width = facts.width,
          .height = facts.height,
          .orientation = in_exif ? facts.orientation : uint8_t{1},
          .format = facts.format};
}

Facts PackedFacts(const ImageFacts& facts, uint64_t record_end) {
  constexpr uint64_t kUnknown = ~uint32_t{0};
  const uint64_t bytes = facts.file_bytes == 0 ? kUnknown : std::min(facts.file_bytes, kUnknown);
  return {.record_end = record_end,
          .file_bytes = static_cast<uint32_t>(bytes),
          .width = facts.width,
          .height = facts.height,
          .orientation = facts.orientation,
          .format = facts.format};
}

}  // namespace

Result<DatasetIndex::AllFacts> DatasetIndex::ReadFacts(const std::string& path,
                                                       uint64_t fingerprint, uint64_t images) {
  try {
    ASSIGN_OR_RETURN(const SectionFile file, SectionFile::Open(path, kSizesFile));
    TRY(file.Require({sections::kFacts}));
    if (file.fingerprint() != fingerprint ||
        file.At(sections::kFacts).bytes / sizeof(Facts) != images) {
      return Error{.code = Code::kFailedPrecondition,
                   .cause = "this is the index of other samples",
                   .file = path,
                   .advice = kSizesFile.give};
    }
    std::vector<Facts> facts;
    TRY(file.ReadColumn(
        sections::kFacts, facts, [](uint64_t) { return true; }, [](size_t) { return true; }));
    AllFacts all{.facts = std::vector<ImageFacts>(facts.size()),
                 .alone = !file.Has(sections::kFolders)};
    std::ranges::transform(facts, all.facts.begin(), &Unpacked);
    if (!std::ranges::all_of(all.facts, &IsSize)) return file.Damaged("its sizes");
    return all;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the index", path};
  }
}

Status DatasetIndex::WriteFacts(SectionFileWriter file, uint64_t fingerprint,
                                std::span<const ImageFacts> facts) {
  std::vector<Facts> packed;
  packed.reserve(facts.size());
  for (const ImageFacts& each : facts) packed.push_back(PackedFacts(each, 0));
  TRY(file.Add(sections::kFacts, sections::ColumnBytes(packed)));
  TRY(file.Commit(kSizesFile, fingerprint));
  return {};
}

Status DatasetIndex::ReadSections() {
  if (file_->Has(sections::kFacts) && !file_->Has(sections::kFolders)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "this index has the sizes of a source that is not a folder",
                 .file = path(),
                 .advice = "Give the file that `stoker index` wrote"};
  }
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

ImageFacts DatasetIndex::FactsOf(uint32_t image) const { return Unpacked(facts_[image]); }

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
  record_bytes_ += record.size();
  facts_.push_back(PackedFacts(facts, record_bytes_));
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
