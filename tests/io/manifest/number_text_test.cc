#include "io/manifest/number_text.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <sstream>
#include <string>

namespace stoker {
namespace {

TEST(NumberText, Integers) {
  EXPECT_EQ(IntegerOf("0"), 0);
  EXPECT_EQ(IntegerOf("-0"), 0);
  EXPECT_EQ(IntegerOf("007"), 7);
  EXPECT_EQ(IntegerOf("+5"), 5);
  EXPECT_EQ(IntegerOf(" \t-5 "), -5);
  EXPECT_EQ(IntegerOf("9223372036854775807"), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(IntegerOf("-9223372036854775808"), std::numeric_limits<int64_t>::min());
  for (const char* other :
       {"", " ", "+", "-", "+-5", "-+5", "++5", "5 6", "5.0", "1e3", "0x10", "1_0",
        "9223372036854775808", "-9223372036854775809", "5a", "\n5", "٣"}) {
    EXPECT_EQ(IntegerOf(other), std::nullopt) << other;
  }
}

TEST(NumberText, Numbers) {
  EXPECT_EQ(NumberOf("7"), 7);
  EXPECT_EQ(NumberOf("-7.5"), -7.5);
  EXPECT_EQ(NumberOf(".5"), 0.5);
  EXPECT_EQ(NumberOf("5."), 5);
  EXPECT_EQ(NumberOf(" +1E-3 "), 1e-3);
  EXPECT_EQ(NumberOf("1e20"), 1e20);
  EXPECT_EQ(NumberOf("-Inf"), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(NumberOf("+infinity"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(NumberOf("NaN").value()));
  EXPECT_TRUE(std::signbit(NumberOf("-0.0").value()));
  for (const char* other : {"",
                            " ",
                            ".",
                            "-",
                            "e5",
                            "1e",
                            "1e+",
                            "--1",
                            "+-1.0",
                            "1.0.0",
                            "1,5",
                            "0x1p3",
                            "nan(1)",
                            "infinite",
                            "NA",
                            "None",
                            "1e999",
                            "1.0f",
                            "99999999999999999999",
                            "1 2",
                            "0.5\n"}) {
    EXPECT_EQ(NumberOf(other), std::nullopt) << other;
  }
}

// Expects the nearest double, as the C library computes it.
TEST(NumberText, AgreesWithTheLibrary) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    std::ostringstream text;
    text.precision(1 + i % 17);
    text << std::showpoint << value;
    const double expected = std::strtod(text.str().c_str(), nullptr);
    if (!std::isfinite(expected)) continue;
    EXPECT_EQ(NumberOf(text.str()), expected) << text.str();
  }
}

}  // namespace
}  // namespace stoker
