#include "tests/testing/images/make_webp.h"

#include <webp/encode.h>

#include <algorithm>
#include <cstdlib>

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

void PutNumber(Bytes& to, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

void Append(Bytes& to, std::span<const uint8_t> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void Require(bool done) {
  if (!done) std::abort();
}

uint32_t Next(uint64_t& state) {
  state = state * 6364136223846793005U + 1442695040888963407U;
  return static_cast<uint32_t>(state >> 33);
}

// Smooth areas, edges and noise.
Bytes Rgba(const WebpOptions& options) {
  Bytes pixels;
  uint64_t state = options.seed;
  for (int y = 0; y < options.height; ++y) {
    for (int x = 0; x < options.width; ++x) {
      const uint32_t noise = Next(state);
      const bool edge = (x / 13 + y / 9) % 3 == 0;
      for (int c = 0; c < 4; ++c) {
        uint32_t value = static_cast<uint32_t>(x * (3 + c) + y * (5 - c)) + (edge ? 90 : 0) +
                         (noise >> (4 * c)) % 16;
        if (options.colors > 0) value = noise % static_cast<uint32_t>(options.colors) * 37;
        if (options.patches > 0) {
          const int kind = x / options.patches * 7 + y / options.patches * 3;
          value = static_cast<uint32_t>(kind * 31) + (noise >> c) % (1U << kind % 7);
        }
        pixels.push_back(static_cast<uint8_t>(c == 3 && !options.alpha ? 255 : value));
      }
    }
  }
  return pixels;
}

Bytes File(const Bytes& chunks) {
  Bytes file = {'R', 'I', 'F', 'F'};
  PutNumber(file, static_cast<uint32_t>(chunks.size() + 4), 4);
  for (const char c : {'W', 'E', 'B', 'P'}) file.push_back(static_cast<uint8_t>(c));
  Append(file, chunks);
  return file;
}

}  // namespace

Bytes MakeWebp(const WebpOptions& options) {
  const Bytes rgba = Rgba(options);
  WebPConfig config;
  Require(WebPConfigInit(&config) != 0);
  config.lossless = options.lossless ? 1 : 0;
  config.quality = options.quality;
  config.method = options.method;
  config.filter_type = options.simple_filter ? 0 : 1;
  config.filter_strength = options.filter_strength;
  config.exact = 1;
  WebPPicture picture;
  Require(WebPPictureInit(&picture) != 0);
  picture.use_argb = config.lossless;
  picture.width = options.width;
  picture.height = options.height;
  Require(WebPPictureImportRGBA(&picture, rgba.data(), 4 * options.width) != 0);
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  Require(WebPEncode(&config, &picture) != 0);
  Bytes bytes(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return bytes;
}

Bytes WebpChunk(std::string_view name, std::span<const uint8_t> data) {
  Bytes chunk(name.begin(), name.end());
  PutNumber(chunk, static_cast<uint32_t>(data.size()), 4);
  Append(chunk, data);
  if (data.size() % 2 != 0) chunk.push_back(0);
  return chunk;
}

Bytes Extended(std::span<const uint8_t> webp, int width, int height, uint8_t flags,
               std::span<const uint8_t> before, std::span<const uint8_t> behind) {
  Bytes header = {flags, 0, 0, 0};
  PutNumber(header, static_cast<uint32_t>(width - 1), 3);
  PutNumber(header, static_cast<uint32_t>(height - 1), 3);
  Bytes chunks = WebpChunk("VP8X", header);
  Append(chunks, before);
  const std::string_view name(reinterpret_cast<const char*>(webp.data()) + 12, 4);
  size_t image = 12;
  if (name == "VP8X") image += 18;  // it has one already
  Append(chunks, webp.subspan(image));
  Append(chunks, behind);
  return File(chunks);
}

}  // namespace stoker::testing
