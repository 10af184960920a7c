#include "transforms/packed/packed_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/hash/crc32c.h"
#include "core/memory/buffer.h"
#include "core/result/try.h"

namespace stoker::packed {
namespace {

constexpr char kPackAgain[] = "Pack the photograph again";

Error Truncated(size_t size) {
  return {.code = Code::kDataLoss,
          .cause = "truncated packed JPEG",
          .offset = size,
          .advice = kPackAgain,
          .detail = Error::Detail::kTruncated};
}

Status CheckVersion(const Start& start) {
  if (start.version == kVersion || start.version == kProgressiveVersion) return {};
  return Error{Code::kUnimplemented,
               "a packed JPEG of version " + std::to_string(start.version),
               {},
               kMagic.size(),
               start.version < kVersion
                   ? kPackAgain
                   : "Read it with the version of stoker that wrote it, or a later one"};
}

}  // namespace

Error Damaged(const std::string& what, size_t offset) {
  return {.code = Code::kDataLoss,
          .cause = "damaged packed JPEG: " + what,
          .offset = offset,
          .advice = kPackAgain};
}

Result<size_t> FindHeader(std::span<const uint8_t> bytes) {
  const size_t there = std::min(bytes.size(), kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + static_cast<ptrdiff_t>(there), bytes.begin())) {
    return Error{Code::kDataLoss, "not a packed JPEG", {}, 0, "Remove or re-create the image"};
  }
  if (bytes.size() < sizeof(Start)) return Truncated(bytes.size());
  Start start;
  std::memcpy(&start, bytes.data(), sizeof(start));
  TRY(CheckVersion(start));
  return size_t{start.to_header};
}

Result<PackedFile> PackedFile::Open(std::span<const uint8_t> bytes) {
  PackedFile file;
  file.bytes_ = bytes;
  ASSIGN_OR_RETURN(file.header_at_, FindHeader(bytes));
  TRY(file.ReadHeader());
  TRY(file.CheckEnds());
  return file;
}

Status PackedFile::ReadHeader() {
  if (bytes_.size() < sizeof(FixedPart) || header_at_ > bytes_.size() - sizeof(FixedPart)) {
    return Truncated(bytes_.size());
  }
  std::memcpy(&fixed_, &bytes_[header_at_], sizeof(fixed_));
  const uint8_t version = bytes_[offsetof(Start, version)];
  if (fixed_.start != Start{.version = version}) {
    return Damaged("its start", offsetof(Start, to_header));
  }
  const uint64_t directory_at =
      uint64_t{header_at_} + sizeof(FixedPart) + fixed_.header_bytes + fixed_.tail_bytes;
  if (directory_at > bytes_.size()) return Truncated(bytes_.size());
  // The scans of a progressive JPEG after the first are read when it is restored.
  const bool progressive = version == kProgressiveVersion;
  if (jpeg::ParseHeader(header(), frame_, jpeg::Process::kProgressive) != Fallback::kNone ||
      (frame_.process == jpeg::Process::kProgressive) != progressive ||
      (!progressive && frame_.scan_offset != fixed_.header_bytes) ||
      fixed_.choices > MostChoices(version)) {
    return Damaged("its header", header_at_ + sizeof(FixedPart));
  }
  mcu_rows_ = McuRowsOf(frame_);
  directory_at_ = static_cast<size_t>(directory_at);
  rows_at_ = directory_at_ + static_cast<size_t>(mcu_rows_) * sizeof(DirectoryEntry);
  if (rows_at_ > bytes_.size()) return Truncated(bytes_.size());
  constexpr size_t kChecked = offsetof(FixedPart, checksum);
  const std::span<const uint8_t> all = bytes_.first(rows_at_).subspan(header_at_);
  const uint32_t checksum = Crc32c(all.subspan(sizeof(FixedPart)), Crc32c(all.first(kChecked)));
  if (checksum != fixed_.checksum) {
    return Damaged("the checksum of its header", header_at_ + kChecked);
  }
  return {};
}

