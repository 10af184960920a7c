// Opening a folder by its index gives the same result as listing it, and a folder that has changed
// is listed again.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <climits>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/index/index_dataset.h"
#include "io/folder/image_folder.h"
#include "io/folder/list_images.h"
#include "io/index/dataset_index.h"
#include "tests/bindings/cli/index/indexed_folder.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "transforms/decode/format.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using CropIndex = ImageFolderOptions::CropIndex;
using ::testing::HasSubstr;
using SourcePtr = std::shared_ptr<const SampleSource>;
using IndexListingTest = testing::IndexedFolderTest;

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
std::string Jpeg(const testing::JpegOptions& options = {}) {
  return Text(testing::MakeJpeg(options));
}

TEST_F(IndexListingTest, MatchesTheListingOfNestedFolders) {
  for (const char* path :
       {"c/z.jpg", "c/a/b/1.jpg", "c/a!/1.jpg", "c/a/1.jpg", "c!/1.jpg", "B/x.JPEG", "c/10.jpg",
        "c/9.jpg", "c/readme.txt", "c/.hidden.jpg", "c/.thumbnails/1.jpg", ".git/1.jpg",
        "notes.txt", "c/new\nline.webp", "\xc3(/\xff\xfe.jpg", "日本/é.png", "c/ .jpg"}) {
    File(path);
  }
  fs::create_directories(root_ / "c/empty/too");
  MakeIndex();
  ExpectByIndex();
}

TEST_F(IndexListingTest, CountsSkippedFilesAsTheListingDoes) {
  for (const char* path : {"a/1.jpg", "a/2.exr", "a/deep/0.PSD", "b/3.png", "b/4.exr"}) File(path);
  MakeIndex();
  ExpectByIndex();
  const SkippedFiles below{{{".exr", 2}, {".psd", 1}}, "a/2.exr"};
  EXPECT_EQ(Open(CropIndex::kAuto)->Skipped(), below);
  File("0.dds");  // in the root, which is read again
  EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "");
  EXPECT_EQ(Open(CropIndex::kAuto)->Skipped(),
            (SkippedFiles{{{".dds", 1}, {".exr", 2}, {".psd", 1}}, "0.dds"}));
  File("b/5.exr");  // the folder has changed
  ExpectListed();
}

TEST_F(IndexListingTest, CountsSkippedFilesOfAFlatFolder) {
  File("1.jpg");
  MakeIndex();
  File("2.exr");
  ExpectByIndex();
  EXPECT_EQ(Open(CropIndex::kAuto)->Skipped(), (SkippedFiles{{{".exr", 1}}, "2.exr"}));
}

TEST_F(IndexListingTest, FollowsLinksAndCutsLoops) {
  File("a/1.jpg");
  File("a/sub/2.jpg");
  Link(".", "a/self");
  Link("../..", "a/sub/root");
  Link("../a", "b/other");
  Link("../a/1.jpg", "b/linked.jpg");
  Link("nowhere.jpg", "b/lost.jpg");
  Link("a", "c");
  MakeIndex();
  ExpectByIndex();
}

TEST_F(IndexListingTest, HandlesLongPaths) {
  std::string path = "a";
  while (root_.string().size() + path.size() + 2 + 5 + 100 + 20 < PATH_MAX) {
    path += "/" + std::string(100, 'd');
  }
  File(path + "/1.jpg");
  File("a/1.jpg");
  MakeIndex(base_ / "index");
  ExpectByIndex(base_ / "index");
  // Farther from the file system's root the paths would be too long, which is an error.
  const fs::path longer = base_ / std::string(130, 'r');
  fs::rename(root_, longer);
  const ImageFolderOptions options{.crop_index = CropIndex::kFile,
                                   .crop_index_file = base_ / "index"};
  const auto source = ImageFolder(longer.string(), options);
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, Code::kInvalidArgument);
}

// A folder that is moved as a whole stays the same folder.
TEST_F(IndexListingTest, SurvivesMovingTheFolder) {
  for (const char* path : {"a/1.jpg", "b/2.jpg"}) File(path);
  MakeIndex();
  fs::rename(root_, base_ / "moved");
  root_ = base_ / "moved";
  ExpectByIndex();
}

TEST_F(IndexListingTest, ChecksManyFoldersOnSeveralThreads) {
  for (int i = 0; i < 700; ++i)
    File("c" + std::to_string(i % 7) + "/" + std::to_string(i) + "/x.jpg");
  MakeIndex();
  for (const int threads : {1, 2, 16}) {
    EXPECT_EQ(ImageFolder(root_, {.threads = threads}).value()->Warning(), "");
  }
  ExpectByIndex();
  fs::remove(root_ / "c6/699/x.jpg");
  for (const int threads : {1, 2, 16}) {
    EXPECT_NE(ImageFolder(root_, {.threads = threads}).value()->Warning(), "");
  }
  ExpectListed();
}

