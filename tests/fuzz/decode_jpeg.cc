#include "tests/fuzz/decode_jpeg.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/random.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/reference_decoder.h"
#include "transforms/row_sink.h"

namespace stoker::testing {
namespace {

void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

// Each row in memory of its own size, so that the address sanitizer sees a row that is overrun.
class Rows : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    rows_.clear();
    return {};
  }

  MutableImageView Reserve(int rows) override {
    Require(rows > 0, "rows are asked for");
    const auto width = static_cast<size_t>(region_.covered.width);
    rows_.emplace_back(width * static_cast<size_t>(BytesPerPixel(region_.layout)) + kBufferPadding);
    MutableImageView view;
    view.layout = region_.layout;
    view.size = {region_.covered.width, 1};
    view.plane[0] = rows_.back().data();
    view.stride[0] = static_cast<ptrdiff_t>(rows_.back().size());
    return view;
  }

  void Commit(int rows) override { Require(rows == 1, "no more is committed than reserved"); }

  const DecodedRegion& region() const { return region_; }
  const std::vector<std::vector<uint8_t>>& rows() const { return rows_; }

 private:
  DecodedRegion region_;
  std::vector<std::vector<uint8_t>> rows_;
};

uint64_t Digest(std::span<const uint8_t> bytes) {  // FNV-1a
  uint64_t digest = 0xCBF29CE484222325;
  for (const uint8_t byte : bytes) digest = (digest ^ byte) * 0x100000001B3;
  return digest;
}

Rect ChooseRegion(ImageSize size, uint64_t seed) {
  RandomStream random({seed, 0, 0}, 0);
  const auto below = [&](int n) {
    return static_cast<int>(random.Below(static_cast<uint64_t>(n)));
  };
  Rect region;
  region.x = below(size.width);
  region.y = below(size.height);
  region.width = 1 + below(size.width - region.x);
  region.height = 1 + below(size.height - region.y);
  return region;
}

void Compare(const Rows& rows, const Rect& region, const WholeImage& whole) {
  Require(rows.region().layout == whole.layout, "the layout is that of the full decode");
  const auto bytes = static_cast<size_t>(BytesPerPixel(whole.layout));
  const auto stride = static_cast<size_t>(whole.size.width) * bytes;
  for (size_t y = 0; y < rows.rows().size(); ++y) {
    const uint8_t* got =
        rows.rows()[y].data() + static_cast<size_t>(region.x - rows.region().covered.x) * bytes;
    const uint8_t* want = whole.pixels.data() + (static_cast<size_t>(region.y) + y) * stride +
                          static_cast<size_t>(region.x) * bytes;
    Require(std::memcmp(got, want, static_cast<size_t>(region.width) * bytes) == 0,
            "pixels are those of the full decode");
  }
}

void RequireOffset(const Error& error, size_t size) {
  Require(error.offset.has_value() && *error.offset <= size, "errors have an offset in the file");
  Require(!error.cause.empty(), "errors have a cause");
}

}  // namespace

void DecodeFuzzedJpeg(std::span<const uint8_t> input) {
  static JpegDecoder decoder({1 << 18, 20, 1 << 22, 1 << 22});  // reused: state must not leak
  std::vector<uint8_t> padded(input.begin(), input.end());
  padded.resize(input.size() + kBufferPadding);
  const std::span<const uint8_t> bytes = std::span(padded).first(input.size());
  const Result<ImageInfo> info = decoder.Open(bytes);
  if (!info.ok()) return RequireOffset(info.error(), input.size());
  const Rect region = ChooseRegion(info->size, Digest(input));
  Rows rows;
  const Status status = decoder.Decode(region, rows);
  if (!status.ok()) return RequireOffset(status.error(), input.size());
  const Rect& covered = rows.region().covered;
  Require(rows.rows().size() == static_cast<size_t>(region.height) && covered.y == region.y &&
              covered.height == region.height && covered.x <= region.x &&
              covered.x + covered.width >= region.x + region.width &&
              covered.x + covered.width <= info->size.width,
          "the region asked for is delivered");
  const Result<WholeImage> whole = DecodeWhole(bytes);
  if (whole.ok()) Compare(rows, region, *whole);
}

}  // namespace stoker::testing
