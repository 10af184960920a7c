#include "bindings/c/processor_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stoker {
namespace {

using ::testing::HasSubstr;

Result<ProcessorRecipe> ParseConfig(const std::string& keys,
                                    ResampledAs resampler = ResampledAs::kTorchvision) {
  return ParseProcessorConfig("{" + keys + "}", resampler);
}

TEST(ProcessorConfig, MissingKeysAndNullTakeTheDefaultsOfTheClass) {
  const ProcessorRecipe clip =
      ParseConfig(R"("image_processor_type": "CLIPImageProcessor", "crop_size": null)").value();
  EXPECT_EQ(clip.sizing, Sizing::kShortest);
  EXPECT_EQ(clip.shortest, 224);
  EXPECT_EQ(clip.crop, (ImageSize{224, 224}));
  EXPECT_EQ(clip.interpolation, Interpolation::kBicubic);
  EXPECT_TRUE(clip.onto_white);
  EXPECT_EQ(clip.mean[0], 0.48145466);
  const ProcessorRecipe vit =
      ParseConfig(R"("image_processor_type": "ViTImageProcessorFast")").value();
  EXPECT_EQ(vit.sizing, Sizing::kExact);
  EXPECT_EQ(vit.crop, std::nullopt);
  EXPECT_EQ(vit.interpolation, Interpolation::kBilinear);
  EXPECT_FALSE(vit.onto_white);
}

TEST(ProcessorConfig, ReadsOldKeysAndNestedOnes) {
  const ProcessorRecipe old =
      ParseConfig(
          R"("feature_extractor_type": "CLIPFeatureExtractor", "size": 336, "crop_size": 320)")
          .value();
  EXPECT_EQ(old.shortest, 336);
  EXPECT_EQ(old.crop, (ImageSize{320, 320}));
  const ProcessorRecipe nested =
      ParseConfig(R"("image_processor": {"image_processor_type": "Qwen2VLImageProcessorFast",
               "min_pixels": 100, "size": {"shortest_edge": 1, "longest_edge": 4000}},
               "video_processor": {}, "processor_class": "Qwen2VLProcessor")")
          .value();
  EXPECT_EQ(nested.sizing, Sizing::kPixels);
  EXPECT_EQ(nested.min_pixels, 100);
  EXPECT_EQ(nested.max_pixels, 4000);
}

TEST(ProcessorConfig, TilesHaveTheSizeOfTheWholeImage) {
  const ProcessorRecipe next =
      ParseConfig(
          R"("image_processor_type": "LlavaNextImageProcessor", "size": {"shortest_edge": 336},
               "crop_size": {"height": 336, "width": 336}, "aspect_ratio_setting": "anyres",
               "image_grid_pinpoints": [[336, 672], [672, 336]], "do_pad": false)")
          .value();
  EXPECT_EQ(next.patch, (ImageSize{336, 336}));
  EXPECT_EQ(next.pinpoints, (std::vector<ImageSize>{{672, 336}, {336, 672}}));
  EXPECT_FALSE(next.pads_batch);
  const ProcessorRecipe tiled =
      ParseConfig(R"("image_processor_type": "GotOcr2ImageProcessor", "crop_to_patches": true)")
          .value();
  EXPECT_EQ(tiled.sizing, Sizing::kTiles);
  EXPECT_EQ(tiled.patch, (ImageSize{384, 384}));
}

TEST(ProcessorConfig, ANumberIsASizeByTheClass) {
  const auto parse = [](const std::string& name, const std::string& keys = {}) {
    return ParseConfig(R"("size": 384, "image_processor_type": ")" + name + '"' + keys).value();
  };
  for (const char* name : {"CLIPImageProcessor", "BitImageProcessor", "SiglipImageProcessor"}) {
    EXPECT_EQ(parse(name).sizing, Sizing::kShortest) << name;
    EXPECT_EQ(parse(name).shortest, 384) << name;
  }
  for (const char* name :
       {"ViTImageProcessor", "DINOv3ViTImageProcessor", "GotOcr2ImageProcessor"}) {
    EXPECT_EQ(parse(name).sizing, Sizing::kExact) << name;
    EXPECT_EQ(parse(name).size, (ImageSize{384, 384})) << name;
  }
  EXPECT_EQ(parse("SiglipImageProcessor", R"(, "default_to_square": true)").sizing, Sizing::kExact);
}

TEST(ProcessorConfig, OverridesReplaceKeysOfTheImageProcessor) {
  const std::string vit = R"({"image_processor_type": "ViTImageProcessor", "size": 5})";
  for (const std::string& json : {vit, R"({"image_processor": )" + vit + "}"}) {
    const ProcessorRecipe recipe =
        ParseProcessorConfig(json, ResampledAs::kTorchvision, R"({"size": 7})").value();
    EXPECT_EQ(recipe.size, (ImageSize{7, 7}));
    EXPECT_FALSE(ParseProcessorConfig(json, ResampledAs::kTorchvision, "[]").ok());
  }
}

