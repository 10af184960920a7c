#include "bindings/cli/synth/photograph.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdio>
// jpeglib.h needs the two above.
#include <jpeglib.h>

#include <algorithm>
#include <map>
#include <set>

#include "bindings/cli/synth/scene.h"

namespace stoker {
namespace {

uint64_t Fnv1a(const std::vector<uint8_t>& bytes) {
  uint64_t hash = 0xCBF29CE484222325;
  for (uint8_t byte : bytes) hash = (hash ^ byte) * 0x100000001B3;
  return hash;
}

// Returns what libjpeg reads from a file.
struct Decoded {
  int width = 0, height = 0, components = 0, h = 0, v = 0;
  bool progressive = false;
  unsigned restart_interval = 0;
  long warnings = 0;
};

Decoded Decode(const std::vector<uint8_t>& bytes) {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = [](j_common_ptr) { std::abort(); };
  errors.emit_message = [](j_common_ptr common, int level) {
    if (level < 0) ++common->err->num_warnings;
  };
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, bytes.data(), bytes.size());
  jpeg_read_header(&jpeg, TRUE);
  jpeg_start_decompress(&jpeg);
  std::vector<uint8_t> row(jpeg.output_width * 3);
  JSAMPROW rows = row.data();
  while (jpeg.output_scanline < jpeg.output_height) jpeg_read_scanlines(&jpeg, &rows, 1);
  const Decoded decoded{.width = static_cast<int>(jpeg.image_width),
                        .height = static_cast<int>(jpeg.image_height),
                        .components = jpeg.num_components,
                        .h = jpeg.comp_info[0].h_samp_factor,
                        .v = jpeg.comp_info[0].v_samp_factor,
                        .progressive = jpeg.progressive_mode != FALSE,
                        .restart_interval = jpeg.restart_interval,
                        .warnings = errors.num_warnings};
  jpeg_finish_decompress(&jpeg);
  jpeg_destroy_decompress(&jpeg);
  return decoded;
}

TEST(Scene, IsTheSameOnEveryMachine) {
  // The numbers were written down once from this code. Other numbers mean other photographs, and
  // require another version in the hidden file of `stoker synth`.
  const Scene scene = RenderScene({.width = 208, .height = 160, .detail = 1.5}, {{1, 2, 3}, 0});
  EXPECT_EQ(Fnv1a(scene.y.pixels), 15458323032166312607u);
  EXPECT_EQ(Fnv1a(scene.cb.pixels), 13174243708184791530u);
  EXPECT_EQ(Fnv1a(scene.cr.pixels), 3105118559727807838u);
}

TEST(Scene, RendersAnySizeAndDetail) {
  for (int width : {16, 32, 272}) {
    for (int height : {16, 48, 1008}) {
      for (double detail : {0.0, 1.0, 100.0}) {
        const Scene scene =
            RenderScene({.width = width, .height = height, .detail = detail}, {{1, 2, 3}, 0});
        EXPECT_EQ(scene.y.pixels.size(), static_cast<size_t>(width * height));
        EXPECT_EQ(scene.cb.pixels.size(), static_cast<size_t>(width * height / 4));
        EXPECT_EQ(DoubleHeight(DoubleWidth(scene.cr)).pixels.size(), scene.y.pixels.size());
      }
    }
  }
}

TEST(Photograph, DependsOnSeedAndIndexAndNothingElse) {
  const std::vector<uint8_t> bytes = MakePhotograph(1, 2);
  EXPECT_EQ(MakePhotograph(1, 2), bytes);
  EXPECT_NE(MakePhotograph(1, 3), bytes);
  EXPECT_NE(MakePhotograph(2, 2), bytes);
}

TEST(Photograph, RecipesAreDistributedLikeImageNet) {
  std::map<Chroma, int> chroma;
  double pixels = 0;
  int portrait = 0, turned = 0, progressive = 0, restarts = 0, large = 0;
  constexpr int kCount = 20000;
  for (int i = 0; i < kCount; ++i) {
    const PhotographRecipe recipe = DrawPhotograph(5, static_cast<uint64_t>(i));
    ASSERT_GE(std::min(recipe.width, recipe.height), 50);
    ASSERT_LE(std::max(recipe.width, recipe.height), 4000);
    ASSERT_GE(recipe.quality, 60);
    ASSERT_LE(recipe.quality, 100);
    ++chroma[recipe.chroma];
    pixels += static_cast<double>(recipe.width) * recipe.height;
    portrait += recipe.height > recipe.width;
    turned += recipe.orientation != 1;
    progressive += recipe.progressive;
    restarts += recipe.restart_rows > 0;
    large += std::max(recipe.width, recipe.height) >= 1000;
  }
  // Means are exact to a few standard deviations of a draw of this size.
  EXPECT_NEAR(chroma[Chroma::k444], 0.761 * kCount, 250);
  EXPECT_NEAR(chroma[Chroma::k420], 0.203 * kCount, 250);
  EXPECT_NEAR(chroma[Chroma::k422], 0.012 * kCount, 70);
  EXPECT_NEAR(chroma[Chroma::kGray], 0.023 * kCount, 90);
  EXPECT_GT(chroma[Chroma::k440], 0);
  EXPECT_NEAR(pixels / kCount, 0.2e6, 0.02e6);
  EXPECT_GT(portrait, kCount / 8);
  EXPECT_LT(portrait, kCount / 3);
  EXPECT_NEAR(turned, 0.004 * kCount, 40);
  EXPECT_NEAR(progressive, 0.003 * kCount, 40);
  EXPECT_NEAR(restarts, 0.003 * kCount, 40);
  EXPECT_GT(large, kCount / 200);
}

TEST(Photograph, HasTheBitsPerPixelOfRealPhotographs) {
  double bytes = 0, pixels = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    PhotographRecipe recipe = DrawPhotograph(3, i);
    recipe.width = recipe.height = 128;
    recipe.metadata_bytes = 0;
    recipe.chroma = Chroma::k444;
    recipe.quality = 96;
    bytes += static_cast<double>(RenderPhotograph(recipe, 3, i).size());
    pixels += 128 * 128;
  }
  EXPECT_NEAR(8 * bytes / pixels, 5.7, 1.2);
}

