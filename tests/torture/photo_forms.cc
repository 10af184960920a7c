#include "tests/torture/photo_forms.h"

#include <webp/encode.h>
#include <zlib.h>

#include <array>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>

#include <jpeglib.h>

#include "core/batch/image.h"
#include "tests/testing/images/make_png.h"
#include "transforms/jpeg/reference_decoder.h"

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Recoded(std::span<const uint8_t> jpeg, bool progressive) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct from{};
  from.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_mem_src(&from, jpeg.data(), jpeg.size());
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&from);
  jpeg_compress_struct to{};
  to.err = &errors;
  jpeg_create_compress(&to);
  uint8_t* memory = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&to, &memory, &size);
  jpeg_copy_critical_parameters(&from, &to);
  if (progressive) {
    jpeg_simple_progression(&to);
  } else {
    to.restart_interval = 7;
  }
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_decompress(&from);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

void PutU32(Bytes& bytes, size_t value) {
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<uint8_t>(value >> shift));
}

// Rows are as they are and as the difference from their left neighbours, in turn.
Bytes Png(const WholeImage& image) {
  const auto pixel = static_cast<size_t>(BytesPerPixel(image.layout));
  const size_t row = static_cast<size_t>(image.size.width) * pixel;
  Bytes raw;
  for (size_t y = 0; y < static_cast<size_t>(image.size.height); ++y) {
    const uint8_t* const from = image.pixels.data() + y * row;
    const bool differences = y % 2 == 1;
    raw.push_back(differences ? 1 : 0);
    for (size_t i = 0; i < row; ++i) {
      const int left = differences && i >= pixel ? from[i - pixel] : 0;
      raw.push_back(static_cast<uint8_t>(from[i] - left));
    }
  }
  uLongf size = compressBound(raw.size());
  Bytes packed(size);
  if (compress2(packed.data(), &size, raw.data(), raw.size(), 1) != Z_OK) std::abort();
  packed.resize(size);
  Bytes header;
  PutU32(header, static_cast<size_t>(image.size.width));
  PutU32(header, static_cast<size_t>(image.size.height));
  for (const int value : {8, pixel == 1 ? 0 : 2, 0, 0, 0}) {
    header.push_back(static_cast<uint8_t>(value));
  }
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  const auto add = [&png](const Bytes& chunk) {
    png.insert(png.end(), chunk.begin(), chunk.end());
  };
  add(PngChunk("IHDR", header));
  constexpr size_t kChunk = 8192;
  for (size_t at = 0; at < packed.size(); at += kChunk) {
    add(PngChunk("IDAT", std::span(packed).subspan(at, std::min(kChunk, packed.size() - at))));
  }
  add(PngChunk("IEND", {}));
  return png;
}

Bytes Rgb(const WholeImage& image) {
  if (image.layout != PixelLayout::kGray) return image.pixels;
  Bytes pixels;
  for (const uint8_t value : image.pixels) pixels.insert(pixels.end(), 3, value);
  return pixels;
}

Bytes Webp(const WholeImage& image, bool lossless) {
  const Bytes pixels = Rgb(image);
  const int width = image.size.width, height = image.size.height;
  uint8_t* memory = nullptr;
  const size_t size = lossless
                          ? WebPEncodeLosslessRGB(pixels.data(), width, height, 3 * width, &memory)
                          : WebPEncodeRGB(pixels.data(), width, height, 3 * width, 60, &memory);
  if (size == 0) std::abort();
  Bytes bytes(memory, memory + size);
  WebPFree(memory);
  return bytes;
}

}  // namespace

std::vector<uint8_t> InForm(PhotoForm form, std::span<const uint8_t> jpeg) {
  switch (form) {
    case PhotoForm::kJpeg:
      break;
    case PhotoForm::kProgressive:
      return Recoded(jpeg, /*progressive=*/true);
    case PhotoForm::kRestarts:
      return Recoded(jpeg, /*progressive=*/false);
    case PhotoForm::kPng:
      return Png(DecodeWhole(jpeg).value());
    case PhotoForm::kWebp:
      return Webp(DecodeWhole(jpeg).value(), /*lossless=*/false);
    case PhotoForm::kLosslessWebp:
      return Webp(DecodeWhole(jpeg).value(), /*lossless=*/true);
  }
  return {jpeg.begin(), jpeg.end()};
}

}  // namespace stoker::testing
