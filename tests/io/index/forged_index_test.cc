// Index files with valid checksums may have anything else wrong.
#include <gtest/gtest.h>
#include <unistd.h>

#include <climits>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/memory/buffer.h"
#include "io/files/section_format.h"
#include "io/index/dataset_index.h"
#include "io/index/dataset_index_format.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
namespace format = sections;
using Folder = ImageList::Folder;

// The content of a file's sections: two classes with three images, and a folder without one.
struct Forgery {
  std::vector<Folder> folders = {
      {.names_begin = 0, .path_begin = 0, .path_bytes = 2, .first_file = 0, .top = 0},
      {.names_begin = 2, .path_begin = 2, .path_bytes = 2, .first_file = 2, .top = 1},
      {.names_begin = 3, .path_begin = 4, .path_bytes = 4, .first_file = 3, .top = 1}};
  std::string paths = "a/b/b/c/";
  std::vector<ImageList::File> files = {{0, 1}, {0, 2}, {1, 1}};
  std::string names = "xyz";
  std::vector<dataset_index::Facts> facts = {
      {.record_end = 4}, {.record_end = 4}, {.record_end = 9}};
  std::string records = "aaaabbbbb";
  std::string skipped{};
  std::vector<format::Section> more = {};
  uint32_t version = dataset_index::kVersion;

