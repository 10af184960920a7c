// Gives a changed packed JPEG the checksums of its bytes, as somebody who forges one would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/crc32c.h"
#include "transforms/packed/format.h"

namespace stoker::testing {

// Where the directory and the rows begin, if the fixed part and the JPEG's header are sound.
struct PackedParts {
  bool sound = false;
  size_t directory_at = 0, rows_at = 0, rows = 0;
};

inline PackedParts PartsOf(std::span<const uint8_t> file) {
  packed::FixedPart fixed;
  if (file.size() < sizeof(fixed)) return {};
  std::memcpy(&fixed, file.data(), sizeof(fixed));
  const uint64_t directory_at = uint64_t{sizeof(fixed)} + fixed.header_bytes + fixed.tail_bytes;
  if (directory_at > file.size()) return {};
  jpeg::FrameHeader frame;
  if (ParseHeader(file.subspan(sizeof(fixed), fixed.header_bytes), frame) != Fallback::kNone) {
    return {};
  }
  const auto rows = static_cast<size_t>(packed::McuRowsOf(frame));
  const uint64_t rows_at = directory_at + rows * sizeof(packed::DirectoryEntry);
  if (rows_at > file.size()) return {};
  return {true, static_cast<size_t>(directory_at), static_cast<size_t>(rows_at), rows};
}

inline void SignPackedJpeg(std::vector<uint8_t>& file) {
  const PackedParts parts = PartsOf(file);
  if (!parts.sound) return;
  const std::span<const uint8_t> bytes(file);
  size_t begin = 0;
  for (size_t row = 0; row < parts.rows; ++row) {
    packed::DirectoryEntry entry;
    uint8_t* const at = file.data() + parts.directory_at + row * sizeof(entry);
    std::memcpy(&entry, at, sizeof(entry));
    if (begin <= entry.end && entry.end <= bytes.size() - parts.rows_at) {
      entry.checksum = Crc32c(bytes.subspan(parts.rows_at + begin, entry.end - begin));
    }
    begin = entry.end;
    std::memcpy(at, &entry, sizeof(entry));
  }
  packed::FixedPart fixed;
  std::memcpy(&fixed, file.data(), sizeof(fixed));
  fixed.checksum = Crc32c(bytes.subspan(sizeof(fixed), parts.rows_at - sizeof(fixed)),
                          Crc32c(bytes.first(offsetof(packed::FixedPart, checksum))));
  std::memcpy(file.data(), &fixed, sizeof(fixed));
}

}  // namespace stoker::testing
