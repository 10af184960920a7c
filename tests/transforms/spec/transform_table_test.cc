#include "transforms/spec/transform_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

namespace stoker {
namespace {

using ::testing::HasSubstr;

// Returns a transform that passes its own check.
Transform Valid(const TransformRow& row) {
  Transform transform = row.standard;
  for (const Parameter& parameter : row.parameters) {
    for (const Option<Transform>& option : parameter.options) {
      if (!option.required || option.in == nullptr) continue;
      const OptionValue value = option.in(transform);
      if (auto* const* number = std::get_if<int*>(&value)) {
        **number = static_cast<int>(std::min(9.0, option.high));
      }
      if (auto* const* numbers = std::get_if<std::vector<int>*>(&value)) **numbers = {9, 7};
    }
  }
  if (auto* resize = std::get_if<Resize>(&transform)) resize->size = 9;
  if (auto* mosaic = std::get_if<Mosaic>(&transform)) mosaic->size = 9;
  if (auto* pad = std::get_if<PadTo>(&transform)) pad->height = pad->width = 9;
  if (auto* choice = std::get_if<RandomChoice>(&transform)) choice->transforms = {ColorJitter{}};
  return transform;
}

TEST(TransformTable, HasARowForEachTypeOfTheVariant) {
  ASSERT_EQ(AllTransforms().size(), std::variant_size_v<AnyTransform>);
  std::set<std::string> names;
  for (size_t i = 0; i < AllTransforms().size(); ++i) {
    const TransformRow& row = AllTransforms()[i];
    EXPECT_EQ(row.standard.index(), i) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " occurs twice";
    EXPECT_STREQ(NameOf(row.standard), row.name);
    EXPECT_STRNE(row.doc, "") << row.name;
    for (const Parameter& parameter : row.parameters) {
      EXPECT_STRNE(parameter.doc, "") << row.name << "." << parameter.name;
      EXPECT_STRNE(parameter.kind, "") << row.name << "." << parameter.name;
      EXPECT_FALSE(parameter.options.empty()) << row.name << "." << parameter.name;
    }
  }
}

// Their numbers are in the keys of draws: one that changes, or that two have, changes the draws.
TEST(TransformTable, TransformsOfPixelsHaveDrawsOfTheirOwn) {
  std::set<std::pair<std::string, int>> draws;
  for (const TransformRow& row : AllTransforms()) {
    if (row.acts_on == ActsOn::kPixels) draws.emplace(row.name, row.draws);
    const bool draws_nothing =
        row.acts_on == ActsOn::kObjects || row.name == std::string("CopyPaste");
    EXPECT_EQ(row.draws == kDrawsNothing, draws_nothing) << row.name;
    const bool shares = row.acts_on == ActsOn::kGeometry || row.acts_on == ActsOn::kValues;
    EXPECT_EQ(row.draws == 0, shares) << row.name;
  }
  EXPECT_EQ(
      draws,
      (std::set<std::pair<std::string, int>>{
          {"ColorJitter", 1},         {"RandomGrayscale", 2},  {"GaussianBlur", 3},
          {"AutoAugment", 4},         {"RandAugment", 5},      {"TrivialAugmentWide", 6},
          {"RandomSolarize", 7},      {"RandomApply", 8},      {"RandomAffine", 9},
          {"RandomRotation", 10},     {"RandomZoom", 11},      {"RandomTranslation", 12},
          {"RandomShear", 13},        {"RandomChoice", 14},    {"RandomOrder", 15},
          {"RandomInvert", 16},       {"RandomPosterize", 17}, {"RandomAdjustSharpness", 18},
          {"RandomAutocontrast", 19}, {"RandomEqualize", 20},  {"RandomPhotometricDistort", 21},
          {"RandomPerspective", 22},  {"RandomHSV", 23},       {"AugMix", 24},
          {"ElasticTransform", 25},   {"CopyPaste", 31},
      }));
}

TEST(TransformTable, TransformsOfImagesCanBeHeld) {
  std::set<std::string> of_pixels, others;
  for (const TransformRow& row : AllTransforms()) {
    if (row.acts_on == ActsOn::kPixels) of_pixels.insert(row.name);
    if (row.acts_on != ActsOn::kPixels && CanBeHeld(row)) others.insert(row.name);
    EXPECT_EQ(CanBeHeld(row), of_pixels.contains(row.name) || others.contains(row.name));
  }
  EXPECT_FALSE(of_pixels.empty());
  EXPECT_EQ(others, (std::set<std::string>{"Resize", "CenterCrop", "RandomResizedCrop",
                                           "RandomHorizontalFlip", "RandomVerticalFlip", "Pad",
                                           "RandomCrop", "RandomSizeCrop", "RandomZoomOut",
                                           "RandomIoUCrop", "RandomShortestSize", "ScaleJitter"}));
}

TEST(TransformTable, TextsAndCountsAreThoseOfTheTree) {
  const RandomChoice choice{{RandomHorizontalFlip{}, RandomApply{{RandomGrayscale{}}, 0.25}},
                            {0.5, 2}};
  EXPECT_EQ(TextOf(RandomOrder{{choice, RandomSolarize{9}}}),
            "RandomOrder(RandomChoice(RandomHorizontalFlip, RandomApply(RandomGrayscale, p 0.25), "
            "p (0.5, 2)), RandomSolarize(threshold 9))");
  EXPECT_EQ(CountOf(std::vector<Transform>{choice, RandomOrder{}, RandomOrder{{choice}}}), 10u);
  EXPECT_TRUE(ChangesPixels(choice));
  EXPECT_FALSE(ChangesPixels(RandomOrder{{RandomChoice{{RandomVerticalFlip{}}}}}));
}

TEST(TransformTable, DefaultsAreInRange) {
  for (const TransformRow& row : AllTransforms()) {
    const auto refusal = CheckTransform(Valid(row), DType::kF32);
    EXPECT_FALSE(refusal.has_value()) << row.name << ": " << refusal->cause;
  }
}

// Sets a number of the option to a value outside its range; returns false if there is none.
struct PutOut {
  const OptionInfo& option;
  bool below;
  bool operator()(int* value) const {
    *value = static_cast<int>(below ? option.low - 1 : option.high + 1);
    return true;
  }
  bool operator()(double* value) const {
    *value = below ? std::nextafter(option.low, -1e9) : std::nextafter(option.high, 1e9);
    return true;
  }
  bool operator()(std::vector<int>* numbers) const { return (*this)(&numbers->back()); }
  bool operator()(std::array<double, 2>* range) const {
    return below ? (*this)(&(*range)[0]) : (*this)(&(*range)[1]);
  }
  template <typename Value>
  bool operator()(std::optional<Value>* value) const {
    *value = Value{};
    return (*this)(&**value);
  }
  bool operator()(Margins* margins) const {
    return (*this)(below ? &margins->left : &margins->bottom);
  }
  bool operator()(const EnumValue& value) const {
    value.set(value.at, below ? -1 : 99);
    return true;
  }
  bool operator()(const TextValue& /*value*/) const { return false; }
  template <typename Other>
  bool operator()(Other* /*value*/) const {
    return false;
  }
};

TEST(TransformTable, RefusesValuesOutOfRangeByName) {
  for (const TransformRow& row : AllTransforms()) {
    for (const Parameter& parameter : row.parameters) {
      for (const Option<Transform>& option : parameter.options) {
        if (option.in == nullptr) continue;
        for (const bool below : {true, false}) {
          Transform transform = Valid(row);
          if (!std::visit(PutOut{option, below}, option.in(transform))) {
            continue;
          }
          SCOPED_TRACE(std::string(row.name) + "." + option.name);
          const auto refusal = CheckTransform(transform, DType::kF32);
          ASSERT_TRUE(refusal.has_value());
          EXPECT_THAT(refusal->cause, HasSubstr(option.name));
          EXPECT_THAT(refusal->advice, HasSubstr("Give "));
        }
      }
    }
  }
}

TEST(TransformTable, RefusesNaN) {
  const double nan = std::nan("");
  EXPECT_TRUE(CheckTransform(RandomVerticalFlip{nan}, DType::kU8).has_value());
  EXPECT_TRUE(CheckTransform(ColorJitter{.hue = {nan, 0}}, DType::kU8).has_value());
  EXPECT_TRUE(CheckTransform(ColorJitter{.hue = {0, nan}}, DType::kU8).has_value());
}

TEST(TransformTable, ChecksOptionsThatDependOnEachOther) {
  const auto cause = [](const Transform& transform) {
    const auto refusal = CheckTransform(transform, DType::kU8);
    return refusal ? refusal->cause : "";
  };
  EXPECT_EQ(cause(RandAugment{2, 4, 5}), "");
  EXPECT_EQ(cause(RandAugment{2, 5, 5}), "magnitude = 5");
  EXPECT_EQ(cause(RandAugment{2, 0, 1}), "num_magnitude_bins = 1");
  EXPECT_EQ(cause(RandomRotation{.degrees = {-9, 9}, .expand = true}),
            "expand = true: the images of a batch would differ in size");
}

}  // namespace
}  // namespace stoker
