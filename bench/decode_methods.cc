#include "bench/decode_methods.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

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

void Must(const Status& status) {
  if (!status.ok()) std::abort();
}

Rect StartOf(Resampler& resampler, const Photo& photo, Box box, const PixelOutput& output) {
  resampler.Reset();
  return resampler.Start(photo.task[static_cast<size_t>(box)], output).value();
}

}  // namespace

void Sequential::Rows(const Photo& photo, const Rect& region) {
  if (!decoder_.Open(photo.bytes()).ok()) std::abort();
  Must(decoder_.Decode(region, discard_));
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
  Must(resampler_.Begin({image.layout, region}));
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

void Sequential::Finish() { Must(decoder_.Finish()); }

void Packed::Open(const Photo& photo) {
  const std::span<const uint8_t> packed(photo.packed);
  const auto bytes = packed.empty() ? photo.bytes() : packed.first(packed.size() - kBufferPadding);
  if (!decoder_.Open(bytes).ok()) std::abort();
}

void Packed::Rows(const Photo& photo, const Rect& region) {
  Open(photo);
  Must(decoder_.Decode(region, discard_));
}

void Packed::Batch(const Photo& photo, Box box, const PixelOutput& output) {
  const Rect region = StartOf(resampler_, photo, box, output);
  Open(photo);
  Must(decoder_.Decode(region, resampler_));
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
