// A dataset's index file gives back what was written, and damage to it is noticed.
#include "io/index/dataset_index.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

// Makes a list of `counts` images in the class folders "a", "b", …: the last class has a folder
// below it without images.
ImageList ListOf(const std::vector<int>& counts) {
  std::vector<std::string> classes;
  std::vector<ListedFolder> folders;
  for (size_t i = 0; i < counts.size(); ++i) {
    classes.emplace_back(1, static_cast<char>('a' + i));
    folders.push_back({.path = classes.back(), .top = static_cast<uint32_t>(i)});
    folders.back().changed_ns = static_cast<int64_t>(100 + i);
    for (int file = 0; file < counts[i]; ++file) {
      folders.back().files.bytes += std::to_string(1000 + file) + ".jpg";
      folders.back().files.ends.push_back(static_cast<uint32_t>(folders.back().files.bytes.size()));
    }
  }
  folders.push_back({.path = classes.back() + "/empty", .top = folders.back().top});
  return ImageList::Of(std::move(classes), std::move(folders));
}

ImageFacts FactsOfImage(uint32_t i) {
  return {.file_bytes = 1000 + i,
          .width = 1 + 3 * i,
          .height = 7,
          .orientation = static_cast<uint8_t>(1 + i % 8),
          .format = 1};
}
Bytes RecordOfImage(uint32_t i) { return Bytes(i % 7, static_cast<uint8_t>(i)); }

class DatasetIndexTest : public ::testing::Test {
 protected:
  DatasetIndexTest() {
    std::string name = (fs::path(::testing::TempDir()) / "stoker_index_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "index").string();
  }
  ~DatasetIndexTest() override { fs::remove_all(folder_); }

  void WriteFacts(const std::vector<ImageFacts>& facts) const {
    auto file = SectionFileWriter::Create(path_, 1).value();
    ASSERT_TRUE(DatasetIndex::WriteFacts(std::move(file), 77, facts).ok());
  }
  static void AddAll(DatasetIndexWriter& writer, const ImageList& list) {
    for (uint32_t i = 0; i < list.files.size(); ++i) {
      ASSERT_TRUE(writer.Add(FactsOfImage(i), RecordOfImage(i)).ok());
    }
  }
  ImageList Write(const std::vector<int>& counts) {
    ImageList list = ListOf(counts);
    auto writer = DatasetIndexWriter::Create(path_).value();
    AddAll(writer, list);
    const Result<uint64_t> bytes = writer.Commit(list);
    EXPECT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, fs::file_size(path_));
    return list;
  }