  std::string File() const {
    std::vector<format::Section> sections;
    const uint64_t begin = sizeof(format::Header) + (7 + more.size()) * sizeof(format::Section);
    std::string behind;
    const auto add = [&](format::Kind kind, std::span<const uint8_t> bytes, bool sum = true) {
      sections.push_back(
          {kind, 0, begin + behind.size(), bytes.size(), sum ? format::Checksum(bytes) : 0});
      behind.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    add(format::kCropIndexes, format::ColumnBytes(records), false);
    add(format::kFolders, format::ColumnBytes(folders));
    add(format::kPaths, format::ColumnBytes(paths));
    add(format::kFiles, format::ColumnBytes(files));
    add(format::kNames, format::ColumnBytes(names));
    add(format::kFacts, format::ColumnBytes(facts));
    add(format::kSkipped, format::ColumnBytes(skipped));
    sections.insert(sections.end(), more.begin(), more.end());
    return Signed(sections, behind, begin + behind.size());
  }

  std::string Signed(const std::vector<format::Section>& sections, const std::string& behind,
                     uint64_t file_bytes) const {
    format::Header header;
    header.magic = dataset_index::kMagic;
    header.version = version;
    header.sections = static_cast<uint32_t>(sections.size());
    header.file_bytes = file_bytes;
    const std::span head(reinterpret_cast<const uint8_t*>(&header), sizeof(header));
    header.checksum = Hash64(format::ColumnBytes(sections), Hash64(head));
    std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
    const auto list = format::ColumnBytes(sections);
    bytes.append(reinterpret_cast<const char*>(list.data()), list.size());
    return bytes + behind;
  }
};

class ForgedIndexTest : public ::testing::Test {
 protected:
  ForgedIndexTest() {
    std::string name = (fs::path(::testing::TempDir()) / "stoker_forged_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "index").string();
  }
  ~ForgedIndexTest() override { fs::remove_all(folder_); }

  Result<DatasetIndex> Open(const std::string& bytes) const {
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
    return DatasetIndex::Open(path_);
  }
  Code Refused(const std::string& bytes) const {
    const Result<DatasetIndex> index = Open(bytes);
    EXPECT_FALSE(index.ok());
    if (index.ok()) return Code::kCancelled;
    EXPECT_EQ(index.error().advice, "Run `stoker index` again");
    return index.error().code;
  }

  fs::path folder_;
  std::string path_;
  MemoryBudget budget_{MemoryBudget::kNoLimit};
  GrowingBuffer memory_{budget_};
};

TEST_F(ForgedIndexTest, OpensASoundIndex) {
  const Result<DatasetIndex> index = Open(Forgery().File());
  ASSERT_TRUE(index.ok()) << index.error().ToString();
  std::string paths;
  for (uint64_t i = 0; i < 3; ++i) index->list().AppendPath(i, paths);
  EXPECT_EQ(paths, "a/xa/yb/z");
  const std::span<const uint8_t> record = index->Read(2, 100, memory_);
  EXPECT_EQ(std::string(record.begin(), record.end()), "bbbbb");
  EXPECT_FALSE(index->HasRecord(1));
}

TEST_F(ForgedIndexTest, RefusesOtherVersionsAndBadSections) {
  Forgery other;
  for (const uint32_t version : {1u, dataset_index::kVersion - 1, dataset_index::kVersion + 1}) {
    other.version = version;
    EXPECT_EQ(Refused(other.File()), Code::kUnimplemented);
  }
  Forgery unknown;
  unknown.more = {{.kind = 77, .offset = 64, .bytes = 3, .checksum = 5}};
  EXPECT_TRUE(Open(unknown.File()).ok());
  unknown.more[0].offset = unknown.File().size() - 2;
  EXPECT_EQ(Refused(unknown.File()), Code::kDataLoss) << "not inside";
  unknown.more[0].offset = ~uint64_t{0};
  EXPECT_EQ(Refused(unknown.File()), Code::kDataLoss) << "not inside";
  unknown.more = {{.kind = format::kNames, .offset = 64, .bytes = 3, .checksum = 5}};
  EXPECT_EQ(Refused(unknown.File()), Code::kDataLoss) << "twice";
  EXPECT_EQ(Refused(Forgery().Signed({}, {}, sizeof(format::Header))), Code::kDataLoss) << "none";
}

TEST_F(ForgedIndexTest, ReadsSkippedFilesAndRefusesMalformedOnes) {
  Forgery forgery;
  forgery.skipped = std::string("a/1.gif\0.gif\00012\0", 16);
  const Result<DatasetIndex> index = Open(forgery.File());
  ASSERT_TRUE(index.ok()) << index.error().ToString();
  EXPECT_EQ(index->list().skipped, (SkippedFiles{{{".gif", 12}}, "a/1.gif"}));
  forgery.skipped = "abc";
  EXPECT_EQ(Refused(forgery.File()), Code::kDataLoss) << "no such list";
}

TEST_F(ForgedIndexTest, RefusesInconsistentLists) {
  const std::vector<std::function<void(Forgery&)>> lies = {
      [](Forgery& f) { f.folders[0].unused = 1; },
      [](Forgery& f) { f.folders[0].top = 1; },
      [](Forgery& f) { f.folders[1].top = 2; },
      [](Forgery& f) { f.folders[1].top = 0; },
      [](Forgery& f) { f.folders[2].top = 2; },
      [](Forgery& f) { f.folders[2].top = 0; },
      [](Forgery& f) { f.folders[0].first_file = 1; },
      [](Forgery& f) { f.folders[1].first_file = 4; },
      [](Forgery& f) { f.folders[1].first_file = 1; },
      [](Forgery& f) { f.folders[2].first_file = 1; },
      [](Forgery& f) { f.folders[2].first_file = 2; },
      [](Forgery& f) { f.folders[2].first_file = ~0u; },
      [](Forgery& f) { f.folders[0].names_begin = 1; },
      [](Forgery& f) { f.folders[1].names_begin = 1; },
      [](Forgery& f) { f.folders[1].names_begin = ~uint64_t{0}; },
      [](Forgery& f) { f.folders[2].names_begin = ~uint64_t{0}; },
      [](Forgery& f) { f.folders[0].path_begin = 1; },
      [](Forgery& f) { f.folders[1].path_begin = ~uint64_t{0}; },
      [](Forgery& f) { f.folders[0].path_bytes = 0; },
      [](Forgery& f) { f.folders[2].path_bytes = 0; },
      [](Forgery& f) { f.folders[2].path_bytes = ~0u; },
      [](Forgery& f) { f.folders.clear(); },
      [](Forgery& f) { f.folders.pop_back(); },
      [](Forgery& f) { f.paths += "d/"; },
      [](Forgery& f) { f.paths[0] = 'c'; },  // not sorted
      [](Forgery& f) { f.paths[0] = 'b'; },  // twice
      [](Forgery& f) { f.paths[0] = '.'; },
      [](Forgery& f) { f.paths[0] = '/'; },
      [](Forgery& f) { f.paths[0] = '\0'; },
      [](Forgery& f) { f.paths[1] = 'a'; },
      [](Forgery& f) { f.paths[4] = 'c'; },  // not below its class
      [](Forgery& f) { f.paths[5] = 'c'; },
      [](Forgery& f) { f.paths[6] = '.'; },
      [](Forgery& f) { f.paths[6] = '/'; },
      [](Forgery& f) { f.paths[7] = 'c'; },
      [](Forgery& f) { f.files[0].folder = 1; },
      [](Forgery& f) { f.files[2].folder = 0; },
      [](Forgery& f) { f.files[2].folder = ~0u; },
      [](Forgery& f) { f.files[0].name_end = 0; },
      [](Forgery& f) { f.files[0].name_end = 2; },
      [](Forgery& f) { f.files[2].name_end = 0; },
      [](Forgery& f) { f.files[2].name_end = 2; },
      [](Forgery& f) { f.files[2].name_end = ~0u; },
      [](Forgery& f) { f.files.pop_back(); },
      [](Forgery& f) {
        f.files.push_back({1, 2});
      },
      [](Forgery& f) { f.files.clear(); },
      [](Forgery& f) { f.names += 'w'; },
      [](Forgery& f) { f.names.pop_back(); },
      [](Forgery& f) { f.names[1] = '/'; },
      [](Forgery& f) { f.names[1] = '.'; },
      [](Forgery& f) { f.names[2] = '\0'; },
      [](Forgery& f) { f.facts.pop_back(); },
      [](Forgery& f) { f.facts.push_back({}); },
      [](Forgery& f) { f = {.folders = {{}}, .paths = "", .files = {}, .names = "", .facts = {}}; },
  };
  for (size_t i = 0; i < lies.size(); ++i) {
    Forgery forgery;
    lies[i](forgery);
    EXPECT_EQ(Refused(forgery.File()), Code::kDataLoss) << i;
  }
}

// Records are checked when they are read.
TEST_F(ForgedIndexTest, RecordsOutOfBoundsAreEmpty) {
  Forgery forgery;
  forgery.facts[0].record_end = 10;
  forgery.facts[2].record_end = ~uint64_t{0};
  const DatasetIndex index = Open(forgery.File()).value();
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(index.Read(i, ~uint64_t{0}, memory_).empty()) << i;
    EXPECT_FALSE(index.HasRecord(i)) << i;
  }
}

// Each section in turn is a hole of about a terabyte, which takes no room on the disk.
TEST_F(ForgedIndexTest, RefusesSparseSections) {
  constexpr uint64_t kHole = uint64_t{120} << 33;
  const std::string sound = Forgery().File();
  for (size_t at = 1; at < 6; ++at) {
    std::vector<format::Section> sections(6);
    std::memcpy(sections.data(), sound.data() + sizeof(format::Header), 6 * sizeof(sections[0]));
    sections[at].offset = sound.size();
    sections[at].bytes = kHole;
    const std::string behind = sound.substr(sizeof(format::Header) + 6 * sizeof(sections[0]));
    const uint64_t bytes = sound.size() + kHole;
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << Forgery().Signed(sections, behind, bytes);
    if (truncate(path_.c_str(), static_cast<off_t>(bytes)) != 0) {
      GTEST_SKIP() << "this file system has no such large files";
    }
    const Result<DatasetIndex> index = DatasetIndex::Open(path_);
    ASSERT_FALSE(index.ok());
    EXPECT_EQ(index.error().code, Code::kDataLoss) << at;
  }
}

}  // namespace
}  // namespace stoker
