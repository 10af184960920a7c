#include "bench/decode_methods.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gpu/crops/crop_kernels-inl.h"
#include "transforms/jpeg/reference_decoder.h"

namespace stoker {

Status Discard::Begin(const DecodedRegion& region) {
  region_ = region;
  const auto bytes = static_cast<size_t>(region.covered.width * BytesPerPixel(region.layout));
  stride_ = bytes + kBufferPadding;
  rows_.resize(16 * 3 * stride_);
  return {};
}

MutableImageView Discard::Reserve(int rows) {
  MutableImageView view;
  view.layout = region_.layout;
  view.size = {region_.covered.width, std::min(rows, 16)};
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(region_.layout)); ++p) {
    view.plane[p] = rows_.data() + p * 16 * stride_;
    view.stride[p] = static_cast<ptrdiff_t>(stride_);
  }
  return view;
}

namespace {

void CheckOk(const Status& status) {
  if (!status.ok()) std::abort();
}

Rect StartOf(Resampler& resampler, const Photo& photo, Box box, const PixelOutput& output) {
  resampler.Reset();
  return resampler.Start(photo.task[static_cast<size_t>(box)], output).value();
}

}  // namespace

void Sequential::Rows(const Photo& photo, const Rect& region) {
  if (!decoder_.Open(photo.bytes()).ok()) std::abort();
  CheckOk(decoder_.Decode(region, discard_));
}

void Sequential::Batch(const Photo& photo, Box box, const PixelOutput& output,
                       std::span<const uint8_t> index) {
  Begin(photo, box, output, index);
  while (decoder_.decoding()) decoder_.Advance();
  Finish();
}

void Sequential::BatchFromImage(const Photo& photo, Box box, const PixelOutput& output) {
  const WholeImage image = DecodeWhole(photo.bytes()).value();
  const Rect region = StartOf(resampler_, photo, box, output);
  const auto pixel = static_cast<size_t>(BytesPerPixel(image.layout));
  CheckOk(resampler_.Begin({image.layout, region}));
  for (int y = 0; y < region.height; ++y) {
    const MutableImageView view = resampler_.Reserve(1);
    const size_t at = (static_cast<size_t>(region.y + y) * static_cast<size_t>(image.size.width) +
                       static_cast<size_t>(region.x)) *
                      pixel;
    std::memcpy(view.plane[0], &image.pixels[at], static_cast<size_t>(region.width) * pixel);
    resampler_.Commit(1);
  }
}

void Sequential::Begin(const Photo& photo, Box box, const PixelOutput& output,
                       std::span<const uint8_t> index) {
  const Rect region = StartOf(resampler_, photo, box, output);
  if (!decoder_.Open(photo.bytes()).ok()) std::abort();
  decoder_.Start(region, resampler_, index);
}

void Sequential::Finish() { CheckOk(decoder_.Finish()); }

void Packed::Open(const Photo& photo) {
  const std::span<const uint8_t> packed(photo.packed);
  const auto bytes = packed.empty() ? photo.bytes() : packed.first(packed.size() - kBufferPadding);
  if (!decoder_.Open(bytes).ok()) std::abort();
}

void Packed::Rows(const Photo& photo, const Rect& region) {
  Open(photo);
  CheckOk(decoder_.Decode(region, discard_));
}

void Packed::Batch(const Photo& photo, Box box, const PixelOutput& output) {
  const Rect region = StartOf(resampler_, photo, box, output);
  Open(photo);
  CheckOk(decoder_.Decode(region, resampler_));
}

bool ForDevice::PackedCrop(const Photo& photo, Box box, std::span<uint8_t> to) {
  const std::span<const uint8_t> packed(photo.packed);
  if (packed.empty()) return false;
  const auto file = packed::PackedFile::Open(packed.first(packed.size() - kBufferPadding));
  if (!file.ok()) std::abort();
  CheckOk(maker_.Plan(*file, photo.task[static_cast<size_t>(box)]));
  if (maker_.bytes() > to.size()) std::abort();
  maker_.Write(0, to.data());
  return true;
}

bool ForDevice::PlainCrop(const Photo& photo, Box box, std::span<const uint8_t> index,
                          std::span<uint8_t> to) {
  if (index.empty()) return false;
  if (!decoder_.Open(photo.bytes()).ok()) std::abort();
  const auto jpeg = decoder_.Indexed(index);
  if (!jpeg) std::abort();
  CheckOk(maker_.Plan(*jpeg, photo.task[static_cast<size_t>(box)]));
  if (maker_.bytes() > to.size()) std::abort();
  maker_.Write(0, to.data());
  return true;
}

void ForDevice::Count(const uint8_t* bytes) {
  const auto& crop = *decode::At<decode::DeviceCrop>(bytes, 0);
  ++crops_;
  bytes_ += static_cast<double>(maker_.bytes());
  most_bytes_ = std::max(most_bytes_, static_cast<double>(maker_.bytes()));
  samples_ += static_cast<double>(maker_.samples() * decode::kGroupSamples);
  runs_ += crop.runs;
  intervals_ += crop.intervals;
  tiles_ += crop.tiles;
  for (uint32_t i = 0; i < crop.runs; ++i) {
    const decode::CropRun& run = decode::At<decode::CropRun>(bytes, crop.runs_at)[i];
    passed_ += run.from;
    wanted_ += run.to - run.from;
  }
  for (uint32_t i = 0; i < crop.intervals; ++i) {
    const auto& interval = decode::At<decode::CropInterval>(bytes, crop.intervals_at)[i];
    passed_ += interval.skipped;
    wanted_ += interval.wanted;
  }
  const decode::CropParts parts = decode::PartsOf(bytes, nullptr);
  for (uint32_t i = 0; i < crop.tiles; ++i) {
    const decode::CropTile& tile = decode::At<decode::CropTile>(bytes, crop.tiles_at)[i];
    const decode::TileSource source = SourceOf(parts, tile);
    converted_ += 4 * source.columns * source.rows;  // of squares
    blended_ += 2 * source.columns * tile.rows;
  }
}

void ForDevice::PrintCounts(const char* of) const {
  if (crops_ == 0) return;
  std::printf(
      "%s crop for a device: %.0f bytes (at most %.0f), %.0f runs and %.0f intervals "
      "of %.0f groups or MCUs and %.0f to pass, %.0f samples, %.0f tiles, "
      "%.0f pixels converted and %.0f blended vertically\n",
      of, bytes_ / crops_, most_bytes_, runs_ / crops_, intervals_ / crops_, wanted_ / crops_,
      passed_ / crops_, samples_ / crops_, tiles_ / crops_, converted_ / crops_, blended_ / crops_);
}

void Interleaved::Batch(const Photo& photo, Box box, const PixelOutput& output,
                        std::span<const uint8_t> index) {
  (first_begun_ ? second_ : first_).Begin(photo, box, output, index);
  (first_begun_ ? second_begun_ : first_begun_) = true;
  JpegDecoder &a = first_.decoder(), &b = second_.decoder();
  while (a.decoding() && b.decoding()) JpegDecoder::AdvanceBoth(a, b);
  EndIfDone(first_, first_begun_);
  EndIfDone(second_, second_begun_);
}

void Interleaved::EndIfDone(Sequential& one, bool& begun) {
  if (!begun || one.decoder().decoding()) return;
  one.Finish();
  begun = false;
}

}  // namespace stoker