Status PackedFile::CheckEnds() const {
  const size_t upper = UpperBytes(), all = EndOf(mcu_rows_ - 1);
  if (upper > all) return Damaged("its directory", directory_at_);
  if (header_at_ > upper) return Damaged("bytes before its start", 0);
  const size_t lower = all - upper;
  if (bytes_.size() - rows_at_ > lower) return Damaged("bytes after its end", rows_at_ + lower);
  return {};
}

DirectoryEntry PackedFile::Entry(int mcu_row) const {
  DirectoryEntry entry;
  std::memcpy(&entry, &bytes_[directory_at_ + static_cast<size_t>(mcu_row) * sizeof(entry)],
              sizeof(entry));
  return entry;
}

Result<std::span<const uint8_t>> PackedFile::Row(int mcu_row) const {
  const DirectoryEntry entry = Entry(mcu_row);
  const size_t begin = EndOf(mcu_row - 1), upper = UpperBytes();
  const bool in_upper = mcu_row < MiddleRow(mcu_rows_);
  if (begin > entry.end || (in_upper ? entry.end > upper : begin < upper)) {
    return Damaged("its directory", directory_at_);
  }
  if (in_upper && upper - begin > header_at_) return Damaged("a row of MCUs is missing", 0);
  const size_t at = in_upper ? header_at_ - (upper - begin) : rows_at_ + (begin - upper);
  const size_t bytes = entry.end - begin;
  if (at > bytes_.size() || bytes > bytes_.size() - at) return Truncated(bytes_.size());
  const std::span<const uint8_t> row = bytes_.subspan(at, bytes);
  if (Crc32c(row) != entry.checksum) return Damaged("the checksum of a row of MCUs", at);
  if (!BeginsPart(mcu_row, mcu_rows_)) return row;
  if (bytes < sizeof(Start)) return Damaged("its directory", directory_at_);
  return row.subspan(sizeof(Start));
}

RowParts PackedFile::row_parts() const {
  constexpr uint64_t kMost = std::numeric_limits<uint16_t>::max();
  RowParts parts;
  for (int i = 0; i < kRowParts; ++i) {
    const bool in_upper = i < kPartBehindHeader;
    const size_t rows_end = EndOf(FirstRowOf(in_upper ? i + 1 : i, mcu_rows_) - 1);
    const size_t bytes = in_upper ? rows_end : rows_end + (rows_at_ - header_at_);
    const uint64_t units = (bytes + RowParts::kUnit - 1) / RowParts::kUnit;
    if (units > kMost) return {};
    parts.at[static_cast<size_t>(i)] = static_cast<uint16_t>(units);
  }
  return parts;
}

Status RunReader::Start(const PackedFile& file, int mcu_row, int runs) {
  ASSIGN_OR_RETURN(const std::span<const uint8_t> row, file.Row(mcu_row));
  const size_t sizes = static_cast<size_t>(runs) * sizeof(uint16_t);
  file_ = file.bytes().data();
  readable_end_ = file_ + file.bytes().size() + kBufferPadding;
  size_ = row.data();
  run_ = size_ + std::min(sizes, row.size());
  row_end_ = size_ + row.size();
  wrong_ = sizes > row.size();
  return {};
}

void RunReader::Skip(int runs) {
  if (wrong_) return;
  size_t bytes = 0;
  for (int i = 0; i < runs; ++i) bytes += LoadU16(size_ + static_cast<size_t>(i) * 2);
  size_ += static_cast<size_t>(runs) * 2;
  wrong_ = bytes > static_cast<size_t>(row_end_ - run_);
  if (!wrong_) run_ += bytes;
}

const uint8_t* RunReader::Next() {
  const uint8_t* const run = run_;
  Skip(1);
  if (wrong_) return nullptr;
  const auto readable = static_cast<size_t>(readable_end_ - run);
  if (readable >= kRunReach) return run;
  std::memcpy(copy_.data(), run, readable);
  std::memset(copy_.data() + readable, 0, kRunReach - readable);
  return copy_.data();
}

Error RunReader::WrongSizes() const {
  return Damaged("the sizes of runs", static_cast<size_t>(size_ - file_));
}

}  // namespace stoker::packed
