#include "transforms/png/reference_decoder.h"

#include <spng.h>

#include <memory>
#include <vector>

#include "transforms/decode/image_info.h"

namespace stoker {
namespace {

Error Failure(int code) { return Error{Code::kDataLoss, spng_strerror(code)}; }

using Library = std::unique_ptr<spng_ctx, void (*)(spng_ctx*)>;

// The checksum inside the zlib data covers the encoder's rows; damage shows in the chunks'
// checksums.
Library MakeLibrary() { return {spng_ctx_new(SPNG_CTX_IGNORE_ADLER32), spng_ctx_free}; }

// Returns libspng's code.
int ReadHeader(spng_ctx* library, std::span<const uint8_t> bytes, spng_ihdr& header) {
  const int code = spng_set_png_buffer(library, bytes.data(), bytes.size());
  return code == SPNG_OK ? spng_get_ihdr(library, &header) : code;
}

// Takes the upper bytes of 16-bit samples: 16 bits are not rounded.
void ToRgba8(const std::vector<uint16_t>& wide, std::vector<uint8_t>& rgba) {
  for (size_t i = 0; i < rgba.size(); ++i) rgba[i] = static_cast<uint8_t>(wide[i] >> 8);
}

}  // namespace

Result<WholeImage> DecodeWholePng(std::span<const uint8_t> bytes) {
  const Library library = MakeLibrary();
  spng_ihdr header{};
  int code = ReadHeader(library.get(), bytes, header);
  if (code != SPNG_OK) return Failure(code);

  const size_t pixels = size_t{header.width} * header.height;
  std::vector<uint8_t> rgba(4 * pixels);
  if (header.bit_depth == 16) {
    std::vector<uint16_t> wide(4 * pixels);
    code = spng_decode_image(library.get(), wide.data(), 2 * wide.size(), SPNG_FMT_RGBA16, 0);
    ToRgba8(wide, rgba);
  } else {
    code = spng_decode_image(library.get(), rgba.data(), rgba.size(), SPNG_FMT_RGBA8, 0);
  }
  if (code == SPNG_OK) code = spng_decode_chunks(library.get());
  if (code != SPNG_OK) return Failure(code);

  WholeImage image;
  image.size = {static_cast<int>(header.width), static_cast<int>(header.height)};
  const bool gray = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
                    header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
  image.layout = gray ? PixelLayout::kGray : PixelLayout::kInterleaved;
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < (gray ? 1 : 3); ++c) image.pixels.push_back(rgba[4 * i + c]);
  }
  return image;
}

Result<WholeImage> DecodeWholeMask(std::span<const uint8_t> bytes, bool wide) {
  const Library library = MakeLibrary();
  spng_ihdr header{};
  int code = ReadHeader(library.get(), bytes, header);
  if (code != SPNG_OK) return Failure(code);
  const bool indexed = header.color_type == SPNG_COLOR_TYPE_INDEXED;
  const bool has_one = indexed || header.color_type == SPNG_COLOR_TYPE_GRAYSCALE;
  if (!has_one || (header.bit_depth > 8 && !wide)) return NoMask("is none", 0);
  const size_t bits = header.bit_depth, stride = (header.width * bits + 7) / 8;
  std::vector<uint8_t> packed(stride * header.height);
  code = spng_decode_image(library.get(), packed.data(), packed.size(), SPNG_FMT_RAW, 0);
  if (code == SPNG_OK) code = spng_decode_chunks(library.get());
  if (code != SPNG_OK) return Failure(code);

  WholeImage image;
  image.size = {static_cast<int>(header.width), static_cast<int>(header.height)};
  image.layout = wide ? PixelLayout::kGray16 : PixelLayout::kGray;
  for (size_t y = 0; y < header.height; ++y) {
    for (size_t x = 0; x < header.width; ++x) {
      const size_t at = x * bits;  // in the row; the highest bits of a byte come first
      const uint8_t* const bytes_of = &packed[y * stride + at / 8];
      const unsigned value = bits == 16 ? bytes_of[0] * 256U + bytes_of[1]
                                        : *bytes_of >> (8 - bits - at % 8) & ((1U << bits) - 1);
      image.pixels.push_back(static_cast<uint8_t>(value));
      if (wide) image.pixels.push_back(static_cast<uint8_t>(value >> 8));
    }
  }
  return image;
}

}  // namespace stoker
