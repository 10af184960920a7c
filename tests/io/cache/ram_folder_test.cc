// The life of a folder in memory, which several processes share.
#include "io/cache/ram_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/testing/process/child_process.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::TempFolder;

TEST(RamFolder, IsRemovedByTheLastThatUsesIt) {
  const TempFolder root;
  auto one = RamFolder::Open(root.path()).value();
  auto two = RamFolder::Open(root.path()).value();
  EXPECT_EQ(one->path(), two->path());
  struct stat info {};
  ASSERT_EQ(stat(one->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  std::ofstream(one->path() + "/kept") << "bytes";
  const std::string path = one->path();
  one = nullptr;
  EXPECT_TRUE(std::filesystem::exists(path + "/kept"));
  two = nullptr;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RamFolder, StaysAfterAKillAndIsTakenOver) {
  const TempFolder root;
  const std::string path = RamFolder::Open(root.path()).value()->path();
  EXPECT_EQ(testing::ExitCodeOfChild([&] {
              const auto folder = RamFolder::Open(root.path()).value();
              std::ofstream(folder->path() + "/kept") << "bytes";
              return raise(SIGKILL);
            }),
            -1);
  EXPECT_TRUE(std::filesystem::exists(path + "/kept"));
  auto next = RamFolder::Open(root.path()).value();
  EXPECT_TRUE(std::filesystem::exists(path + "/kept"));
  next = nullptr;
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RamFolder, AForkedChildDoesNotRemoveIt) {
  const TempFolder root;
  auto folder = RamFolder::Open(root.path()).value();
  EXPECT_EQ(testing::ExitCodeOfChild([&] {
              folder = nullptr;
              return 0;
            }),
            0);
  EXPECT_TRUE(std::filesystem::exists(folder->path()));
}

TEST(RamFolder, KnowsItsRoom) {
  const TempFolder root;
  const auto folder = RamFolder::Open(root.path()).value();
  const RamFolder::Room before = folder->FindRoom().value();
  std::ofstream(folder->path() + "/kept") << std::string(100'000, 'x') << std::flush;
  const RamFolder::Room after = folder->FindRoom().value();
  EXPECT_GE(after.taken, before.taken + 100'000);
  EXPECT_LE(after.taken, before.taken + 1'000'000);
  EXPECT_GT(after.most, after.taken);
}

TEST(RamFolder, TrustsNoFolderOfOthers) {
  const TempFolder root;
  const std::string path = RamFolder::Open(root.path()).value()->path();
  const auto error = [&] { return RamFolder::Open(root.path()).error().Message(); };
  ASSERT_EQ(mkdir(path.c_str(), 0755), 0);
  EXPECT_THAT(error(), HasSubstr("others may read"));
  ASSERT_EQ(rmdir(path.c_str()), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(mkdir(path.c_str(), 0700), 0);
    ASSERT_EQ(chown(path.c_str(), 12345, 12345), 0);
    EXPECT_THAT(error(), HasSubstr("another user"));
    ASSERT_EQ(rmdir(path.c_str()), 0);
  }
  std::filesystem::create_directory_symlink(root.path(), path);
  EXPECT_THAT(error(), HasSubstr(path));
  std::filesystem::remove(path);
  root.Write(std::filesystem::path(path).filename(), "a file");
  EXPECT_THAT(error(), HasSubstr(path));
  EXPECT_FALSE(RamFolder::Open(root.Path("missing")).ok());
}

// A process that has opened the folder can use it, although others remove it at the same time.
TEST(RamFolder, ComesAndGoesWhileOthersOpenIt) {
  const TempFolder root;
  std::atomic<int> lost{0};
  const auto use = [&] {
    for (int i = 0; i < 300; ++i) {
      const auto folder = RamFolder::Open(root.path());
      if (!folder.ok() || !std::filesystem::exists((*folder)->path() + "/users.lock")) ++lost;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(use);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lost, 0);
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

}  // namespace
}  // namespace stoker
