#include "io/sources/dataset_index.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <new>
#include <optional>
#include <string_view>

#include "io/sources/dataset_index_check.h"

namespace stoker {

using dataset_index::BytesOf;
using dataset_index::Facts;
using dataset_index::Header;
using dataset_index::Section;
using dataset_index::SectionKind;

namespace {

constexpr uint32_t kMaxSections = 64;
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 48;
// Memory that is requested before any of the content has been read.
constexpr uint64_t kRoomAtOnce = 256 << 20;

Error Damaged(const std::string& what) {
  return {.code = Code::kDataLoss,
          .cause = "the index is damaged: " + what,
          .advice = "Run `stoker index` again"};
}

Error NoIndex() {
  return {.code = Code::kInvalidArgument,
          .cause = "this is not an index file",
          .advice = "Give the file that `stoker index` wrote"};
}

Status ReadAt(int descriptor, uint64_t offset, std::span<uint8_t> to) {
  while (!to.empty()) {
    const ssize_t got = pread(descriptor, to.data(), to.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "cannot read the index");
    if (got == 0) return Damaged("it ends too early");
    to = to.subspan(static_cast<size_t>(got));
    offset += static_cast<uint64_t>(got);
  }
  return {};
}

bool Inside(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return offset <= whole && bytes <= whole - offset;
}

}  // namespace

// Opens an index; a DatasetIndex has always been checked.
class DatasetIndexReader {
 public:
  explicit DatasetIndexReader(DatasetIndex& index) : index_(index) {}

