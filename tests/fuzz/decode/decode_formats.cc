#include "tests/fuzz/decode/decode_formats.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "transforms/array/array_decoder.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"
#include "transforms/png/decoder.h"
#include "transforms/png/inflater.h"
#include "transforms/png/reference_decoder.h"
#include "transforms/png/reference_inflate.h"
#include "transforms/webp/decoder.h"
#include "transforms/webp/reference_decoder.h"
#include "transforms/whole/decoder.h"

namespace stoker::testing {
namespace {

void Compare(const Rows& rows, const Rect& region, const WholeImage& whole) {
  Require(rows.region().layout == whole.layout, "the layout is that of the full decode");
  const auto pixel = static_cast<size_t>(BytesPerPixel(whole.layout));
  const size_t stride = static_cast<size_t>(whole.size.width) * pixel;
  for (size_t y = 0; y < rows.rows().size(); ++y) {
    const uint8_t* want = whole.pixels.data() + (static_cast<size_t>(region.y) + y) * stride +
                          static_cast<size_t>(region.x) * pixel;
    Require(
        std::memcmp(rows.rows()[y].data(), want, static_cast<size_t>(region.width) * pixel) == 0,
        "pixels are those of the full decode");
  }
}

template <typename Decoder>
void Decode(Decoder& decoder, std::span<const uint8_t> input,
            Result<WholeImage> (*decode_whole)(std::span<const uint8_t>)) {
  const PaddedFile padded(input);
  const std::span<const uint8_t> bytes = padded.file();
  const Result<ImageInfo> info = decoder.Open(bytes);
  if (!info.ok()) return RequireSound(info.error(), bytes.size());
  const Rect region = ChooseRegion(info->size, Digest(input));
  Rows rows;
  const Status status = decoder.Decode(region, rows);
  if (!status.ok()) RequireSound(status.error(), bytes.size());
  const Result<WholeImage> whole = decode_whole(bytes);
  if (!status.ok()) {
    Require(!whole.ok() || status.error().code == Code::kResourceExhausted,
            "what the plain decode takes is taken");
    return;
  }
  Require(
      rows.region().covered == region && rows.rows().size() == static_cast<size_t>(region.height),
      "the region asked for is delivered");
  if (whole.ok()) Compare(rows, region, *whole);
}

// Decodes all samples of a PNG, into memory of their exact size.
void DecodeUnchanged(PngDecoder& decoder, std::span<const uint8_t> input) {
  const PaddedFile padded(input);
  const std::span<const uint8_t> bytes = padded.file();
  const Result<ImageInfo> info = decoder.Open(bytes);
  if (!info.ok()) return;
  const Rect region = ChooseRegion(info->size, Digest(input));
  const int channels = (info->components == 1 ? 1 : 3) + (info->alpha ? 1 : 0);
  const auto row = static_cast<size_t>(region.width * channels * info->bits / 8);
  std::vector<uint8_t> samples(row * static_cast<size_t>(region.height));
  const Status status = decoder.DecodeUnchanged(region, samples.data());
  if (!status.ok()) RequireSound(status.error(), bytes.size());
  Require(decoder.Open(bytes).ok(), "what was opened is opened again");
  Rows rows;
  Require(decoder.Decode(region, rows).ok() == status.ok(), "both decode, or neither");
}

// Decodes a region to channels and a type that the input chooses, into memory of the exact size.
void DecodeArray(std::span<const uint8_t> input) {
  static MemoryBudget budget(kMemory);
  static ArrayDecoder decoder(kTight, budget);
  const PaddedFile padded(input);
  const std::span<const uint8_t> bytes = padded.file();
  RandomStream random({Digest(input), 0, 0}, 0);
  constexpr DType kTypes[] = {DType::kU8, DType::kU16, DType::kF32, DType::kBF16};
  ArrayRequest request{.channels = static_cast<Channels>(random.Below(9))};  // up to 5 stored ones
  if (request.channels != Channels::kUnchanged) {
    request.dtype = kTypes[random.Below(4)];
    request.layout = random.Below(2) == 0 ? Layout::kNhwc : Layout::kNchw;
  }
  if (random.Below(2) == 0) {
    request.resize = Resize{.height = 1 + static_cast<int>(random.Below(40)),
                            .width = 1 + static_cast<int>(random.Below(40)),
                            .interpolation = static_cast<Interpolation>(random.Below(5)),
                            .resampler = static_cast<ResampledAs>(random.Below(3))};
  }
  const Result<ArrayShape> shape = decoder.Open(bytes, request);
  if (!shape.ok()) return Require(!shape.error().cause.empty(), "errors have a cause");
  std::vector<uint8_t> array(shape->bytes());
  const Status status = decoder.Decode(array.data());
  Require(status.ok() || !status.error().cause.empty(), "errors have a cause");
}

// Decompresses the input as the data of a chunk: the bytes and the verdict are zlib's.
void InflateFuzzed(std::span<const uint8_t> input) {
  static png::Inflater inflater;
  std::vector<uint8_t> chunk(8);
  for (size_t i = 0; i < 4; ++i) chunk[i] = static_cast<uint8_t>(input.size() >> (24 - 8 * i));
  chunk.insert(chunk.end(), input.begin(), input.end());
  chunk.resize(chunk.size() + 4);
  const size_t total = 1 + Digest(input) % 200'000;
  const std::optional<std::vector<uint8_t>> wanted = png::InflateByZlib(input, total);
  inflater.Start(chunk, {0, chunk.size()}, total);
  for (size_t at = 0; at < total;) {
    const auto part = inflater.Next(total - at);
    Require(part.ok() || !wanted, "what zlib takes is taken");
    if (!part.ok()) return RequireSound(part.error(), chunk.size());
    Require(!wanted || std::memcmp(part->data(), wanted->data() + at, part->size()) == 0,
            "the bytes are zlib's");
    at += part->size();
  }
  Require(wanted.has_value(), "what zlib refuses is refused");
}

// The decoder, opening masks, or putting transparent colours onto white.
struct MaskDecoder {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) { return png.Open(bytes, meaning); }
  Status Decode(const Rect& region, RowSink& sink) { return png.Decode(region, sink); }

