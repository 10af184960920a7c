// The index of a flat folder lies in the folder itself, so the folder's modification time says
// nothing. The folder is read again and its names are compared.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <functional>
#include <vector>

#include "tests/bindings/cli/index/indexed_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using FlatIndexTest = testing::IndexedFolderTest;

TEST_F(FlatIndexTest, OpensAFlatFolderByItsIndex) {
  for (const char* name : {"b.jpg", "a.webp", "\xff.jpg", "readme.md", ".hidden/x.jpg"}) File(name);
  MakeIndex();
  MakeIndex();  // an index that exists already does not matter
  ExpectByIndex();
}

TEST_F(FlatIndexTest, OpensAFlatFolderByAnIndexElsewhere) {
  File("b.jpg");
  File("a.jpg");
  MakeIndex(base_ / "index");
  ExpectByIndex(base_ / "index");
}

TEST_F(FlatIndexTest, NoticesChangesToAFlatFolder) {
  for (const auto& change : std::vector<std::function<void()>>{
           [&] { File("c.jpg"); }, [&] { fs::remove(root_ / "a.jpg"); },
           [&] { fs::rename(root_ / "a.jpg", root_ / "0.jpg"); },
           [&] { fs::rename(root_ / "a.jpg", root_ / "c.jpg"); },
           [&] { fs::rename(root_ / "a.jpg", root_ / "aa.jpg"); },
           [&] { File("c/d.jpg"), fs::remove(root_ / "a.jpg"), fs::remove(root_ / "b.jpg"); }}) {
    fs::remove_all(root_);
    File("a.jpg");
    File("b.jpg");
    MakeIndex();
    EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "");
    change();
    ExpectListed();
  }
}

// The times of folder and index are equal where the clock ticks slowly, or where both were copied.
TEST_F(FlatIndexTest, NoticesNewFilesWhateverTheModificationTimes) {
  const auto set = [&](const fs::path& path, timespec time) {
    const std::array<timespec, 2> times{time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  };
  File("a.jpg");
  File("b.jpg");
  MakeIndex();
  struct stat made {};
  ASSERT_EQ(stat(root_.c_str(), &made), 0);
  for (const timespec time : {made.st_mtim, timespec{0, 0}, timespec{1'700'000'000, 1}}) {
    set(root_, time);
    set(root_ / kIndexName, time);
    EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "");
    EXPECT_EQ(Open(CropIndex::kAuto)->FactsOf(1).file_bytes, 1u);
    File("late.jpg");
    set(root_, time);
    set(root_ / kIndexName, time);
    ExpectListed();
    EXPECT_EQ(Open(CropIndex::kAuto)->size(), 3u);
    fs::remove(root_ / "late.jpg");
  }
}

TEST_F(FlatIndexTest, NoticesAStaleIndexInACopiedFolder) {
  File("1.jpg");
  MakeIndex();
  File("2.jpg");
  fs::copy(root_, base_ / "copy");
  root_ = base_ / "copy";
  ExpectListed();
  MakeIndex();
  fs::copy(root_, base_ / "fresh");
  root_ = base_ / "fresh";
  ExpectByIndex();
}

}  // namespace
}  // namespace stoker
