#include "tests/transforms/jpeg/decode.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace stoker::testing {

std::vector<uint8_t> Padded(std::span<const uint8_t> bytes) {
  std::vector<uint8_t> padded(bytes.size() + kBufferPadding, 0xD9);
  std::copy(bytes.begin(), bytes.end(), padded.begin());
  return padded;
}

Result<ImageInfo> OpenPadded(JpegDecoder& decoder, const std::vector<uint8_t>& padded) {
  return decoder.Open(std::span(padded).first(padded.size() - kBufferPadding));
}

Status DecodeAll(JpegDecoder& decoder, const std::vector<uint8_t>& padded, Rect region,
                 KeepRows& sink, std::span<const uint8_t> crop_index, Reduction reduction) {
  Result<ImageInfo> info = OpenPadded(decoder, padded);
  if (!info.ok()) return std::move(info).error();
  const ImageSize size = Reduced(info->size, reduction);
  if (region == Rect{}) region = {0, 0, size.width, size.height};
  return decoder.Decode(region, sink, crop_index, reduction);
}

std::string Difference(const KeepRows& sink, const Rect& region, const WholeImage& whole) {
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

std::string Text(const Rect& r) {
  return "region " + std::to_string(r.x) + "," + std::to_string(r.y) + " " +
         std::to_string(r.width) + "x" + std::to_string(r.height);
}

Rect RandomRegion(ImageSize size, RandomStream& random) {
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

std::vector<Rect> EdgeRegions(ImageSize s) {
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
