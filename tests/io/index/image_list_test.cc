// Finds the files of one list in another.
#include "io/index/image_list.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "io/index/image_list_check.h"

namespace stoker {
namespace {

// Sorted as a folder is listed.
ImageList RandomList(RandomStream& random) {
  const std::vector<std::string> names = {"a", "b", "a!", "b c", "\xff", "z\n", "é"};
  std::map<std::string, std::map<std::string, std::set<std::string>>> tree;  // class, folder, names
  for (uint64_t i = random.Below(40) + 1; i > 0; --i) {
    const std::string top = names[random.Below(names.size())];
    tree[top][top];
    std::string folder = top;
    for (uint64_t d = random.Below(3); d > 0; --d)
      folder += "/" + names[random.Below(names.size())];
    tree[top][folder].insert(names[random.Below(names.size())] + std::to_string(random.Below(4)));
  }
  std::vector<std::string> classes;
  std::vector<ListedFolder> folders;
  for (const auto& [top, below] : tree) {
    for (const auto& [path, files] : below) {
      folders.push_back({.path = path, .top = static_cast<uint32_t>(classes.size())});
      for (const std::string& name : files) {
        folders.back().files.bytes += name;
        folders.back().files.ends.push_back(
            static_cast<uint32_t>(folders.back().files.bytes.size()));
      }
    }
    classes.push_back(top);
  }
  return ImageList::Of(std::move(classes), std::move(folders));
}

std::vector<std::string> PathsOf(const ImageList& list) {
  std::vector<std::string> paths(list.files.size());
  for (uint64_t i = 0; i < paths.size(); ++i) list.AppendPath(i, paths[i]);
  return paths;
}

// The reference.
std::vector<uint32_t> PositionsPlainly(const ImageList& other, const ImageList& list) {
  std::map<std::string, uint32_t> position_of;
  for (const std::string& path : PathsOf(other)) {
    position_of.emplace(path, static_cast<uint32_t>(position_of.size()));
  }
  std::vector<uint32_t> positions;
  for (const std::string& path : PathsOf(list)) {
    const auto found = position_of.find(path);
    positions.push_back(found == position_of.end() ? kNowhere : found->second);
  }
  return positions;
}

TEST(ImageList, PositionsMatchTheReference) {
  RandomStream random({1, 2, 3}, 0);
  size_t found = 0, missing = 0;
  for (int i = 0; i < 500; ++i) {
    const ImageList list = RandomList(random), other = RandomList(random);
    const std::vector<uint32_t> positions = PositionsIn(other, list);
    ASSERT_EQ(positions, PositionsPlainly(other, list));
    for (const uint32_t position : positions) ++(position == kNowhere ? missing : found);
  }
  EXPECT_GT(found, 100u);
  EXPECT_GT(missing, 100u);
}

// A forged index may hold unsorted names.
TEST(ImageList, UnsortedNamesAreFoundOrMissed) {
  ImageList list, other;
  for (auto [to, names] : {std::pair(&list, "abc"), {&other, "cab"}}) {
    std::vector<ListedFolder> folders(1);
    folders[0].files = {.bytes = names, .ends = {1, 2, 3}};
    *to = ImageList::Of({}, std::move(folders));
  }
  EXPECT_EQ(PositionsIn(other, list), (std::vector<uint32_t>{kNowhere, kNowhere, 0}));
}

// Any list may be read from a file, in pieces of any size.
TEST(ImageList, ListsPassTheirCheck) {
  RandomStream random({4, 5, 6}, 0);
  for (int i = 0; i < 200; ++i) {
    const ImageList list = RandomList(random);
    ImageList read;
    ListCheck check(read);
    const auto take = [&](const auto& from, auto& to, auto look) {
      while (to.size() < from.size()) {
        const size_t begin = to.size(), more = 1 + random.Below(from.size() - begin);
        to.insert(to.end(), from.begin() + static_cast<ptrdiff_t>(begin),
                  from.begin() + static_cast<ptrdiff_t>(begin + more));
        ASSERT_TRUE(look(begin));
      }
    };
    take(list.folders, read.folders, [&](size_t begin) { return check.Folders(begin); });
    ASSERT_EQ(check.path_bytes(), list.paths.size());
    take(list.paths, read.paths, [&](size_t begin) { return check.Paths(begin); });
    ASSERT_TRUE(check.TakeClasses());
    EXPECT_EQ(read.classes, list.classes);
    take(list.files, read.files, [&](size_t begin) { return check.Files(begin); });
    ASSERT_TRUE(check.FilesEnd());
    ASSERT_EQ(check.name_bytes(), list.names.size());
    take(list.names, read.names, [&](size_t begin) { return check.Names(begin); });
    ASSERT_TRUE(check.NamesEnd());
    EXPECT_EQ(read.Fingerprint(), list.Fingerprint());
  }
}

}  // namespace
}  // namespace stoker
