#include "bindings/cli/show/labels.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stoker {
namespace {

using Texts = std::vector<std::string>;

const Texts kClasses = {"cat", "dog\n", "cow"};

TEST(LabelTexts, NamesClassesAndNumbersThoseWithoutAName) {
  std::vector<int64_t> labels = {2, 0, 1, 3, -1};
  const Column column{.name = "label", .dtype = DType::kI64, .shape = {5}, .data = labels.data()};
  EXPECT_EQ(LabelTexts(column, kClasses), (Texts{"cow", "cat", "dog\\n", "3", "-1"}));
  EXPECT_EQ(LabelTexts(column, {}), (Texts{"2", "0", "1", "3", "-1"}));
}

TEST(LabelTexts, TakesEveryIntegerType) {
  std::vector<uint8_t> labels = {1, 0};
  const Column column{.name = "y", .dtype = DType::kU8, .shape = {2, 1}, .data = labels.data()};
  EXPECT_EQ(LabelTexts(column, {}), (Texts{"1", "0"}));
}

TEST(LabelTexts, OfMixedRowsAreSums) {
  std::vector<float> labels = {0.7F, 0, 0.3F, 0, 0, 1};
  const Column column{
      .name = "label", .dtype = DType::kF32, .shape = {2, 3}, .data = labels.data()};
  EXPECT_EQ(LabelTexts(column, kClasses), (Texts{"cat 0.70 + cow 0.30", "cow"}));
}

TEST(LabelTexts, OfOtherColumnsAreNone) {
  std::vector<float> values = {0.7F, 0};
  const Column numbers{.name = "y", .dtype = DType::kF32, .shape = {2}, .data = values.data()};
  EXPECT_EQ(LabelTexts(numbers, kClasses), Texts());
  std::vector<std::string_view> texts = {"a", "b"};
  const Column strings{.name = "y", .dtype = DType::kString, .shape = {2}, .data = texts.data()};
  EXPECT_EQ(LabelTexts(strings, kClasses), Texts());
  std::vector<int32_t> pairs = {1, 2, 3, 4};
  const Column vectors{.name = "y", .dtype = DType::kI32, .shape = {2, 2}, .data = pairs.data()};
  EXPECT_EQ(LabelTexts(vectors, kClasses), Texts());
}

}  // namespace
}  // namespace stoker
