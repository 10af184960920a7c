#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "transforms/augment/geometry/affine.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Result<Plan> Compile(std::vector<Transform> transforms, DType dtype = DType::kU8) {
  PlanOptions options;
  options.dtype = dtype;
  return Plan::Compile(std::move(transforms), options);
}

// Returns the text of the refusal; empty if there is none.
std::string Refusal(std::vector<Transform> transforms, DType dtype = DType::kU8) {
  const Result<Plan> plan = Compile(std::move(transforms), dtype);
  if (plan.ok()) return "";
  EXPECT_EQ(plan.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(plan.error().advice.empty());
  return plan.error().ToString();
}

Resize Shorter(int size) { return {.size = size, .height = 0, .width = 0, .antialias = true}; }
Resize Exactly(int height, int width) {
  return {.size = 0, .height = height, .width = width, .antialias = true};
}
RandomResizedCrop ResizedCrop(std::array<double, 2> scale, std::array<double, 2> ratio) {
  return {.height = 224, .width = 224, .scale = scale, .ratio = ratio, .antialias = true};
}

TEST(Compile, TakesAsManyTransformsAsAState) {
  std::vector<Transform> list(kMaxTransforms, RandomVerticalFlip{});
  list[0] = CenterCrop{4, 4};
  EXPECT_TRUE(Compile(list).ok());
  list.emplace_back(RandomVerticalFlip{});
  EXPECT_THAT(Compile(list).error().ToString(), HasSubstr("257 transforms; at most 256"));
  list.resize(2);
  list[1] = RandomApply{std::vector<Transform>(kMaxTransforms, RandomGrayscale{})};
  EXPECT_THAT(Compile(list).error().ToString(), HasSubstr("258 transforms; at most 256"));
}

TEST(Compile, ChecksTheTransformsOfRandomApply) {
  const auto refusal = [](Transform inner) {
    return Refusal({Exactly(64, 64), RandomApply{{RandomGrayscale{}, std::move(inner)}}});
  };
  EXPECT_EQ(refusal(GaussianBlur{63, 63}), "");
  EXPECT_THAT(refusal(GaussianBlur{4, 3}),
              HasSubstr("transforms[1], RandomApply: transforms[1], GaussianBlur: kernel_height"));
  EXPECT_THAT(refusal(GaussianBlur{3, 129}),
              HasSubstr("transforms[1], RandomApply: a kernel of 129 × 3 is too large"));
  EXPECT_THAT(Refusal({RandomApply{{RandomSolarize{}}}, CenterCrop{9, 9}}),
              HasSubstr("transforms[0], RandomApply: images differ in size here"));
}

// Returns a transform that is nested `depth` levels deep.
Transform Nested(size_t depth) {
  Transform transform = RandomGrayscale{};
  for (size_t level = 1; level < depth; ++level) transform = RandomOrder{{transform}};
  return transform;
}

TEST(Compile, ChecksTreesOfTransforms) {
  const auto refusal = [](Transform transform) {
    return Refusal({Exactly(64, 64), std::move(transform)});
  };
  const RandomHorizontalFlip flip;
  EXPECT_EQ(refusal(Nested(kMaxTransformDepth)), "");
  EXPECT_THAT(refusal(Nested(kMaxTransformDepth + 1)),
              HasSubstr("transforms[1], RandomOrder: it is nested more than 8 levels deep"));
  EXPECT_THAT(refusal(RandomChoice{{flip, RandomApply{{flip, RandomSolarize{256}}}}}),
              HasSubstr("transforms[1], RandomChoice: transforms[1], RandomApply: transforms[1], "
                        "RandomSolarize: threshold = 256"));
  for (const Transform& other : {Transform(RandomErasing{}), Transform(PadTo{64, 64}),
                                 Transform(Normalize{}), Transform(SanitizeBoundingBoxes{})}) {
    EXPECT_THAT(refusal(RandomOrder{{flip, other}}),
                HasSubstr("transforms[1], RandomOrder: transforms[1], " +
                          std::string(NameOf(other)) + ": RandomOrder does not hold"));
  }
  for (const Transform& other : {Transform(Exactly(9, 9)), Transform(CenterCrop{9, 9}),
                                 Transform(Pad{}), Transform(RandomApply{{RandomZoomOut{}}})}) {
    EXPECT_THAT(refusal(RandomOrder{{flip, other}}),
                HasSubstr("transforms[1], RandomOrder: it holds transforms that resize, crop or "
                          "pad, and images would depend on their order"));
  }
  EXPECT_THAT(refusal(RandomApply{{CenterCrop{9, 9}, RandomChoice{{RandomInvert{}}}}}),
              HasSubstr("RandomApply: it holds transforms that resize, crop or pad, and others "
                        "that change pixels. Hold each kind by itself"));
  EXPECT_THAT(Refusal({RandomApply{{Mosaic{9}}}, CenterCrop{9, 9}}), HasSubstr("does not hold"));
  EXPECT_EQ(refusal(RandomOrder{}), "");
  EXPECT_THAT(refusal(RandomChoice{}), HasSubstr("RandomChoice: it holds no transforms"));
  EXPECT_THAT(refusal(RandomChoice{{flip, flip}, {1}}),
              HasSubstr("RandomChoice: p has 1 element; it must have 2, one for each transform"));
  EXPECT_THAT(refusal(RandomChoice{{flip, flip}, {1, -1}}), HasSubstr("p[1] is -1"));
  EXPECT_THAT(refusal(RandomChoice{{flip, flip}, {1, std::nan("")}}), HasSubstr("p[1] is nan"));
  EXPECT_THAT(refusal(RandomChoice{{flip, flip}, {0, 0}}), HasSubstr("one must be positive"));
}

TEST(Compile, CountsTransformsThatOthersHold) {
  const std::vector<Transform> list(kMaxTransforms - 3, RandomVerticalFlip{});
  EXPECT_TRUE(Compile({CenterCrop{4, 4}, RandomOrder{{RandomApply{list}}}}).ok());
  EXPECT_THAT(Compile({CenterCrop{4, 4}, RandomOrder{{RandomApply{list}, RandomOrder{}}}})
                  .error()
                  .ToString(),
              HasSubstr("257 transforms; at most 256"));
}

// Flips alone need no image of one size, and no pass of their own.
TEST(Compile, FusesTransformsThatHoldFlipsAlone) {
  const RandomChoice flips{{RandomHorizontalFlip{1}, RandomApply{{RandomVerticalFlip{1}}}}};
  const auto sites = [](std::vector<Transform> list) {
    return Compile(std::move(list)).value().sites();
  };
  using enum ExecutionSite;
  EXPECT_EQ(sites({flips, ResizedCrop({0.5, 1}, {1, 1}), flips}),
            (std::vector{kFused, kFused, kFused}));
  EXPECT_EQ(sites({CenterCrop{9, 9}, RandomOrder{{flips, RandomGrayscale{}}}, flips}),
            (std::vector{kFused, kTile, kTile}));
  EXPECT_THAT(Refusal({RandomOrder{{flips, RandomGrayscale{}}}, CenterCrop{9, 9}}),
              HasSubstr("transforms[0], RandomOrder: images differ in size here"));
}

TEST(Compile, ForADeviceThatDecodesSomeImagesMustKeepTheirPixels) {
  const auto refusal = [](Transform transform) {
    PlanOptions options{.defer_to_device = true, .decode_on_device = true};
    const Result<Plan> plan = Plan::Compile({CenterCrop{9, 9}, std::move(transform)}, options);
    return plan.ok() ? "" : plan.error().cause;
  };
  for (const ResampledAs resampler : {ResampledAs::kPillowExact, ResampledAs::kTorchvision}) {
    EXPECT_THAT(refusal(Resize{.height = 8, .width = 9, .resampler = resampler}),
                HasSubstr(std::string("by bilinear (") + NameOf(resampler)));
  }
  const RandomGrayscale always{1}, sometimes{0.5};
  const RandomHorizontalFlip flip;
  for (const Transform& changes : std::vector<Transform>{
           always, RandomApply{{flip, always}, 1}, RandomOrder{{sometimes, always}},
           RandomChoice{{always, RandomApply{{always}, 1}}},
           RandomChoice{{always, flip}, {1, 0}}}) {
    EXPECT_THAT(refusal(changes), HasSubstr("workers change the pixels")) << NameOf(changes);
  }
  for (const Transform& keeps : std::vector<Transform>{
           sometimes, RandomApply{{always}, 0.5}, RandomApply{{sometimes}, 1}, RandomOrder{{flip}},
           RandomOrder{{sometimes, flip}}, RandomChoice{{always, flip}},
           RandomChoice{{always, sometimes}, {0, 1}}}) {
    EXPECT_EQ(refusal(keeps), "") << NameOf(keeps);
  }
}

TEST(Compile, ComputesTheOutputSize) {
  const auto size = [](std::vector<Transform> transforms) {
    return Compile(std::move(transforms)).value().output_size();
  };
  EXPECT_EQ(size({Shorter(256), CenterCrop{224, 200}}), (ImageSize{200, 224}));
  EXPECT_EQ(size({ResizedCrop({0.08, 1}, {0.75, 1.33}), RandomHorizontalFlip{}}),
            (ImageSize{224, 224}));
  EXPECT_EQ(size({CenterCrop{500, 500}, Exactly(30, 40)}), (ImageSize{40, 30}));
  EXPECT_EQ(size({CenterCrop{500, 1000}, Shorter(100)}), (ImageSize{200, 100}));
  EXPECT_EQ(size({CenterCrop{50, 60}}), (ImageSize{60, 50}));
  EXPECT_EQ(size({CenterCrop{50, 60}, RandomHorizontalFlip{}, CenterCrop{50, 30}}),
            (ImageSize{30, 50}));
  EXPECT_EQ(size({Exactly(100, 100), CenterCrop{120, 120}, CenterCrop{110, 90}}),
            (ImageSize{90, 110}));
}

TEST(Compile, ComputesTheBytesOfARow) {
  EXPECT_EQ(Compile({CenterCrop{2, 5}}).value().row_bytes(), 30u);
  EXPECT_EQ(Compile({CenterCrop{2, 5}}, DType::kF32).value().row_bytes(), 120u);
  EXPECT_EQ(Compile({CenterCrop{2, 5}}, DType::kF16).value().row_bytes(), 60u);
  EXPECT_EQ(Compile({CenterCrop{2, 5}}, DType::kBF16).value().row_bytes(), 60u);
}

TEST(Compile, ShapeOfARowFollowsTheLayout) {
  const auto plan = [](Layout layout) {
    return Plan::Compile({CenterCrop{2, 5}}, {.layout = layout}).value();
  };
  EXPECT_THAT(plan(Layout::kNhwc).row_shape(), ::testing::ElementsAre(2, 5, 3));
  EXPECT_THAT(plan(Layout::kNhwc).Describe(), HasSubstr("to uint8 2 × 5 × 3"));
  EXPECT_THAT(plan(Layout::kNchw).row_shape(), ::testing::ElementsAre(3, 2, 5));
  EXPECT_THAT(plan(Layout::kNchw).Describe(), HasSubstr("to uint8 3 × 2 × 5"));
}

TEST(Compile, ComputesScaleAndBias) {
  const Plan plain = Compile({CenterCrop{2, 2}}, DType::kF32).value();
  EXPECT_EQ(plain.scale()[1], 1.0f / 255);
  EXPECT_EQ(plain.bias()[1], 0.0f);
  const Plan normalised =
      Compile({CenterCrop{2, 2}, Normalize{{0.5f, 0.4f, 0.3f}, {0.5f, 0.25f, 0.2f}}}, DType::kF32)
          .value();
  for (size_t c = 0; c < 3; ++c) {
    constexpr double kMean[] = {0.5, 0.4, 0.3}, kStd[] = {0.5, 0.25, 0.2};
    for (int value : {0, 1, 100, 255}) {
      EXPECT_NEAR(static_cast<float>(value) * normalised.scale()[c] + normalised.bias()[c],
                  (value / 255.0 - kMean[c]) / kStd[c], 1e-6);
    }
  }
}

TEST(Compile, RefusesSizesOutOfRange) {
  for (int bad : {0, -1, 65536, std::numeric_limits<int>::max(), std::numeric_limits<int>::min()}) {
    const std::string value = "= " + std::to_string(bad);
    EXPECT_THAT(Refusal({CenterCrop{bad, 10}}),
                AllOf(HasSubstr("transforms[0], CenterCrop: height " + value),
                      HasSubstr("between 1 and 65535")));
    EXPECT_THAT(Refusal({CenterCrop{10, bad}}), HasSubstr("width " + value));
    EXPECT_THAT(Refusal({RandomHorizontalFlip{}, RandomResizedCrop{bad, 10}}),
                HasSubstr("transforms[1], RandomResizedCrop: height " + value));
    EXPECT_THAT(Refusal({Exactly(10, bad)}), HasSubstr("Resize: width " + value));
    if (bad == 0) continue;  // means: exactly height × width
    EXPECT_THAT(Refusal({Shorter(bad)}), HasSubstr("Resize: size " + value));
  }
  EXPECT_THAT(Refusal({CenterCrop{10, 60000}, Shorter(60000)}), HasSubstr("360000000 × 60000"));
}

TEST(Compile, RefusesAmbiguousResize) {
  EXPECT_THAT(Refusal({Resize{.size = 5, .height = 5, .width = 5, .antialias = true}}),
              HasSubstr("size = 5 together with height = 5, width = 5"));
}

TEST(Compile, RefusesFiltersThatTorchvisionDoesNotHave) {
  Resize resize{.height = 9, .width = 9, .resampler = ResampledAs::kTorchvision};
  for (const Interpolation interpolation : kInterpolations) {
    resize.interpolation = interpolation;
    const bool has =
        interpolation != Interpolation::kNearest && interpolation != Interpolation::kBox;
    EXPECT_EQ(Compile({resize}).ok(), has) << NameOf(interpolation);
  }
  EXPECT_THAT(Refusal({resize}), HasSubstr("resampler = torchvision with interpolation = nearest"));
  resize.interpolation = Interpolation::kBicubic;
  resize.antialias = false;
  EXPECT_THAT(Refusal({resize}), HasSubstr("resampler = torchvision without antialias"));
  resize.resampler = ResampledAs::kPillowExact;
  EXPECT_EQ(Refusal({resize}), "");
  resize.interpolation = Interpolation::kBilinear;
  EXPECT_THAT(Refusal({resize}), HasSubstr("resampler = pillow_exact without antialias"));
  resize.antialias = true;
  EXPECT_EQ(Refusal({resize}), "");
  EXPECT_THAT(Refusal({resize}, DType::kU16), HasSubstr("resampler = pillow_exact with dtype u"));
}

TEST(Compile, DescribesResamplers) {
  Resize resize{.height = 8, .width = 9, .resampler = ResampledAs::kTorchvision};
  const PlanOptions options{.decode = DecodeSize::kScaled};
  EXPECT_EQ(Plan::Compile({resize}, options).value().Describe(),
            "Resize, fused: decode the box only, bilinear (torchvision), antialiased, to uint8 8 × "
            "9 × 3");
  resize.resampler = ResampledAs::kPillow;
  EXPECT_THAT(Plan::Compile({resize}, options).value().Describe(),
              HasSubstr("the box only, scaled where it is large, bilinear, antialiased, to"));
}

TEST(Compile, RefusesOutputsOfDifferentSizes) {
  EXPECT_THAT(Refusal({}), HasSubstr("no transform makes all images the same size"));
  EXPECT_THAT(Refusal({RandomHorizontalFlip{}}), HasSubstr("Add RandomResizedCrop"));
  EXPECT_THAT(Refusal({RandomHorizontalFlip{}, Shorter(256)}),
              AllOf(HasSubstr("transforms[1], Resize: size = 256"), HasSubstr("Add a CenterCrop")));
}

TEST(Compile, PadsImagesThatDifferInSize) {
  const Resize bounded{.size = 30, .max_size = 40};
  const Plan plan = Compile({bounded, ColorJitter{{0.5, 1}}, PadTo{40, 50}}).value();
  EXPECT_TRUE(plan.pads());
  EXPECT_EQ(plan.output_size(), (ImageSize{50, 40}));
  EXPECT_THAT(plan.Describe(), HasSubstr("to uint8 40 × 50 × 3, padded"));
  EXPECT_FALSE(Compile({bounded, CenterCrop{9, 9}}).value().pads());
  EXPECT_EQ(Refusal({PadTo{40, 40}}), "");
  EXPECT_EQ(Refusal({CenterCrop{40, 40}, RandomErasing{}, PadTo{40, 40}}), "");
  EXPECT_EQ(Refusal({bounded, RandomErasing{}, PadTo{40, 40, {1, 2, 3}}, Normalize{}}, DType::kF32),
            "");
}

TEST(Compile, TheTileHasTheSizeOfTheImagesAndNotOfTheirRows) {
  const auto bytes = [](std::vector<Transform> transforms) {
    return Compile(std::move(transforms)).value().extra_bytes();
  };
  const CenterCrop crop{20, 20};
  const ColorJitter colours{{0.5, 1}};
  const GaussianBlur blur{3, 3};
  const uint64_t small = bytes({crop, colours});
  EXPECT_EQ(small, 2 * (2 * 3 * 20 * 20 + AffineScratchBytes({20, 20}).value() + (16 << 10)));
  EXPECT_EQ(bytes({crop, colours, PadTo{2000, 2000}}), small);
  EXPECT_EQ(bytes({crop, blur, PadTo{2000, 2000}}), bytes({crop, blur}));
  EXPECT_EQ(bytes({crop, PadTo{2000, 2000}}), 0u);
  EXPECT_EQ(bytes({CenterCrop{300, 300}, colours, crop}), bytes({CenterCrop{300, 300}, colours}));
  EXPECT_EQ(bytes({CenterCrop{300, 300}, colours, crop, PadTo{400, 400}}),
            bytes({CenterCrop{300, 300}, colours}));
  EXPECT_EQ(bytes({crop, Pad{{10, 10, 10, 10}, {1, 2, 3}}, colours, crop}),
            bytes({CenterCrop{40, 40}, colours}));
  EXPECT_EQ(bytes({colours, PadTo{200, 200}}), bytes({CenterCrop{200, 200}, colours}))
      << "images differ in size";
}

TEST(Compile, RefusesPaddingThatCannotBe) {
  const Resize bounded{.size = 30, .max_size = 40};
  EXPECT_THAT(Refusal({bounded}), HasSubstr("PadTo"));
  EXPECT_THAT(Refusal({CenterCrop{50, 30}, PadTo{40, 40}}),
              HasSubstr("transforms[1], PadTo: 40 × 40 is smaller than the images here, which have "
                        "30 × 50 pixels"));
  EXPECT_THAT(Refusal({PadTo{40, 40}, RandomErasing{}}),
              HasSubstr("transforms[0], PadTo: transforms[1], RandomErasing comes after it. Move "
                        "PadTo after RandomErasing"));
  EXPECT_THAT(Refusal({PadTo{40, 40}, CenterCrop{9, 9}}), HasSubstr("Move PadTo after CenterCrop"));
  EXPECT_THAT(Refusal({PadTo{40, 40}, PadTo{40, 40}}),
              HasSubstr("transforms[1], PadTo comes after it. Remove one of the two"));
  EXPECT_THAT(Refusal({Normalize{}, PadTo{40, 40, {0, 1, 0}}}, DType::kF32),
              HasSubstr("fill is not normalized by transforms[0], Normalize before it"));
  EXPECT_THAT(Refusal({GaussianBlur{3, 3}, CenterCrop{20, 20}, PadTo{40, 40}}),
              HasSubstr("images differ in size here"));
  EXPECT_THAT(Refusal({Resize{.size = 30, .max_size = 30}, PadTo{40, 40}}),
              HasSubstr("max_size = 30 is not above size = 30. Give a larger max_size, or no size, "
                        "for the longer side alone"));
  EXPECT_THAT(Refusal({Resize{.height = 30, .width = 30, .max_size = 40}}),
              HasSubstr("max_size = 40 together with height and width"));
}

TEST(Compile, RefusesASecondResampling) {
  EXPECT_THAT(Refusal({Shorter(256), Exactly(224, 224)}),
              AllOf(HasSubstr("transforms[1], Resize: a second resampling"),
                    HasSubstr("transforms[0], Resize resamples already, and no crop follows it")));
  EXPECT_THAT(Refusal({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}, Exactly(100, 100)}),
              HasSubstr("transforms[2], Resize: a second resampling"));
}

