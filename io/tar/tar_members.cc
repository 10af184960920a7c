#include "io/tar/tar_members.h"

#include <locale.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <span>
#include <utility>

#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/tar/libarchive.h"

namespace stoker {

namespace {

constexpr int kDone = 0;  // the success code of libarchive's functions
constexpr int kEndOfArchive = 1;
constexpr int kWarning = -20;

constexpr uint64_t kLongestLabel = 64;  // bytes

// A member that has no bytes, or whose bytes are not one range.
struct Unstored {
  const char* is;
  const char* advice;
};
constexpr Unstored kLink = {
    "a link",
    "Create the archive again with `tar --dereference --hard-dereference`, or by WebDataset"};
constexpr Unstored kSparse = {
    "a sparse file", "Create the archive again without --sparse (-S); bsdtar: --no-read-sparse"};
constexpr Unstored kDevice = {"a device or a pipe", "Create the archive again without it"};

// Runs libarchive under the locale "C": under any other it converts the names in PAX headers, and
// the same archive would have other names in another process.
class PlainLocale {
 public:
  PlainLocale() : plain_(newlocale(LC_ALL_MASK, "C", nullptr)), before_(uselocale(plain_)) {}
  PlainLocale(const PlainLocale&) = delete;
  PlainLocale& operator=(const PlainLocale&) = delete;
  ~PlainLocale() {
    uselocale(before_);
    if (plain_ != nullptr) freelocale(plain_);
  }

 private:
  locale_t plain_;
  locale_t before_;
};

// A compressor, and the bytes that its files begin with.
struct Compressor {
  std::string_view magic;
  const char* name;
  const char* undo;
};
constexpr std::array<Compressor, 5> kCompressors = {{
    {"\x1f\x8b", "gzip", "gunzip"},
    {"\x28\xb5\x2f\xfd", "zstd", "unzstd"},
    {"\xfd\x37\x7a\x58\x5a", "xz", "unxz"},
    {"BZh", "bzip2", "bunzip2"},
    {"\x04\x22\x4d\x18", "lz4", "unlz4"},
}};

const Compressor* CompressorOf(std::string_view first_bytes) {
  const auto* const found = std::ranges::find_if(
      kCompressors, [&](const Compressor& one) { return first_bytes.starts_with(one.magic); });
  return found == kCompressors.end() ? nullptr : found;
}

uint64_t PaddedToBlocks(uint64_t bytes) { return (bytes + kTarBlock - 1) / kTarBlock * kTarBlock; }

// Reads one archive. libarchive calls Read and Skip, and passes only a number on when they fail, so
// their errors are kept in `failed_`.
class TarScan {
 public:
  TarScan(const Libarchive& library, InputFile file, FileStamp stamp,
          std::span<const std::string> extensions)
      : library_(library), file_(std::move(file)), stamp_(stamp), extensions_(extensions) {
    all_.texts.resize(extensions.size());
  }

  Result<TarMembers> Run() {
    const std::unique_ptr<archive, int (*)(archive*)> opened(library_.read_new(),
                                                             library_.read_free);
    archive_ = opened.get();
    if (archive_ == nullptr || library_.support_format_tar(archive_) != kDone) {
      return Error{Code::kResourceExhausted, "out of memory for libarchive", file_.path()};
    }
    if (library_.open2(archive_, this, nullptr, Read, Skip, nullptr) != kDone) {
      return HeaderError();
    }
    for (;;) {
      archive_entry* entry = nullptr;
      const int got = library_.next_header(archive_, &entry);
      if (got == kEndOfArchive) break;
      if (got != kDone && got != kWarning) return HeaderError();
      TRY(AddEntry(entry));
    }
    TRY(CheckEnd());
    for (TarMembers::Texts& texts : all_.texts) {
      texts.bytes.shrink_to_fit();
      texts.ends.shrink_to_fit();
    }
    return std::move(all_);
  }

 private:
  static ssize_t Read(archive* /*unused*/, void* self, const void** bytes) {
    auto& scan = *static_cast<TarScan*>(self);
    *bytes = scan.block_.data();
    const Result<size_t> got = scan.file_.ReadAt(scan.position_, scan.block_);
    if (!got.ok()) {
      scan.failed_ = got.error();
      return -1;
    }
    scan.position_ += *got;
    return static_cast<ssize_t>(*got);
  }

  static int64_t Skip(archive* /*unused*/, void* self, int64_t bytes) {
    auto& scan = *static_cast<TarScan*>(self);
    const uint64_t left = scan.stamp_.bytes - std::min(scan.position_, scan.stamp_.bytes);
    const uint64_t skipped = std::min(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)), left);
    scan.position_ += skipped;
    return static_cast<int64_t>(skipped);
  }

