#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "bindings/c/loader_spec.h"
#include "io/memory/arrays.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

Result<LoaderOptions> ParseMix(const std::string& mix) {
  static const int numbers[2] = {};
  return ParseLoaderSpec(R"({"source": {"kind": "arrays"}, "batch_size": 4, "mix": )" + mix + "}",
                         Arrays({{"image", DType::kI32, {}, numbers, 2}}, nullptr).value());
}

TEST(MixSpec, ParsesEveryKey) {
  const Result<LoaderOptions> parsed =
      ParseMix(R"({"choices": [{"name": "MixUp", "alpha": 0.2}, {"name": "CutMix"}],
                "p": [0.25, 3], "num_classes": 1000})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  ASSERT_TRUE(parsed->mix.has_value());
  ASSERT_EQ(parsed->mix->choices.size(), 2U);
  EXPECT_EQ(std::get<MixUp>(parsed->mix->choices[0]).alpha, 0.2);
  EXPECT_EQ(std::get<CutMix>(parsed->mix->choices[1]).alpha, 1);
  EXPECT_EQ(parsed->mix->p, (std::vector<double>{0.25, 3}));
  EXPECT_EQ(parsed->mix->num_classes, 1000);
}

TEST(MixSpec, MissingKeysTakeDefaults) {
  const Result<LoaderOptions> parsed = ParseMix(R"({"choices": [{"name": "CutMix"}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_TRUE(parsed->mix->p.empty());
  EXPECT_EQ(parsed->mix->num_classes, 0);
}

TEST(MixSpec, ErrorsNameTheBadKey) {
  const auto expect_bad = [](const std::string& mix, const std::string& word) {
    const Result<LoaderOptions> parsed = ParseMix(mix);
    ASSERT_FALSE(parsed.ok()) << mix;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    EXPECT_THAT(parsed.error().cause, HasSubstr(word));
  };
  expect_bad("3", "mix is 3");
  expect_bad("null", "mix is null");
  expect_bad("{}", "mix.choices is missing");
  expect_bad(R"({"choices": [1]})", "mix.choices[0] is 1");
  expect_bad(R"({"choices": [{}]})", "mix.choices[0].name is missing");
  expect_bad(R"({"choices": [{"name": "Mixup"}]})", "mix.choices[0].name is \"Mixup\"");
  expect_bad(R"({"choices": [{"name": "MixUp", "alpha": "1"}]})", "mix.choices[0].alpha");
  expect_bad(R"({"choices": [{"name": "MixUp", "p": 1}]})", "\"p\" in mix.choices[0]");
  expect_bad(R"({"choices": [{"name": "MixUp"}], "p": [1, 2]})", "mix.p is a list of 2");
  expect_bad(R"({"choices": [{"name": "MixUp"}], "p": 1})", "mix.p is 1");
  expect_bad(R"({"choices": [{"name": "MixUp"}], "num_classes": -1})", "mix.num_classes");
  expect_bad(R"({"choices": [{"name": "MixUp"}], "num_classes": 16777217})", "mix.num_classes");
  expect_bad(R"({"choices": [{"name": "MixUp"}], "classes": 7})", "\"classes\" in mix");
  std::string many = "{}";
  for (int i = 0; i < 16; ++i) many += ", {}";
  expect_bad("{\"choices\": [" + many + "]}", "mix.choices is a list of 17");
}

}  // namespace
}  // namespace stoker