// DETR's recipe.
TEST(Compile, TakesAResizeAfterACrop) {
  const RandomShortestSize shorter{{400, 500, 600}}, last{{480, 800}, 1333};
  const RandomApply parts{{shorter, RandomSizeCrop{384, 600}}};
  const RandomChoice squares{{Exactly(512, 512), Exactly(576, 576)}};
  using enum ExecutionSite;
  const Plan detr = Compile({RandomHorizontalFlip{}, parts, last, PadTo{.multiple = 32}}).value();
  EXPECT_EQ(detr.sites(), (std::vector{kFused, kFused, kFused, kRow}));
  EXPECT_EQ(detr.output_size(), (ImageSize{1344, 1344}));
  EXPECT_EQ(Compile({parts, Exactly(560, 560), ColorJitter{}}).value().output_size(),
            (ImageSize{560, 560}));
  EXPECT_EQ(Compile({parts, squares, PadTo{.multiple = 32}}).value().output_size(),
            (ImageSize{576, 576}));
  EXPECT_THAT(Refusal({parts, squares}), HasSubstr("no transform makes all images the same size"));
  EXPECT_THAT(Refusal({parts, squares, ColorJitter{}}), HasSubstr("images differ in size here"));
  EXPECT_THAT(Refusal({parts}), HasSubstr("no transform makes all images the same size"));
  EXPECT_THAT(Refusal({RandomSizeCrop{9, 8}, Exactly(9, 9)}),
              HasSubstr("RandomSizeCrop: min_size = 9 is above max_size = 8"));
  // Crops within a choice make tiles smaller, so what comes before them needs one size.
  EXPECT_THAT(Refusal({last, RandomInvert{}, RandomApply{{RandomSizeCrop{9, 9}}}, PadTo{99, 99}}),
              HasSubstr("images differ in size here"));
}

