// make_corpus DIR: writes the seeds of the corpora of images, one small file for each kind, to the
// folders jpeg, png and webp in DIR.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/make_jpeg.h"
#include "tests/testing/make_png.h"
#include "tests/testing/make_webp.h"

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

bool WriteJpegs(const std::string& folder) {
  for (const Seed& seed : Seeds()) {
    if (!Write(folder + seed.name + ".jpg", MakeJpeg(seed.options))) return false;
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
  return Write(folder + "orientation.png",
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
  return Write(folder + "orientation.webp", Extended(MakeWebp(), 64, 48, 8, {}, exif));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  const std::string corpus = std::string(argv[1]) + "/";
  const bool done =
      WriteJpegs(corpus + "jpeg/") && WritePngs(corpus + "png/") && WriteWebps(corpus + "webp/");
  return done ? 0 : 1;
}