  PngDecoder& png;
  PixelMeaning meaning;
};

// Makes the row of a mask (of 8 bits if `number` is 1, of 16 if it is 2) with a draw that the input
// chooses, and compares it with the reference.
void MoveMask(std::span<const uint8_t> input, size_t number) {
  const RandomRotation rotation{.degrees = {-30, 30}};
  const std::vector<Transform> transforms = {RandomResizedCrop{20, 30}, RandomHorizontalFlip{},
                                             Pad{{1, 2, 3, 4}, {5, 6, 7}},
                                             RandomApply{{rotation}, 0.5}};
  const std::vector<Piece> pieces = {{}, {Piece::Kind::kMask, 255}, {Piece::Kind::kMask16, 770}};
  static const Plan plan = Plan::Compile(transforms, {.limits = kTight, .pieces = pieces}).value();
  static MemoryBudget budget(kMemory);
  static const auto workspace = plan.MakeWorkspace(budget);
  const Plan& mask = plan.piece(number);
  const PaddedFile padded(input);
  const std::span<const uint8_t> bytes = padded.file();
  std::vector<uint8_t> row(mask.row_bytes()), wanted(mask.row_bytes());
  StageTimes times;
  const DrawKey key{1, 0, Digest(input)};
  const Status status = mask.Apply(bytes, key, *workspace, row.data(), times);
  const Status plain = ApplyReference(mask, bytes, key, wanted.data());
  if (!status.ok()) {
    RequireSound(status.error(), bytes.size());
    Require(!plain.ok() || status.error().code == Code::kResourceExhausted,
            "what the plain decode takes is taken");
  } else if (plain.ok()) {
    Require(row == wanted, "the row is the reference's");
  }
}

uint32_t U32(const std::vector<uint8_t>& bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

// The decoder, opening what it decodes.
struct SniffedDecoder {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) {
    const ImageFormat format = SniffFormat(bytes);
    if (!WholeDecoder::Decodes(format)) return Error{Code::kDataLoss, "another format", {}, 0};
    return whole.Open(bytes, format);
  }
  Status Decode(const Rect& region, RowSink& sink) { return whole.Decode(region, sink); }

  WholeDecoder& whole;
};

SniffedDecoder WholeDecoderOf() {
  static MemoryBudget budget(kMemory);
  static WholeDecoder decoder(kTight, &budget);
  Require(budget.used() <= 1 << 20, "memory is returned after each image");
  return {decoder};
}

// Keeps the colours and upper bits of what is decoded unchanged.
Result<WholeImage> DecodeWholeUnchanged(std::span<const uint8_t> bytes) {
  SniffedDecoder decoder = WholeDecoderOf();
  const Result<ImageInfo> info = decoder.Open(bytes);
  if (!info.ok()) return info.error();
  WholeImage image{.size = info->size, .pixels = {}};
  const size_t colours = info->components == 1 ? 1 : 3;
  if (colours == 1) image.layout = PixelLayout::kGray;
  const size_t channels = colours + (info->alpha ? 1 : 0) + static_cast<size_t>(info->extra);
  const size_t wide = info->bits == 16 ? 2 : 1;
  constexpr size_t kMostForColour = 6;
  if (channels > kMostForColour) return Error{Code::kUnimplemented, "bands, not colours"};
  const auto pixels =
      static_cast<size_t>(info->size.width) * static_cast<size_t>(info->size.height);
  std::vector<uint8_t> all(pixels * channels * wide);
  const Status status =
      decoder.whole.DecodeUnchanged({0, 0, info->size.width, info->size.height}, all.data());
  if (!status.ok()) return status.error();
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < colours; ++c) {
      image.pixels.push_back(all[(i * channels + c) * wide + wide - 1]);  // little-endian
    }
  }
  return image;
}

}  // namespace

