#include "tests/torture/image_parts.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace stoker::testing {
namespace {

using File = std::span<const uint8_t>;

bool Begins(File file, size_t at, std::string_view with) {
  return file.size() >= at + with.size() &&
         std::equal(with.begin(), with.end(), file.begin() + static_cast<ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

size_t BigEndian(File file, ByteSpan span) {
  size_t value = 0;
  for (size_t i = 0; i < span.size; ++i) value = value << 8 | file[span.at + i];
  return value;
}

size_t LittleEndian(File file, ByteSpan span) {
  size_t value = 0;
  for (size_t i = span.size; i > 0; --i) value = value << 8 | file[span.at + i - 1];
  return value;
}

bool IsAlone(uint8_t marker) { return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD9); }

// Where the coded data that begin here end: at a marker that is no restart.
size_t EndOfData(File file, size_t at) {
  for (; at + 1 < file.size(); ++at) {
    const uint8_t next = file[at + 1];
    if (file[at] == 0xFF && next != 0 && next != 0xFF && (next < 0xD0 || next > 0xD7)) return at;
  }
  return file.size();
}

std::optional<ImagePart> Segment(File file, size_t at) {
  constexpr uint8_t kScan = 0xDA;
  if (at + 2 > file.size() || file[at] != 0xFF) return std::nullopt;
  ImagePart part{.whole = {at, 2}, .name = {at + 1, 1}};
  if (IsAlone(file[at + 1])) return part;
  if (at + 4 > file.size()) return std::nullopt;
  part.length = {at + 2, 2};
  const size_t length = BigEndian(file, part.length);
  if (length < 2 || at + 2 + length > file.size()) return std::nullopt;
  part.data = {at + 4, length - 2};
  part.whole.size = 2 + length;
  if (file[at + 1] == kScan) part.whole.size = EndOfData(file, at + 2 + length) - at;
  return part;
}

std::optional<ImagePart> PngPart(File file, size_t at) {
  constexpr size_t kAround = 12;
  if (at + kAround > file.size()) return std::nullopt;
  ImagePart part{.name = {at + 4, 4}, .length = {at, 4}};
  const size_t length = BigEndian(file, part.length);
  if (length > file.size() - at - kAround) return std::nullopt;
  part.data = {at + 8, length};
  part.whole = {at, kAround + length};
  return part;
}

std::optional<ImagePart> WebpPart(File file, size_t at) {
  if (at + 8 > file.size()) return std::nullopt;
  ImagePart part{.name = {at, 4}, .length = {at + 4, 4}};
  const size_t length = LittleEndian(file, part.length);
  if (length > file.size() - at - 8) return std::nullopt;
  part.data = {at + 8, length};
  part.whole = {at, std::min(8 + length + length % 2, file.size() - at)};
  return part;
}

std::vector<ImagePart> All(File file, size_t at,
                           std::optional<ImagePart> (*next)(File file, size_t at)) {
  std::vector<ImagePart> parts;
  while (const std::optional<ImagePart> part = next(file, at)) {
    parts.push_back(*part);
    at += part->whole.size;
  }
  return parts;
}

}  // namespace

std::vector<ImagePart> PartsOf(std::span<const uint8_t> file) {
  if (Begins(file, 0, "\xFF\xD8")) return All(file, 0, Segment);
  if (Begins(file, 0, "\x89PNG\r\n\x1A\n")) return All(file, 8, PngPart);
  if (Begins(file, 0, "RIFF") && Begins(file, 8, "WEBP")) return All(file, 12, WebpPart);
  return {};
}

}  // namespace stoker::testing
