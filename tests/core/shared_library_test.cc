#include "core/system/shared_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace stoker {
namespace {

TEST(SharedLibrary, FindsFunctionsOfTheFirstFileThatIsThere) {
  constexpr const char* kFiles[] = {"libm-of-none.so.1", "libm.so.6"};
  SharedLibrary library(kFiles, "roots are computed by libm", "apt-get install libc6");
  double (*root)(double) = nullptr;
  library.Find("sqrt", root);
  ASSERT_TRUE(library.status().ok());
  EXPECT_EQ(root(9.0), 3.0);
}

TEST(SharedLibrary, NamesWhatIsMissing) {
  constexpr const char *kMissing[] = {"libnothing.so.1"}, *kFiles[] = {"libm.so.6"};
  SharedLibrary none(kMissing, "GIFs are decoded by nothing", "apt-get install nothing");
  double (*function)(double) = nullptr;
  none.Find("sqrt", function);
  EXPECT_EQ(function, nullptr);
  const Error missing = none.status().error();
  EXPECT_EQ(missing.code, Code::kUnimplemented);
  EXPECT_THAT(missing.cause, ::testing::HasSubstr("GIFs are decoded by nothing, which cannot be"));
  EXPECT_THAT(missing.cause, ::testing::HasSubstr("libnothing.so.1"));
  EXPECT_EQ(missing.advice, "Install it: apt-get install nothing");

  SharedLibrary library(kFiles, "roots are computed by libm", "apt-get install libc6");
  library.Find("no_such_function", function);
  library.Find("sqrt", function);
  EXPECT_THAT(library.status().error().cause, ::testing::HasSubstr("no function no_such_function"));
}

}  // namespace
}  // namespace stoker
