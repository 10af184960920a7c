// make_corpus DIR: writes the seeds of the corpora of images, one small file for each kind, to the
// folders jpeg, mask, packed, packed_png, png and webp in DIR.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "transforms/mask/pack.h"
#include "transforms/packed/pack.h"
#include "transforms/png/packed/pack.h"
#include "transforms/png/packed/packed_png.h"

namespace {

using namespace stoker::testing;  // NOLINT: a program of one file

struct Seed {
  const char* name;
  JpegOptions options;
};

std::vector<Seed> Seeds() {
  const auto color = JpegColor::kYCbCr;
  std::vector<Seed> seeds = {
      {"444", {20, 17, color, Luma(1, 1)}},
      {"422", {35, 17, color, Luma(2, 1)}},
      {"420", {35, 35, color, Luma(2, 2)}},
      {"440", {17, 35, color, Luma(1, 2)}},
      {"411", {70, 9, color, Luma(4, 1)}},
      {"410", {70, 19, color, Luma(4, 2)}},
      {"chroma_above", {19, 19, color, {{1, 1}, {2, 2}, {2, 2}}}},
      {"gray", {20, 20, JpegColor::kGray}},
      {"rgb", {20, 20, JpegColor::kRgb}},
      {"cmyk", {20, 20, JpegColor::kCmyk}},
      {"ycck", {20, 20, JpegColor::kYcck, {{2, 2}, {1, 1}, {1, 1}, {2, 2}}}},
      {"per_component", {35, 35, color, Luma(2, 2), JpegScans::kOnePerComponent}},
      {"progressive", {35, 35, color, Luma(2, 2), JpegScans::kProgressive}},
      {"progressive_gray", {40, 20, JpegColor::kGray, {}, JpegScans::kProgressive}},
      {"successive", {35, 35, color, Luma(2, 2), JpegScans::kSuccessive}},
      {"bands", {50, 20, color, Luma(2, 1), JpegScans::kBands}},
      {"dc_only", {70, 70, color, Luma(2, 2), JpegScans::kDcOnly}},
      {"coarse", {50, 35, color, Luma(2, 1), JpegScans::kCoarse}},
      {"arithmetic", {35, 35, color, Luma(2, 2), JpegScans::kOne, true}},
      {"arithmetic_progressive", {35, 35, color, Luma(1, 2), JpegScans::kProgressive, true}},
      {"optimized", {35, 35, color, Luma(2, 2), JpegScans::kOne, false, true}},
      {"one_pixel", {1, 1, color, Luma(2, 2)}},
      {"wide", {300, 3, color, Luma(2, 2)}},
  };
  Seed restarts{"restarts", {70, 35, color, Luma(2, 2)}};
  restarts.options.restart_interval = 2;
  seeds.push_back(restarts);
  Seed turned{"orientation", {20, 10, color, Luma(2, 2)}};
  turned.options.orientation = 6;
  seeds.push_back(turned);
  for (Seed& seed : seeds) seed.options.quality = 40;
  return seeds;
}

bool Write(const std::string& path, const std::vector<uint8_t>& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

std::vector<uint8_t> Bytes(std::string_view text) { return {text.begin(), text.end()}; }

constexpr std::string_view kXmp = "<rdf:Description tiff:Orientation=\"6\"/>";

// Returns the bytes with zeros instead of the last `lost` bytes, and after them.
std::vector<uint8_t> ZerosAtTheEnd(std::vector<uint8_t> jpeg, size_t lost) {
  const size_t size = jpeg.size();
  jpeg.resize(size - lost);
  jpeg.resize(size + 200);
  return jpeg;
}

// Cuts in the data of a scan, and in the header of the last one.
bool WriteTruncated(const std::string& folder, const JpegOptions& options) {
  std::vector<uint8_t> jpeg = MakeJpeg(options);
  constexpr std::array<uint8_t, 2> kScan = {0xFF, 0xDA};
  const auto last = std::find_end(jpeg.begin(), jpeg.end(), kScan.begin(), kScan.end());
  const std::vector<uint8_t> in_header(jpeg.begin(), last + 5);
  jpeg.resize(jpeg.size() * 4 / 5);
  return Write(folder + "truncated_in_data.jpg", jpeg) &&
         Write(folder + "truncated_in_header.jpg", in_header);
}

bool WriteJpegs(const std::string& folder) {
  for (const Seed& seed : Seeds()) {
    if (!Write(folder + seed.name + ".jpg", MakeJpeg(seed.options))) return false;
  }
  if (!WriteTruncated(folder, {.width = 35, .height = 35, .scans = JpegScans::kProgressive})) {
    return false;
  }
  JpegOptions options{35, 35, JpegColor::kYCbCr, Luma(2, 2)};
  options.quality = 40;
  const std::vector<uint8_t> jpeg = MakeJpeg(options);
  std::vector<uint8_t> segment =
      Bytes(std::string_view("\xFF\xE1\0\0http://ns.adobe.com/xap/1.0/\0", 33));
  segment.insert(segment.end(), kXmp.begin(), kXmp.end());
  segment[3] = static_cast<uint8_t>(segment.size() - 2);
  return Write(folder + "xmp.jpg", WithSegment(jpeg, segment)) &&
         Write(folder + "zeros_for_the_end.jpg", ZerosAtTheEnd(jpeg, 2)) &&
         Write(folder + "zeros_for_data.jpg", ZerosAtTheEnd(jpeg, jpeg.size() / 4));
}

// JPEGs that can be packed, and the first of them with some of its bytes changed.
bool WritePacked(const std::string& folder) {
  std::vector<uint8_t> first;
  for (const Seed& seed : Seeds()) {
    std::vector<uint8_t> jpeg = MakeJpeg(seed.options);
    const size_t size = jpeg.size();
    jpeg.resize(size + stoker::kBufferPadding);
    const auto packed = stoker::PackJpeg(std::span(jpeg).first(size));
    if (!packed.ok()) continue;
    if (!Write(folder + seed.name + ".packed", *packed)) return false;
    if (first.empty()) first = *packed;
  }
  const PackedParts parts = PartsOf(first);
  for (size_t n = 0; n < 12; ++n) {
    std::vector<uint8_t> changed = first;
    const size_t from = n % 3 == 0 ? parts.directory_at : parts.rows_at;
    for (size_t i = 0; i <= n; ++i) {
      changed[from + (i * 37 + n * 11) % (changed.size() - from)] ^=
          static_cast<uint8_t>(1 << i % 8);
    }
    if (!Write(folder + "changed" + std::to_string(n) + ".packed", changed)) return false;
  }
  return true;
}

// Regions with slanted and curved edges, in three bands.
std::vector<uint8_t> RegionsMask(int values, int bits) {
  constexpr int kWidth = 60, kHeight = 140;
  std::vector<uint16_t> pixels;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x < kWidth; ++x) {
      const int region = (x + y * y / 90) / 13 + (x - y / 2 + kHeight) / 29;
      pixels.push_back(static_cast<uint16_t>(region % values * (bits == 8 ? 7 : 777)));
    }
  }
  return stoker::PackValues({.size = {kWidth, kHeight}, .bits = bits, .values = pixels.data()});
}

