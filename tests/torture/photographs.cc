#include "tests/torture/photographs.h"

#include <webp/encode.h>
#include <zlib.h>

#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"

namespace stoker::testing {
namespace {

using Bytes = std::vector<uint8_t>;

// A wedge of gray, the same in each row.
Bytes FlatJpeg(int width, int height, bool progressive) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  uint8_t* memory = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  Bytes row(3 * static_cast<size_t>(width));
  for (size_t i = 0; i < row.size(); ++i) row[i] = static_cast<uint8_t>(i / 3 / 64);
  JSAMPROW rows[] = {row.data()};
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, rows, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

// Writes a black image: all filters and pixels are zeros; for an interlaced one, those of all
// passes.
Bytes FlatPng(int width, int height, bool interlaced) {
  size_t raw = 0;
  constexpr int kPasses[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
  for (const auto& [x, y, dx, dy] : kPasses) {
    const int columns = (width - x + dx - 1) / dx, rows = (height - y + dy - 1) / dy;
    if (columns > 0 && rows > 0)
      raw += static_cast<size_t>(rows) * (3 * static_cast<size_t>(columns) + 1);
  }
  if (!interlaced) raw = static_cast<size_t>(height) * (3 * static_cast<size_t>(width) + 1);
  const Bytes zeros(raw);
  uLongf size = compressBound(raw);
  Bytes packed(size);
  if (compress2(packed.data(), &size, zeros.data(), raw, 1) != Z_OK) std::abort();
  packed.resize(size);
  Bytes header;
  for (const int side : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8)
      header.push_back(static_cast<uint8_t>(side >> shift));
  }
  for (const int byte : {8, 2, 0, 0, interlaced ? 1 : 0})
    header.push_back(static_cast<uint8_t>(byte));
  Bytes png = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  for (const Bytes& chunk :
       {PngChunk("IHDR", header), PngChunk("IDAT", packed), PngChunk("IEND", {})}) {
    png.insert(png.end(), chunk.begin(), chunk.end());
  }
  return png;
}

Bytes FlatWebp(int width, int height, bool lossless) {
  WebPConfig config;
  WebPPicture picture;
  if (WebPConfigInit(&config) == 0 || WebPPictureInit(&picture) == 0) std::abort();
  config.lossless = lossless ? 1 : 0;
  config.method = 0;
  config.quality = 10;
  picture.use_argb = config.lossless;
  picture.width = width;
  picture.height = height;
  const Bytes row(3 * static_cast<size_t>(width), 90);
  const Bytes rows = [&] {
    Bytes all;
    for (int y = 0; y < height; ++y) all.insert(all.end(), row.begin(), row.end());
    return all;
  }();
  if (WebPPictureImportRGB(&picture, rows.data(), 3 * width) == 0) std::abort();
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  picture.writer = WebPMemoryWrite;
  picture.custom_ptr = &writer;
  if (WebPEncode(&config, &picture) == 0) std::abort();
  Bytes bytes(writer.mem, writer.mem + writer.size);
  WebPMemoryWriterClear(&writer);
  WebPPictureFree(&picture);
  return bytes;
}

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
  }

  void Add(const std::string& name, double width, double height, bool ordinary,
           const std::function<Bytes()>& make) {
    const std::string path = path_ + "/" + name + std::to_string(static_cast<int>(width)) + "x" +
                             std::to_string(static_cast<int>(height));
    if (!std::filesystem::exists(path)) {
      const Bytes bytes = make();
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    all_.push_back({path, width * height / 1e6, ordinary});
  }

  std::vector<Photograph> all() && { return std::move(all_); }

 private:
  std::string path_;
  std::vector<Photograph> all_;
};

void AddSmall(Folder& folder, int width, int height) {
  folder.Add("baseline", width, height, true,
             [=] { return MakeJpeg({.width = width, .height = height, .sampling = Luma(2, 2)}); });
  folder.Add("progressive", width, height, false, [=] {
    return MakeJpeg({.width = width, .height = height, .scans = JpegScans::kProgressive});
  });
  folder.Add("cmyk", width, height, false, [=] {
    return MakeJpeg({.width = width, .height = height, .color = JpegColor::kCmyk});
  });
  for (const bool interlaced : {false, true}) {
    folder.Add(interlaced ? "interlaced" : "png", width, height, false, [=] {
      return MakePng({.width = width, .height = height, .color = 6, .interlaced = interlaced});
    });
  }
  for (const bool lossless : {false, true}) {
    folder.Add(lossless ? "lossless" : "webp", width, height, false, [=] {
      return MakeWebp({.width = width, .height = height, .lossless = lossless, .alpha = true});
    });
  }
}

void AddFlat(Folder& folder, int width, int height) {
  for (const bool progressive : {false, true}) {
    const bool ordinary = !progressive && std::max(width, height) <= 2000;
    folder.Add(progressive ? "progressive" : "baseline", width, height, ordinary,
               [=] { return FlatJpeg(width, height, progressive); });
  }
  for (const bool interlaced : {false, true}) {
    folder.Add(interlaced ? "interlaced" : "png", width, height, false,
               [=] { return FlatPng(width, height, interlaced); });
  }
  if (std::max(width, height) > 16383) return;  // of a WebP
  for (const bool lossless : {false, true}) {
    folder.Add(lossless ? "lossless" : "webp", width, height, false,
               [=] { return FlatWebp(width, height, lossless); });
  }
}

class Files final : public SampleSource {
 public:
  explicit Files(std::vector<Photograph> photographs) : files_(std::move(photographs)) {}

  uint64_t size() const override { return files_.size(); }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/true); }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void FixedRows(size_t /*field*/, std::span<const uint64_t> ids, void* rows) const override {
    auto* label = static_cast<int64_t*>(rows);
    for (const uint64_t id : ids) *label++ = static_cast<int64_t>(id % 3);
  }
  void PathOf(uint32_t file, std::string& path) const override { path = files_[file].path; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "photographs"; }

 private:
  const std::vector<Photograph> files_;
  const std::vector<std::string> classes_{"a", "b", "c"};
};

}  // namespace

std::vector<Photograph> MakePhotographs(const std::string& folder, double max_megapixels) {
  constexpr std::pair<int, int> kFlat[] = {{1600, 1200}, {1500, 2000},  {4000, 3000},  {9000, 100},
                                           {100, 9000},  {6000, 4000},  {40000, 1000}, {8000, 6250},
                                           {65000, 800}, {16000, 6250}, {10000, 10000}};
  Folder files(folder);
  for (const auto& [width, height] :
       {std::pair{1, 1}, {2, 3}, {33, 1}, {1, 700}, {64, 48}, {320, 240}, {500, 375}, {640, 800}}) {
    AddSmall(files, width, height);
  }
  for (const auto& [width, height] : kFlat) {
    if (width / 1e3 * height / 1e3 <= max_megapixels) AddFlat(files, width, height);
  }
  return std::move(files).all();
}

std::shared_ptr<const SampleSource> SourceOf(std::vector<Photograph> photographs) {
  return std::make_shared<Files>(std::move(photographs));
}

}  // namespace stoker::testing
