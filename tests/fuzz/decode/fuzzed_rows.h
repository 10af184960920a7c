// Shared by fuzz targets of decoders: a file with its padding, a region that the input chooses, and
// its rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/numbers/random.h"
#include "core/result/result.h"
#include "transforms/decode/decoding.h"
#include "transforms/decode/image_info.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/row_sink.h"

namespace stoker::testing {

inline void Require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

constexpr DecodeLimits kTight{.max_pixels = 1 << 18, .max_scans = 20};
constexpr uint64_t kMemory = 64 << 20;

inline void RequireSound(const Error& error, size_t size) {
  Require(!error.cause.empty(), "errors have a cause");
  Require(
      error.code == Code::kResourceExhausted || (error.offset.has_value() && *error.offset <= size),
      "errors have an offset in the file");
}

// A file followed by the bytes that a decoder may read.
class PaddedFile {
 public:
  explicit PaddedFile(std::span<const uint8_t> file) : bytes_(file.begin(), file.end()) {
    bytes_.resize(file.size() + kBufferPadding);
  }
  std::span<const uint8_t> file() const {
    return std::span(bytes_).first(bytes_.size() - kBufferPadding);
  }

 private:
  std::vector<uint8_t> bytes_;
};

// One that `digest` chooses, of those that the image can have.
inline Reduction ChooseReduction(const ImageInfo& info, uint64_t digest) {
  constexpr std::array<Reduction, 5> kReductions = {1, 1, 2, 4, 8};
  return std::min(kReductions[(digest >> 40) % kReductions.size()], MaxReduction(info));
}

// Keeps each row in memory of its exact size, so that the address sanitizer detects overruns.
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
    MutableImageView view;
    view.layout = region_.layout;
    view.size = {region_.covered.width, 1};
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(region_.layout)); ++p) {
      reserved_[p].assign(
          width * static_cast<size_t>(BytesPerPixel(region_.layout)) + kBufferPadding, 0xA5);
      view.plane[p] = reserved_[p].data();
      view.stride[p] = static_cast<ptrdiff_t>(reserved_[p].size());
    }
    return view;
  }

  void Commit(int rows) override {
    Require(rows == 1, "no more is committed than reserved");
    rows_.push_back(reserved_[0]);
    if (region_.layout != PixelLayout::kPlanar) return;
    const auto width = static_cast<size_t>(region_.covered.width);
    rows_.back().resize(3 * width);
    for (size_t i = 0; i < 3 * width; ++i) rows_.back()[i] = reserved_[i % 3][i / 3];
  }

  const DecodedRegion& region() const { return region_; }
  // Planar rows are interleaved.
  const std::vector<std::vector<uint8_t>>& rows() const { return rows_; }

 private:
  DecodedRegion region_;
  std::array<std::vector<uint8_t>, 3> reserved_;
  std::vector<std::vector<uint8_t>> rows_;
};

inline uint64_t Digest(std::span<const uint8_t> bytes) {  // FNV-1a
  uint64_t digest = 0xCBF29CE484222325;
  for (const uint8_t byte : bytes) digest = (digest ^ byte) * 0x100000001B3;
  return digest;
}

inline Rect ChooseRegion(ImageSize size, uint64_t seed) {
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

}  // namespace stoker::testing