TEST_F(IndexListingTest, NoticesEveryChange) {
  using Change = std::function<void()>;
  const std::vector<Change> changes = {
      [&] { File("a/0.jpg"); },
      [&] { fs::remove(root_ / "a/1.jpg"); },
      [&] { fs::rename(root_ / "a/1.jpg", root_ / "a/3.jpg"); },
      [&] { fs::rename(root_ / "a/1.jpg", root_ / "b/1.jpg"); },
      [&] { File("a/empty/1.jpg"); },
      [&] { File("a/deep/er/2.jpg"); },
      [&] { fs::create_directory(root_ / "a/new"); },
      [&] { fs::remove_all(root_ / "a/deep"); },
      [&] { fs::remove_all(root_ / "b"); },
      [&] { fs::rename(root_ / "a", root_ / "z"); },
      [&] { File("c/1.jpg"); },
      [&] { Link("a", "d"); },
      [&] { std::ofstream(base_ / "outside/2.jpg") << "x"; },
      [&] {
        fs::remove(root_ / "b/linked");
        Link("../a", "b/linked");
      },
      [&] { fs::rename(base_ / "outside", base_ / "away"); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    fs::remove_all(base_);
    for (const char* path : {"a/1.jpg", "a/2.jpg", "a/deep/er/1.jpg", "b/2.jpg"}) File(path);
    fs::create_directory(root_ / "a/empty");
    fs::create_directory(base_ / "outside");
    std::ofstream(base_ / "outside/1.jpg") << "x";
    Link("../../outside", "b/linked");
    MakeIndex();
    EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "");
    changes[i]();
    ExpectListed();
  }
}

// The file comes just after the index, perhaps within the same tick of the clock.
TEST_F(IndexListingTest, NoticesAFileAddedRightAfterTheIndex) {
  for (const char* late : {"late.jpg", "a/late.jpg"}) {
    for (int i = 0; i < 20; ++i) {
      fs::remove_all(root_);
      File(fs::path(late).parent_path() / "1.jpg");
      MakeIndex();
      File(late);
      EXPECT_EQ(Open(CropIndex::kAuto)->size(), 2u);
    }
  }
}

// Folders have such times on machines with wrong clocks, and after unpacking archives.
TEST_F(IndexListingTest, NoticesChangesToFoldersWithStrangeTimes) {
  const time_t made = time(nullptr);
  for (const time_t seconds :
       {time_t{-1'000'000'000}, time_t{0}, time_t{1}, time_t{4'102'444'800}}) {
    fs::remove_all(root_);
    for (const char* path : {"a/1.jpg", "b/2.jpg"}) File(path);
    const std::array<timespec, 2> times{timespec{seconds, 0}, timespec{seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, (root_ / "a").c_str(), times.data(), 0), 0);
    MakeIndex();
    if (seconds > made) {  // with such a clock nobody can tell the times of other changes
      ExpectListed();
    } else {
      ExpectByIndex();
    }
    File("a/0.jpg");
    ExpectListed();
  }
}

// The time of a folder that kept changing while it was listed is unknown.
TEST_F(IndexListingTest, ListsFoldersOfUnknownTime) {
  for (const char* path : {"a/1.jpg", "b/2.jpg"}) File(path);
  for (const bool told : {true, false}) {
    ImageList list = ListImages(root_, 1).value();
    if (!told) list.folders[1].changed_ns = kUnknownTime;
    auto writer = DatasetIndexWriter::Create(root_ / kIndexName).value();
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(writer.Add({}, {}).ok());
    ASSERT_TRUE(writer.Commit(list).ok());
    EXPECT_EQ(IsStillAsIn(), told);
    EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "") << "the list is the same";
  }
}

// As `cp -a` and `rsync -a` do when they copy a class into a folder with more files in it.
TEST_F(IndexListingTest, NoticesAFileWhoseFolderHasItsOldTime) {
  for (const char* path : {"a/1.jpg", "b/2.jpg"}) File(path);
  MakeIndex();
  Smuggle(root_ / "a/0.jpg");
  ExpectListed();
  EXPECT_EQ(Open(CropIndex::kAuto)->size(), 3U);
}

// A copy has other times of changes, also with the same times of modification.
TEST_F(IndexListingTest, ListsACopyWithoutAWarning) {
  for (const char* path : {"a/1.jpg", "b/2.jpg"}) File(path);
  MakeIndex();
  fs::copy(root_, base_ / "copy", fs::copy_options::recursive);
  root_ = base_ / "copy";
  EXPECT_FALSE(IsStillAsIn());
  EXPECT_EQ(Open(CropIndex::kAuto)->Warning(), "");
  EXPECT_EQ(Open(CropIndex::kAuto)->FactsOf(1).file_bytes, 1U) << "the index is used";
}

