// RowSinks and comparisons for the JPEG tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/memory/buffer.h"
#include "core/numbers/random.h"
#include "transforms/decode/row_sink.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/reference_decoder.h"

namespace stoker::testing {

// Keeps all rows, planar ones as interleaved. Sometimes offers fewer rows than it could, and checks
// the order of calls.
class KeepRows : public RowSink {
 public:
  explicit KeepRows(PixelLayout wants = PixelLayout::kPlanar) : wants_(wants) {}

  PixelLayout wants() const override { return wants_; }

  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    planar_ = region.layout == PixelLayout::kPlanar;
    if (planar_) region_.layout = PixelLayout::kInterleaved;
    stride_ = static_cast<size_t>(region.covered.width * BytesPerPixel(region_.layout));
    pixels_.assign(stride_ * static_cast<size_t>(region.covered.height) + kBufferPadding, 0xA5);
    done_ = 0;
    return {};
  }

  MutableImageView Reserve(int rows) override {
    EXPECT_GE(rows, 1);
    EXPECT_LE(done_ + rows, region_.covered.height);
    reserved_ = std::min(rows, 1 + (done_ * 7) % 19);
    MutableImageView view;
    view.layout = region_.layout;
    view.size = {region_.covered.width, reserved_};
    if (planar_) return ReservePlanes(view);
    view.plane[0] = pixels_.data() + static_cast<size_t>(done_) * stride_;
    view.stride[0] = static_cast<ptrdiff_t>(stride_);
    return view;
  }

  void Commit(int rows) override {
    EXPECT_LE(rows, reserved_);
    if (planar_) Interleave(rows);
    done_ += rows;
  }

  const DecodedRegion& region() const { return region_; }  // its layout is never kPlanar
  bool was_planar() const { return planar_; }
  bool complete() const { return done_ > 0 && done_ == region_.covered.height; }
  const uint8_t* Row(int y) const { return pixels_.data() + static_cast<size_t>(y) * stride_; }

 private:
  MutableImageView ReservePlanes(MutableImageView view) {
    const auto width = static_cast<size_t>(region_.covered.width);
    view.layout = PixelLayout::kPlanar;
    for (size_t p = 0; p < 3; ++p) {
      planes_[p].assign(width * static_cast<size_t>(reserved_) + kBufferPadding, 0xA5);
      view.plane[p] = planes_[p].data();
      view.stride[p] = static_cast<ptrdiff_t>(width);
    }
    return view;
  }

  void Interleave(int rows) {
    uint8_t* to = pixels_.data() + static_cast<size_t>(done_) * stride_;
    const size_t pixels = static_cast<size_t>(rows) * static_cast<size_t>(region_.covered.width);
    for (size_t i = 0; i < pixels; ++i) {
      for (const std::vector<uint8_t>& plane : planes_) *to++ = plane[i];
    }
  }

  const PixelLayout wants_;
  DecodedRegion region_;
  bool planar_ = false;
  std::array<std::vector<uint8_t>, 3> planes_;
  size_t stride_ = 0;
  std::vector<uint8_t> pixels_;
  int done_ = 0;
  int reserved_ = 0;
};

// A copy followed by kBufferPadding bytes, which decoders may read and must ignore.
std::vector<uint8_t> Padded(std::span<const uint8_t> bytes);

// `padded`: a result of Padded; must stay valid while the decoder uses it.
Result<ImageInfo> OpenPadded(JpegDecoder& decoder, const std::vector<uint8_t>& padded);

// Open and Decode; an empty region represents the whole image, which may be reduced.
Status DecodeAll(JpegDecoder& decoder, const std::vector<uint8_t>& padded, Rect region,
                 KeepRows& sink, std::span<const uint8_t> crop_index = {}, Reduction reduction = 1);

// Describes where `sink` differs from the same region of `whole`; empty if equal.
std::string Difference(const KeepRows& sink, const Rect& region, const WholeImage& whole);

std::string Text(const Rect& r);

Rect RandomRegion(ImageSize size, RandomStream& random);

// Returns the regions where mistakes are likely: all, one pixel, the corners, edges.
std::vector<Rect> EdgeRegions(ImageSize s);

}  // namespace stoker::testing
