#include "engine/options/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "engine/production/check_options.h"
#include "io/memory/arrays.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

LoaderOptions Valid() {
  static const int numbers[2] = {};
  LoaderOptions options;
  options.source = Arrays({{"image", DType::kI32, {}, numbers, 2}}, nullptr).value();
  return options;
}

TEST(LoaderOptionTable, RowsHaveUniqueNamesAndDescriptions) {
  std::set<std::string> names;
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    EXPECT_TRUE(names.insert(row.option.name).second) << row.option.name << " occurs twice";
    EXPECT_STRNE(row.doc, "") << row.option.name;
    EXPECT_EQ(&LoaderOptionNamed(row.option.name), &row);
  }
}

TEST(LoaderOptionTable, DefaultsAreInRange) {
  const Status checked = CheckOptions(Valid());
  EXPECT_TRUE(checked.ok()) << checked.error().ToString();
}

// Sets a number to one outside its range; returns false if its type has none.
struct PutOut {
  const OptionInfo& option;
  bool below;
  bool operator()(double* value) const {
    *value = below ? std::nextafter(option.low, -1e9) : std::nextafter(option.high, 1e9);
    return true;
  }
  bool operator()(int* value) const { return Whole(value); }
  bool operator()(int64_t* value) const { return Whole(value); }
  bool operator()(uint32_t* value) const {
    return (below && option.low == 0) ? false : Whole(value);
  }
  template <typename Other>
  bool operator()(const Other& /*value*/) const {
    return false;
  }

 private:
  template <typename Number>
  bool Whole(Number* value) const {
    *value = static_cast<Number>(below ? option.low - 1 : option.high + 1);
    return true;
  }
};

TEST(LoaderOptionTable, RefusesValuesOutOfRangeByName) {
  int refused = 0;
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    for (const bool below : {true, false}) {
      LoaderOptions options = Valid();
      if (row.option.in == nullptr) continue;
      if (!std::visit(PutOut{row.option, below}, row.option.in(options))) continue;
      const Status status = CheckOptions(options);
      ASSERT_FALSE(status.ok()) << row.option.name;
      EXPECT_EQ(status.error().code, Code::kInvalidArgument);
      EXPECT_THAT(status.error().cause, HasSubstr(row.option.name));
      ++refused;
    }
  }
  EXPECT_GT(refused, 12);
}

}  // namespace
}  // namespace stoker
