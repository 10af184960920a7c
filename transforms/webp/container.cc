#include "transforms/webp/container.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "transforms/decode/exif.h"

namespace stoker::webp {
namespace {

constexpr char kRecreate[] = "Remove or re-create the image";
constexpr size_t kNameBytes = 4;
constexpr size_t kFrameBytes = 8;  // a chunk's name and length
constexpr size_t kFirstChunk = 12;
constexpr size_t kExtendedBytes = 10;  // of VP8X
constexpr size_t kLosslessBytes = 5;   // of VP8L: its header
constexpr size_t kPlaceBytes = 16;     // of ANMF: where its frame is, and for how long
constexpr uint8_t kAnimation = 0x02;   // flags of VP8X
constexpr uint8_t kExif = 0x08;
constexpr uint8_t kXmp = 0x04;
constexpr uint8_t kAlpha = 0x10;

uint32_t Number(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

bool HasName(std::span<const uint8_t> bytes, size_t at, std::string_view name) {
  return bytes.size() >= at + name.size() &&
         std::equal(name.begin(), name.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

// The content of a VP8X chunk.
struct Extended {
  uint8_t flags = 0;
  ImageSize canvas;
};

// `data`: the data of the chunk, at least kExtendedBytes.
Extended ExtendedOf(std::span<const uint8_t> data) {
  return {data[0],
          {1 + static_cast<int>(Number(data, 4, 3)), 1 + static_cast<int>(Number(data, 7, 3))}};
}

// RFC 6386, 9.1: three bytes whose lowest bit is 0 for a key frame, three constant bytes, and two
// sizes of 14 bits.
std::optional<ImageSize> LossySize(std::span<const uint8_t> data) {
  if (data.size() < 10 || (data[0] & 1) != 0 || Number(data, 3, 3) != 0x2A019D) return {};
  const ImageSize size{static_cast<int>(Number(data, 6, 2) & 0x3FFF),
                       static_cast<int>(Number(data, 8, 2) & 0x3FFF)};
  if (size.width == 0 || size.height == 0) return std::nullopt;
  return size;
}

// RFC 9649, 3.4: a constant byte, two sizes of 14 bits, one bit for alpha, and a version of three
// bits, which is 0.
std::optional<ImageSize> LosslessSize(std::span<const uint8_t> data) {
  if (data.size() < kLosslessBytes || data[0] != 0x2F || data[4] >> 5 != 0) return std::nullopt;
  const uint32_t bits = Number(data, 1, 4);
  return ImageSize{1 + static_cast<int>(bits & 0x3FFF), 1 + static_cast<int>(bits >> 14 & 0x3FFF)};
}

Error NoPixels(uint64_t at) { return Damaged("no image in it", at); }

// Iterates over the chunks within the file's declared length.
class Chunks {
 public:
  explicit Chunks(std::span<const uint8_t> bytes, size_t at = kFirstChunk)
      : bytes_(bytes), at_(at) {}

  size_t at() const { return at_; }
  bool end() const { return bytes_.size() - std::min(at_, bytes_.size()) < kFrameBytes; }
  bool Is(std::string_view name) const { return HasName(bytes_, at_, name); }
  uint64_t length() const { return Number(bytes_, at_ + kNameBytes, 4); }
  bool whole() const { return length() <= bytes_.size() - at_ - kFrameBytes; }
  std::span<const uint8_t> data() const {
    return bytes_.subspan(at_ + kFrameBytes, static_cast<size_t>(length()));
  }
  size_t data_end() const { return at_ + kFrameBytes + static_cast<size_t>(length()); }
  void Next() { at_ = data_end() + (length() & 1); }  // padded to even lengths

 private:
  std::span<const uint8_t> bytes_;
  size_t at_;
};

}  // namespace

Error Damaged(const char* cause, uint64_t offset) {
  return Error{Code::kDataLoss, std::string("damaged WebP: ") + cause, {}, offset, kRecreate};
}

Error Truncated(uint64_t offset) {
  return Error{.code = Code::kDataLoss,
               .cause = "truncated WebP: it ends before its pixels do",
               .offset = offset,
               .advice = kRecreate,
               .detail = Error::Detail::kTruncated};
}

namespace {

// Returns the file up to its declared end.
Result<std::span<const uint8_t>> RiffFile(std::span<const uint8_t> bytes) {
  if (!HasName(bytes, 0, "RIFF") || !HasName(bytes, 8, "WEBP")) {
    return Error{Code::kDataLoss, "not a WebP", {}, 0, kRecreate};
  }
  const uint64_t length = Number(bytes, kNameBytes, 4);
  if (length < kNameBytes + kFrameBytes) return NoPixels(kNameBytes);
  if (length > bytes.size() - kFrameBytes) return Truncated(bytes.size());
  return bytes.first(static_cast<size_t>(length) + kFrameBytes);
}

Status TakeImage(const Chunks& chunk, const std::optional<Extended>& extended,
                 Container& container) {
  container.lossless = chunk.Is("VP8L");
  const std::optional<ImageSize> size =
      container.lossless ? LosslessSize(chunk.data()) : LossySize(chunk.data());
  if (!size) return Damaged("its image has no valid header", chunk.at());
  if (extended && extended->canvas != *size) {
    return Damaged("its image is not as large as its canvas", chunk.at());
  }
  container.size = *size;
  container.begin = chunk.at();
  // A lossless image has its own flag, after its size, for whether its alpha is used.
  container.alpha = container.lossless ? (chunk.data()[4] & 0x10) != 0
                                       : extended && (extended->flags & kAlpha) != 0;
  return {};
}

Error Unsupported(const char* cause, uint64_t at) {
  return {.code = Code::kUnimplemented,
          .cause = cause,
          .offset = at,
          .advice = "Convert it to a still image"};
}

// Returns the chunks of an animation's first frame, if this is all of the image.
Result<Chunks> FirstFrame(std::span<const uint8_t> own, Chunks chunk, ImageSize canvas) {
  while (!chunk.end() && chunk.whole() && !chunk.Is("ANMF")) chunk.Next();
  if (chunk.end()) return NoPixels(chunk.at());
  if (!chunk.whole()) return Truncated(chunk.at());
  const std::span<const uint8_t> data = chunk.data();
  if (data.size() < kPlaceBytes) return Damaged("a frame without a place", chunk.at());
  const ImageSize size{1 + static_cast<int>(Number(data, 6, 3)),
                       1 + static_cast<int>(Number(data, 9, 3))};
  if (Number(data, 0, 3) != 0 || Number(data, 3, 3) != 0 || size != canvas) {
    return Unsupported("an animated WebP whose first frame is not as large as its canvas",
                       chunk.at());
  }
  return Chunks(own.first(chunk.data_end()), chunk.at() + kFrameBytes + kPlaceBytes);
}

bool HasSeveralFrames(Chunks chunk) {
  int frames = 0;
  for (; !chunk.end() && frames < 2; chunk.Next()) frames += chunk.Is("ANMF");
  return frames == 2;
}

// Reads the chunks that `flags` announce. The first of several chunks counts, as in libwebp.
Orientation FindOrientation(Chunks chunk, uint8_t flags) {
  std::optional<std::span<const uint8_t>> exif, xmp;
  for (; !chunk.end() && chunk.whole(); chunk.Next()) {
    if ((flags & kExif) != 0 && chunk.Is("EXIF") && !exif) exif = chunk.data();
    if ((flags & kXmp) != 0 && chunk.Is("XMP ") && !xmp) xmp = chunk.data();
  }
  std::optional<uint32_t> value;
  if (exif) value = ExifValue(*exif);
  if (!value && xmp) value = XmpValue(*xmp);
  return OrientationOf(value);
}

}  // namespace

Result<Container> ReadContainer(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(std::span<const uint8_t> own, RiffFile(bytes));
  Chunks chunk(own);
  std::optional<Extended> extended;
  if (!chunk.end() && chunk.Is("VP8X")) {
    if (!chunk.whole()) return Truncated(chunk.at());
    if (chunk.length() != kExtendedBytes) return Damaged("a header of another length", chunk.at());
    extended = ExtendedOf(chunk.data());
    chunk.Next();
    if ((extended->flags & kAnimation) != 0) {
      ASSIGN_OR_RETURN(chunk, FirstFrame(own, chunk, extended->canvas));
    }
  }
  // Only a file with VP8X may have chunks before its image.
  std::optional<size_t> alpha;
  while (extended && !chunk.end() && chunk.whole() && !chunk.Is("VP8 ") && !chunk.Is("VP8L")) {
    if (chunk.Is("ALPH")) alpha = chunk.at();
    chunk.Next();
  }
  if (chunk.end()) return NoPixels(chunk.at());
  if (!chunk.Is("VP8 ") && !chunk.Is("VP8L")) return NoPixels(chunk.at());
  if (!chunk.whole()) return Truncated(chunk.at());
  Container container;
  TRY(TakeImage(chunk, extended, container));
  container.alpha_begin = alpha.value_or(container.begin);
  container.several_frames =
      extended && (extended->flags & kAnimation) != 0 && HasSeveralFrames(Chunks(own));
  if (extended && (extended->flags & (kExif | kXmp)) != 0) {
    container.orientation = FindOrientation(Chunks(own), extended->flags);
  }
  return container;
}

Result<ImageSize> ReadSize(std::span<const uint8_t> bytes) {
  constexpr size_t kData = kFirstChunk + kFrameBytes;
  const bool lossless = HasName(bytes, kFirstChunk, "VP8L");
  // A lossless image of one color may be shorter than the other headers.
  if (bytes.size() < (lossless ? kData + kLosslessBytes : kSizeBytes)) {
    return Truncated(bytes.size());
  }
  const std::span<const uint8_t> data = bytes.subspan(kData);
  if (HasName(bytes, kFirstChunk, "VP8X")) return ExtendedOf(data).canvas;
  std::optional<ImageSize> size;
  if (HasName(bytes, kFirstChunk, "VP8 ")) size = LossySize(data);
  if (lossless) size = LosslessSize(data);
  if (!size) return Damaged("its image has no valid header", kFirstChunk);
  return *size;
}

}  // namespace stoker::webp