  Status Load() {
    index_.descriptor_ = open(index_.path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (index_.descriptor_ < 0) {
      return errno == ENXIO ? NoIndex() : SystemError(errno, "cannot open the index");
    }
    struct stat info {};
    if (fstat(index_.descriptor_, &info) != 0) {
      return SystemError(errno, "cannot stat the index");
    }
    if (!S_ISREG(info.st_mode)) return NoIndex();
    Status status = ReadHeader(static_cast<uint64_t>(info.st_size));
    if (status.ok()) status = ReadSections(static_cast<uint64_t>(info.st_size));
    if (status.ok()) status = ReadList();
    return status;
  }

 private:
  Status ReadHeader(uint64_t file_bytes) {
    if (file_bytes < sizeof(header_.magic)) return NoIndex();
    Status status = ReadAt(index_.descriptor_, 0, BytesOf(header_.magic));
    if (!status.ok()) return status;
    if (header_.magic != dataset_index::kMagic) return NoIndex();
    status = ReadAt(index_.descriptor_, 0, BytesOf(header_));
    if (!status.ok()) return status;
    if (header_.version != dataset_index::kVersion) {
      return Error{.code = Code::kUnimplemented,
                   .cause = "an index of version " + std::to_string(header_.version) +
                            "; this stoker reads " + std::to_string(dataset_index::kVersion),
                   .advice = "Run `stoker index` again"};
    }
    if (header_.file_bytes != file_bytes) return Damaged("it has the wrong length");
    if (header_.sections > kMaxSections || file_bytes > kMaxFileBytes) return Damaged("its header");
    return {};
  }

  Status ReadSections(uint64_t file_bytes) {
    std::vector<Section> sections(header_.sections);
    const std::span<uint8_t> bytes(reinterpret_cast<uint8_t*>(sections.data()),
                                   sections.size() * sizeof(Section));
    Status status = ReadAt(index_.descriptor_, sizeof(header_), bytes);
    if (!status.ok()) return status;
    const uint64_t checksum = std::exchange(header_.checksum, 0);
    if (Hash64(bytes, Hash64(BytesOf(header_))) != checksum) return Damaged("its header");
    index_.fingerprint_ = header_.fingerprint;
    for (const Section& section : sections) {
      if (!Inside(section.offset, section.bytes, file_bytes)) return Damaged("its sections");
      if (section.kind >= sections_.size()) continue;
      if (sections_[section.kind]) return Damaged("its sections");
      sections_[section.kind] = section;
    }
    for (uint32_t kind = SectionKind::kCropIndexes; kind <= SectionKind::kSkipped; ++kind) {
      if (!sections_[kind]) return Damaged("a section is missing");
    }
    index_.records_ = *sections_[SectionKind::kCropIndexes];
    return {};
  }

  // Each column is checked before it determines the size of the next one.
  Status ReadList() {
    ImageList& list = index_.list_;
    ListCheck check(list);
    const auto any = [](uint64_t) { return true; };
    Status status = ReadColumn(SectionKind::kFolders, list.folders, any,
                               [&](size_t begin) { return check.Folders(begin); });
    if (status.ok()) {
      status = ReadColumn(
          SectionKind::kPaths, list.paths, [&](uint64_t n) { return n == check.path_bytes(); },
          [&](size_t begin) { return check.Paths(begin); });
    }
    if (status.ok() && !check.TakeClasses()) return Damaged("its folders");
    if (status.ok()) {
      status = ReadColumn(SectionKind::kFiles, list.files, any,
                          [&](size_t begin) { return check.Files(begin); });
    }
    if (status.ok() && !check.FilesEnd()) return Damaged("its list of files");
    if (status.ok()) {
      status = ReadColumn(
          SectionKind::kNames, list.names, [&](uint64_t n) { return n == check.name_bytes(); },
          [&](size_t begin) { return check.Names(begin); });
    }
    if (status.ok() && !check.NamesEnd()) return Damaged("its list of files");
    if (status.ok()) {
      status = ReadColumn(
          SectionKind::kFacts, index_.facts_, [&](uint64_t n) { return n == list.files.size(); },
          [](size_t) { return true; });
    }
    return status.ok() ? ReadSkipped() : status;
  }

  Status ReadSkipped() {
    std::string packed;
    Status status = ReadColumn(
        SectionKind::kSkipped, packed, [](uint64_t n) { return n <= dataset_index::kMaxSkipped; },
        [](size_t) { return true; });
    if (!status.ok()) return status;
    std::optional<SkippedFiles> skipped = SkippedFiles::Unpack(packed);
    if (!skipped) return Damaged("its list of skipped files");
    index_.list_.skipped = *std::move(skipped);
    return {};
  }

  // `fits` checks the number of elements; `check`, given the first element of a piece that was
  // read, checks from there to the end of `to`.
  template <typename Column, typename Fits, typename Check>
  Status ReadColumn(SectionKind kind, Column& to, Fits fits, Check check) {
    constexpr size_t kSize = sizeof(typename Column::value_type);
    constexpr size_t kPiece = dataset_index::kPieceBytes / kSize;
    static_assert(dataset_index::kPieceBytes % kSize == 0);
    const Section& section = *sections_[kind];
    const std::string what = "section " + std::to_string(kind);
    if (section.bytes % kSize != 0) return Damaged(what);
    const uint64_t count = section.bytes / kSize;
    if (!fits(count)) return Damaged(what);
    uint64_t hash = 0;
    to.reserve(std::min(count, kRoomAtOnce / kSize));
    for (uint64_t begin = 0; begin < count; begin = to.size()) {
      to.resize(std::min<uint64_t>(begin + kPiece, count));
      const std::span<uint8_t> piece(reinterpret_cast<uint8_t*>(to.data() + begin),
                                     (to.size() - begin) * kSize);
      Status status = ReadAt(index_.descriptor_, section.offset + begin * kSize, piece);
      if (!status.ok()) return status;
      hash = Hash64(piece, hash);
      if (!check(begin)) return Damaged(what);
    }
    return hash == section.checksum ? Status() : Damaged(what);
  }

  DatasetIndex& index_;
  Header header_;
  std::array<std::optional<Section>, SectionKind::kSkipped + 1> sections_;
};

DatasetIndex& DatasetIndex::operator=(DatasetIndex&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(fingerprint_, other.fingerprint_);
  std::swap(list_, other.list_);
  std::swap(facts_, other.facts_);
  std::swap(records_, other.records_);
  return *this;
}

DatasetIndex::~DatasetIndex() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<DatasetIndex> DatasetIndex::Open(const std::string& path) {
  DatasetIndex index;
  index.path_ = path;
  try {
    Status status = DatasetIndexReader(index).Load();
    if (!status.ok()) return std::move(status).error().WithFile(path);
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for the index", path};
  }
  return index;
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
  return begin <= end && end <= records_.bytes ? Record{begin, end - begin} : Record{};
}

void DatasetIndex::Read(uint32_t image, uint64_t most, std::vector<uint8_t>& record) const {
  record.clear();
  const auto [begin, bytes] = RecordOf(image);
  if (bytes > most) return;
  try {
    record.resize(bytes);
  } catch (const std::bad_alloc&) {
    return;
  }
  if (!ReadAt(descriptor_, records_.offset + begin, record).ok()) record.clear();
}

}  // namespace stoker
