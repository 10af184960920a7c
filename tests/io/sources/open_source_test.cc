#include "io/sources/open_source.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "io/sources/image_folder.h"
#include "tests/testing/photo_folder.h"

namespace stoker {
namespace {

TEST(OpenSource, MatchesImageFolder) {
  const testing::PhotoFolder photos(6, 2);
  const auto opened = OpenSource("image_folder", {{"directory", photos.path()}});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ((*opened)->size(), 6U);
  EXPECT_EQ((*opened)->Fingerprint(), ImageFolder(photos.path()).value()->Fingerprint());
  const auto without =
      OpenSource("image_folder", {{"directory", photos.path()}, {"crop_index", "/no/such/index"}});
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code, Code::kNotFound);
}

TEST(OpenSource, RefusesWhatIsInMemory) {
  EXPECT_EQ(OpenSource("arrays", {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(OpenSource("files", {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(OpenSource("dataset", {}).error().code, Code::kFailedPrecondition);
}

TEST(OpenSource, KindsAndArgumentsHaveUniqueNames) {
  std::set<std::string> kinds;
  for (const SourceRow& row : AllSources()) {
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.kind << " is there twice";
    std::set<std::string> names{"kind", "samples", "fingerprint"};  // the loader spec's own
    for (const SourceArgument& argument : row.arguments) {
      EXPECT_TRUE(names.insert(argument.name).second) << row.kind << "." << argument.name;
    }
  }
}

}  // namespace
}  // namespace stoker