  Error ErrorAt(Code code, uint64_t offset, std::string cause, std::string advice = "") const {
    return {.code = code,
            .cause = std::move(cause),
            .file = file_.path(),
            .offset = offset,
            .advice = std::move(advice)};
  }

  Error DamagedAt(uint64_t offset, std::string cause) const {
    return ErrorAt(Code::kDataLoss, offset, std::move(cause), "Copy or create the archive again");
  }

  // Returns the error that says why no further header could be read.
  Error HeaderError() const {
    if (failed_) return *failed_;
    // libarchive does not move its position to a header that it cannot read.
    const auto before =
        static_cast<uint64_t>(std::max<int64_t>(library_.header_position(archive_), 0));
    const uint64_t at = std::min(std::max(before, end_), stamp_.bytes);
    if (end_ == 0) {
      std::array<uint8_t, 8> first{};
      const Result<size_t> got = file_.ReadAt(0, first);
      if (!got.ok()) return got.error();
      if (*got == 0) return DamagedAt(0, "the archive is empty: it has no bytes");
      const Compressor* const compressor =
          CompressorOf({reinterpret_cast<const char*>(first.data()), *got});
      if (compressor != nullptr) {
        return ErrorAt(Code::kUnimplemented, 0,
                       std::string("the archive is compressed by ") + compressor->name +
                           ", and its members cannot be read one by one",
                       std::string("Decompress it: `") + compressor->undo + " FILE`");
      }
    }
    if (stamp_.bytes - at < kTarBlock) {
      return file_.OfUnknownKind(DamagedAt(
          at, "the archive is cut off: its " + std::to_string(stamp_.bytes) + " bytes end inside " +
                  (at < stamp_.bytes ? "the header of a member" : "the padding of a member")));
    }
    const char* const why = library_.error_string(archive_);
    return file_.OfUnknownKind(
        DamagedAt(at, std::string("this is not an intact tar archive: ") +
                          (why == nullptr ? "no header could be read" : Printable(why))));
  }

  Status AddEntry(archive_entry* entry) {
    const auto offset = static_cast<uint64_t>(library_.filter_bytes(archive_, 0));
    const auto length = static_cast<uint64_t>(library_.entry_size(entry));
    const char* const c_name = library_.entry_pathname(entry);
    const std::string_view name = c_name == nullptr ? "" : c_name;
    const mode_t type = library_.entry_filetype(entry);
    const char* const link = library_.entry_hardlink(entry);
    const bool whole = link == nullptr && library_.entry_sparse_count(entry) == 0;
    if (!whole || type != S_IFREG) {
      end_ = std::max(end_, offset);
      if (type == S_IFDIR || !SplitMemberName(name)) return {};
      return NotStored(offset, name,
                       link != nullptr || type == S_IFLNK ? kLink
                       : type == S_IFREG                  ? kSparse
                                                          : kDevice);
    }
    if (name.empty() || name.size() > kLongestMemberName) {
      return ErrorAt(Code::kInvalidArgument, offset,
                     "a member's name has " + std::to_string(name.size()) + " bytes; 1 to " +
                         std::to_string(kLongestMemberName) + " are possible");
    }
    if (offset > stamp_.bytes || length > stamp_.bytes - offset) {
      return DamagedAt(offset, "the archive is cut off: its " + std::to_string(stamp_.bytes) +
                                   " bytes end inside the member '" + Printable(name) + "' of " +
                                   std::to_string(length));
    }
    end_ = offset + PaddedToBlocks(length);
    all_.names += name;
    all_.members.push_back({.offset = offset, .length = length, .name_end = all_.names.size()});
    return AddContent(offset, length, name);
  }

  Error NotStored(uint64_t offset, std::string_view name, const Unstored& what) const {
    return ErrorAt(Code::kInvalidArgument, offset,
                   "the member '" + Printable(name) + "' is " + what.is +
                       ", and its bytes are not here as one range",
                   what.advice);
  }

  // Reads the last member, if it is a label or its text was asked for.
  Status AddContent(uint64_t offset, uint64_t length, std::string_view name) {
    const std::optional<MemberName> split = SplitMemberName(name);
    if (!split) return {};
    const std::string extension = LowerCase(split->extension);
    const auto found = std::ranges::find(extensions_, extension);
    const bool is_label = extension == "cls" && length <= kLongestLabel;
    if (found != extensions_.end()) {
      TRY(CheckText(offset, length, name, all_.texts[FoundAt(found)]));
    }
    text_.clear();
    if (is_label || found != extensions_.end()) {
      text_.resize(length);
      TRY(ReadText());
    }
    if (found != extensions_.end()) {
      TarMembers::Texts& texts = all_.texts[FoundAt(found)];
      texts.bytes.insert(texts.bytes.end(), text_.begin(), text_.end());
      texts.ends.push_back(texts.bytes.size());
    }
    if (extension == "cls") AddLabel(is_label ? IntegerInText(text_) : std::nullopt);
    return {};
  }