// Masks of every kind of PNG that fits, and of regions, with some bits of theirs changed.
bool WriteMasks(const std::string& folder) {
  for (const int color : {0, 3}) {
    for (const int bits : {1, 2, 4, 8, 16}) {
      if (bits == 16 && color == 3) continue;
      std::vector<uint8_t> png =
          MakePng({.width = 10 * bits, .height = 5 + 70 / bits, .color = color, .bit_depth = bits});
      const size_t size = png.size();
      png.resize(size + stoker::kBufferPadding);
      const auto packed = stoker::PackMask(std::span(png).first(size));
      if (!packed.ok()) continue;
      const std::string name = "color" + std::to_string(color) + "_" + std::to_string(bits);
      if (!Write(folder + name + ".mask", *packed)) return false;
    }
  }
  for (const int values : {1, 2, 5, 12}) {
    for (const int bits : {8, 16}) {
      const std::string name = std::to_string(values) + "_" + std::to_string(bits);
      if (!Write(folder + "regions" + name + ".mask", RegionsMask(values, bits))) return false;
    }
  }
  for (size_t n = 0; n < 16; ++n) {
    std::vector<uint8_t> changed = RegionsMask(n % 3 == 0 ? 2 : 9, n % 5 == 0 ? 16 : 8);
    const size_t from = n % 2 == 0 ? 8 : 40;
    for (size_t i = 0; i <= n / 4; ++i) {
      changed[from + (i * 37 + n * 11) % (changed.size() - from)] ^=
          static_cast<uint8_t>(1 << (i + n) % 8);
    }
    if (!Write(folder + "changed" + std::to_string(n) + ".mask", changed)) return false;
  }
  return true;
}

