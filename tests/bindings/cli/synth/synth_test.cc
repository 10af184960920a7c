#include "bindings/cli/synth/synth.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "bindings/cli/synth/photograph.h"
#include "io/folder/image_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SynthTest : public ::testing::Test {
 protected:
  SynthTest() {
    std::string name = (fs::temp_directory_path() / "stoker-synth-XXXXXX").string();
    root_ = mkdtemp(name.data());
    directory_ = root_ / "made";
  }
  ~SynthTest() override { fs::remove_all(root_); }

  Result<SynthSummary> Write(const SynthOptions& options, const SynthProgress& progress = {}) {
    return WritePhotographs(directory_.string(), options, progress);
  }
  SynthSummary WriteWell(const SynthOptions& options) {
    Result<SynthSummary> summary = Write(options);
    EXPECT_TRUE(summary.ok()) << summary.error().ToString();
    return summary.ok() ? *summary : SynthSummary{};
  }
  Error ErrorOf(const SynthOptions& options) {
    Result<SynthSummary> summary = Write(options);
    if (!summary.ok()) return summary.error();
    ADD_FAILURE() << "no error";
    return {};
  }
  void File(const std::string& path, const std::string& text) {
    fs::create_directories((directory_ / path).parent_path());
    std::ofstream(directory_ / path) << text;
  }

  // Returns everything below the folder but stoker's hidden file. Long content is given by size and
  // hash, so that a failure can be read.
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    if (!fs::exists(directory_)) return files;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      const std::string name = fs::relative(entry.path(), directory_).string();
      if (!entry.is_regular_file() || name == ".stoker-synth") continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files[name] = SummaryOf({std::istreambuf_iterator<char>(file), {}});
    }
    return files;
  }

  static std::string SummaryOf(const std::string& bytes) {
    if (bytes.size() < 100) return bytes;
    return std::to_string(bytes.size()) + " bytes, hash " +
           std::to_string(std::hash<std::string>()(bytes)) +
           (bytes.ends_with("\xFF\xD9") ? ", whole" : ", cut off");
  }

  fs::path root_, directory_;
};

TEST_F(SynthTest, WritesPhotographsThatImageFolderLists) {
  const SynthSummary summary = WriteWell({.count = 7, .classes = 3, .seed = 4, .threads = 2});
  EXPECT_EQ(summary.written, 7u);
  EXPECT_EQ(summary.kept, 0u);
  EXPECT_EQ(summary.classes, 3);
  const auto files = Files();
  EXPECT_THAT(files, SizeIs(7));
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < 7; ++i) {
    const std::vector<uint8_t> expected = MakePhotograph(4, i);
    const std::string name =
        "class0" + std::to_string(i % 3) + "/photo_00000" + std::to_string(i) + ".jpg";
    ASSERT_TRUE(files.contains(name)) << name;
    EXPECT_EQ(files.at(name), SummaryOf({expected.begin(), expected.end()}));
    bytes += expected.size();
  }
  EXPECT_EQ(summary.bytes, bytes);
  auto source = ImageFolder(directory_.string());
  ASSERT_TRUE(source.ok());
  EXPECT_EQ((*source)->size(), 7u);
  EXPECT_THAT((*source)->classes(), ::testing::ElementsAre("class00", "class01", "class02"));
}

TEST_F(SynthTest, FilesDoNotDependOnThreads) {
  WriteWell({.count = 9, .threads = 1});
  const auto one = Files();
  fs::remove_all(directory_);
  WriteWell({.count = 9, .threads = 4});
  EXPECT_EQ(Files(), one);
}

TEST_F(SynthTest, RunningAgainContinuesAndKeepsFiles) {
  WriteWell({.count = 4, .classes = 2});
  const auto four = Files();
  fs::remove(directory_ / "class01/photo_000001.jpg");
  File("class01/.stoker-0123456789abcdef.part", "cut off");
  const SynthSummary again = WriteWell({.count = 6, .classes = 2});
  EXPECT_EQ(again.written, 3u);
  EXPECT_EQ(again.kept, 3u);
  EXPECT_THAT(Files(), SizeIs(6));
  WriteWell({.count = 4, .classes = 2});
  EXPECT_EQ(Files(), four);
}

TEST_F(SynthTest, RefusesAnotherRecipeWithoutOverwrite) {
  WriteWell({.count = 4, .classes = 2, .seed = 1});
  const auto before = Files();
  const Error error = ErrorOf({.count = 2, .classes = 2, .seed = 2});
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.cause, HasSubstr("seed 1"));
  EXPECT_THAT(error.advice, HasSubstr("overwrite"));
  EXPECT_EQ(Files(), before);
  File("class00/mine.txt", "stays");
  const SynthSummary summary = WriteWell({.count = 2, .classes = 1, .seed = 2, .overwrite = true});
  EXPECT_EQ(summary.written, 2u);
  EXPECT_THAT(Files(), SizeIs(3));
  EXPECT_FALSE(fs::exists(directory_ / "class01"));
  EXPECT_EQ(Files().at("class00/mine.txt"), "stays");
}

