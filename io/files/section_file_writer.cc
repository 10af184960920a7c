#include <utility>

#include "core/result/try.h"
#include "io/files/section_file.h"

namespace stoker {

using sections::Header;
using sections::Section;

namespace {

constexpr size_t kWriteBytes = 1 << 20;

}  // namespace

Result<SectionFileWriter> SectionFileWriter::Create(const std::string& path, size_t sections) {
  ASSIGN_OR_RETURN(OutputFile file, OutputFile::Open(path, OutputFile::Origin::kOwn));
  SectionFileWriter writer(std::move(file));
  const std::vector<uint8_t> room(sizeof(Header) + sections * sizeof(Section));  // until Commit
  TRY(writer.Write(room));
  writer.begin_ = writer.written_;
  return writer;
}

Status SectionFileWriter::Write(std::span<const uint8_t> bytes) {
  written_ += bytes.size();
  if (bytes.size() >= kWriteBytes) {
    TRY(Flush());
    return file_.Write(bytes);
  }
  waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
  return waiting_.size() < kWriteBytes ? Status() : Flush();
}

Status SectionFileWriter::Flush() {
  Status status = file_.Write(waiting_);
  waiting_.clear();
  return status;
}

void SectionFileWriter::AddWritten(sections::Kind kind) {
  sections_.push_back({kind, 0, begin_, written_ - begin_, 0});
  begin_ = written_;
}

Status SectionFileWriter::Add(sections::Kind kind, std::span<const uint8_t> bytes) {
  TRY(Write(bytes));
  AddWritten(kind);
  sections_.back().checksum = sections::Checksum(bytes);
  return {};
}

Result<uint64_t> SectionFileWriter::Commit(const SectionFileKind& kind, uint64_t fingerprint) {
  TRY(Flush());
  Header header{.magic = kind.magic,
                .version = kind.version,
                .sections = static_cast<uint32_t>(sections_.size()),
                .file_bytes = written_,
                .fingerprint = fingerprint};
  const std::span<const uint8_t> list = sections::ColumnBytes(sections_);
  header.checksum = Hash64(list, Hash64(sections::BytesOf(std::as_const(header))));
  TRY(file_.Overwrite(0, sections::BytesOf(std::as_const(header))));
  TRY(file_.Overwrite(sizeof(header), list));
  // Synced to disk before it gets its name: a crash leaves the old file or the new one.
  TRY(file_.Commit(OutputFile::Sync::kToDisk));
  return written_;
}

}  // namespace stoker
