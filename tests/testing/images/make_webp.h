// Generates WebPs of every kind with libwebp's encoder.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace stoker::testing {

struct WebpOptions {
  int width = 64;
  int height = 48;
  bool lossless = false;
  bool alpha = false;
  float quality = 80;
  int method = 2;  // 0 fast to 6 slow
  bool simple_filter = false;
  int filter_strength = 60;  // 0: no loop filter
  int colors = 0;            // lossless: no more than these; 0 means any
  int patches = 0;           // width in pixels of patches with different noise; 0 means none
  uint64_t seed = 1;
};

// Aborts when libwebp refuses the options.
std::vector<uint8_t> MakeWebp(const WebpOptions& options = {});

// A chunk, padded to an even length.
std::vector<uint8_t> WebpChunk(std::string_view name, std::span<const uint8_t> data);

// `webp` in the extended format, its size and `flags` (0x08 EXIF, 0x10 alpha, 0x02 animation) in a
// chunk VP8X, `before` and `after` its image's chunks.
std::vector<uint8_t> Extended(std::span<const uint8_t> webp, int width, int height, uint8_t flags,
                              std::span<const uint8_t> before = {},
                              std::span<const uint8_t> behind = {});

}  // namespace stoker::testing