void MendPngChecksums(std::vector<uint8_t>& png) {
  for (size_t at = 8; at + 12 <= png.size();) {
    const size_t length = U32(png, at);
    if (length > png.size() - at - 12) return;
    const auto sum = static_cast<uint32_t>(crc32_z(0, png.data() + at + 4, length + 4));
    for (size_t i = 0; i < 4; ++i) {
      png[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    }
    at += 12 + length;
  }
}

void DecodeFuzzedPng(std::span<const uint8_t> input) {
  InflateFuzzed(input);
  static MemoryBudget budget(kMemory);
  static PngDecoder decoder(kTight, &budget);  // state must not leak
  std::vector<uint8_t> png(input.begin(), input.end());
  Decode(decoder, png, DecodeWholePng);
  MendPngChecksums(png);
  Decode(decoder, png, DecodeWholePng);
  MaskDecoder masks{decoder, PixelMeaning::kMask}, wide{decoder, PixelMeaning::kMask16};
  Decode(masks, png, [](std::span<const uint8_t> bytes) { return DecodeWholeMask(bytes); });
  Decode(wide, png, [](std::span<const uint8_t> bytes) { return DecodeWholeMask(bytes, true); });
  MaskDecoder on_white{decoder, PixelMeaning::kOnWhite};
  Decode(on_white, png, [](std::span<const uint8_t>) -> Result<WholeImage> { return Error{}; });
  MoveMask(png, 1);
  MoveMask(png, 2);
  DecodeUnchanged(decoder, png);
  DecodeArray(png);
}

void DecodeFuzzedWebp(std::span<const uint8_t> input) {
  static MemoryBudget budget(kMemory);
  static WebpDecoder decoder(kTight, &budget);
  Decode(decoder, input, DecodeWholeWebp);
  DecodeArray(input);
}

void DecodeFuzzedWhole(std::span<const uint8_t> input) {
  SniffedDecoder decoder = WholeDecoderOf();
  Decode(decoder, input, DecodeWholeUnchanged);
  DecodeArray(input);
}

}  // namespace stoker::testing
