#include "tests/fuzz/decode/decode_mask.h"

#include <cstring>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "transforms/decode/format.h"
#include "transforms/mask/decoder.h"
#include "transforms/mask/pack.h"
#include "transforms/mask/reference_decoder.h"

namespace stoker::testing {
namespace {

void RequireRegion(const Rows& rows, const Rect& region, const WholeImage& whole) {
  const auto pixel = static_cast<size_t>(BytesPerPixel(whole.layout));
  const size_t bytes = pixel * static_cast<size_t>(region.width);
  Require(rows.rows().size() == static_cast<size_t>(region.height), "all rows are delivered");
  for (int y = 0; y < region.height; ++y) {
    const size_t from =
        pixel * (static_cast<size_t>(region.y + y) * static_cast<size_t>(whole.size.width) +
                 static_cast<size_t>(region.x));
    Require(std::memcmp(rows.rows()[static_cast<size_t>(y)].data(), whole.pixels.data() + from,
                        bytes) == 0,
            "values are those of the reference");
  }
}

void Decode(std::span<const uint8_t> input, bool wide, uint64_t seed) {
  static MemoryBudget budget(kMemory);
  static PackedMaskDecoder decoder(kTight, &budget);  // state must not leak
  const PaddedFile mask(input);
  const Result<WholeImage> whole = DecodeWholePackedMask(input, wide, kTight.max_pixels);
  const auto require_sound = [&](const Error& error) {
    Require(!whole.ok(), "what the reference decodes is decoded");
    Require(!error.cause.empty(), "errors have a cause");
    Require(error.offset.has_value() && *error.offset <= input.size(), "errors have an offset");
  };
  const auto meaning = wide ? PixelMeaning::kMask16 : PixelMeaning::kMask;
  const Result<ImageInfo> info = decoder.Open(mask.file(), meaning);
  if (!info.ok()) return require_sound(info.error());
  const Rect region = ChooseRegion(info->size, seed);
  Rows rows;
  const Status status = decoder.Decode(region, rows);
  if (!status.ok()) return require_sound(status.error());
  if (whole.ok()) RequireRegion(rows, region, *whole);
}

// Packs the input as values.
void Pack(std::span<const uint8_t> input, bool wide, uint64_t seed) {
  std::vector<uint16_t> values;
  for (size_t i = 0; i + 1 < input.size(); i += wide ? 2 : 1) {
    values.push_back(static_cast<uint16_t>(wide ? input[i] | input[i + 1] << 8 : input[i]));
  }
  if (values.empty()) return;
  const size_t width = 1 + seed % values.size();
  const size_t height = values.size() / width;
  if (width > kMaxSidePixels || height > kMaxSidePixels) return;
  const std::vector<uint8_t> packed =
      PackValues({.size = {static_cast<int>(width), static_cast<int>(height)},
                  .bits = wide ? 16 : 8,
                  .values = values.data()});
  const Result<WholeImage> whole = DecodeWholePackedMask(packed, true, int64_t{1} << 32);
  Require(whole.ok(), "what is packed can be decoded");
  Require(std::memcmp(whole->pixels.data(), values.data(), whole->pixels.size()) == 0,
          "values are the same");
  Decode(packed, true, seed);
}

}  // namespace

void DecodeFuzzedMask(std::span<const uint8_t> input) {
  const uint64_t seed = Digest(input);
  Decode(input, false, seed);
  Decode(input, true, seed);
  Pack(input, false, seed);
  Pack(input, true, seed);
  if (SniffFormat(input) != ImageFormat::kPng) return;
  const PaddedFile png(input);
  const Result<std::vector<uint8_t>> packed = PackMask(png.file());
  Require(packed.ok() || packed.error().code == Code::kUnimplemented,
          "a mask is packed, or stored as it is");
  if (!packed.ok()) return;
  const PaddedFile mask(*packed);
  Require(CompareMasks(png.file(), mask.file()).ok(), "the values are those of the PNG");
}

}  // namespace stoker::testing
