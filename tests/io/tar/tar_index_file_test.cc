// The index file of a tar archive gives back what was written, and nothing that cannot be.
#include "io/tar/tar_index_file.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/tar/tar_members.h"

namespace stoker {
namespace {

TEST(TarIndexFile, GivesBackWhatWasPacked) {
  const FileStamp stamp{.bytes = 100'000, .modified_ns = -5};
  TarMembers all;
  all.names = "1.jpg1.cls2.jpg";
  all.members = {{512, 1000, 5}, {2048, 1, 10}, {4096, 95'904, 15}};
  all.labels = {-7};
  const std::vector<uint8_t> packed = PackTarIndex(all, stamp);
  const std::optional<TarMembers> back = UnpackTarIndex(packed, stamp);
  ASSERT_TRUE(back.has_value());
  EXPECT_EQ(back->names, all.names);
  EXPECT_EQ(back->labels, all.labels);
  EXPECT_EQ(back->members.size(), 3u);
  EXPECT_EQ(back->members[2].offset, 4096u);
  EXPECT_EQ(back->NameOf(1), "1.cls");
  EXPECT_FALSE(UnpackTarIndex(packed, {.bytes = 100'001, .modified_ns = -5}));
  EXPECT_FALSE(UnpackTarIndex(packed, {.bytes = 100'000, .modified_ns = -4}));
}

TEST(TarIndexFile, RefusesMembersThatCannotBe) {
  const FileStamp stamp{.bytes = 10'240, .modified_ns = 1};
  const auto accepts = [&stamp](std::vector<TarMembers::Member> members, const std::string& names,
                                std::vector<int64_t> labels = {}) {
    const TarMembers all{std::move(members), names, std::move(labels)};
    return UnpackTarIndex(PackTarIndex(all, stamp), stamp).has_value();
  };
  EXPECT_TRUE(accepts({{512, 9728, 1}}, "a"));
  EXPECT_FALSE(accepts({{512, 9729, 1}}, "a")) << "too long";
  EXPECT_FALSE(accepts({{513, 1, 1}}, "a")) << "not a block";
  EXPECT_FALSE(accepts({{0, 1, 1}}, "a")) << "no room for a header";
  EXPECT_FALSE(accepts({{10'752, 0, 1}}, "a")) << "behind the end";
  EXPECT_FALSE(accepts({{512, 1, 0}}, "")) << "no name";
  EXPECT_FALSE(accepts({{512, 1, 1}}, "ab")) << "names are left";
  EXPECT_FALSE(accepts({{512, 1, 2}}, "a")) << "too few names";
  EXPECT_FALSE(accepts({{512, 600, 1}, {1024, 1, 2}}, "ab")) << "overlapping";
  EXPECT_FALSE(accepts({{512, 1, 5}}, "a.cls")) << "no label";
  EXPECT_FALSE(accepts({{512, 1, 1}}, "a", {1})) << "a label of nothing";
  EXPECT_FALSE(accepts({{512, ~uint64_t{0}, 1}}, "a")) << "overflow";
  TarMembers all{{{512, 1, 1}, {1536, 1, 6}}, "aa.cls", {0}, 1};
  EXPECT_EQ(UnpackTarIndex(PackTarIndex(all, stamp), stamp)->bad_label, 1U);
  for (all.bad_label = 0; all.bad_label < 5; all.bad_label += 2) {
    EXPECT_FALSE(UnpackTarIndex(PackTarIndex(all, stamp), stamp)) << "no label, or no member";
  }
}

}  // namespace
}  // namespace stoker