// Forged packed PNGs. Checksums are mended by the fuzz target.
bool WriteForgedPngs(const std::string& folder, std::span<const uint8_t> png) {
  stoker::PngPacker packer(nullptr, {}, 10'000);
  const auto pixels = packer.PackPixels(png);
  if (!pixels.ok() || !Write(folder + "pixels.packed", {pixels->begin(), pixels->end()})) {
    return false;
  }
  auto packed = packer.Pack(png);
  if (!packed.ok()) return false;
  std::vector<uint8_t>& bytes = packed->bytes;
  const size_t size = bytes.size();
  bytes.resize(size + stoker::kBufferPadding);
  const auto file = stoker::packed_png::PackedPng::Open(std::span(bytes).first(size));
  if (!file.ok()) return false;
  const size_t recipe_at = size - file->recipe().size();
  const size_t directory_at = sizeof(stoker::packed_png::FixedPart) + file->chunks().size();
  const size_t bands = static_cast<size_t>(stoker::packed_png::BandsOf(file->header().size));
  const auto forged = [&](const char* name, size_t at, const std::vector<uint8_t>& by) {
    std::vector<uint8_t> other(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    std::ranges::copy(by, other.begin() + static_cast<ptrdiff_t>(at));
    return Write(folder + name + ".packed", other);
  };
  constexpr size_t kWidthAt = 24 + 16, kHeightAt = 24 + 20, kEntry = 8;
  const std::vector<uint8_t> largest = {0x7F, 0xFF, 0xFF, 0xFF};
  return forged("width", kWidthAt, largest) && forged("height", kHeightAt, largest) &&
         forged("directory", directory_at, {0xF0, 0xFF, 0xFF, 0xFF}) &&
         forged("tile", directory_at + bands * kEntry, {0xFF, 0xFF}) &&
         forged("recipe_equal", recipe_at, {0}) && forged("recipe_level", recipe_at + 1, {99}) &&
         forged("recipe_runs", size - 8, {0xF6, 255, 255, 255, 255, 255, 255, 255});
}

// Packed PNGs of every kind, as they are and with some bits changed.
bool WritePackedPngs(const std::string& folder) {
  for (const int color : {0, 2, 3, 4, 6}) {
    for (const int bits : {8, 16}) {
      if (bits == 16 && color == 3) continue;
      std::vector<uint8_t> png = MakePng({.width = 70,
                                          .height = 35,
                                          .color = color,
                                          .bit_depth = bits,
                                          .chunk_bytes = 3000,
                                          .regions = true});
      const size_t size = png.size();
      png.resize(size + stoker::kBufferPadding);
      if (color == 2 && bits == 8 && !WriteForgedPngs(folder, std::span(png).first(size))) {
        return false;
      }
      auto packed = stoker::PngPacker(nullptr, {}, 10'000).Pack(std::span(png).first(size));
      if (!packed.ok()) return false;
      const std::string name = "color" + std::to_string(color) + "_" + std::to_string(bits);
      if (!Write(folder + name + ".packed", packed->bytes)) return false;
      for (const size_t times : {1, 4}) {
        for (size_t i = 0; i < times; ++i) {
          const size_t at = 24 + (i * 137 + times + static_cast<size_t>(color) * 31) % 700;
          packed->bytes[at % packed->bytes.size()] ^= static_cast<uint8_t>(1 << i);
        }
        const std::string changed = folder + name + "_changed" + std::to_string(times);
        if (!Write(changed + ".packed", packed->bytes)) return false;
      }
    }
  }
  return true;
}

// Orientations in text, compressed and not: XMP, and EXIF as ImageMagick writes it.
bool WritePngTexts(const std::string& folder) {
  std::string profile = "\nexif\n      26\n";
  for (const uint8_t byte : OrientationTiff(6, true)) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    profile += kDigits[byte >> 4];
    profile += kDigits[byte & 15];
  }
  const std::vector<uint8_t> png = MakePng({.width = 9, .height = 5});
  for (const auto& [name, keyword, text] :
       {std::tuple("xmp", "XML:com.adobe.xmp", std::string(kXmp)),
        {"profile", "Raw profile type exif", profile}}) {
    std::vector<uint8_t> deflated(compressBound(text.size()));
    uLongf size = deflated.size();
    if (compress(deflated.data(), &size, reinterpret_cast<const Bytef*>(text.data()),
                 text.size()) != Z_OK) {
      return false;
    }
    for (const auto& [type, fields] : {std::pair("tEXt", std::string(1, '\0')),
                                       {"zTXt", std::string(2, '\0')},
                                       {"iTXt", std::string("\0\1\0\0\0", 5)}}) {
      std::vector<uint8_t> data = Bytes(keyword + fields);
      const std::vector<uint8_t> plain = Bytes(text);
      if (type == std::string_view("tEXt")) {
        data.insert(data.end(), plain.begin(), plain.end());
      } else {
        data.insert(data.end(), deflated.begin(), deflated.begin() + static_cast<ptrdiff_t>(size));
      }
      const std::string path = folder + name + "_" + type + ".png";
      if (!Write(path, WithChunk(png, "IDAT", PngChunk(type, data)))) return false;
    }
  }
  return true;
}

bool WritePngs(const std::string& folder) {
  for (const int color : {0, 2, 3, 4, 6}) {
    for (const int bits : {1, 2, 4, 8, 16}) {
      if ((bits < 8 && color != 0 && color != 3) || (bits == 16 && color == 3)) continue;
      for (const bool interlaced : {false, true}) {
        const std::vector<uint8_t> png = MakePng({.width = 13,
                                                  .height = 11,
                                                  .color = color,
                                                  .bit_depth = bits,
                                                  .interlaced = interlaced,
                                                  .chunk_bytes = 200});
        const std::string name = "color" + std::to_string(color) + "_" + std::to_string(bits);
        if (!Write(folder + name + (interlaced ? "_interlaced.png" : ".png"), png)) return false;
      }
    }
  }
  const std::vector<uint8_t> exif = PngChunk("eXIf", OrientationTiff(6, true));
  return WritePngTexts(folder) &&
         Write(folder + "orientation.png",
               WithChunk(MakePng({.width = 9, .height = 5}), "IEND", exif));
}

bool WriteWebps(const std::string& folder) {
  for (int n = 0; n < 24; ++n) {
    const std::vector<uint8_t> webp = MakeWebp({.width = 5 + 3 * n,
                                                .height = 40 - n,
                                                .lossless = n % 2 == 0,
                                                .alpha = n % 3 == 0,
                                                .quality = static_cast<float>(4 * n),
                                                .simple_filter = n % 4 == 1,
                                                .colors = n % 8 == 0 ? 2 + n : 0});
    if (!Write(folder + "kind" + std::to_string(n) + ".webp", webp)) return false;
  }
  const std::vector<uint8_t> exif = WebpChunk("EXIF", OrientationTiff(6, true));
  const std::vector<uint8_t> one_color = {'R',  'I', 'F', 'F', 0x14, 0,    0,    0, 'W', 'E',
                                          'B',  'P', 'V', 'P', '8',  'L',  8,    0, 0,   0,
                                          0x2F, 0,   0,   0,   0,    0x88, 0x88, 8};
  return Write(folder + "orientation.webp", Extended(MakeWebp(), 64, 48, 8, {}, exif)) &&
         Write(folder + "xmp.webp",
               Extended(MakeWebp(), 64, 48, 4, {}, WebpChunk("XMP ", Bytes(kXmp)))) &&
         Write(folder + "one_color.webp", one_color);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  const std::string corpus = std::string(argv[1]) + "/";
  const bool done = WriteJpegs(corpus + "jpeg/") && WriteMasks(corpus + "mask/") &&
                    WritePacked(corpus + "packed/") && WritePackedPngs(corpus + "packed_png/") &&
                    WritePngs(corpus + "png/") && WriteWebps(corpus + "webp/");
  return done ? 0 : 1;
}