TEST(ProcessorConfig, ErrorsNameTheKey) {
  const struct {
    const char* keys;
    const char* cause;
  } wrong[] = {
      {R"("image_processor_type": "DetrImageProcessor")", "DetrImageProcessor"},
      {R"("size": 224)", "image_processor_type is missing"},
      {R"("image_processor_type": "CLIPImageProcessor", "sise": 224)", "\"sise\""},
      {R"("image_processor_type": "CLIPImageProcessor", "sise": null)", "\"sise\""},
      {R"("image_processor_type": "CLIPImageProcessor", "patch_size": 14)", "\"patch_size\""},
      {R"("image_processor_type": "ViTImageProcessor", "size": 9, "size": 9)", "\"size\" twice"},
      {R"("image_processor_type": "ViTImageProcessor", "size": {"width": 9, "width": 9})",
       "\"width\" twice"},
      {R"("image_processor_type": "CLIPImageProcessor", "size": 0)", "size is 0"},
      {R"("image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 9, "longest_edge": 10}
       )",
       "longest_edge"},
      {R"("image_processor_type": "ViTImageProcessor", "size": {"height": 9})", "size.width"},
      {R"("image_processor_type": "ViTImageProcessor", "do_center_crop": true)", "crop_size"},
      {R"("image_processor_type": "ViTImageProcessor", "image_std": [1, 0, 1])", "image_std"},
      {R"("image_processor_type": "ViTImageProcessor", "image_mean": [1, 0])", "image_mean"},
      {R"("image_processor_type": "ViTImageProcessor", "resample": 5)", "resample"},
      {R"("image_processor_type": "ViTImageProcessor", "do_pad": true)", "do_pad"},
      {R"("image_processor_type": "ViTImageProcessor", "pad_size": 3)", "pad_size"},
      {R"("image_processor_type": "ViTImageProcessor", "data_format": "channels_last")",
       "data_format"},
      {R"("image_processor_type": "Qwen2VLImageProcessor", "do_center_crop": true)",
       "do_center_crop"},
      {R"("image_processor_type": "Qwen2VLImageProcessor", "min_pixels": 9, "max_pixels": 8)",
       "min_pixels"},
      {R"("image_processor_type": "Qwen2VLImageProcessor", "max_pixels": 8)",
       "size.shortest_edge is 3136"},
      {R"("image_processor_type": "Siglip2ImageProcessor", "size": 224)", "size"},
      {R"("image_processor_type": "LlavaNextImageProcessor", "size": 336)", "crop_size"},
      {R"("image_processor_type": "LlavaNextImageProcessor", "size": 336, "do_center_crop": false)",
       "crop_size"},
      {R"("image_processor_type": "LlavaOnevisionImageProcessor", "crop_size": 192)", "crop_size"},
      {R"("image_processor_type": "LlavaNextImageProcessor", "image_grid_pinpoints": [[1, 2, 3]])",
       "image_grid_pinpoints"},
      {R"("image_processor_type": "LlavaNextImageProcessor", "image_grid_pinpoints": [[224, 9]])",
       "image_grid_pinpoints"},
      {R"("image_processor_type": "GotOcr2ImageProcessor", "min_patches": 13)", "min_patches"},
      {R"("image_processor": {"image_processor_type": "ViTImageProcessor", "sise": 1})",
       "\"sise\""},
  };
  for (const auto& [keys, cause] : wrong) {
    const Result<ProcessorRecipe> recipe = ParseConfig(keys);
    ASSERT_FALSE(recipe.ok()) << keys;
    EXPECT_EQ(recipe.error().code, Code::kInvalidArgument) << keys;
    EXPECT_THAT(recipe.error().cause, HasSubstr(cause)) << keys;
  }
  EXPECT_FALSE(ParseProcessorConfig("[]", ResampledAs::kTorchvision).ok());
  EXPECT_FALSE(ParseProcessorConfig("{", ResampledAs::kTorchvision).ok());
}

TEST(ProcessorConfig, RefusesFiltersThatTheResamplerDoesNotHave) {
  const std::string box = R"("image_processor_type": "ViTImageProcessor", "resample": 4)";
  EXPECT_EQ(ParseConfig(box).error().code, Code::kUnimplemented);
  EXPECT_EQ(ParseConfig(box, ResampledAs::kPillowExact).value().interpolation, Interpolation::kBox);
  const std::string dino = R"("image_processor_type": "DINOv3ViTImageProcessor")";
  EXPECT_EQ(ParseConfig(dino, ResampledAs::kPillowExact).error().code, Code::kUnimplemented);
}

}  // namespace
}  // namespace stoker
