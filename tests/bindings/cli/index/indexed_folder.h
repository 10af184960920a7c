// Folders for tests of the index; one of them can be changed and checks what opening it returns.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <tuple>

#include "bindings/cli/index/index_dataset.h"
#include "io/folder/image_folder.h"
#include "io/folder/list_images.h"
#include "io/index/dataset_index.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker::testing {

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The default output path of `stoker index`.
inline std::string IndexOf(const PhotoFolder& folder) { return folder.path() + "/" + kIndexName; }

class IndexedFolderTest : public ::testing::Test {
 protected:
  using CropIndex = ImageFolderOptions::CropIndex;
  using Source = std::shared_ptr<const SampleSource>;

  IndexedFolderTest() {
    std::string name = (std::filesystem::temp_directory_path() / "stoker-listing-XXXXXX").string();
    base_ = mkdtemp(name.data());
    root_ = base_ / "root";
    std::filesystem::create_directory(root_);
  }
  ~IndexedFolderTest() override { std::filesystem::remove_all(base_); }

  void File(const std::string& path, const std::string& bytes = "x") {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << bytes;
  }
  void Link(const std::string& target, const std::string& path) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::filesystem::create_symlink(target, root_ / path);
  }
  void MakeIndex(const std::string& out = "") {
    const Result<IndexReport> report = IndexDataset(root_.string(), {.out = out});
    ASSERT_TRUE(report.ok()) << report.error().ToString();
  }

  Source Open(CropIndex use, const std::string& file = "") {
    auto source = ImageFolder(root_.string(), {.crop_index = use, .crop_index_file = file});
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    return source.ok() ? *std::move(source) : nullptr;
  }
  void ExpectAsListed(const SampleSource& source) {
    const Source listed = Open(CropIndex::kOff);
    EXPECT_EQ(source.size(), listed->size());
    EXPECT_EQ(source.Fingerprint(), listed->Fingerprint());
    EXPECT_EQ(source.classes(), listed->classes());
    EXPECT_EQ(source.Skipped(), listed->Skipped());
    std::string one, other;
    for (uint64_t id = 0; id < std::min(source.size(), listed->size()); ++id) {
      const ByteRange a = source.RangeOf(id), b = listed->RangeOf(id);
      ASSERT_EQ(std::tie(a.file, a.offset, a.length), std::tie(b.file, b.offset, b.length));
      ASSERT_EQ(source.LabelOf(id), listed->LabelOf(id));
      source.PathOf(a.file, one);
      listed->PathOf(b.file, other);
      ASSERT_EQ(one, other);
    }
  }
  // Adds an image, and sets its folder's time of modification back.
  void Smuggle(const std::filesystem::path& path) {
    struct stat info {};
    ASSERT_EQ(stat(path.parent_path().c_str(), &info), 0);
    std::ofstream(path) << "x";
    const std::array<timespec, 2> times{info.st_atim, info.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.parent_path().c_str(), times.data(), 0), 0);
  }
  // Expects the same result as by listing, without listing.
  void ExpectByIndex(const std::string& index = "") {
    const CropIndex use = index.empty() ? CropIndex::kAuto : CropIndex::kFile;
    const Source source = Open(use, index);
    EXPECT_EQ(source->Warning(), "");
    ExpectAsListed(*source);
    EXPECT_TRUE(IsStillAsIn(index));
  }
  bool IsStillAsIn(const std::string& index = "") const {
    const std::string path = index.empty() ? IndexFileOf(root_) : index;
    SkippedFiles unused;
    return IsStill(root_, DatasetIndex::Open(path).value().list(), 1, unused);
  }
  // Expects that the folder was listed, with a warning if the list is another one.
  void ExpectListed() {
    EXPECT_FALSE(IsStillAsIn());
    const Source source = Open(CropIndex::kAuto);
    ExpectAsListed(*source);
    const bool is_same =
        source->Fingerprint() == DatasetIndex::Open(IndexFileOf(root_)).value().fingerprint();
    const std::string changed = "the folder has changed since this index was made";
    EXPECT_EQ(source->Warning().find(changed) == std::string::npos, is_same);
  }

  std::filesystem::path base_, root_;
};

}  // namespace stoker::testing