TEST(Compile, RefusesACropThatOnlyAddsABorder) {
  EXPECT_THAT(Refusal({CenterCrop{100, 100}, CenterCrop{100, 101}}),
              AllOf(HasSubstr("transforms[1], CenterCrop: 101 × 100 is larger than the 100 × 100"),
                    HasSubstr("transforms[0], CenterCrop")));
}

TEST(Compile, RefusesInvalidRanges) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  using Range = std::array<double, 2>;
  for (Range bad : {Range{1, 0.08}, Range{-0.1, 1}, Range{0, 0}, Range{nan, 1}, Range{0.1, nan},
                    Range{0.1, inf}}) {
    EXPECT_THAT(Refusal({ResizedCrop(bad, {0.75, 1.33})}),
                HasSubstr("transforms[0], RandomResizedCrop: scale = ("));
  }
  for (Range bad : {Range{1.33, 0.75}, Range{0, 1}, Range{-1, 1}, Range{nan, nan}, Range{1, inf},
                    Range{1, 1e9}}) {
    EXPECT_THAT(Refusal({ResizedCrop({0.08, 1}, bad)}),
                HasSubstr("transforms[0], RandomResizedCrop: ratio = ("));
  }
  EXPECT_EQ(Refusal({ResizedCrop({0, 1}, {1, 1})}), "");
}

