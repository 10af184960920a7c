// Helpers of the JPEG tests: a sink that keeps what it is given, and the crop to compare it with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/random.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/reference_decoder.h"
#include "transforms/row_sink.h"

namespace stoker::testing {

// Keeps all rows. Offers fewer rows than it could at times, and checks the order of calls.
class KeepRows : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    stride_ = static_cast<size_t>(region.covered.width * BytesPerPixel(region.layout));
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
    view.plane[0] = pixels_.data() + static_cast<size_t>(done_) * stride_;
    view.stride[0] = static_cast<ptrdiff_t>(stride_);
    return view;
  }

  void Commit(int rows) override {
    EXPECT_LE(rows, reserved_);
    done_ += rows;
  }

  const DecodedRegion& region() const { return region_; }
  bool complete() const { return done_ > 0 && done_ == region_.covered.height; }
  const uint8_t* Row(int y) const { return pixels_.data() + static_cast<size_t>(y) * stride_; }

 private:
  DecodedRegion region_;
  size_t stride_ = 0;
  std::vector<uint8_t> pixels_;
  int done_ = 0;
  int reserved_ = 0;
};

// Decoders may read kBufferPadding bytes beyond; whatever is there must not matter.
inline std::vector<uint8_t> Padded(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> padded(bytes.size() + kBufferPadding, 0xD9);
  std::copy(bytes.begin(), bytes.end(), padded.begin());
  return padded;
}

inline Result<ImageInfo> OpenPadded(JpegDecoder& decoder, const std::vector<uint8_t>& padded) {
  return decoder.Open(std::span(padded).first(padded.size() - kBufferPadding));
}

// Open and Decode; `whole_image` stands for the region when it is left empty.
inline Status DecodeAll(JpegDecoder& decoder, const std::vector<uint8_t>& padded, Rect region,
                        KeepRows& sink) {
  Result<ImageInfo> info = OpenPadded(decoder, padded);
  if (!info.ok()) return std::move(info).error();
  if (region == Rect{}) region = {0, 0, info->size.width, info->size.height};
  return decoder.Decode(region, sink);
}

// Where `sink` differs from the same region of `whole`; empty when it does not.
inline std::string Difference(const KeepRows& sink, const Rect& region, const WholeImage& whole) {
  const Rect& covered = sink.region().covered;
  if (!sink.complete()) return "incomplete";
  if (sink.region().layout != whole.layout) return "another layout";
  if (covered.y != region.y || covered.height != region.height || covered.x > region.x ||
      covered.x + covered.width < region.x + region.width) {
    return "another region";
  }
  const int bytes = BytesPerPixel(whole.layout);
  for (int y = 0; y < region.height; ++y) {
    const uint8_t* got = sink.Row(y) + (region.x - covered.x) * bytes;
    const uint8_t* want = whole.pixels.data() + (static_cast<size_t>(region.y + y) *
                                                     static_cast<size_t>(whole.size.width) +
                                                 static_cast<size_t>(region.x)) *
                                                    static_cast<size_t>(bytes);
    const int n = region.width * bytes;
    if (std::memcmp(got, want, static_cast<size_t>(n)) == 0) continue;
    const auto at = std::mismatch(got, got + n, want).first - got;
    return "pixel (" + std::to_string(region.x + at / bytes) + ", " + std::to_string(region.y + y) +
           ")";
  }
  return {};
}

inline std::string Text(const Rect& r) {
  return "region " + std::to_string(r.x) + "," + std::to_string(r.y) + " " +
         std::to_string(r.width) + "x" + std::to_string(r.height);
}

inline Rect RandomRegion(ImageSize size, RandomStream& random) {
  const auto below = [&](int n) {
    return static_cast<int>(random.Below(static_cast<uint64_t>(n)));
  };
  Rect r;
  r.x = below(size.width);
  r.y = below(size.height);
  r.width = 1 + below(size.width - r.x);
  r.height = 1 + below(size.height - r.y);
  return r;
}

// The places where mistakes are likely: all, one pixel, the corners, edges.
inline std::vector<Rect> EdgeRegions(ImageSize s) {
  const int w = s.width;
  const int h = s.height;
  const int cw = std::min(w, 17);
  const int ch = std::min(h, 17);
  return {{0, 0, w, h},
          {w / 2, h / 2, 1, 1},
          {0, 0, cw, ch},
          {w - cw, 0, cw, ch},
          {0, h - ch, cw, ch},
          {w - cw, h - ch, cw, ch},
          {w - 1, h - 1, 1, 1},
          {0, h - 1, w, 1},
          {w - 1, 0, 1, h},
          {w / 3, 0, w - w / 3, 1},
          {0, h / 3, 1, h - h / 3},
          {w / 4, h / 4, w - w / 4, h - h / 4}};
}

}  // namespace stoker::testing
