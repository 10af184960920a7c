#include "transforms/png/text.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "transforms/decode/exif.h"

namespace stoker::png {
namespace {

constexpr size_t kMaxText = size_t{1} << 20;   // Pillow's limit, too
constexpr size_t kPiece = 8192;                // decompressed at a time
constexpr size_t kMaxExif = size_t{64} << 10;  // a JPEG's APP1 segment has no room for more

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Skips to after the next zero byte; returns false if there is none.
bool SkipString(std::span<const uint8_t>& bytes) {
  const size_t end = TextOf(bytes).find('\0');
  if (end == std::string_view::npos) return false;
  bytes = bytes.subspan(end + 1);
  return true;
}

// Passes the text piece by piece to `take`, until `take` returns false.
template <typename Take>
void Read(const Text& text, Take take) {
  if (!text.compressed) {
    (void)take(text.bytes.first(std::min(text.bytes.size(), kMaxText)));
    return;
  }
  z_stream stream{};
  stream.next_in = const_cast<Bytef*>(text.bytes.data());
  stream.avail_in = static_cast<uInt>(text.bytes.size());  // a chunk has less than 2^31
  if (inflateInit(&stream) != Z_OK) return;
  std::array<uint8_t, kPiece> piece;
  for (size_t done = 0; done < kMaxText;) {
    stream.next_out = piece.data();
    stream.avail_out = piece.size();
    const int result = inflate(&stream, Z_NO_FLUSH);
    const size_t got = piece.size() - stream.avail_out;
    done += got;
    if ((result != Z_OK && result != Z_STREAM_END) || !take(std::span(piece).first(got))) break;
    if (result == Z_STREAM_END || got == 0) break;
  }
  (void)inflateEnd(&stream);
}

int Digit(uint8_t c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Parses a profile: three lines (an empty one, the profile's name, its length), then hexadecimal
// digits in lines.
class Profile {
 public:
  bool Take(std::span<const uint8_t> piece) {
    for (const uint8_t c : piece) {
      if (lines_ < 3) {
        lines_ += c == '\n' ? 1 : 0;
        continue;
      }
      const int digit = Digit(c);
      if (digit < 0 && (c == '\n' || c == ' ' || c == '\r' || c == '\t')) continue;
      if (digit < 0 || bytes_.size() == kMaxExif) return false;
      if (high_ < 0) {
        high_ = digit;
      } else {
        bytes_.push_back(static_cast<uint8_t>(high_ << 4 | digit));
        high_ = -1;
      }
    }
    return true;
  }

  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  int lines_ = 0;
  int high_ = -1;  // the first digit of a pair
  std::vector<uint8_t> bytes_;
};

// Text across two pieces is found by keeping the end of the previous one.
std::optional<uint32_t> FindInXmp(const Text& text) {
  std::optional<uint32_t> found;
  if (!text.compressed) {  // in one piece
    Read(text, [&found](std::span<const uint8_t> all) {
      found = XmpValue(all);
      return false;
    });
    return found;
  }
  constexpr size_t kKept = 32;  // more than the text of an orientation
  std::array<uint8_t, kKept + kPiece> window;
  size_t size = 0;
  Read(text, [&](std::span<const uint8_t> piece) {
    const size_t kept = std::min(size, kKept);
    std::memmove(window.data(), window.data() + size - kept, kept);
    std::memcpy(window.data() + kept, piece.data(), piece.size());
    size = kept + piece.size();
    found = XmpValue(std::span(window).first(size));
    return !found.has_value();
  });
  return found;
}

}  // namespace

std::optional<Text> ReadText(TextChunk type, std::span<const uint8_t> data) {
  const std::string_view all = TextOf(data);
  Text text;
  text.bytes = data;
  const std::string_view keyword = all.substr(0, all.find('\0'));
  if (keyword == "exif" && type == TextChunk::kText) {
    text.kind = Text::Kind::kExif;
  } else if (keyword == "Raw profile type exif") {
    text.kind = Text::Kind::kProfile;
  } else if (keyword != "XML:com.adobe.xmp") {
    return std::nullopt;
  }
  if (!SkipString(text.bytes)) return std::nullopt;
  if (type == TextChunk::kText) return text;
  const size_t fields = type == TextChunk::kInternational ? 2 : 1;  // compressed or not; method
  if (text.bytes.size() < fields || text.bytes[fields - 1] != 0) return std::nullopt;
  text.compressed = type == TextChunk::kCompressed || text.bytes[0] != 0;
  text.bytes = text.bytes.subspan(fields);
  if (type == TextChunk::kCompressed) return text;
  const bool whole = SkipString(text.bytes) && SkipString(text.bytes);  // language, translation
  return whole ? std::optional(text) : std::nullopt;
}

std::optional<uint32_t> ValueOf(const Text& text) {
  if (text.kind == Text::Kind::kExif) return ExifValue(text.bytes);
  if (text.kind == Text::Kind::kXmp) return FindInXmp(text);
  Profile profile;
  Read(text, [&profile](std::span<const uint8_t> piece) { return profile.Take(piece); });
  return ExifValue(profile.bytes());
}

}  // namespace stoker::png