  Bytes Read() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void Replace(const Bytes& bytes) const {
    fs::remove_all(path_);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  Code OpenError() const {
    const Result<DatasetIndex> index = DatasetIndex::Open(path_);
    EXPECT_FALSE(index.ok());
    if (index.ok()) return Code::kCancelled;
    EXPECT_EQ(index.error().file, path_);
    return index.error().code;
  }

  fs::path folder_;
  std::string path_;
};

constexpr uint64_t kAny = ~uint64_t{0};

Bytes ReadRecord(const DatasetIndex& index, uint32_t image, uint64_t most = kAny) {
  MemoryBudget budget(MemoryBudget::kNoLimit);
  GrowingBuffer memory(budget);
  const std::span<const uint8_t> record = index.Read(image, most, memory);
  return {record.begin(), record.end()};
}

std::vector<std::string> PathsAndLabels(const ImageList& list) {
  std::vector<std::string> paths;
  for (uint64_t i = 0; i < list.files.size(); ++i) {
    list.AppendPath(i, paths.emplace_back());
    paths.back() += " " + std::to_string(list.LabelOf(i));
  }
  return paths;
}

void ExpectSame(const DatasetIndex& index, const ImageList& list) {
  EXPECT_EQ(index.list().classes, list.classes);
  EXPECT_EQ(PathsAndLabels(index.list()), PathsAndLabels(list));
  EXPECT_EQ(index.fingerprint(), list.Fingerprint());
  EXPECT_EQ(index.fingerprint(), index.list().Fingerprint());
  ASSERT_EQ(index.list().folders.size(), list.folders.size());
  for (size_t i = 0; i < list.folders.size(); ++i) {
    EXPECT_EQ(index.list().folders[i].changed_ns, list.folders[i].changed_ns);
    EXPECT_EQ(index.list().PathOf(index.list().folders[i]), list.PathOf(list.folders[i]));
  }
  ASSERT_EQ(index.images(), list.files.size());
  for (uint32_t i = 0; i < index.images(); ++i) {
    ASSERT_EQ(index.FactsOf(i), FactsOfImage(i));
    ASSERT_EQ(ReadRecord(index, i), RecordOfImage(i));
    ASSERT_EQ(index.HasRecord(i), i % 7 != 0);
  }
}

TEST_F(DatasetIndexTest, ReadsBackWhatWasWritten) {
  for (const std::vector<int>& counts :
       {std::vector{1}, {1, 1}, {3, 1, 5}, {700, 300}, {150'000, 1}}) {
    const ImageList list = Write(counts);
    const Result<DatasetIndex> index = DatasetIndex::Open(path_);
    ASSERT_TRUE(index.ok()) << index.error().ToString();
    ExpectSame(*index, list);
    EXPECT_LE(index->memory_bytes(), 24 * index->images() + 200);
    EXPECT_LE(index->list().memory_bytes(), list.memory_bytes() + 200);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing next to it is left
}

TEST_F(DatasetIndexTest, ReadsBackAFlatList) {
  std::vector<ListedFolder> folders(1);
  folders[0].files = {.bytes = "x.jpgy.jpg", .ends = {5, 10}};
  const ImageList list = ImageList::Of({}, std::move(folders));
  auto writer = DatasetIndexWriter::Create(path_).value();
  AddAll(writer, list);
  ASSERT_TRUE(writer.Commit(list).ok());
  ExpectSame(DatasetIndex::Open(path_).value(), list);
}

TEST_F(DatasetIndexTest, UnknownAndHugeFileSizesReadBackAsUnknown) {
  const ImageList list = ListOf({3});
  auto writer = DatasetIndexWriter::Create(path_).value();
  const uint64_t most = ~uint32_t{0};
  for (const uint64_t bytes : {uint64_t{0}, most - 1, most}) {
    ASSERT_TRUE(writer.Add({.file_bytes = bytes}, {}).ok());
  }
  ASSERT_TRUE(writer.Commit(list).ok());
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  EXPECT_EQ(index.FactsOf(0), ImageFacts());
  EXPECT_EQ(index.FactsOf(1).file_bytes, most - 1);
  EXPECT_EQ(index.FactsOf(2), ImageFacts());
}

TEST_F(DatasetIndexTest, FactsAreReadAloneFromAnyIndex) {
  const ImageList list = Write({700, 300});
  const auto of_folder = DatasetIndex::ReadFacts(path_, list.Fingerprint(), 1000).value();
  ASSERT_EQ(of_folder.facts.size(), 1000u);
  EXPECT_FALSE(of_folder.alone);
  for (uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(of_folder.facts[i], FactsOfImage(i));

  const std::vector<ImageFacts> facts(of_folder.facts.begin(), of_folder.facts.begin() + 40);
  WriteFacts(facts);
  const auto alone = DatasetIndex::ReadFacts(path_, 77, 40).value();
  EXPECT_EQ(alone.facts, facts);
  EXPECT_TRUE(alone.alone);
  EXPECT_EQ(OpenError(), Code::kInvalidArgument) << "it has no list";
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(DatasetIndexTest, FactsOfOtherSamplesOrDamagedOnesAreRefused) {
  const auto error_of = [&](uint64_t fingerprint, uint64_t images) {
    const auto facts = DatasetIndex::ReadFacts(path_, fingerprint, images);
    EXPECT_FALSE(facts.ok());
    if (facts.ok()) return Code::kCancelled;
    EXPECT_EQ(facts.error().file, path_);
    const bool is_image_index = facts.error().advice.find("stoker index") != std::string::npos;
    EXPECT_FALSE(is_image_index) << facts.error().advice;
    return facts.error().code;
  };
  EXPECT_EQ(error_of(77, 40), Code::kNotFound);
  WriteFacts(std::vector<ImageFacts>(40));
  EXPECT_EQ(error_of(78, 40), Code::kFailedPrecondition);
  for (const uint64_t images : {uint64_t{0}, uint64_t{39}, uint64_t{41}, ~uint64_t{0}}) {
    EXPECT_EQ(error_of(77, images), Code::kFailedPrecondition);
  }
  const Bytes sound = Read();
  for (size_t i = 0; i < sound.size(); ++i) {
    Bytes damaged = sound;
    damaged[i] ^= 0x20;
    Replace(damaged);
    EXPECT_NE(error_of(77, 40), Code::kCancelled) << "byte " << i;
    damaged.resize(i);
    Replace(damaged);
    EXPECT_NE(error_of(77, 40), Code::kCancelled) << i << " bytes";
  }
  for (const auto& [width, height] : {std::pair{0u, 1u}, {1u, 0u}, {65536u, 1u}, {1u, ~0u}}) {
    std::vector<ImageFacts> facts(40);
    facts[39].width = width;
    facts[39].height = height;
    WriteFacts(facts);
    EXPECT_EQ(error_of(77, 40), Code::kDataLoss) << width << " " << height;
  }
}

TEST_F(DatasetIndexTest, AnUnfinishedWriterKeepsTheOldIndex) {
  const ImageList list = Write({5});
  const Bytes before = Read();
  {
    auto writer = DatasetIndexWriter::Create(path_).value();
    ASSERT_TRUE(writer.Add({}, Bytes(100)).ok());
  }
  EXPECT_EQ(Read(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  // An open one stays as it is while another takes its place.
  const DatasetIndex open = DatasetIndex::Open(path_).value();
  Write({2});
  ExpectSame(open, list);
}

// Neither writer writes into the other's file or removes it.
TEST_F(DatasetIndexTest, TwoWritersDoNotDisturbEachOther) {
  auto first = DatasetIndexWriter::Create(path_).value();
  auto second = DatasetIndexWriter::Create(path_).value();
  EXPECT_FALSE(fs::exists(path_));
  {
    auto third = DatasetIndexWriter::Create(path_).value();
    ASSERT_TRUE(third.Add({}, Bytes(3, 3)).ok());  // and gives up
  }
  const ImageList one = ListOf({1}), two = ListOf({1, 1});
  AddAll(first, one);
  AddAll(second, two);
  ASSERT_TRUE(first.Commit(one).ok());
  ExpectSame(DatasetIndex::Open(path_).value(), one);
  ASSERT_TRUE(second.Commit(two).ok());
  ExpectSame(DatasetIndex::Open(path_).value(), two);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

// Each byte is changed in turn. Either opening fails, or only the record that holds the byte
// changes.
TEST_F(DatasetIndexTest, EveryChangedByteIsNoticedOrBelongsToARecord) {
  const ImageList list = Write({12, 8});
  const Bytes good = Read();
  size_t noticed = 0, of_records = 0;
  for (size_t at = 0; at < good.size(); ++at) {
    for (const uint8_t change : {0x01, 0x80, 0xFF}) {
      Bytes bytes = good;
      bytes[at] ^= change;
      Replace(bytes);
      const Result<DatasetIndex> index = DatasetIndex::Open(path_);
      if (!index.ok()) {
        ++noticed;
        continue;
      }
      size_t differ = 0;
      for (uint32_t i = 0; i < index->images(); ++i) {
        const Bytes found = ReadRecord(*index, i);
        ASSERT_EQ(found.size(), RecordOfImage(i).size()) << at;
        differ += found == RecordOfImage(i) ? 0 : 1;
      }
      ASSERT_EQ(differ, 1u) << at;
      ++of_records;
    }
  }
  size_t record_bytes = 0;
  for (uint32_t i = 0; i < list.files.size(); ++i) record_bytes += RecordOfImage(i).size();
  EXPECT_EQ(of_records, 3 * record_bytes);
  EXPECT_EQ(noticed, 3 * (good.size() - record_bytes));
}

TEST_F(DatasetIndexTest, RefusesTruncatedAndExtendedFiles) {
  Write({5, 2});
  const Bytes good = Read();
  for (size_t size = 0; size < good.size(); ++size) {
    Replace(Bytes(good.begin(), good.begin() + static_cast<ptrdiff_t>(size)));
    ASSERT_EQ(OpenError(), size < 8 ? Code::kInvalidArgument : Code::kDataLoss) << size;
  }
  Bytes longer = good;
  longer.push_back(0);
  Replace(longer);
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

TEST_F(DatasetIndexTest, RefusesFilesThatAreNotIndexes) {
  EXPECT_EQ(OpenError(), Code::kNotFound);
  fs::create_directory(path_);
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // which nobody writes to
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  Replace(Bytes(100, 'x'));
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  EXPECT_EQ(DatasetIndex::Open(path_).error().Message(),
            path_ + ": this is not an index file. Give the file that `stoker index` wrote.");
}

TEST_F(DatasetIndexTest, ReadRespectsItsLimits) {
  const ImageList list = ListOf({1});
  auto writer = DatasetIndexWriter::Create(path_).value();
  ASSERT_TRUE(writer.Add({}, Bytes(100, 1)).ok());
  ASSERT_TRUE(writer.Commit(list).ok());
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  EXPECT_EQ(ReadRecord(index, 0, 99), Bytes());
  EXPECT_EQ(ReadRecord(index, 0, 100), Bytes(100, 1));
  MemoryBudget budget(100);
  GrowingBuffer memory(budget);
  EXPECT_TRUE(index.Read(0, 100, memory).empty()) << "memory comes in pages";
  budget.SetLimit(GrowingBuffer::MappedBytes(100));
  EXPECT_EQ(index.Read(0, 100, memory).size(), 100u);
  EXPECT_EQ(budget.used(), budget.limit());
}

// The file changes while it is open.
TEST_F(DatasetIndexTest, TruncationWhileOpenIsHarmless) {
  const ImageList list = Write({50});
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  for (uint64_t size = fs::file_size(path_); size > 0; size /= 2) {
    fs::resize_file(path_, size);
    EXPECT_EQ(PathsAndLabels(index.list()), PathsAndLabels(list));
    for (uint32_t i = 0; i < index.images(); ++i) {
      const Bytes found = ReadRecord(index, i);
      ASSERT_TRUE(found.empty() || found == RecordOfImage(i));
    }
  }
  fs::resize_file(path_, 0);
  for (uint32_t i = 0; i < index.images(); ++i) ASSERT_TRUE(ReadRecord(index, i).empty());
}

TEST_F(DatasetIndexTest, DeletionWhileOpenIsHarmless) {
  const ImageList list = Write({50});
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  fs::remove(path_);
  ExpectSame(index, list);
}

}  // namespace
}  // namespace stoker
