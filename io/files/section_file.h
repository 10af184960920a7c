// SectionFile: a file of sections (section_format.h), which is read and checked. SectionFileWriter
// writes one.
//
// Nothing is mapped, since truncating a mapped file causes a SIGBUS. A file that is deleted or
// replaced by renaming while it is open stays readable.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "core/result/try.h"
#include "core/system/output_file.h"
#include "io/files/input_file.h"
#include "io/files/section_format.h"

namespace stoker {

// A kind of file of sections, and the texts of its error messages.
struct SectionFileKind {
  std::array<char, 8> magic{};
  uint32_t version = 0;
  uint32_t newest = 0;       // the last version that is read, too; 0 means `version`
  const char* article = "";  // "an"
  const char* name = "";     // "index"
  // The advice for a damaged file, for one of another version, and for a file of another kind.
  const char* remake = "";
  const char* other_version = "";
  const char* give = "";
};

// Thread-safe. Move-only. Errors name the file.
class SectionFile {
 public:
  // Reads and checks the header and the table of sections: all sections are inside the file, and
  // each occurs only once. NotFound, PermissionDenied; InvalidArgument if it is not of this kind;
  // DataLoss if its bytes have changed since they were written; Unimplemented for another version.
  static Result<SectionFile> Open(const std::string& path, const SectionFileKind& kind);

  const std::string& path() const { return file_.path(); }
  const InputFile& file() const { return file_; }
  uint64_t file_bytes() const { return file_bytes_; }
  uint64_t fingerprint() const { return fingerprint_; }

  bool Has(sections::Kind kind) const { return sections_[kind].has_value(); }
  // Precondition: Has(kind).
  const sections::Section& At(sections::Kind kind) const { return *sections_[kind]; }
  // Returns DataLoss if the file lacks one of them.
  Status Require(std::initializer_list<sections::Kind> kinds) const;

  // Replaces the column by a section's elements, and checks every byte. `fits` checks the number of
  // elements; `check`, given the first element of a piece that was read, checks from there to the
  // end of `to`: both run before more memory is taken. Precondition: Has(kind).
  template <typename Column, typename Fits, typename Check>
  Status ReadColumn(sections::Kind kind, Column& to, const Fits& fits, const Check& check) const;

  // Fills `to`. DataLoss if the file has become shorter.
  Status ReadAt(uint64_t offset, std::span<uint8_t> to) const;

  Error Damaged(const std::string& what) const;

 private:
  SectionFile(InputFile file, const SectionFileKind& kind) : file_(std::move(file)), kind_(&kind) {}
  Status ReadHeader(sections::Header& header) const;
  Status ReadSections(sections::Header header);

  // Memory that is requested before any of the content has been read.
  static constexpr uint64_t kRoomAtOnce = 256 << 20;

  InputFile file_;
  const SectionFileKind* kind_;
  uint64_t file_bytes_ = 0;
  uint64_t fingerprint_ = 0;
  std::array<std::optional<sections::Section>, sections::kEnd> sections_{};
};

template <typename Column, typename Fits, typename Check>
Status SectionFile::ReadColumn(sections::Kind kind, Column& to, const Fits& fits,
                               const Check& check) const {
  constexpr size_t kSize = sizeof(typename Column::value_type);
  constexpr size_t kPiece = sections::kPieceBytes / kSize;
  static_assert(sections::kPieceBytes % kSize == 0);
  const sections::Section& section = At(kind);
  const std::string what = "section " + std::to_string(kind);
  const uint64_t count = section.bytes / kSize;
  if (section.bytes % kSize != 0 || !fits(count)) return Damaged(what);
  uint64_t hash = 0;
  to.clear();
  to.reserve(std::min(count, kRoomAtOnce / kSize));
  for (uint64_t begin = 0; begin < count; begin = to.size()) {
    to.resize(std::min<uint64_t>(begin + kPiece, count));
    const std::span<uint8_t> piece(reinterpret_cast<uint8_t*>(to.data() + begin),
                                   (to.size() - begin) * kSize);
    TRY(ReadAt(section.offset + begin * kSize, piece));
    hash = Hash64(piece, hash);
    if (!check(begin)) return Damaged(what);
  }
  return hash == section.checksum ? Status() : Damaged(what);
}

// Writes through an OutputFile with Origin::kOwn: of two concurrent writers the last one to finish
// wins. Errors name the file.
class SectionFileWriter {
 public:
  // `sections`: the number that will be added.
  static Result<SectionFileWriter> Create(const std::string& path, size_t sections);

  // Bytes of the file so far.
  uint64_t written() const { return written_; }

  // Appends to the section that AddWritten will add.
  Status Write(std::span<const uint8_t> bytes);
  // Adds what was written since the last section, without a checksum.
  void AddWritten(sections::Kind kind);
  // Adds a section, with its checksum.
  Status Add(sections::Kind kind, std::span<const uint8_t> bytes);

  // Puts the file in place, synced to disk, and returns its size; without Commit the old file
  // stays. Precondition: the number of sections added is the one passed to Create.
  Result<uint64_t> Commit(const SectionFileKind& kind, uint64_t fingerprint);

 private:
  explicit SectionFileWriter(OutputFile file) : file_(std::move(file)) {}
  Status Flush();

  OutputFile file_;
  std::vector<sections::Section> sections_;
  std::vector<uint8_t> waiting_;
  uint64_t written_ = 0;  // through `waiting_`
  uint64_t begin_ = 0;    // of the next section
};

}  // namespace stoker