TEST(Photograph, FileMatchesItsRecipe) {
  std::set<Chroma> seen;
  for (uint64_t i = 0; i < 40; ++i) {
    PhotographRecipe recipe = DrawPhotograph(9, i);
    recipe.width = 17 + static_cast<int>(i * 13 % 90);
    recipe.height = 16 + static_cast<int>(i * 7 % 90);
    recipe.chroma = static_cast<Chroma>(i % 5);
    recipe.progressive = i % 3 == 0;
    recipe.restart_rows = i % 4 == 0 ? 1 : 0;
    recipe.metadata_bytes = i % 7 == 0 ? 65000 : 0;
    recipe.orientation = 1 + static_cast<int>(i % 8);
    const std::vector<uint8_t> bytes = RenderPhotograph(recipe, 9, i);
    const Decoded decoded = Decode(bytes);
    seen.insert(recipe.chroma);
    EXPECT_EQ(decoded.width, recipe.width);
    EXPECT_EQ(decoded.height, recipe.height);
    EXPECT_EQ(decoded.components, recipe.chroma == Chroma::kGray ? 1 : 3);
    const bool half_columns = recipe.chroma == Chroma::k420 || recipe.chroma == Chroma::k422;
    const bool half_rows = recipe.chroma == Chroma::k420 || recipe.chroma == Chroma::k440;
    EXPECT_EQ(decoded.h, half_columns ? 2 : 1);
    EXPECT_EQ(decoded.v, half_rows ? 2 : 1);
    EXPECT_EQ(decoded.progressive, recipe.progressive);
    EXPECT_EQ(decoded.restart_interval > 0, recipe.restart_rows > 0);
    EXPECT_EQ(decoded.warnings, 0);
    EXPECT_GE(bytes.size(), static_cast<size_t>(recipe.metadata_bytes));
    const std::string_view exif("Exif\0\0MM", 8);
    const auto found = std::search(bytes.begin(), bytes.end(), exif.begin(), exif.end());
    EXPECT_EQ(found != bytes.end(), recipe.orientation != 1);
  }
  EXPECT_EQ(seen.size(), 5u);
}

}  // namespace
}  // namespace stoker
