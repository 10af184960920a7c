#include <algorithm>

#include "core/hash.h"
#include "core/try.h"
#include "io/sources/dataset_index.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

using dataset_index::BytesOf;
using dataset_index::Header;
using dataset_index::Section;
using dataset_index::SectionKind;

namespace {

constexpr size_t kWriteBytes = 1 << 20;
constexpr size_t kSections = 7;
constexpr uint64_t kRecordsAt = sizeof(Header) + kSections * sizeof(Section);

template <typename Column>
std::span<const uint8_t> ColumnBytes(const Column& column) {
  return {reinterpret_cast<const uint8_t*>(column.data()), column.size() * sizeof(column[0])};
}

}  // namespace

Result<DatasetIndexWriter> DatasetIndexWriter::Create(const std::string& path) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Origin::kOwn));
  DatasetIndexWriter writer(std::move(file));
  const std::vector<uint8_t> room(kRecordsAt);  // known only to Commit
  TRY(writer.Write(room));
  return writer;
}

Status DatasetIndexWriter::Write(std::span<const uint8_t> bytes) {
  written_ += bytes.size();
  if (bytes.size() >= kWriteBytes) {
    TRY(Flush());
    return file_.Write(bytes);
  }
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return waiting_.size() < kWriteBytes ? Status() : Flush();
}

Status DatasetIndexWriter::Flush() {
  Status status = file_.Write(waiting_);
  waiting_.clear();
  return status;
}

Status DatasetIndexWriter::Add(const ImageFacts& facts, std::span<const uint8_t> record) {
  constexpr uint64_t kUnknown = ~uint32_t{0};
  const uint64_t bytes = facts.file_bytes == 0 ? kUnknown : std::min(facts.file_bytes, kUnknown);
  facts_.push_back({.record_end = written_ - kRecordsAt + record.size(),
                    .file_bytes = static_cast<uint32_t>(bytes),
                    .width = facts.width,
                    .height = facts.height,
                    .orientation = facts.orientation,
                    .format = facts.format});
  return Write(record);
}

Result<uint64_t> DatasetIndexWriter::Commit(const ImageList& list) {
  std::vector<Section> sections = {
      {SectionKind::kCropIndexes, 0, kRecordsAt, written_ - kRecordsAt, 0}};
  const auto add = [&](SectionKind kind, std::span<const uint8_t> bytes) {
    sections.push_back({kind, 0, written_, bytes.size(), dataset_index::Checksum(bytes)});
    return Write(bytes);
  };
  Status status = add(SectionKind::kFolders, ColumnBytes(list.folders));
  if (status.ok()) status = add(SectionKind::kPaths, ColumnBytes(list.paths));
  if (status.ok()) status = add(SectionKind::kFiles, ColumnBytes(list.files));
  if (status.ok()) status = add(SectionKind::kNames, ColumnBytes(list.names));
  if (status.ok()) status = add(SectionKind::kFacts, ColumnBytes(facts_));
  if (status.ok()) status = add(SectionKind::kSkipped, ColumnBytes(list.skipped.Pack()));
  if (status.ok()) status = Flush();
  Header header;
  header.file_bytes = written_;
  header.fingerprint = list.Fingerprint();
  if (status.ok()) status = WriteHeader(header, sections);
  // Synced to disk before it gets its name: a crash leaves the old file or the new one.
  if (status.ok()) status = file_.Commit(OutputFile::Sync::kToDisk);
  if (!status.ok()) return std::move(status).error();
  return written_;
}

Status DatasetIndexWriter::WriteHeader(Header header, std::span<const Section> sections) {
  const std::span<const uint8_t> list = ColumnBytes(sections);
  header.sections = static_cast<uint32_t>(sections.size());
  header.checksum = Hash64(list, Hash64(BytesOf(header)));
  Status status = file_.Overwrite(0, BytesOf(header));
  return status.ok() ? file_.Overwrite(sizeof(header), list) : status;
}

}  // namespace stoker
