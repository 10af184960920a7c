#include "bindings/cli/inspect/jpeg_header.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "transforms/decode/exif.h"

namespace stoker {
namespace {

constexpr uint8_t kSoi = 0xD8, kEoi = 0xD9, kSos = 0xDA, kDri = 0xDD, kApp1 = 0xE1, kApp14 = 0xEE;

bool IsFrame(uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

bool StandsAlone(uint8_t marker) { return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD7); }

int Word(std::span<const uint8_t> bytes, size_t at) { return bytes[at] << 8 | bytes[at + 1]; }

Error Damage(std::string cause, uint64_t offset) {
  return Error{.code = Code::kDataLoss, .cause = std::move(cause), .file = {}, .offset = offset};
}

Error EndsEarly(uint64_t offset) {
  return Damage("truncated JPEG: it ends inside its header", offset);
}

std::string Hex(uint8_t byte) {
  constexpr const char* kDigits = "0123456789ABCDEF";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

// `segment`: the bytes after a frame marker and its length.
Status ReadFrame(uint8_t marker, std::span<const uint8_t> segment, uint64_t offset,
                 JpegDescription& header) {
  if (header.components != 0) return Damage("JPEG with two frames", offset);
  if (segment.size() < 6) return Damage("JPEG whose frame header is too short", offset);
  header.frame = marker;
  header.precision = segment[0];
  header.size = {.width = Word(segment, 3), .height = Word(segment, 1)};
  const int components = segment[5];
  if (components < 1 || components > 4 ||
      segment.size() != 6 + 3 * static_cast<size_t>(components)) {
    return Damage("JPEG with " + std::to_string(components) + " components in a frame header of " +
                      std::to_string(segment.size()) + " bytes",
                  offset);
  }
  if (header.size.width == 0 || header.size.height == 0) {
    return Damage("JPEG of " + std::to_string(header.size.width) + " × " +
                      std::to_string(header.size.height) + " pixels",
                  offset);
  }
  for (int i = 0; i < components; ++i) {
    const uint8_t sampling = segment[7 + 3 * static_cast<size_t>(i)];
    const size_t c = static_cast<size_t>(i);
    header.columns[c] = sampling >> 4;
    header.rows[c] = sampling & 15;
    if (header.columns[c] < 1 || header.columns[c] > 4 || header.rows[c] < 1 ||
        header.rows[c] > 4) {
      return Damage("JPEG with a sampling factor that is not 1 to 4 (" + Hex(sampling) + ")",
                    offset);
    }
  }
  header.components = components;
  return {};
}

// Copies of APP1 segments, because bytes read are valid only until the next read.
using App1Copies = std::vector<std::vector<uint8_t>>;

Orientation OrientationIn(const App1Copies& copies) {
  App1Segments segments;
  for (const auto& copy : copies) segments.Take(copy);
  return segments.orientation();
}

Status ReadSegment(uint8_t marker, std::span<const uint8_t> segment, uint64_t offset,
                   App1Copies& app1, JpegDescription& header) {
  if (IsFrame(marker)) return ReadFrame(marker, segment, offset, header);
  if (marker == kDri && segment.size() >= 2) header.restart_interval = Word(segment, 0);
  if (marker == kApp14 && segment.size() >= 12 && std::memcmp(segment.data(), "Adobe", 5) == 0) {
    header.adobe_transform = segment[11];
  }
  if (marker == kApp1) app1.emplace_back(segment.begin(), segment.end());
  return {};
}

bool IsLookedInto(uint8_t marker) {
  return IsFrame(marker) || marker == kDri || marker == kApp1 || marker == kApp14;
}

struct Marker {
  uint8_t code = 0;
  uint64_t end = 0;  // the offset of its two bytes
};

// Limits on all bytes between segments, of which there should be none, and on all bytes before the
// first scan: the largest headers in the wild contain depth maps and videos of some megabytes.
constexpr uint64_t kMaxBetween = 1 << 20, kMaxHeader = 32 << 20;

// Returns the next marker from `offset` on. Decoders skip bytes before a marker, and repeated 0xFF;
// this function skips at most `skippable` of them, and reduces it.
Result<Marker> NextMarker(const ReadAt& read, uint64_t offset, uint64_t& skippable) {
  constexpr size_t kStep = 4096;
  const uint64_t begin = offset;
  bool after_ff = false;
  while (offset - begin <= skippable) {
    ASSIGN_OR_RETURN(std::span<const uint8_t> bytes, read(offset, kStep));
    if (bytes.empty()) return EndsEarly(offset);
    for (uint8_t byte : bytes) {
      ++offset;
      if (after_ff && byte != 0 && byte != 0xFF) {
        skippable -= std::min(skippable, offset - 2 - begin);
        return Marker{byte, offset};
      }
      after_ff = byte == 0xFF;
    }
  }
  return Damage("damaged JPEG: more than " + std::to_string(kMaxBetween) +
                    " bytes of its header belong to no segment",
                begin);
}

}  // namespace

Result<JpegDescription> ReadJpegHeader(const ReadAt& read) {
  ASSIGN_OR_RETURN(std::span<const uint8_t> start, read(0, 2));
  if (start.size() < 2 || start[0] != 0xFF || start[1] != kSoi) {
    return Damage("not a JPEG: it does not begin with FF D8", 0);
  }
  App1Copies app1;
  JpegDescription header;
  uint64_t skippable = kMaxBetween;
  for (uint64_t offset = 2; offset <= kMaxHeader;) {
    Result<Marker> marker = NextMarker(read, offset, skippable);
    if (!marker.ok()) return std::move(marker).error();
    const uint64_t at = marker->end - 2;
    offset = marker->end;
    if (StandsAlone(marker->code)) continue;
    if (marker->code == kSos) {
      if (header.components == 0) return Damage("JPEG with a scan before any frame", at);
      header.orientation = OrientationIn(app1);
      return header;
    }
    if (marker->code == kSoi || marker->code == kEoi) {
      return Damage("JPEG whose marker " + Hex(marker->code) + " comes before any pixels", at);
    }
    Result<std::span<const uint8_t>> bytes = read(offset, 2);
    if (!bytes.ok()) return std::move(bytes).error();
    if (bytes->size() < 2) return EndsEarly(offset + bytes->size());
    const auto length = static_cast<size_t>(Word(*bytes, 0));
    if (length < 2) return Damage("JPEG with a segment shorter than its own length", at);
    // Of segments whose content is not needed, only the last byte is read: it shows that the
    // segment is complete.
    const bool all = IsLookedInto(marker->code) || length == 2;
    bytes = all ? read(offset + 2, length - 2) : read(offset + length - 1, 1);
    if (!bytes.ok()) return std::move(bytes).error();
    if (bytes->size() < (all ? length - 2 : 1)) {
      return Damage("truncated JPEG: a segment of " + std::to_string(length) +
                        " bytes reaches past the end of the file",
                    at);
    }
    if (IsLookedInto(marker->code)) {
      TRY(ReadSegment(marker->code, *bytes, at, app1, header));
    }
    offset += length;
  }
  return Damage("JPEG whose header has more than " + std::to_string(kMaxHeader) + " bytes",
                kMaxHeader);
}

ReadAt InMemory(std::span<const uint8_t> bytes) {
  return [bytes](uint64_t offset, size_t size) {
    const size_t begin = static_cast<size_t>(std::min<uint64_t>(offset, bytes.size()));
    return Result<std::span<const uint8_t>>(
        bytes.subspan(begin, std::min(size, bytes.size() - begin)));
  };
}

Result<JpegDescription> ReadJpegHeader(std::span<const uint8_t> bytes) {
  return ReadJpegHeader(InMemory(bytes));
}

std::string JpegDescription::ChromaName() const {
  if (components == 1) return "gray";
  if (components == 4) return adobe_transform == 2 ? "YCCK" : "CMYK";
  const auto same = [](const std::array<uint8_t, 4>& f, int i, int j) { return f[i] == f[j]; };
  if (components == 3 && same(columns, 1, 2) && same(rows, 1, 2) && columns[0] % columns[1] == 0 &&
      rows[0] % rows[1] == 0) {
    switch (columns[0] / columns[1] * 10 + rows[0] / rows[1]) {
      case 11:
        return "4:4:4";
      case 21:
        return "4:2:2";
      case 22:
        return "4:2:0";
      case 12:
        return "4:4:0";
      case 41:
        return "4:1:1";
      case 42:
        return "4:1:0";
    }
  }
  std::string name;
  for (size_t i = 0; i < static_cast<size_t>(components); ++i) {
    if (i > 0) name += ',';
    name += std::to_string(columns[i]);
    name += 'x';
    name += std::to_string(rows[i]);
  }
  return name;
}

}  // namespace stoker
