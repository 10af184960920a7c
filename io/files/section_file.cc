#include "io/files/section_file.h"

namespace stoker {

using sections::BytesOf;
using sections::Header;
using sections::Section;

namespace {

constexpr uint32_t kMaxSections = 64;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 48;

bool Inside(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return offset <= whole && bytes <= whole - offset;
}

Error NotOne(const SectionFileKind& kind, const std::string& path) {
  return {.code = Code::kInvalidArgument,
          .cause = std::string("this is not ") + kind.article + " " + kind.name + " file",
          .file = path,
          .advice = kind.give};
}

}  // namespace

Error SectionFile::Damaged(const std::string& what) const {
  return {.code = Code::kDataLoss,
          .cause = std::string("the ") + kind_->name + " is damaged: " + what,
          .file = path(),
          .advice = kind_->remake};
}

Status SectionFile::ReadAt(uint64_t offset, std::span<uint8_t> to) const {
  ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(offset, to));
  return got == to.size() ? Status() : Damaged("it ends too early");
}

Status SectionFile::ReadHeader(Header& header) const {
  const auto not_one = [this] { return file_.OfUnknownKind(NotOne(*kind_, path())); };
  if (file_bytes_ < sizeof(header.magic)) return not_one();
  TRY(ReadAt(0, BytesOf(header.magic)));
  if (header.magic != kind_->magic) return not_one();
  TRY(ReadAt(0, BytesOf(header)));
  const uint32_t newest = std::max(kind_->version, kind_->newest);
  if (header.version < kind_->version || header.version > newest) {
    const std::string last = newest == kind_->version ? "" : " to " + std::to_string(newest);
    return Error{.code = Code::kUnimplemented,
                 .cause = std::string(kind_->article) + " " + kind_->name + " of version " +
                          std::to_string(header.version) + "; this stoker reads " +
                          std::to_string(kind_->version) + last,
                 .file = path(),
                 .advice = kind_->other_version};
  }
  if (header.file_bytes != file_bytes_) return Damaged("it has the wrong length");
  if (header.sections > kMaxSections || file_bytes_ > kMaxFileBytes) return Damaged("its header");
  return {};
}

Status SectionFile::ReadSections(Header header) {
  std::vector<Section> sections(header.sections);
  const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(sections.data()),
                                 sections.size() * sizeof(Section));
  TRY(ReadAt(sizeof(header), bytes));
  const uint64_t checksum = std::exchange(header.checksum, 0);
  if (Hash64(bytes, Hash64(BytesOf(std::as_const(header)))) != checksum) {
    return Damaged("its header");
  }
  fingerprint_ = header.fingerprint;
  for (const Section& section : sections) {
    if (!Inside(section.offset, section.bytes, file_bytes_)) return Damaged("its sections");
    if (section.kind >= sections_.size()) continue;
    if (sections_[section.kind]) return Damaged("its sections");
    sections_[section.kind] = section;
  }
  return {};
}

Result<SectionFile> SectionFile::Open(const std::string& path, const SectionFileKind& kind) {
  Result<InputFile> opened = InputFile::Open(path);
  if (!opened.ok()) {
    if (opened.error().code != Code::kInvalidArgument) return std::move(opened).error();
    return NotOne(kind, path);  // a directory, say
  }
  SectionFile file(*std::move(opened), kind);
  ASSIGN_OR_RETURN(const FileStamp stamp, file.file_.Stamp());
  file.file_bytes_ = stamp.bytes;
  Header header;
  TRY(file.ReadHeader(header));
  TRY(file.ReadSections(header));
  return file;
}

Status SectionFile::Require(std::initializer_list<sections::Kind> kinds) const {
  for (const sections::Kind kind : kinds) {
    if (!Has(kind)) return Damaged("a section is missing");
  }
  return {};
}

}  // namespace stoker
