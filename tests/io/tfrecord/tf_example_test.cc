// Features of a tf.train.Example: those that protobuf's writers make, others that are allowed, and
// bytes that are not features.
#include "io/tfrecord/tf_example.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/testing/samples/make_tfrecord.h"

namespace stoker {
namespace {

using testing::BytesFeature;
using ::testing::ElementsAre;
using testing::ExampleOf;
using testing::FloatFeature;
using ::testing::HasSubstr;
using testing::IntegerFeature;
using testing::LengthDelimited;

std::span<const uint8_t> AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TfFeature FindFeature(const std::string& example, const std::string& name) {
  TfFeature found;
  EXPECT_TRUE(FindFeatures(AsBytes(example), {&name, 1}, {&found, 1}).ok());
  return found;
}

std::vector<int64_t> Integers(const TfFeature& feature) {
  std::vector<int64_t> values(CountValues(feature).value());
  CopyValues(feature, {reinterpret_cast<uint8_t*>(values.data()), values.size() * 8}).value();
  return values;
}

TEST(TfExample, FindsFeaturesByName) {
  const std::string example =
      ExampleOf(BytesFeature("image", {"jpeg"}) + IntegerFeature("label", {-7}) +
                FloatFeature("box", {0.5F, -1.5F}) + BytesFeature("names", {"a", "b"}) +
                LengthDelimited(1, LengthDelimited(1, "nothing")));
  const TfFeature image = FindFeature(example, "image");
  EXPECT_EQ(image.kind, TfFeature::Kind::kBytes);
  const auto bytes = OnlyBytes(image).value();
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "jpeg");
  EXPECT_THAT(Integers(FindFeature(example, "label")), ElementsAre(-7));
  const TfFeature box = FindFeature(example, "box");
  std::array<float, 2> values{};
  EXPECT_EQ(CountValues(box).value(), 2u);
  ASSERT_TRUE(CopyValues(box, {reinterpret_cast<uint8_t*>(values.data()), 8}).ok());
  EXPECT_THAT(values, ElementsAre(0.5F, -1.5F));
  EXPECT_EQ(CountValues(FindFeature(example, "names")).value(), 2u);
  EXPECT_EQ(FindFeature(example, "nothing").kind, TfFeature::Kind::kNone);
  EXPECT_EQ(FindFeature(example, "imag").kind, TfFeature::Kind::kNone);
  EXPECT_EQ(FirstFeatures(AsBytes(example), 9).value().size(), 5u);
  EXPECT_EQ(FirstFeatures(AsBytes(example), 2).value().size(), 2u);
}

TEST(TfExample, RefusesOtherNumbersOfValues) {
  const std::string example = ExampleOf(BytesFeature("two", {"a", "b"}) + BytesFeature("none", {}) +
                                        IntegerFeature("three", {1, 2, 3}));
  EXPECT_THAT(OnlyBytes(FindFeature(example, "two")).error().cause,
              HasSubstr("'two' has 2 byte strings; it must have one"));
  EXPECT_THAT(OnlyBytes(FindFeature(example, "none")).error().cause,
              HasSubstr("'none' has 0 byte"));
  EXPECT_EQ(OnlyBytes(FindFeature(example, "none")).error().code, Code::kUnimplemented);
  std::array<uint8_t, 17> rows{};
  rows.back() = 9;
  const Status status = CopyValues(FindFeature(example, "three"), std::span(rows).first(16));
  EXPECT_EQ(status.error().code, Code::kUnimplemented);
  EXPECT_THAT(status.error().cause, HasSubstr("'three' has 3 values, and 2 in the first record"));
  EXPECT_EQ(rows.back(), 9) << "nothing is written behind the rows";
  std::array<uint8_t, 32> more{};
  EXPECT_FALSE(CopyValues(FindFeature(example, "three"), more).ok());
}

TEST(TfExample, TakesTheLastOfSeveral) {
  const std::string example = ExampleOf(IntegerFeature("x", {1}) + IntegerFeature("x", {2}));
  EXPECT_THAT(Integers(FindFeature(example, "x")), ElementsAre(2));
  const std::string pieces =
      ExampleOf(IntegerFeature("y", {1})) + ExampleOf(IntegerFeature("x", {3}));
  EXPECT_THAT(Integers(FindFeature(pieces, "x")), ElementsAre(3));
}

// A parser must accept both, whatever the message's definition says.
TEST(TfExample, TakesValuesThatAreNotPacked) {
  const std::string list = "\x08\x05\x08\x06" + LengthDelimited(1, "\x07");
  const std::string feature = LengthDelimited(3, list);
  const std::string example =
      ExampleOf(LengthDelimited(1, LengthDelimited(2, feature) + LengthDelimited(1, "x")));
  EXPECT_THAT(Integers(FindFeature(example, "x")), ElementsAre(5, 6, 7));
}

TEST(TfExample, RefusesAFeatureInPieces) {
  const std::string list = LengthDelimited(3, LengthDelimited(1, "\x07"));
  const std::string entry = LengthDelimited(1, "x") + LengthDelimited(2, list + list);
  const auto all = FirstFeatures(AsBytes(ExampleOf(LengthDelimited(1, entry))), 9);
  EXPECT_THAT(all.error().cause, HasSubstr("several lists"));
  EXPECT_EQ(all.error().code, Code::kDataLoss);
}

// Tries every way of cutting a message, and random changes: an error or an answer, and nothing
// else.
TEST(TfExample, AnyBytesGiveAnAnswer) {
  const std::string sound = ExampleOf(BytesFeature("image", {"jpeg"}) +
                                      FloatFeature("box", {0.5F}) + IntegerFeature("label", {300}));
  const auto look = [](const std::string& bytes) {
    const auto all = FirstFeatures(AsBytes(bytes), 9);
    if (!all.ok()) {
      EXPECT_EQ(all.error().code, Code::kDataLoss);
      return false;
    }
    std::array<uint8_t, 8> row{};
    for (const TfFeature& feature : *all) {
      (void)CountValues(feature).ok();
      (void)OnlyBytes(feature).ok();
      (void)CopyValues(feature, row).ok();
    }
    return true;
  };
  EXPECT_TRUE(look(sound));
  int refused = 0;
  for (size_t size = 1; size < sound.size(); ++size) refused += look(sound.substr(0, size)) ? 0 : 1;
  EXPECT_EQ(refused, static_cast<int>(sound.size()) - 1);
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = sound;
    for (int changes = 0; changes < 3; ++changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    look(bytes);
  }
}

}  // namespace
}  // namespace stoker
