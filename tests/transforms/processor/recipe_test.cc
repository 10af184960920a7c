#include "transforms/processor/recipe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>

namespace stoker {
namespace {

// Sizes that transformers 5.24.0 computes; {0, 0} means that it refuses the image.
struct Golden {
  ImageSize image;
  ImageSize qwen2;     // smart_resize(factor=28, min_pixels=3136, max_pixels=1003520)
  ImageSize qwen3;     // smart_resize(factor=32, min_pixels=65536, max_pixels=16777216)
  ImageSize naflex;    // get_image_size_for_max_num_patches(16, 256)
  ImageSize pinpoint;  // select_best_resolution of LlavaNext's default
  ImageSize resized;   // get_patch_output_size of that
  ImageSize grid;      // get_optimal_tiled_canvas((448, 448), 1, 12), in tiles
};
constexpr Golden kGolden[] = {
    {{1, 1}, {56, 56}, {256, 256}, {112, 112}, {672, 336}, {336, 336}, {1, 1}},
    {{200, 1}, {812, 28}, {3648, 32}, {3200, 16}, {672, 336}, {672, 4}, {12, 1}},
    {{1, 200}, {28, 812}, {32, 3648}, {16, 3200}, {672, 336}, {2, 336}, {1, 12}},
    {{42, 14}, {112, 56}, {448, 160}, {432, 144}, {672, 336}, {672, 224}, {3, 1}},
    {{14, 42}, {56, 112}, {160, 448}, {144, 432}, {672, 336}, {112, 336}, {1, 3}},
    {{98, 70}, {112, 56}, {320, 224}, {304, 208}, {672, 336}, {471, 336}, {4, 3}},
    {{350, 210}, {336, 224}, {352, 224}, {320, 192}, {672, 336}, {560, 336}, {3, 2}},
    {{480, 640}, {476, 644}, {480, 640}, {224, 288}, {672, 672}, {504, 672}, {3, 4}},
    {{1024, 1024}, {980, 980}, {1024, 1024}, {256, 256}, {672, 672}, {672, 672}, {3, 3}},
    {{1275, 1650}, {868, 1120}, {1280, 1664}, {224, 288}, {672, 672}, {520, 672}, {3, 4}},
    {{8000, 6000}, {1148, 840}, {4704, 3520}, {288, 224}, {672, 672}, {672, 505}, {4, 3}},
    {{400, 65535}, {56, 12796}, {320, 52416}, {16, 2624}, {336, 1008}, {7, 1008}, {1, 12}},
    {{3, 4000}, {0, 0}, {0, 0}, {16, 4096}, {672, 336}, {1, 336}, {1, 12}},
    {{336, 336}, {336, 336}, {320, 320}, {256, 256}, {672, 336}, {336, 336}, {1, 1}},
    {{100, 672}, {112, 672}, {128, 672}, {96, 656}, {336, 672}, {100, 672}, {1, 7}},
    {{1248, 478}, {1260, 476}, {1248, 480}, {400, 160}, {1008, 336}, {878, 336}, {5, 2}},
    {{6288, 1919}, {1792, 532}, {6272, 1920}, {448, 144}, {1008, 336}, {1008, 308}, {6, 2}},
    {{5347, 1229}, {2072, 476}, {5344, 1216}, {512, 128}, {1008, 336}, {1008, 232}, {4, 1}},
    {{134, 3}, {392, 28}, {1728, 64}, {1440, 32}, {672, 336}, {672, 16}, {12, 1}},
    {{590, 6335}, {280, 3276}, {576, 6336}, {80, 816}, {336, 1008}, {94, 1008}, {1, 11}},
    {{7, 4499}, {0, 0}, {0, 0}, {16, 4096}, {336, 1008}, {2, 1008}, {1, 12}},
    {{23, 138}, {28, 140}, {128, 640}, {96, 576}, {672, 336}, {56, 336}, {1, 6}},
    {{322, 253}, {336, 252}, {320, 256}, {288, 224}, {672, 336}, {428, 336}, {4, 3}},
    {{18, 3}, {140, 28}, {640, 128}, {576, 96}, {672, 336}, {672, 112}, {6, 1}},
    {{5095, 30}, {5096, 28}, {5088, 32}, {2720, 16}, {1008, 336}, {1008, 6}, {12, 1}},
    {{11, 1513}, {28, 672}, {32, 3008}, {16, 2208}, {336, 1008}, {8, 1008}, {1, 12}},
    {{9, 1949}, {0, 0}, {0, 0}, {16, 3472}, {336, 1008}, {5, 1008}, {1, 12}},
    {{8, 458}, {28, 448}, {64, 1952}, {32, 1840}, {336, 672}, {12, 672}, {1, 12}},
};

ProcessorRecipe Qwen(int patch, int64_t least, int64_t most) {
  return {.family = ProcessorFamily::kQwen,
          .sizing = Sizing::kPixels,
          .min_pixels = least,
          .max_pixels = most,
          .patch = {patch, patch},
          .merge = 2,
          .temporal = 2};
}

ProcessorRecipe NaFlex(int64_t patches) {
  return {.family = ProcessorFamily::kNaFlex,
          .sizing = Sizing::kPatches,
          .patch = {16, 16},
          .padded_rows = patches};
}

ProcessorRecipe LlavaNext() {
  return {.sizing = Sizing::kPinpoints,
          .size = {336, 336},
          .pinpoints = {{672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}},
          .patch = {336, 336}};
}

ProcessorRecipe Tiles() {
  return {.sizing = Sizing::kTiles, .size = {448, 448}, .patch = {448, 448}};
}

Rect All(ImageSize size) { return {0, 0, size.width, size.height}; }

void ExpectSize(const ProcessorRecipe& recipe, ImageSize image, ImageSize size) {
  const Result<ImagePlan> plan = PlanImage(recipe, image);
  if (size.width == 0) {
    ASSERT_FALSE(plan.ok()) << image.width << " x " << image.height;
    EXPECT_EQ(plan.error().code, Code::kInvalidArgument);
    return;
  }
  ASSERT_TRUE(plan.ok()) << plan.error().ToString();
  EXPECT_EQ(plan->count, 1);
  EXPECT_EQ(plan->canvases[0], (ResizedWindow{size, All(size)}))
      << image.width << " x " << image.height;
}

TEST(Recipe, SizesAreThoseOfTransformers) {
  for (const Golden& golden : kGolden) {
    ExpectSize(Qwen(14, 3136, 1003520), golden.image, golden.qwen2);
    ExpectSize(Qwen(16, 65536, 16777216), golden.image, golden.qwen3);
    ExpectSize(NaFlex(256), golden.image, golden.naflex);
  }
}

TEST(Recipe, PinpointsFollowTheWholeImage) {
  for (const Golden& golden : kGolden) {
    const ImagePlan plan = PlanImage(LlavaNext(), golden.image).value();
    const ImageSize point = golden.pinpoint;
    ASSERT_EQ(plan.count, 2);
    EXPECT_EQ(plan.canvases[0].resized, (ImageSize{336, 336}));
    EXPECT_EQ(plan.canvases[1].resized, golden.resized);
    EXPECT_EQ(plan.canvases[1].window.size(), point);
    EXPECT_EQ(plan.canvases[1].window.x, -((point.width - golden.resized.width) / 2));
    EXPECT_EQ(plan.canvases[1].window.y, -((point.height - golden.resized.height) / 2));
    EXPECT_EQ(plan.rows, 1 + point.width / 336 * (point.height / 336));
  }
}

TEST(Recipe, SeveralTilesAreFollowedByTheWholeImage) {
  for (const Golden& golden : kGolden) {
    const ImagePlan plan = PlanImage(Tiles(), golden.image).value();
    const int tiles = golden.grid.width * golden.grid.height;
    EXPECT_EQ(plan.canvases[0].resized,
              (ImageSize{golden.grid.width * 448, golden.grid.height * 448}));
    EXPECT_EQ(plan.count, tiles > 1 ? 2 : 1);
    EXPECT_EQ(plan.rows, tiles > 1 ? tiles + 1 : 1);
  }
}

TEST(Recipe, CropsAreCentral) {
  ProcessorRecipe recipe{.sizing = Sizing::kShortest, .shortest = 224, .crop = ImageSize{225, 200}};
  // 224 × 298: a column of padding and 98 rows too many.
  const auto window = [&](ResampledAs resampler) {
    recipe.resampler = resampler;
    return PlanImage(recipe, {300, 400}).value().canvases[0].window;
  };
  EXPECT_EQ(window(ResampledAs::kTorchvision), (Rect{0, 49, 225, 200}));
  EXPECT_EQ(window(ResampledAs::kPillowExact), (Rect{-1, 49, 225, 200}));
}

// Any size has a plan, or an error that says why not; the plan keeps to the limits.
TEST(Recipe, PlansOfAnySizeKeepToTheirLimits) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> exponent(0, std::log(65535.0));
  for (int i = 0; i < 2000; ++i) {
    const ImageSize image{static_cast<int>(std::exp(exponent(random))),
                          static_cast<int>(std::exp(exponent(random)))};
    const Result<ImagePlan> qwen = PlanImage(Qwen(14, 3136, 1003520), image);
    const int longer = std::max(image.width, image.height);
    EXPECT_EQ(qwen.ok(), longer <= 200 * std::min(image.width, image.height));
    if (qwen.ok()) {
      EXPECT_EQ(qwen->rows % 4, 0);
      EXPECT_GE(qwen->rows * 14 * 14, 3136);
      EXPECT_LE(qwen->rows * 14 * 14, std::max(1003520, 28 * (longer + 28)));
    }
    const ImagePlan naflex = PlanImage(NaFlex(256), image).value();
    EXPECT_GE(naflex.rows, 1);
    EXPECT_LE(naflex.rows, 256);
    EXPECT_LE(PlanImage(Tiles(), image).value().rows, 13);
    EXPECT_LE(PlanImage(LlavaNext(), image).value().rows, 5);
  }
}

TEST(Recipe, MostRowsAreAnUpperBound) {
  std::mt19937 random(11);
  const auto log_uniform = [&](double most) {
    return std::exp(std::uniform_real_distribution<>(0, std::log(most))(random));
  };
  for (int round = 0; round < 20000; ++round) {
    const auto pixels = static_cast<int64_t>(log_uniform(1e7));
    const int64_t least = random() % 2 == 0 ? pixels : static_cast<int64_t>(log_uniform(1e5));
    ProcessorRecipe kept = Qwen(14, 1, 1);
    kept.sizing = Sizing::kKept;
    const ImageSize image{static_cast<int>(log_uniform(65535)),
                          static_cast<int>(log_uniform(65535))};
    for (const ProcessorRecipe& recipe :
         {Qwen(14, std::min(least, pixels), pixels), NaFlex(256), LlavaNext(), Tiles(), kept}) {
      const Result<ImagePlan> plan = PlanImage(recipe, image);
      if (plan.ok()) {
        ASSERT_LE(plan->rows, MostRowsOf(recipe)) << image.width << " × " << image.height;
      }
    }
  }
  EXPECT_EQ(MostRowsOf(Qwen(14, 3136, 1003520)), 5120);
  EXPECT_EQ(MostRowsOf(LlavaNext()), 5);
  EXPECT_EQ(MostRowsOf(Tiles()), 13);
}

TEST(Recipe, PartsDifferIfRowsDo) {
  const auto expect = [](const ProcessorRecipe& recipe, auto change) {
    ProcessorRecipe other = recipe;
    EXPECT_EQ(PartsOf(other), PartsOf(recipe));
    change(other);
    EXPECT_NE(PartsOf(other), PartsOf(recipe)) << TextOf(other);
    EXPECT_NE(TextOf(other), TextOf(recipe));
  };
  using R = ProcessorRecipe;
  const R qwen = Qwen(14, 3136, 1003520), shortest{.sizing = Sizing::kShortest};
  expect(qwen, [](R& r) { r.family = ProcessorFamily::kPlain; });
  for (const Sizing sizing : {Sizing::kKept, Sizing::kExact, Sizing::kShortest, Sizing::kPatches,
                              Sizing::kPinpoints, Sizing::kTiles}) {
    expect(qwen, [sizing](R& r) { r.sizing = sizing; });
  }
  expect(R{}, [](R& r) { r.size = {224, 225}; });
  expect(LlavaNext(), [](R& r) { r.size.width = 335; });
  expect(Tiles(), [](R& r) { r.size.height = 447; });
  expect(shortest, [](R& r) { r.shortest = 225; });
  expect(qwen, [](R& r) { ++r.min_pixels; });
  expect(qwen, [](R& r) { ++r.max_pixels; });
  expect(LlavaNext(), [](R& r) { r.pinpoints.pop_back(); });
  expect(LlavaNext(), [](R& r) { std::swap(r.pinpoints[0], r.pinpoints[1]); });
  expect(Tiles(), [](R& r) { ++r.min_tiles; });
  expect(Tiles(), [](R& r) { ++r.max_tiles; });
  expect(shortest, [](R& r) { r.crop = ImageSize{224, 224}; });
  expect(qwen, [](R& r) { r.resizes_floats = true; });
  expect(qwen, [](R& r) { r.patch = {16, 16}; });
  expect(qwen, [](R& r) { r.merge = 1; });
  expect(qwen, [](R& r) { r.temporal = 1; });
  expect(NaFlex(256), [](R& r) { r.padded_rows = 255; });
  expect(qwen, [](R& r) { r.interpolation = Interpolation::kBilinear; });
  expect(qwen, [](R& r) { r.resampler = ResampledAs::kPillowExact; });
  expect(qwen, [](R& r) { r.onto_white = true; });
  expect(qwen, [](R& r) { r.rescales = false; });
  expect(qwen, [](R& r) { r.normalizes = false; });
  expect(qwen, [](R& r) { r.factor = std::nextafter(r.factor, 1); });
  for (size_t c = 0; c < 3; ++c) {
    expect(qwen, [c](R& r) { r.mean[c] = std::nextafter(r.mean[c], 1); });
    expect(qwen, [c](R& r) { r.deviation[c] = std::nextafter(r.deviation[c], 1); });
  }
  EXPECT_EQ(TextOf(NaFlex(256)).substr(0, 31), "naflex, size the most patches, ");
}

TEST(Recipe, RefusesCanvasesThatPatchesDoNotDivide) {
  ProcessorRecipe recipe = Qwen(14, 3136, 1003520);
  recipe.sizing = Sizing::kKept;
  EXPECT_TRUE(PlanImage(recipe, {280, 56}).ok());
  const Result<ImagePlan> plan = PlanImage(recipe, {280, 57});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Code::kInvalidArgument);
  EXPECT_NE(plan.error().cause.find("280 × 57"), std::string::npos) << plan.error().cause;
  recipe = Qwen(14, int64_t{1} << 40, int64_t{1} << 40);
  EXPECT_FALSE(PlanImage(recipe, {280, 56}).ok());
  recipe = NaFlex(4);
  recipe.sizing = Sizing::kKept;
  EXPECT_FALSE(PlanImage(recipe, {32, 48}).ok());
}

TEST(Recipe, RefusesRowsThatTakeTooMuchMemory) {
  ProcessorRecipe recipe = NaFlex(1 << 20);
  EXPECT_TRUE(PlanImage(recipe, {1, 1}).ok());  // 3 GiB
  recipe.padded_rows = 1 << 21;
  const Result<ImagePlan> plan = PlanImage(recipe, {1, 1});
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, Code::kResourceExhausted);
  EXPECT_FALSE(CheckRowBytes(recipe, FixedPlan(recipe).value()).ok());
  recipe = Qwen(14, 1 << 27, 1 << 27);
  recipe.temporal = 16;
  EXPECT_EQ(PlanImage(recipe, {99, 99}).error().code, Code::kResourceExhausted);
}

TEST(Recipe, ErrorsNameTheSideThatIsTooLong) {
  const ProcessorRecipe recipe{
      .sizing = Sizing::kShortest, .shortest = 16384, .crop = ImageSize{224, 224}};
  const Result<ImagePlan> plan = PlanImage(recipe, {1, 65535});
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().cause.find("16384 × 1073725440"), std::string::npos) << plan.error().cause;
}

}  // namespace
}  // namespace stoker