TEST(Compile, RefusesInvalidProbabilities) {
  for (double bad : {-0.01, 1.01, std::nan("")}) {
    EXPECT_THAT(Refusal({CenterCrop{5, 5}, RandomHorizontalFlip{bad}}),
                HasSubstr("transforms[1], RandomHorizontalFlip: p = "));
  }
}

TEST(Compile, RefusesMisplacedNormalize) {
  EXPECT_THAT(Refusal({CenterCrop{5, 5}, Normalize{}}),
              AllOf(HasSubstr("transforms[1], Normalize: its values do not fit uint8"),
                    HasSubstr("float32")));
  EXPECT_THAT(Refusal({Normalize{}, CenterCrop{5, 5}}, DType::kF32),
              HasSubstr("transforms[0], Normalize: transforms[1], CenterCrop comes after it"));
  EXPECT_THAT(Refusal({CenterCrop{5, 5}, Normalize{}, Normalize{}}, DType::kF32),
              HasSubstr("transforms[1], Normalize: transforms[2], Normalize comes after it"));
  for (float bad : {0.0f, -1.0f, 1e-40f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    EXPECT_THAT(Refusal({CenterCrop{5, 5}, Normalize{{0, 0, 0}, {1, bad, 1}}}, DType::kF32),
                HasSubstr("transforms[1], Normalize: std[1] = "));
  }
  EXPECT_THAT(Refusal({CenterCrop{5, 5}, Normalize{{0, 0, std::nanf("")}}}, DType::kF32),
              HasSubstr("mean[2] = nan"));
}

TEST(Compile, NormalizeHasANumberForEachChannelOrOneForAll) {
  const auto refusal = [](const Normalize& normalize, Channels channels) -> std::string {
    const PlanOptions options{.dtype = DType::kF32, .channels = channels};
    const Result<Plan> plan = Plan::Compile({CenterCrop{5, 5}, normalize}, options);
    return plan.ok() ? "" : plan.error().cause;
  };
  const Normalize one{{0.5F}, {0.25F}}, three{{0, 0, 0}, {1, 1, 1}}, four{{0, 0, 0, 0}, {1}};
  for (const Channels channels :
       {Channels::kGray, Channels::kRgb, Channels::kRgba, StoredChannels(1), StoredChannels(7)}) {
    EXPECT_EQ(refusal(one, channels), "");
    EXPECT_EQ(refusal(three, channels).empty(), CountOf(channels) <= 3) << NameOf(channels);
    EXPECT_EQ(refusal(four, channels).empty(), CountOf(channels) == 4) << NameOf(channels);
  }
  for (const Channels channels : {Channels::kGray, StoredChannels(1)}) {
    EXPECT_THAT(refusal(Normalize{{0.1F, 0.2F, 0.3F}, {1}}, channels),
                HasSubstr("transforms[1], Normalize: mean differs by channel"));
  }
  EXPECT_EQ(refusal(three, Channels::kRgba),
            "transforms[1], Normalize: it has numbers for 3 channels, and images have 4");
  for (const Normalize& bad : {Normalize{{}, {1}}, Normalize{{0}, {}}, Normalize{{0, 0}, {1, 1, 1}},
                               Normalize{std::vector<float>(65, 0.F), {1}}}) {
    EXPECT_THAT(refusal(bad, Channels::kRgb), HasSubstr("transforms[1], Normalize: mean has "));
  }
}

TEST(Compile, OtherChannelsAreOnlyMoved) {
  const auto refusal = [](std::vector<Transform> list, Channels channels) -> std::string {
    const Result<Plan> plan = Plan::Compile(std::move(list), {.channels = channels});
    return plan.ok() ? "" : plan.error().ToString();
  };
  for (const Channels channels : {Channels::kRgba, StoredChannels(4), StoredChannels(13)}) {
    EXPECT_EQ(
        refusal({Pad{{1, 2, 3, 4}}, RandomResizedCrop{9, 9}, RandomHorizontalFlip{}}, channels),
        "");
    const std::string with = "it does not compute with channels \"" + NameOf(channels) + "\"";
    const std::vector<Transform> others = {
        ColorJitter{},           RandomGrayscale{}, RandomInvert{}, GaussianBlur{3, 3},
        RandomRotation{{-9, 9}}, RandomErasing{},   PadTo{20, 20}};
    for (const Transform& other : others) {
      EXPECT_THAT(refusal({RandomResizedCrop{9, 9}, other}, channels),
                  AllOf(HasSubstr(std::string("transforms[1], ") + NameOf(other) + ": " + with),
                        HasSubstr("\"rgb\" or \"gray\"")));
    }
    EXPECT_THAT(refusal({Pad{{1, 1, 1, 1}, {5, 6, 7}}, CenterCrop{9, 9}}, channels),
                HasSubstr("transforms[0], Pad: " + with));
  }
  EXPECT_THAT(refusal({CenterCrop{9, 9}}, Channels::kUnchanged), HasSubstr("have one shape"));
  const Error views =
      Plan::CompileViews({{CenterCrop{9, 9}}, {CenterCrop{8, 8}}}, {.channels = Channels::kRgba})
          .error();
  EXPECT_THAT(views.cause, HasSubstr("have one view"));
}

TEST(Compile, RefusesUnsupportedTypes) {
  EXPECT_THAT(Refusal({CenterCrop{5, 5}}, DType::kI64), HasSubstr("dtype is int64"));
}

TEST(Compile, ComputesTheSizeAfterPaddingAndRandomCrops) {
  const auto size = [](std::vector<Transform> transforms) {
    return Compile(std::move(transforms)).value().output_size();
  };
  const RandomCrop crop{.height = 30, .width = 20, .padding = {4, 4, 4, 4}};
  EXPECT_EQ(size({crop}), (ImageSize{20, 30}));
  EXPECT_EQ(size({Exactly(30, 20), Pad{{1, 2, 3, 4}}}), (ImageSize{24, 36}));
  EXPECT_EQ(size({Pad{{1, 2, 3, 4}}, Exactly(30, 20), crop}), (ImageSize{20, 30}));
  EXPECT_EQ(size({CenterCrop{10, 10}, Pad{{1, 1, 1, 1}}, CenterCrop{12, 12}}), (ImageSize{12, 12}));
}

TEST(Compile, RefusesAugmentationsOfImagesThatDifferInSize) {
  const std::vector<Transform> steps = {ColorJitter{},  RandomGrayscale{}, GaussianBlur{3, 3},
                                        AutoAugment{},  RandAugment{},     TrivialAugmentWide{},
                                        RandomErasing{}};
  for (const Transform& step : steps) {
    const std::string name = std::string("transforms[1], ") + NameOf(step);
    EXPECT_EQ(Refusal({CenterCrop{9, 9}, step}), "");
    EXPECT_THAT(Refusal({Shorter(256), step, CenterCrop{9, 9}}),
                AllOf(HasSubstr(name + ": images differ in size here"),
                      HasSubstr("Move it after CenterCrop;")));
    EXPECT_THAT(Refusal({Shorter(256), step}), HasSubstr("Move it after RandomResizedCrop, or"));
    EXPECT_THAT(Refusal({Pad{{1, 1, 1, 1}}, step, Exactly(9, 9), CenterCrop{5, 5}}),
                HasSubstr("Move it after Resize;"));
    EXPECT_THAT(Refusal({step, CenterCrop{50, 50}, Exactly(9, 9), CenterCrop{5, 5}}),
                HasSubstr("Move it after Resize;"));
    EXPECT_THAT(Refusal({step, CenterCrop{50, 50}, Shorter(9)}),
                HasSubstr("Move it after Resize;"));
    EXPECT_THAT(Refusal({step, Exactly(64, 64), RandomResizedCrop{9, 9}}),
                HasSubstr("Move it after RandomResizedCrop;"));
    if (std::holds_alternative<RandomErasing>(step)) continue;
    EXPECT_THAT(Refusal({CenterCrop{50, 50}, step, Exactly(9, 9)}),
                AllOf(HasSubstr(name + ": transforms[2], Resize resamples after it"),
                      HasSubstr("Move it after the resampling")));
  }
}

TEST(Compile, RefusesMirroredPaddingBeforeResampling) {
  const Pad zeros{{4, 4, 4, 4}}, gray{{4, 4, 4, 4}, {7, 7, 7}},
      mirrored{{4, 4, 4, 4}, {}, Padding::kReflect};
  EXPECT_EQ(Refusal({zeros, Exactly(9, 9)}), "");
  EXPECT_EQ(Refusal({Exactly(9, 9), gray, mirrored}), "");
  EXPECT_EQ(Refusal({gray, RandomSizeCrop{3, 9}, Exactly(9, 9)}), "");
  EXPECT_THAT(Refusal({mirrored, Exactly(9, 9)}),
              HasSubstr("transforms[0], Pad: transforms[1], Resize resamples after it"));
  EXPECT_THAT(Refusal({gray, zeros, CenterCrop{9, 9}, Exactly(9, 9)}),
              HasSubstr("transforms[1], Pad: it pads a padded image in another way"));
  using enum ExecutionSite;
  EXPECT_EQ(
      Compile({gray, RandomHorizontalFlip{}, Exactly(9, 9), CenterCrop{5, 5}}).value().sites(),
      (std::vector{kTile, kFused, kFused, kTile}));
  EXPECT_THAT(Refusal({mirrored, mirrored, CenterCrop{9, 9}}),
              HasSubstr("transforms[1], Pad: it pads a padded image in another way"));
  EXPECT_EQ(Refusal({zeros, zeros, CenterCrop{9, 9}}), "");
  const RandomChoice either{{zeros, gray}};
  EXPECT_EQ(Refusal({either, Exactly(9, 9)}), "");
  EXPECT_EQ(Refusal({RandomApply{{gray, Exactly(9, 9)}, 1}}), "");
  EXPECT_THAT(Refusal({either, gray, Exactly(9, 9)}),
              HasSubstr("transforms[1], Pad: it pads a padded image in another way"));
  EXPECT_THAT(Refusal({either, RandomZoomOut{gray.fill}, Exactly(9, 9)}),
              HasSubstr("transforms[1], RandomZoomOut: it pads a padded image in another way"));
  for (const auto& [first, second] : {std::pair(zeros, gray), {gray, zeros}}) {
    EXPECT_THAT(Refusal({Exactly(9, 9), first, RandomZoomOut{second.fill}, CenterCrop{9, 9}}),
                HasSubstr("transforms[2], RandomZoomOut: it makes images of any size after "
                          "transforms[1], Pad"));
  }
  EXPECT_EQ(Refusal({zeros, Exactly(9, 9), RandomZoomOut{gray.fill}, CenterCrop{9, 9}}), "");
  EXPECT_THAT(Refusal({gray, RandomCrop{.height = 9, .width = 9}, Exactly(9, 9), gray,
                       RandomSizeCrop{3, 9}, Exactly(9, 9)}),
              HasSubstr("transforms[3], Pad: transforms[5], Resize resamples after it"));
  EXPECT_THAT(Refusal({gray, CenterCrop{20, 20}, Exactly(9, 9)}),
              HasSubstr("transforms[1], CenterCrop: transforms[2], Resize resamples after it"));
  EXPECT_EQ(Refusal({gray, CenterCrop{20, 20}}), "");
  EXPECT_EQ(Refusal({gray, Exactly(9, 9), CenterCrop{9, 9}}), "");
  EXPECT_THAT(Refusal({gray, Exactly(9, 9), CenterCrop{20, 20}, Exactly(9, 9)}),
              HasSubstr("transforms[2], CenterCrop: transforms[3], Resize resamples after it"));
  EXPECT_THAT(Refusal({CenterCrop{9, 9}, zeros, RandomResizedCrop{5, 5}}),
              HasSubstr("transforms[1], Pad: transforms[2], RandomResizedCrop resamples"));
}

TEST(Compile, RefusesRandomCropsThatNeverFit) {
  const RandomCrop crop{.height = 32, .width = 32};
  EXPECT_THAT(Refusal({Exactly(30, 40), crop}),
              AllOf(HasSubstr("transforms[1], RandomCrop: 32 × 32 is larger than the images here, "
                              "which have 40 × 30 pixels"),
                    HasSubstr("Set pad_if_needed")));
  EXPECT_EQ(
      Refusal({Exactly(30, 40), RandomCrop{.height = 32, .width = 32, .padding = {0, 1, 0, 1}}}),
      "");
  EXPECT_EQ(
      Refusal({Exactly(30, 40), RandomCrop{.height = 32, .width = 32, .pad_if_needed = true}}), "");
}

TEST(Compile, RefusesInvalidAugmentationOptions) {
  const auto refusal = [](const Transform& t, DType dtype = DType::kU8) {
    return Refusal({CenterCrop{9, 9}, t}, dtype);
  };
  const double nan = std::nan("");
  EXPECT_THAT(refusal(RandomVerticalFlip{2}), HasSubstr("RandomVerticalFlip: p = 2"));
  EXPECT_THAT(refusal(RandomGrayscale{nan}), HasSubstr("RandomGrayscale: p = nan"));
  EXPECT_THAT(refusal(Pad{{0, -1, 0, 0}}), HasSubstr("Pad: padding.top = -1"));
  EXPECT_THAT(refusal(Pad{{65530, 0, 0, 0}}), HasSubstr("it makes images of 65539 × 9 pixels"));
  EXPECT_THAT(refusal(RandomCrop{.height = 0, .width = 1}), HasSubstr("RandomCrop: height = 0"));
  EXPECT_THAT(refusal(ColorJitter{.brightness = {-0.1, 1}}), HasSubstr("brightness = (-0.1, 1)"));
  EXPECT_THAT(refusal(ColorJitter{.contrast = {2, 1}}), HasSubstr("contrast = (2, 1)"));
  EXPECT_THAT(refusal(ColorJitter{.saturation = {nan, 1}}), HasSubstr("saturation = (nan, 1)"));
  EXPECT_THAT(refusal(ColorJitter{.hue = {-0.6, 0}}),
              AllOf(HasSubstr("hue = (-0.6, 0)"), HasSubstr("between -0.5 and 0.5")));
  EXPECT_THAT(refusal(GaussianBlur{4, 3}),
              HasSubstr("kernel_height = 4. Give kernel_height as 1, 3, … or 1023 pixels"));
  EXPECT_THAT(refusal(GaussianBlur{3, 19}), HasSubstr("a kernel of 19 × 3 is too large"));
  EXPECT_EQ(refusal(GaussianBlur{17, 17}), "");
  EXPECT_THAT(refusal(GaussianBlur{3, 3, {0, 1}}), HasSubstr("sigma = (0, 1)"));
  EXPECT_THAT(refusal(AutoAugment{static_cast<AutoAugment::Policy>(7)}), HasSubstr("policy = 7"));
  EXPECT_THAT(refusal(Pad{{}, {}, static_cast<Padding>(9)}), HasSubstr("padding_mode = 9"));
  EXPECT_THAT(refusal(RandomVerticalFlip{std::nextafter(1.0, 2.0)}),
              HasSubstr("p = 1.0000000000000002"));
  EXPECT_THAT(refusal(RandomErasing{.value = {1e30F, 0, 0}}, DType::kF16),
              HasSubstr("value = 1e+30"));
  EXPECT_THAT(refusal(RandAugment{-1}), HasSubstr("RandAugment: num_ops = -1"));
  EXPECT_THAT(refusal(RandAugment{2, 31}), HasSubstr("RandAugment: magnitude = 31"));
  EXPECT_THAT(refusal(TrivialAugmentWide{1}), HasSubstr("num_magnitude_bins = 1"));
  EXPECT_THAT(refusal(RandomErasing{.scale = {0.1, 1.1}}), HasSubstr("scale = (0.1, 1.1)"));
  EXPECT_THAT(refusal(RandomErasing{.ratio = {0, 1}}), HasSubstr("RandomErasing: ratio = (0, 1)"));
  EXPECT_THAT(refusal(RandomErasing{.value = {0, 256, 0}}), HasSubstr("value = 256"));
  EXPECT_EQ(refusal(RandomErasing{.value = {0, 256, 0}}, DType::kF32), "");
  EXPECT_THAT(refusal(RandomErasing{.noise = true}), HasSubstr("value = \"random\""));
}

TEST(Compile, RefusesTransformsAfterErasing) {
  const CenterCrop crop{9, 9};
  EXPECT_THAT(Refusal({crop, RandomErasing{}, RandomHorizontalFlip{}}),
              HasSubstr("transforms[1], RandomErasing: transforms[2], RandomHorizontalFlip comes"));
  EXPECT_EQ(Refusal({crop, RandomErasing{}, Normalize{}, RandomErasing{}}, DType::kF32), "");
  EXPECT_THAT(Refusal({crop, RandomErasing{.noise = true}, Normalize{}}, DType::kF32),
              AllOf(HasSubstr("transforms[1], RandomErasing: its normal numbers"),
                    HasSubstr("Move it after Normalize")));
}

TEST(Compile, DescribesThePlan) {
  EXPECT_EQ(Compile({Shorter(256), CenterCrop{224, 200}}).value().Describe(),
            "Resize, CenterCrop, fused: decode the box only, bilinear, antialiased, to uint8 224 × "
            "200 × 3");
  const Resize nearest{.height = 8, .width = 9, .interpolation = Interpolation::kNearest};
  EXPECT_EQ(Compile({nearest}).value().Describe(),
            "Resize, fused: decode the box only, nearest, to uint8 8 × 9 × 3");
  const RandomResizedCrop bicubic{
      .height = 8, .width = 9, .interpolation = Interpolation::kBicubic};
  EXPECT_EQ(Compile({bicubic}).value().Describe(),
            "RandomResizedCrop, fused: decode the box only, bicubic, antialiased, to uint8 8 × 9 × "
            "3");
}

TEST(Compile, DescribesMasks) {
  const std::vector<Transform> list{Shorter(256), CenterCrop{224, 200}};
  const PlanOptions options{.pieces = {{}, {.kind = Piece::Kind::kMask}, {}}};
  EXPECT_EQ(Plan::Compile(list, options).value().Describe(),
            Compile(list).value().Describe() +
                "; piece 1: a mask, moved as piece 0 by nearest pixels, to uint8 224 × 200");
}

TEST(Compile, ImagesDifferInSizeAfterAResizeThatDrawsIt) {
  const auto cause = [](std::vector<Transform> list) {
    const Result<Plan> plan = Plan::Compile(std::move(list));
    return plan.ok() ? "" : plan.error().cause + ": " + plan.error().advice;
  };
  const RandomShortestSize resize{{480, 512}, 800};
  const RandomCrop crop{.height = 384, .width = 384, .pad_if_needed = true};
  EXPECT_EQ(cause({resize, PadTo{800, 800}}), "");
  EXPECT_EQ(cause({RandomZoomOut{}, crop, resize, crop, ColorJitter{}}), "");
  EXPECT_EQ(cause({ScaleJitter{384, 384}, crop, ColorJitter{}}), "");
  EXPECT_THAT(cause({ScaleJitter{384, 384}}), HasSubstr("ScaleJitter: it draws a size for each"));
  EXPECT_THAT(cause({resize, ScaleJitter{384, 384}, crop}), HasSubstr("a second resampling"));
  EXPECT_EQ(cause({resize, ColorJitter{}, PadTo{800, 800}}), "");
  EXPECT_EQ(cause({CenterCrop{9, 9}, resize}),
            "transforms[1], RandomShortestSize: it draws a size for each image, and those of a "
            "batch would differ: Add a RandomCrop or CenterCrop after it; or PadTo, if images may "
            "differ in size");
  EXPECT_THAT(cause({resize, ColorJitter{}, crop}),
              HasSubstr("images differ in size here: Move it after RandomCrop"));
  EXPECT_THAT(cause({resize, Resize{.size = 9}, crop}), HasSubstr("a second resampling"));
  EXPECT_THAT(cause({crop, ColorJitter{}, resize, crop}), HasSubstr("resamples after it"));
  EXPECT_THAT(cause({RandomShortestSize{}, crop}), HasSubstr("min_size has no sizes: Give at "));
  EXPECT_THAT(Plan::Compile({resize, PadTo{800, 800}}).value().Describe(),
              HasSubstr("bilinear, antialiased, to uint8 800 × 800 × 3, padded"));
}

TEST(Compile, ZoomingOutComesBeforeWhatFixesTheSize) {
  const auto cause = [](std::vector<Transform> list) {
    const Result<Plan> plan = Plan::Compile(std::move(list));
    return plan.ok() ? "" : plan.error().cause + ": " + plan.error().advice;
  };
  const RandomZoomOut zoom, grey{{9, 9, 9}};
  const CenterCrop crop{9, 9};
  EXPECT_EQ(cause({zoom, Resize{.height = 9, .width = 9}}), "");
  EXPECT_EQ(cause({Resize{.height = 9, .width = 9}, zoom, crop, ColorJitter{}}), "");
  EXPECT_EQ(cause({grey, crop}), "");
  EXPECT_EQ(cause({Resize{.size = 9}, zoom, PadTo{99, 99}}), "");
  EXPECT_EQ(cause({crop, zoom, crop}),
            "transforms[1], RandomZoomOut: it makes images of any size after transforms[0], "
            "CenterCrop: Move it before CenterCrop");
  EXPECT_THAT(cause({Resize{.height = 9, .width = 9}, ColorJitter{}, zoom, crop}),
              HasSubstr("Move it before ColorJitter"));
  EXPECT_THAT(cause({Resize{.height = 9, .width = 9}, zoom}),
              HasSubstr("all images the same size"));
  EXPECT_THAT(cause({Resize{.height = 9, .width = 9}, zoom, ColorJitter{}}),
              HasSubstr("images differ in size here"));
  EXPECT_EQ(cause({grey, Resize{.height = 9, .width = 9}}), "");
}

}  // namespace
}  // namespace stoker
