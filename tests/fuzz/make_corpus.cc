// make_corpus DIR: writes the seeds of the JPEG corpus, one small file for each kind.
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/testing/make_jpeg.h"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_corpus DIR\n");
    return 2;
  }
  for (const Seed& seed : Seeds()) {
    const std::vector<uint8_t> bytes = MakeJpeg(seed.options);
    std::ofstream file(std::string(argv[1]) + "/" + seed.name + ".jpg", std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) return 1;
  }
  return 0;
}