TEST_F(SynthTest, RefusesForeignFoldersWithoutOverwrite) {
  File("holiday/me.jpg", "precious");
  EXPECT_THAT(ErrorOf({.count = 2}).cause, HasSubstr("not empty"));
  EXPECT_THAT(Files(), SizeIs(1));
  WriteWell({.count = 2, .overwrite = true});
  EXPECT_THAT(Files(), SizeIs(3));
  EXPECT_EQ(Files().at("holiday/me.jpg"), "precious");
}

TEST_F(SynthTest, RefusesFoldersWithDamagedMarkers) {
  for (const char* text : {"", "{", "[]", "{\"version\":\"1\"}", "{\"version\":1,\"seed\":0}"}) {
    fs::remove_all(directory_);
    File(".stoker-synth", text);
    EXPECT_THAT(ErrorOf({.count = 1}).cause, HasSubstr("not empty")) << text;
  }
}

TEST_F(SynthTest, AcceptsEmptyFolders) {
  fs::create_directories(directory_);
  EXPECT_EQ(WriteWell({.count = 1}).written, 1u);
}

TEST_F(SynthTest, ProgressCountsAndStops) {
  std::vector<uint64_t> calls;
  auto count = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 5u);
    calls.push_back(done);
    return true;
  };
  ASSERT_TRUE(Write({.count = 5, .threads = 3}, count).ok());
  EXPECT_THAT(calls, ::testing::ElementsAre(1, 2, 3, 4, 5));

  fs::remove_all(directory_);
  Result<SynthSummary> stopped =
      Write({.count = 1000000, .threads = 2}, [](uint64_t done, uint64_t) { return done < 3; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  for (const auto& [name, bytes] : Files()) {
    EXPECT_THAT(name, ::testing::EndsWith(".jpg"));
    EXPECT_THAT(name, ::testing::Not(HasSubstr("/.")));
  }
}

TEST_F(SynthTest, ErrorsNameBadOptions) {
  EXPECT_THAT(ErrorOf({.count = 0}).cause, HasSubstr("count"));
  EXPECT_THAT(ErrorOf({.count = 3, .classes = 4}).cause, HasSubstr("classes is 4"));
  EXPECT_THAT(ErrorOf({.count = 3, .classes = -1}).cause, HasSubstr("classes"));
  EXPECT_THAT(ErrorOf({.count = 3, .threads = 100000}).cause, HasSubstr("threads"));
  EXPECT_FALSE(fs::exists(directory_));
}

TEST_F(SynthTest, RefusesAFileInPlaceOfTheFolder) {
  std::ofstream(directory_) << "x";
  const Error error = ErrorOf({.count = 1});
  EXPECT_EQ(error.file, directory_.string());
}

TEST_F(SynthTest, ErrorNamesAnUnwritableFolder) {
  fs::create_directories(directory_);
  chmod(root_.c_str(), 0755);
  chmod(directory_.c_str(), 0555);
  // root may write everywhere, so the test becomes nobody for a moment.
  const bool root = geteuid() == 0;
  if (root && seteuid(65534) != 0) GTEST_SKIP() << "cannot give up root";
  const Error error = ErrorOf({.count = 1});
  if (root) {
    ASSERT_EQ(seteuid(0), 0);
  }
  EXPECT_EQ(error.code, Code::kPermissionDenied);
  EXPECT_THAT(error.file, HasSubstr(directory_.string()));
}

TEST_F(SynthTest, AFailedWriteLeavesNoPartialFile) {
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const struct rlimit small { 4096, before.rlim_max };
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Error error = ErrorOf({.count = 20, .threads = 2});
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error.cause, HasSubstr("File too large"));
  EXPECT_THAT(error.file, HasSubstr("photo_"));
  for (const auto& [name, bytes] : Files()) EXPECT_THAT(name, ::testing::Not(HasSubstr(".part")));
}

TEST_F(SynthTest, ReportsAFullDiskAndContinuesWhenRunAgain) {
  fs::create_directories(directory_);
  if (mount("tmpfs", directory_.c_str(), "tmpfs", 0, "size=512k") != 0) {
    GTEST_SKIP() << "needs the right to mount";
  }
  const Error error = ErrorOf({.count = 50, .threads = 2});
  const auto files = Files();
  umount(directory_.c_str());
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.ToString(), HasSubstr("No space left"));
  EXPECT_THAT(error.file, HasSubstr("photo_"));
  EXPECT_THAT(error.advice, HasSubstr("run again"));
  EXPECT_THAT(files, ::testing::Not(IsEmpty()));
  for (const auto& [name, bytes] : files) {
    EXPECT_THAT(name, ::testing::Not(HasSubstr(".part")));
    EXPECT_THAT(bytes, ::testing::EndsWith("whole")) << name;
  }
}

}  // namespace
}  // namespace stoker