// A folder that cannot be listed is refused in spite of its index, for the same reason.
TEST_F(IndexListingTest, RefusesWhatListingRefuses) {
  for (const auto& [change, words] : std::vector<std::pair<std::function<void()>, std::string>>{
           {[&] { fs::create_directory(root_ / "empty"); }, "has no image"},
           {[&] { File("beside.jpg"); }, "belong to no class"},
           {[&] { fs::remove(root_ / "b/1.jpg"); }, "has no image"},
           {[&] {
              fs::remove_all(root_ / "a");
              fs::remove_all(root_ / "b");
            },
            "no image in this folder"}}) {
    fs::remove_all(root_);
    for (const char* path : {"a/1.jpg", "b/1.jpg"}) File(path);
    MakeIndex();
    change();
    const auto source = ImageFolder(root_.string());
    ASSERT_FALSE(source.ok()) << words;
    EXPECT_THAT(source.error().cause, HasSubstr(words));
    EXPECT_EQ(source.error().file, root_.string());
  }
}

// The file is added while the index is being made.
TEST_F(IndexListingTest, NoticesAFileAddedDuringIndexing) {
  for (const char* late : {"a/2.jpg", "2.jpg"}) {
    fs::remove_all(root_);
    File(fs::path(late).parent_path() / "1.jpg");
    const auto add = [&](uint64_t, uint64_t) {
      File(late);
      return true;
    };
    ASSERT_TRUE(IndexDataset(root_.string(), {}, add).ok());
    ExpectListed();
    EXPECT_EQ(Open(CropIndex::kAuto)->size(), 2u);
    MakeIndex();
    ExpectByIndex();
  }
}

TEST_F(IndexListingTest, RecordsTheFactsOfImages) {
  testing::JpegOptions turned{20, 10};
  turned.orientation = 6;
  const std::string gray = Jpeg({33, 44, testing::JpegColor::kGray}), sideways = Jpeg(turned);
  const std::string progressive =
      Jpeg({50, 40, testing::JpegColor::kYCbCr, {}, testing::JpegScans::kProgressive});
  const std::string broken = "\x89PNG\r\n\x1a\n and so on", nothing = "no photograph";
  const std::string png = Text(testing::MakePng({.width = 7, .height = 9}));
  const std::string webp = Text(testing::MakeWebp({.width = 5, .height = 11}));
  File("a/1.jpg", gray);
  File("a/2.jpg", sideways);
  File("a/3.jpg", progressive);
  File("a/4.jpg", broken);
  File("a/5.jpg", nothing);
  File("a/6.jpg", png);
  File("a/7.webp", webp);
  Link("nowhere", "a/8.jpg");
  const IndexReport report = IndexDataset(root_.string()).value();
  EXPECT_EQ(report.samples, 8u);
  EXPECT_EQ(report.sized, 5u);
  EXPECT_EQ(report.indexed, 2u);
  const auto jpeg = static_cast<uint8_t>(ImageFormat::kJpeg);
  const std::vector<ImageFacts> want = {
      {.file_bytes = gray.size(), .width = 33, .height = 44, .format = jpeg},
      {.file_bytes = sideways.size(), .width = 20, .height = 10, .orientation = 6, .format = jpeg},
      {.file_bytes = progressive.size(), .width = 50, .height = 40, .format = jpeg},
      {.file_bytes = broken.size(), .format = static_cast<uint8_t>(ImageFormat::kPng)},
      {.file_bytes = nothing.size()},
      {.file_bytes = png.size(),
       .width = 7,
       .height = 9,
       .format = static_cast<uint8_t>(ImageFormat::kPng)},
      {.file_bytes = webp.size(),
       .width = 5,
       .height = 11,
       .format = static_cast<uint8_t>(ImageFormat::kWebp)},
      {}};
  for (const bool listed : {false, true}) {
    if (listed) File("a/0.jpg");  // the index does not know it
    const SourcePtr source = Open(CropIndex::kAuto);
    EXPECT_EQ(source->Warning().empty(), !listed);
    for (uint64_t id = 0; id < 8; ++id) EXPECT_EQ(source->FactsOf(id + (listed ? 1 : 0)), want[id]);
    if (listed) {
      EXPECT_EQ(source->FactsOf(0), ImageFacts());
    }
    EXPECT_EQ(Open(CropIndex::kOff)->FactsOf(1), ImageFacts());
  }
}

}  // namespace
}  // namespace stoker
