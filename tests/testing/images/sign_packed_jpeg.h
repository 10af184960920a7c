// Gives a changed packed JPEG the checksums of its bytes, as somebody who forges one would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/hash/crc32c.h"
#include "transforms/packed/format.h"

namespace stoker::testing {

// Where the header, the directory and the rows of the lower half begin, if the fixed part and the
// JPEG's header are sound.
struct PackedParts {
  bool sound = false;
  size_t header_at = 0, directory_at = 0, rows_at = 0, rows = 0;
};

inline PackedParts PartsOf(std::span<const uint8_t> file) {
  packed::FixedPart fixed;
  if (file.size() < sizeof(fixed)) return {};
  packed::Start start;
  std::memcpy(&start, file.data(), sizeof(start));
  const size_t header_at = start.to_header;
  if (header_at > file.size() - sizeof(fixed)) return {};
  std::memcpy(&fixed, &file[header_at], sizeof(fixed));
  const uint64_t directory_at =
      uint64_t{header_at} + sizeof(fixed) + fixed.header_bytes + fixed.tail_bytes;
  if (directory_at > file.size()) return {};
  jpeg::FrameHeader frame;
  const auto header = file.subspan(header_at + sizeof(fixed), fixed.header_bytes);
  if (ParseHeader(header, frame, jpeg::Process::kProgressive) != Fallback::kNone) return {};
  const auto rows = static_cast<size_t>(packed::McuRowsOf(frame));
  const uint64_t rows_at = directory_at + rows * sizeof(packed::DirectoryEntry);
  if (rows_at > file.size()) return {};
  return {true, header_at, static_cast<size_t>(directory_at), static_cast<size_t>(rows_at), rows};
}

// The bytes of a row of MCUs in a sound file. Precondition: PartsOf(file).sound.
inline std::span<const uint8_t> BytesOfRow(std::span<const uint8_t> file, const PackedParts& parts,
                                           size_t row) {
  const auto end_of = [&](size_t r) {
    packed::DirectoryEntry entry;
    std::memcpy(&entry, &file[parts.directory_at + r * sizeof(entry)], sizeof(entry));
    return size_t{entry.end};
  };
  const size_t begin = row == 0 ? 0 : end_of(row - 1), end = end_of(row);
  const size_t header = begin < parts.header_at ? 0 : parts.rows_at - parts.header_at;
  return file.subspan(header + begin, end - begin);
}

inline void SignPackedJpeg(std::vector<uint8_t>& file) {
  const PackedParts parts = PartsOf(file);
  if (!parts.sound) return;
  const std::span<const uint8_t> bytes(file);
  const auto middle = static_cast<size_t>(packed::MiddleRow(static_cast<int>(parts.rows)));
  const auto entry_at = [&](size_t row) {
    return file.data() + parts.directory_at + row * sizeof(packed::DirectoryEntry);
  };
  packed::DirectoryEntry entry{};
  if (middle > 0) std::memcpy(&entry, entry_at(middle - 1), sizeof(entry));
  const size_t upper = entry.end;
  size_t begin = 0;
  for (size_t row = 0; row < parts.rows; ++row) {
    std::memcpy(&entry, entry_at(row), sizeof(entry));
    // If it wraps around, the row does not lie in the file.
    const size_t at =
        row < middle ? parts.header_at - (upper - begin) : parts.rows_at + (begin - upper);
    if (begin <= entry.end && at <= bytes.size() && entry.end - begin <= bytes.size() - at) {
      entry.checksum = Crc32c(bytes.subspan(at, entry.end - begin));
    }
    begin = entry.end;
    std::memcpy(entry_at(row), &entry, sizeof(entry));
  }
  packed::FixedPart fixed;
  std::memcpy(&fixed, &file[parts.header_at], sizeof(fixed));
  fixed.checksum =
      Crc32c(bytes.subspan(parts.header_at + sizeof(fixed),
                           parts.rows_at - parts.header_at - sizeof(fixed)),
             Crc32c(bytes.subspan(parts.header_at, offsetof(packed::FixedPart, checksum))));
  std::memcpy(&file[parts.header_at], &fixed, sizeof(fixed));
}

}  // namespace stoker::testing
