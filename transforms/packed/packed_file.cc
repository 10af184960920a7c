#include "transforms/packed/packed_file.h"

#include <algorithm>
#include <cstring>

#include "core/buffer.h"
#include "core/crc32c.h"
#include "core/try.h"

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

}  // namespace

Error Damaged(const std::string& what, size_t offset) {
  return {.code = Code::kDataLoss,
          .cause = "damaged packed JPEG: " + what,
          .offset = offset,
          .advice = kPackAgain};
}

Result<PackedFile> PackedFile::Open(std::span<const uint8_t> bytes) {
  PackedFile file;
  file.bytes_ = bytes;
  TRY(file.ReadHeader());
  TRY(file.CheckEnd());
  return file;
}

Status PackedFile::ReadHeader() {
  const size_t start = std::min(bytes_.size(), kMagic.size());
  if (!std::equal(kMagic.begin(), kMagic.begin() + static_cast<ptrdiff_t>(start), bytes_.begin())) {
    return Error{Code::kDataLoss, "not a packed JPEG", {}, 0, "Remove or re-create the file"};
  }
  if (bytes_.size() < sizeof(FixedPart)) return Truncated(bytes_.size());
  std::memcpy(&fixed_, bytes_.data(), sizeof(fixed_));
  if (fixed_.version != kVersion) {
    return Error{Code::kUnimplemented,
                 "a packed JPEG of version " + std::to_string(fixed_.version),
                 {},
                 kMagic.size(),
                 "Read it with the version of stoker that wrote it, or a later one"};
  }
  const uint64_t directory_at =
      uint64_t{sizeof(FixedPart)} + fixed_.header_bytes + fixed_.tail_bytes;
  if (directory_at > bytes_.size()) return Truncated(bytes_.size());
  if (jpeg::ParseHeader(header(), frame_) != Fallback::kNone ||
      frame_.scan_offset != fixed_.header_bytes || fixed_.pads_with_zeros > 1) {
    return Damaged("its header", sizeof(FixedPart));
  }
  mcu_rows_ = McuRowsOf(frame_);
  directory_at_ = static_cast<size_t>(directory_at);
  rows_at_ = directory_at_ + static_cast<size_t>(mcu_rows_) * sizeof(DirectoryEntry);
  if (rows_at_ > bytes_.size()) return Truncated(bytes_.size());
  constexpr size_t kChecked = offsetof(FixedPart, checksum);
  const uint32_t checksum =
      Crc32c(bytes_.first(rows_at_).subspan(sizeof(FixedPart)), Crc32c(bytes_.first(kChecked)));
  if (checksum != fixed_.checksum) return Damaged("the checksum of its header", kChecked);
  return {};
}

Status PackedFile::CheckEnd() const {
  const size_t there = bytes_.size() - rows_at_, wanted = Entry(mcu_rows_ - 1).end;
  if (there < wanted) return Truncated(bytes_.size());
  if (there > wanted) return Damaged("bytes behind its end", rows_at_ + wanted);
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
  const size_t begin = mcu_row == 0 ? 0 : Entry(mcu_row - 1).end;
  if (begin > entry.end || entry.end > bytes_.size() - rows_at_) {
    return Damaged("its directory", directory_at_);
  }
  const std::span<const uint8_t> row = bytes_.subspan(rows_at_ + begin, entry.end - begin);
  if (Crc32c(row) != entry.checksum) {
    return Damaged("the checksum of a row of MCUs", rows_at_ + begin);
  }
  return row;
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
