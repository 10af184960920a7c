// Loaders deliver the same batches with an index of `stoker index` as without one, even if the
// index or the photographs have changed.
#include "bindings/cli/index/index_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "io/folder/image_folder.h"
#include "tests/bindings/cli/index/indexed_folder.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/crop_index_of.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using testing::IndexOf;
using testing::MakeJpeg;
using testing::PhotoFolder;
using testing::ReadText;
using CropIndex = ImageFolderOptions::CropIndex;
using ::testing::HasSubstr;

void Replace(const std::string& path, const std::string& bytes) {
  fs::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

LoaderOptions Options(std::shared_ptr<const SampleSource> source) {
  LoaderOptions options;
  options.source = std::move(source);
  options.transforms = {RandomResizedCrop{.height = 24, .width = 24, .scale = {0.05, 0.4}},
                        RandomHorizontalFlip{}};
  options.batch_size = 7;
  options.shuffle = true;
  options.seed = 3;
  options.runtime = Runtime::Create(testing::RuntimeUnderTest(3)).value();
  options.epochs = 1;  // so that no more is prefetched
  return options;
}

struct Epoch {
  std::vector<uint64_t> batches;
  DecodePaths paths;
};

Epoch TakeEpoch(std::shared_ptr<const SampleSource> source) {
  const auto loader = Loader::Open(Options(std::move(source))).value();
  Epoch epoch{testing::TakeEpoch(*loader->Iterate()), {}};
  epoch.paths = loader->Stats().decoded;
  return epoch;
}

std::shared_ptr<const SampleSource> Source(const PhotoFolder& folder, CropIndex use,
                                           const std::string& file = "") {
  return ImageFolder(folder.path(), {.crop_index = use, .crop_index_file = file}).value();
}

TEST(IndexDataset, AShuffledEpochIsTheSameWithAndWithoutAnIndex) {
  const PhotoFolder folder(60, 3);
  const IndexReport report = IndexDataset(folder.path()).value();
  EXPECT_EQ(report.samples, 60u);
  EXPECT_EQ(report.indexed, 60u);
  EXPECT_EQ(report.index_bytes, fs::file_size(IndexOf(folder)));
  EXPECT_TRUE(report.skipped.empty());
  const Epoch with = TakeEpoch(folder.Source());
  const Epoch without = TakeEpoch(Source(folder, CropIndex::kOff));
  EXPECT_EQ(with.batches, without.batches);
  EXPECT_EQ(with.paths.indexed, 60u);
  EXPECT_EQ(with.paths.fast, 60u);
  EXPECT_EQ(without.paths.indexed, 0u);
  EXPECT_EQ(without.paths.fast, 60u);
}

TEST(IndexDataset, DoesNotDependOnThreads) {
  const PhotoFolder folder(70, 2);
  const std::string one = folder.path() + "/.one", four = folder.path() + "/.four";
  ASSERT_TRUE(IndexDataset(folder.path(), {.out = one, .threads = 1}).ok());
  ASSERT_TRUE(IndexDataset(folder.path() + "//", {.out = four, .threads = 4}).ok());
  EXPECT_EQ(ReadText(one), ReadText(four));
  EXPECT_EQ(TakeEpoch(Source(folder, CropIndex::kFile, four)).paths.indexed, 70u);
  EXPECT_EQ(TakeEpoch(folder.Source()).paths.indexed, 0u);  // the folder has none of its own
}

TEST(IndexDataset, CountsUnindexedFilesByReason) {
  const PhotoFolder folder(12, 2);
  const auto jpeg = [](const testing::JpegOptions& options) {
    const std::vector<uint8_t> bytes = MakeJpeg(options);
    return std::string(bytes.begin(), bytes.end());
  };
  folder.Overwrite(3, jpeg({.scans = testing::JpegScans::kProgressive}));
  folder.Overwrite(5, "no photograph");
  folder.Overwrite(7, "");
  const std::string good = ReadText(folder.FileOf(8));
  folder.Overwrite(8, good.substr(0, good.size() - 2));
  fs::permissions(folder.FileOf(9), fs::perms::none);
  const bool root = std::ifstream(folder.FileOf(9)).good();
  const IndexReport report = IndexDataset(folder.path(), {.list_skipped = 3}).value();
  EXPECT_EQ(report.indexed, root ? 8u : 7u);
  EXPECT_EQ(report.skipped.at("progressive or arithmetic"), 1u);
  EXPECT_EQ(report.skipped.at("not a JPEG"), 2u);
  EXPECT_EQ(report.skipped.at("damaged data"), 1u);
  EXPECT_EQ(report.skipped.contains("cannot be read"), !root);
  ASSERT_EQ(report.skipped_files.size(), 3u);
  EXPECT_EQ(report.skipped_files[0].file, folder.FileOf(3));
  EXPECT_EQ(report.skipped_files[1].reason, "not a JPEG");
}

// Returns what this process has read so far, from anywhere.
uint64_t BytesRead() {
  std::ifstream io("/proc/self/io");
  std::string name;
  uint64_t bytes = 0;
  io >> name >> bytes;
  return bytes;
}

TEST(IndexDataset, DoesNotReadLargeNonImagesWhole) {
  constexpr uint64_t kLarge = uint64_t{3} << 29;  // with holes: it takes no room on the disk
  const PhotoFolder folder(12, 2);
  folder.Overwrite(3, "a film");
  folder.Overwrite(4, "\xff\xd8\xff\xe0 no image that large is decoded");
  fs::resize_file(folder.FileOf(3), kLarge);
  fs::resize_file(folder.FileOf(4), kLarge);
  fs::resize_file(folder.FileOf(5), uint64_t{80} << 20);  // zeros behind the end: harmless
  const uint64_t before = BytesRead();
  ASSERT_GT(before, 0u) << "/proc/self/io cannot be read";
  const IndexReport report = IndexDataset(folder.path(), {.threads = 2}).value();
  EXPECT_LT(BytesRead() - before, uint64_t{200} << 20);
  EXPECT_EQ(report.indexed, 10u);
  EXPECT_EQ(report.sized, 10u);
  EXPECT_EQ(report.skipped.at("not a JPEG"), 1u);
  EXPECT_EQ(report.skipped.at("too large"), 1u);
}

// One photograph changed, one removed, one added, one moved to another class.
TEST(IndexDataset, StaysRightWhileFilesChange) {
  const PhotoFolder folder(20, 2);
  ASSERT_TRUE(IndexDataset(folder.path()).ok());
  const std::string first = folder.FileOf(0), last = folder.FileOf(19);
  const std::string other = ReadText(folder.FileOf(1));
  folder.Overwrite(4, other);
  fs::rename(first, fs::path(last).parent_path() / "moved.jpg");
  fs::remove(folder.FileOf(10));
  Replace(fs::path(first).parent_path() / "new.jpg", other);
  const Epoch with = TakeEpoch(folder.Source());
  EXPECT_EQ(with.batches, TakeEpoch(Source(folder, CropIndex::kOff)).batches);
  EXPECT_EQ(with.paths.stale, 1u);
  EXPECT_EQ(with.paths.contradicted, 0u);
  EXPECT_EQ(with.paths.fast, 20u);
  EXPECT_EQ(with.paths.indexed, 17u);
}

TEST(IndexDataset, CancellationKeepsTheOldIndex) {
  const PhotoFolder folder(40, 2);
  ASSERT_TRUE(IndexDataset(folder.path()).ok());
  const std::string before = ReadText(IndexOf(folder));
  const auto stop = [](uint64_t, uint64_t) { return false; };
  const Result<IndexReport> report = IndexDataset(folder.path(), {}, stop);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kCancelled);
  EXPECT_EQ(ReadText(IndexOf(folder)), before);
  EXPECT_EQ(IndexDataset(folder.path(), {.threads = -1}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(IndexDataset("/nowhere").error().code, Code::kNotFound);
}

TEST(IndexDataset, OutOfMemoryIsAnError) {
  const PhotoFolder folder(100, 2);
  const auto none = [](uint64_t done, uint64_t) -> bool {
    if (done > 40) throw std::bad_alloc();
    return true;
  };
  for (const int threads : {1, 4}) {
    const Result<IndexReport> report = IndexDataset(folder.path(), {.threads = threads}, none);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, Code::kResourceExhausted);
    EXPECT_FALSE(fs::exists(IndexOf(folder)));
  }
}

TEST(ImageFolderIndex, ADamagedIndexIsAWarningUnlessItWasNamed) {
  const PhotoFolder folder(6, 2);
  EXPECT_EQ(folder.Source()->Warning(), "");
  Replace(IndexOf(folder), "this is not an index file, though it is long enough to be one");
  const auto source = folder.Source();
  EXPECT_THAT(source->Warning(), HasSubstr("decoded without the index"));
  EXPECT_THAT(source->Warning(), HasSubstr(IndexOf(folder)));
  EXPECT_EQ(TakeEpoch(source).paths.fast, 6u);
  EXPECT_EQ(Source(folder, CropIndex::kOff)->Warning(), "");
  const ImageFolderOptions chosen{.crop_index = CropIndex::kFile,
                                  .crop_index_file = IndexOf(folder)};
  EXPECT_EQ(ImageFolder(folder.path(), chosen).error().code, Code::kInvalidArgument);
  const ImageFolderOptions empty{.crop_index = CropIndex::kFile};
  EXPECT_THAT(ImageFolder(folder.path(), empty).error().cause, HasSubstr("crop_index_file"));
  const ImageFolderOptions missing{.crop_index = CropIndex::kFile, .crop_index_file = "/nowhere"};
  EXPECT_EQ(ImageFolder(folder.path(), missing).error().code, Code::kNotFound);
}

TEST(ImageFolderIndex, WarnsOfAnIndexOfAnotherRoot) {
  const PhotoFolder folder(20, 2);
  const std::string index = IndexOf(folder);
  ASSERT_TRUE(IndexDataset(folder.path() + "/class0", {.out = index}).ok());
  const std::vector<uint64_t> want = TakeEpoch(Source(folder, CropIndex::kOff)).batches;
  for (const auto& source : {folder.Source(), Source(folder, CropIndex::kFile, index)}) {
    EXPECT_EQ(source->Warning(),
              index +
                  ": the folder has changed since this index was made, and had to be listed; "
                  "the index knows 0 of its 20 images. Run `stoker index` again.");
    const Epoch epoch = TakeEpoch(source);
    EXPECT_EQ(epoch.batches, want);
    EXPECT_EQ(epoch.paths.indexed + epoch.paths.stale, 0u);
  }
}

// File names on Linux are bytes.
TEST(ImageFolderIndex, IndexesNamesThatAreNotUtf8) {
  const PhotoFolder folder(6, 2);
  const std::string first = folder.FileOf(0), parent = fs::path(first).parent_path();
  fs::rename(first, parent + "/\xff\xfe\n.jpg");
  fs::rename(parent, folder.path() + "/\xc3(");
  EXPECT_EQ(IndexDataset(folder.path()).value().indexed, 6u);
  EXPECT_EQ(folder.Source()->Warning(), "");
  EXPECT_EQ(TakeEpoch(folder.Source()).paths.indexed, 6u);
  const std::string out = folder.path() + "/.\xff";
  ASSERT_TRUE(IndexDataset(folder.path(), {.out = out}).ok());
  EXPECT_EQ(TakeEpoch(Source(folder, CropIndex::kFile, out)).paths.indexed, 6u);
}

TEST(ImageFolderIndex, CountsItsMemory) {
  const PhotoFolder folder(50, 2);
  const uint64_t before = folder.Source()->memory_bytes();
  ASSERT_TRUE(IndexDataset(folder.path()).ok());
  const uint64_t with = folder.Source()->memory_bytes();
  EXPECT_GE(with, before + 50 * 24);
  EXPECT_LE(with, before + 50 * 24 + 300);
  fs::remove(folder.FileOf(49));  // listed anew: where each is in the index comes on top
  EXPECT_LE(folder.Source()->memory_bytes(), before + 50 * 28 + 500);
}

// The file is cut off, overwritten, replaced or deleted between opening and decoding.
TEST(ImageFolderIndex, ChangesToAnOpenIndexChangeNoPixels) {
  const PhotoFolder folder(30, 2);
  const std::vector<uint64_t> want = TakeEpoch(Source(folder, CropIndex::kOff)).batches;
  const std::string index = IndexOf(folder);
  const std::vector<std::pair<std::function<void()>, uint64_t>> fates = {
      {[&] { fs::resize_file(index, 0); }, 0},
      {[&] { fs::resize_file(index, fs::file_size(index) / 2); }, 1},
      {[&] { std::ofstream(index, std::ios::binary) << std::string(1 << 20, 'x'); }, 0},
      {[&] { ASSERT_TRUE(IndexDataset(folder.path()).ok()); }, 30},
      {[&] { fs::remove(index); }, 30}};
  for (const auto& [meet, at_least] : fates) {
    ASSERT_TRUE(IndexDataset(folder.path()).ok());
    const auto source = folder.Source();
    meet();
    const Epoch epoch = TakeEpoch(source);
    EXPECT_EQ(epoch.batches, want);
    EXPECT_EQ(epoch.paths.fast, 30u);
    EXPECT_GE(epoch.paths.indexed, at_least);
  }
}

// Returns rows of all photographs, each decoded with the source's entry points.
class Rows {
 public:
  explicit Rows(const PhotoFolder& folder) {
    const auto source = folder.Source();
    for (uint64_t id = 0; id < source->size(); ++id) {
      files_.push_back(ReadText(folder.FileOf(id)));
      files_.back().append(kBufferPadding, '\0');
    }
  }
  // Returns all rows, end to end.
  std::vector<uint8_t> Decode(const SampleSource& source) {
    std::vector<uint8_t> rows(files_.size() * plan_.row_bytes());
    StageTimes times;
    for (uint64_t id = 0; id < files_.size(); ++id) {
      const std::span file(reinterpret_cast<const uint8_t*>(files_[id].data()),
                           files_[id].size() - kBufferPadding);
      const std::vector<uint8_t> crop_index = testing::CropIndexOf(source, id, file.size());
      const Status status = plan_.Apply(file, {1, 2, id}, *workspace_,
                                        rows.data() + id * plan_.row_bytes(), times, crop_index);
      EXPECT_TRUE(status.ok()) << status.error().ToString();
    }
    return rows;
  }
  DecodePaths paths() const { return PathsOf(*workspace_); }

 private:
  std::vector<std::string> files_;
  MemoryBudget budget_{64 << 20};
  Plan plan_ =
      Plan::Compile({RandomResizedCrop{.height = 16, .width = 16, .scale = {0.05, 0.3}}}).value();
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_ = plan_.MakeWorkspace(budget_);
};

// Each byte of the file is changed in turn. The pixels stay the same, and there is never an error.
TEST(ImageFolderIndex, EveryChangedByteIsHarmless) {
  const PhotoFolder folder(4, 1);
  Rows rows(folder);
  const std::vector<uint8_t> want = rows.Decode(*Source(folder, CropIndex::kOff));
  ASSERT_TRUE(IndexDataset(folder.path()).ok());
  ASSERT_EQ(rows.Decode(*folder.Source()), want);
  ASSERT_EQ(rows.paths().indexed, 4u);
  const std::string good = ReadText(IndexOf(folder));
  uint64_t refused = 0, wrong = 0;
  const size_t step = 100 / static_cast<size_t>(testing::Effort(100));
  for (size_t at = 0; at < good.size(); at += step) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
    Replace(IndexOf(folder), bytes);
    const auto source = folder.Source();
    const uint64_t before = rows.paths().contradicted;
    ASSERT_EQ(rows.Decode(*source), want) << at;
    const bool said = !source->Warning().empty();
    refused += said ? 1 : 0;
    wrong += rows.paths().contradicted - before;
    ASSERT_EQ(rows.paths().contradicted - before, said ? 0u : 1u) << at;  // counted, or reported
  }
  EXPECT_GT(refused, 100u / step);
  EXPECT_GT(wrong, 100u / step);
}

}  // namespace
}  // namespace stoker
