#include "tests/fuzz/decode/decode_packed.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/gpu/crops/forged_crops.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "transforms/decode/format.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/packed/decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"
#include "transforms/packed/unpack.h"

namespace stoker::testing {
namespace {

Status Decode(JpegDecoder& decoder, const Rect& region, Reduction reduction, Rows& rows) {
  return decoder.Decode(region, rows, {}, reduction);
}
Status Decode(PackedJpegDecoder& decoder, const Rect& region, Reduction reduction, Rows& rows) {
  return decoder.Decode(region, rows, reduction);
}

// Decodes a region that `seed` chooses, of the image, perhaps reduced; false if that fails.
template <typename Decoder>
bool DecodeRegion(Decoder& decoder, std::span<const uint8_t> file, uint64_t seed, Rows& rows) {
  const Result<ImageInfo> info = decoder.Open(file);
  if (!info.ok()) {
    RequireSound(info.error(), file.size());
    return false;
  }
  const Reduction reduction = ChooseReduction(*info, seed);
  const Rect region = ChooseRegion(Reduced(info->size, reduction), seed);
  const Status status = Decode(decoder, region, reduction, rows);
  if (!status.ok()) {
    RequireSound(status.error(), file.size());
    return false;
  }
  Require(rows.rows().size() == static_cast<size_t>(region.height), "all rows are delivered");
  return true;
}

PackedJpegDecoder& Decoder() {
  static MemoryBudget budget(kMemory);
  static PackedJpegDecoder decoder(kTight, &budget);  // state must not leak
  return decoder;
}

void DecodePacked(std::span<const uint8_t> input, uint64_t seed) {
  const PaddedFile file(input);
  Rows rows;
  Random random(static_cast<uint32_t>(seed));
  if (Decoder().Open(file.file()).ok()) DecodeForgedCrop(file.file(), random);
  if (!DecodeRegion(Decoder(), file.file(), seed, rows)) return;
  const Result<std::vector<uint8_t>> jpeg = RestoreJpeg(file.file());
  if (!jpeg.ok()) RequireSound(jpeg.error(), file.file().size());
}

// What is read for a crop: it begins with a part, or with the header, and ends anywhere.
std::span<const uint8_t> PartOf(std::span<const uint8_t> file, uint64_t seed) {
  const auto from = file.begin() + static_cast<ptrdiff_t>(seed % (file.size() + 1));
  const auto begin = std::search(from, file.end(), packed::kMagic.begin(), packed::kMagic.end());
  const auto rest = static_cast<size_t>(file.end() - begin);
  return {begin, begin + static_cast<ptrdiff_t>(rest - (seed >> 32) % (rest + 1))};
}

void Pack(std::span<const uint8_t> input, uint64_t seed) {
  static JpegPacker packer(nullptr, kTight);
  const PaddedFile jpeg(input);
  JpegDecoder theirs(kTight);
  if (!theirs.Open(jpeg.file()).ok()) return;  // too large, too
  const Result<std::vector<uint8_t>> packed = packer.Pack(jpeg.file());
  Require(packed.ok() || packed.error().code == Code::kUnimplemented,
          "a JPEG is packed, or stored as it is");
  if (packed.ok()) {
    const PaddedFile file(*packed);
    const Result<std::vector<uint8_t>> restored = RestoreJpeg(file.file());
    Require(
        restored.ok() && std::equal(input.begin(), input.end(), restored->begin(), restored->end()),
        "what is packed is restored to the byte");
  }
  const Result<std::span<const uint8_t>> pixels = packer.PackPixels(jpeg.file());
  Require(pixels.ok() || !packed.ok(), "the pixels of what is packed are packed");
  if (!pixels.ok()) return;
  const PaddedFile file(*pixels);
  Rows want, got;
  Require(DecodeRegion(theirs, jpeg.file(), seed, want), "what is packed can be decoded");
  Require(DecodeRegion(Decoder(), file.file(), seed, got), "what is packed can be decoded packed");
  Require(got.rows().size() == want.rows().size(), "the region is the same");
  const auto width = static_cast<size_t>(want.region().covered.width);
  const size_t bytes = want.region().layout == PixelLayout::kGray ? width : 3 * width;
  for (size_t y = 0; y < got.rows().size(); ++y) {
    Require(std::memcmp(got.rows()[y].data(), want.rows()[y].data(), bytes) == 0,
            "pixels are the same");
  }
}

void UnpackRuns(std::span<const uint8_t> input, uint64_t seed) {
  constexpr size_t kWords = packed::kRunGroups * packed::kGroupWords;
  std::vector<uint8_t> run(packed::kRunReach);
  std::copy_n(input.begin(), std::min(input.size(), run.size()), run.begin());
  const int from = static_cast<int>(seed % packed::kRunGroups), to = packed::kRunGroups;
  alignas(64) std::array<int16_t, kWords> want{}, got{};
  packed::UnpackRunPlain(run.data(), from, to, want.data());
  packed::UnpackRun(run.data(), from, to, got.data());
  Require(got == want, "runs are unpacked as by the reference");
  std::array<uint16_t, 64> table;
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint16_t>(seed >> (i % 50));
  packed::Quantiser quantiser;
  SetQuantiser(table, quantiser);
  constexpr ptrdiff_t kStride = 8 * packed::kRunBlocks;
  std::array<uint8_t, 8 * kStride> want_samples{}, got_samples{};
  TransformRunPlain(run.data(), from, to, quantiser, want_samples.data(), kStride);
  TransformRun(run.data(), from, to, quantiser, got_samples.data(), kStride);
  Require(got_samples == want_samples, "runs are transformed as by the reference");
  const int side = 4 >> seed % 3;
  ReduceRunPlain(run.data(), from, to, quantiser, side, want_samples.data(), kStride);
  ReduceRun(run.data(), from, to, quantiser, side, got_samples.data(), kStride);
  Require(got_samples == want_samples, "runs are reduced as by the reference");
}

}  // namespace

void DecodeFuzzedPacked(std::span<const uint8_t> input) {
  const uint64_t seed = Digest(input);
  UnpackRuns(input, seed);
  if (SniffFormat(input) == ImageFormat::kJpeg) return Pack(input, seed);
  DecodePacked(input, seed);
  std::vector<uint8_t> mended(input.begin(), input.end());
  SignPackedJpeg(mended);
  DecodePacked(mended, seed);
  DecodePacked(PartOf(mended, seed), seed);
}

}  // namespace stoker::testing