  size_t FoundAt(std::span<const std::string>::iterator extension) const {
    return static_cast<size_t>(extension - extensions_.begin());
  }

  Status CheckText(uint64_t offset, uint64_t length, std::string_view name,
                   const TarMembers::Texts& texts) const {
    if (length > kLongestTarText) {
      return ErrorAt(Code::kInvalidArgument, offset,
                     "the text '" + Printable(name) + "' has " + std::to_string(length) +
                         " bytes; a column's texts have at most " + std::to_string(kLongestTarText),
                     "Leave this column out: the texts of all samples are kept in memory");
    }
    if (length > kMostTarTexts - texts.bytes.size()) {
      Error error = ErrorAt(Code::kResourceExhausted, offset,
                            "the texts of a column have more than " +
                                std::to_string(kMostTarTexts) + " bytes in this archive",
                            "Leave this column out, or divide the archive");
      error.detail = Error::Detail::kOverLimits;
      return error;
    }
    return {};
  }

  // Reads the member's data into text_.
  Status ReadText() {
    size_t filled = 0;
    while (filled < text_.size()) {
      const ssize_t got = library_.data(archive_, text_.data() + filled, text_.size() - filled);
      if (got < 0) return HeaderError();
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    text_.resize(filled);
    return {};
  }

  // Stores the label of the last member; nullopt means it is not an integer.
  void AddLabel(std::optional<int64_t> label) {
    if (!label && all_.bad_label == TarMembers::kNone) all_.bad_label = all_.members.size() - 1;
    all_.labels.push_back(label.value_or(0));
  }

  // Checks the end of the file. A file may end where a member does without being complete, and
  // libarchive does not look at the bytes after the end marker.
  Status CheckEnd() {
    ASSIGN_OR_RETURN(const FileStamp now, file_.Stamp());
    if (stamp_.is_written(now))
      return DamagedAt(end_, "the archive has changed while it was indexed");
    if (stamp_.bytes < end_ + kTarBlock) {
      Error error = DamagedAt(stamp_.bytes, "the archive is cut off: it has no end marker");
      error.advice += "; if nothing is missing, append one: `truncate -s +1024 FILE`";
      return error;
    }
    constexpr uint64_t kFarthest = 1 << 20;  // usual archives have less padding
    const auto begin = static_cast<uint64_t>(library_.filter_bytes(archive_, 0));
    const uint64_t end = std::min(stamp_.bytes, begin + kFarthest);
    for (uint64_t at = begin; at < end; at += block_.size()) {
      ASSIGN_OR_RETURN(const size_t got, file_.ReadAt(at, block_));
      const auto bytes = std::span(block_).first(got);
      const auto found = std::ranges::find_if(bytes, [](uint8_t byte) { return byte != 0; });
      if (found == bytes.end()) continue;
      return ErrorAt(Code::kDataLoss, at + static_cast<uint64_t>(found - bytes.begin()),
                     "data follows the archive's end marker, as if archives had been joined",
                     "Give each archive as a shard of its own");
    }
    return {};
  }

  const Libarchive& library_;
  const InputFile file_;
  const FileStamp stamp_;
  const std::span<const std::string> extensions_;  // of texts
  archive* archive_ = nullptr;
  uint64_t position_ = 0;  // of the next Read
  uint64_t end_ = 0;       // of the last entry, with its padding
  std::optional<Error> failed_;
  TarMembers all_;
  std::string text_;  // of the last member
  std::array<uint8_t, 16 << 10> block_{};
};

}  // namespace

std::optional<int64_t> IntegerInText(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return std::nullopt;
  text = text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
  if (text.starts_with('+') && text.size() > 1 && text[1] != '-') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<TarMembers> ReadTarMembers(InputFile archive, FileStamp& stamp,
                                  std::span<const std::string> extensions) {
  ASSIGN_OR_RETURN(const Libarchive* const library, Libarchive::Load());
  ASSIGN_OR_RETURN(stamp, archive.Stamp());
  const PlainLocale plain;
  return TarScan(*library, std::move(archive), stamp, extensions).Run();
}

}  // namespace stoker
