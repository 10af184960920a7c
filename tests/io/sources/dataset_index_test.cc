// A dataset's index file: what is written is found, and what is not right is noticed.
#include "io/sources/dataset_index.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/core/hash.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<uint8_t>;

class DatasetIndexTest : public ::testing::Test {
 protected:
  DatasetIndexTest() {
    std::string name = (fs::path(::testing::TempDir()) / "stoker_index_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "index").string();
  }
  ~DatasetIndexTest() override { fs::remove_all(folder_); }

  std::map<uint64_t, Bytes> WriteSome(int samples) {
    std::map<uint64_t, Bytes> records;
    auto writer = DatasetIndexWriter::Create(path_).value();
    for (int i = 0; i < samples; ++i) {
      const uint64_t key = SampleKey("class" + std::to_string(i % 3) + "/", std::to_string(i));
      records[key] = Bytes(static_cast<size_t>(1 + i % 7), static_cast<uint8_t>(i));
      EXPECT_TRUE(writer.Add(key, records[key]).ok());
    }
    const Result<uint64_t> bytes = writer.Finish();
    EXPECT_TRUE(bytes.ok());
    EXPECT_EQ(*bytes, fs::file_size(path_));
    return records;
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

Bytes Found(const DatasetIndex& index, uint64_t key) {
  Bytes record(3, 77);
  index.Read(key, kAny, record);
  return record;
}

TEST_F(DatasetIndexTest, WhatIsWrittenIsFound) {
  for (const int samples : {0, 1, 2, 1000}) {
    const auto records = WriteSome(samples);
    const Result<DatasetIndex> index = DatasetIndex::Open(path_);
    ASSERT_TRUE(index.ok()) << index.error().ToString();
    EXPECT_EQ(index->samples(), records.size());
    for (const auto& [key, record] : records) ASSERT_EQ(Found(*index, key), record);
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t key = Hash64(std::to_string(i), 99);
      ASSERT_EQ(records.contains(key), index->Has(key));
      ASSERT_EQ(records.contains(key), !Found(*index, key).empty());
    }
    EXPECT_LE(index->memory_bytes(), 36 * records.size() + 200);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // nothing beside it is left
}

TEST_F(DatasetIndexTest, AnUnfinishedOneLeavesTheOldOne) {
  const auto records = WriteSome(5);
  const Bytes before = Read();
  {
    auto writer = DatasetIndexWriter::Create(path_).value();
    ASSERT_TRUE(writer.Add(1, Bytes(100)).ok());
  }
  EXPECT_EQ(Read(), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
  // An open one stays as it is while another takes its place.
  const DatasetIndex open = DatasetIndex::Open(path_).value();
  WriteSome(2);
  for (const auto& [key, record] : records) EXPECT_EQ(Found(open, key), record);
}

// Neither writes into the other's file, nor takes it away.
TEST_F(DatasetIndexTest, TwoWritersAtOnce) {
  auto first = DatasetIndexWriter::Create(path_).value();
  auto second = DatasetIndexWriter::Create(path_).value();
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 2);
  {
    auto third = DatasetIndexWriter::Create(path_).value();
    ASSERT_TRUE(third.Add(3, Bytes(3, 3)).ok());  // and gives up
  }
  ASSERT_TRUE(first.Add(1, Bytes(1, 1)).ok());
  ASSERT_TRUE(second.Add(2, Bytes(2, 2)).ok());
  ASSERT_TRUE(first.Finish().ok());
  EXPECT_EQ(Found(DatasetIndex::Open(path_).value(), 1), Bytes(1, 1));
  ASSERT_TRUE(second.Finish().ok());
  EXPECT_EQ(Found(DatasetIndex::Open(path_).value(), 2), Bytes(2, 2));
  EXPECT_FALSE(DatasetIndex::Open(path_).value().Has(1));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(DatasetIndexTest, OfTwoWithOneKeyTheFirstIsKept) {
  auto writer = DatasetIndexWriter::Create(path_).value();
  ASSERT_TRUE(writer.Add(7, Bytes(3, 1)).ok());
  ASSERT_TRUE(writer.Add(7, Bytes(4, 2)).ok());
  ASSERT_TRUE(writer.Finish().ok());
  EXPECT_EQ(Found(DatasetIndex::Open(path_).value(), 7), Bytes(3, 1));
}

// Every byte changed in turn: an error, or nothing but the record that the byte is of.
TEST_F(DatasetIndexTest, EveryChangedByteIsNoticedOrARecords) {
  const auto records = WriteSome(20);
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
      for (const auto& [key, record] : records) {
        const Bytes found = Found(*index, key);
        ASSERT_EQ(found.size(), record.size()) << at;
        differ += found == record ? 0 : 1;
      }
      ASSERT_EQ(differ, 1u) << at;
      ++of_records;
    }
  }
  size_t record_bytes = 0;
  for (const auto& [key, record] : records) record_bytes += record.size();
  EXPECT_EQ(of_records, 3 * record_bytes);
  EXPECT_EQ(noticed, 3 * (good.size() - record_bytes));
}

TEST_F(DatasetIndexTest, PartsOfOneAreNone) {
  WriteSome(5);
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

TEST_F(DatasetIndexTest, WhatIsNoIndex) {
  EXPECT_EQ(OpenError(), Code::kNotFound);
  fs::create_directory(path_);
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  fs::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);  // which nobody writes to
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  Replace(Bytes(100, 'x'));
  EXPECT_EQ(OpenError(), Code::kInvalidArgument);
  EXPECT_EQ(DatasetIndex::Open(path_).error().Message(),
            path_ + ": this is no crop index. Give the file that `stoker index` wrote.");
}

TEST_F(DatasetIndexTest, NoMoreThanAskedFor) {
  auto writer = DatasetIndexWriter::Create(path_).value();
  ASSERT_TRUE(writer.Add(7, Bytes(100, 1)).ok());
  ASSERT_TRUE(writer.Finish().ok());
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  Bytes record;
  index.Read(7, 99, record);
  EXPECT_TRUE(record.empty());
  index.Read(7, 100, record);
  EXPECT_EQ(record, Bytes(100, 1));
}

// What becomes of the file while it is open.
TEST_F(DatasetIndexTest, CutOffWhileOpen) {
  const auto records = WriteSome(50);
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  for (uint64_t size = fs::file_size(path_); size > 0; size /= 2) {
    fs::resize_file(path_, size);
    for (const auto& [key, record] : records) {
      const Bytes found = Found(index, key);
      ASSERT_TRUE(found.empty() || found == record);
    }
  }
  fs::resize_file(path_, 0);
  for (const auto& [key, record] : records) ASSERT_TRUE(Found(index, key).empty());
}

TEST_F(DatasetIndexTest, DeletedWhileOpen) {
  const auto records = WriteSome(50);
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  fs::remove(path_);
  for (const auto& [key, record] : records) ASSERT_EQ(Found(index, key), record);
}

// A header and sections with the right checksums.
Bytes Forge(dataset_index::Header header, std::vector<dataset_index::Section> sections,
            const Bytes& behind) {
  const auto bytes_of = [](const auto* values, size_t count) {
    return std::span(reinterpret_cast<const uint8_t*>(values), count * sizeof(*values));
  };
  header.sections = static_cast<uint32_t>(sections.size());
  const auto list = bytes_of(sections.data(), sections.size());
  header.file_bytes = sizeof(header) + list.size() + behind.size();
  header.checksum = Hash64(list, Hash64(bytes_of(&header, 1)));
  Bytes bytes;
  for (const auto part : {bytes_of(&header, 1), list, std::span<const uint8_t>(behind)}) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return bytes;
}

TEST_F(DatasetIndexTest, OtherVersionsAndSections) {
  dataset_index::Header later;
  later.version = 2;
  Replace(Forge(later, {}, {}));
  EXPECT_EQ(OpenError(), Code::kUnimplemented);

  Replace(Forge({}, {{.kind = 77, .offset = 64, .bytes = 3, .checksum = 5}}, Bytes(3)));
  Result<DatasetIndex> index = DatasetIndex::Open(path_);
  ASSERT_TRUE(index.ok()) << index.error().ToString();  // a section that is not known
  EXPECT_FALSE(index->Has(1));

  Replace(Forge({}, {{.kind = 77, .offset = 65, .bytes = 3}}, Bytes(3)));  // not inside
  EXPECT_EQ(OpenError(), Code::kDataLoss);
  Replace(Forge({}, {{.kind = 77, .offset = ~uint64_t{0}, .bytes = 2}}, Bytes(3)));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

// A file of this list of samples, and records behind it, with the right checksums.
Bytes ForgeTable(const std::vector<dataset_index::Slot>& slots, size_t record_bytes) {
  const uint64_t table = slots.size() * sizeof(slots[0]);
  Bytes behind(table + record_bytes, 9);
  std::memcpy(behind.data(), slots.data(), table);
  const uint64_t checksum = Hash64(std::span<const uint8_t>(behind).first(table));
  return Forge(
      {},
      {{.kind = dataset_index::kSamples, .offset = 96, .bytes = table, .checksum = checksum},
       {.kind = dataset_index::kCropIndexes, .offset = 96 + table, .bytes = record_bytes}},
      behind);
}

TEST_F(DatasetIndexTest, ForgedTables) {
  Replace(ForgeTable({{.key = 4, .offset = 1, .bytes = 2}, {}}, 3));
  EXPECT_EQ(Found(DatasetIndex::Open(path_).value(), 4), Bytes(2, 9));
  // Records that are not in the file.
  Replace(ForgeTable({{.key = 1, .offset = 0, .bytes = ~uint64_t{0}}, {}}, 3));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
  Replace(ForgeTable({{.key = 1, .offset = ~uint64_t{0}, .bytes = 2}, {}}, 3));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
  Replace(ForgeTable({{.key = 1, .offset = 1, .bytes = 3}, {}}, 3));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
  // No free slot: a search would go round for ever.
  Replace(ForgeTable({{.key = 1, .offset = 0, .bytes = 3}}, 3));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

TEST_F(DatasetIndexTest, TablesThatAreTooEmpty) {
  std::vector<dataset_index::Slot> slots(1024 + 64 * 2);
  slots[5] = {.key = 1, .offset = 0, .bytes = 3};
  slots[9] = {.key = 2, .offset = 0, .bytes = 3};
  Replace(ForgeTable(slots, 3));
  EXPECT_TRUE(DatasetIndex::Open(path_).ok());
  slots.resize(slots.size() + 64);
  Replace(ForgeTable(slots, 3));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

// Terabytes of holes, which take nothing of the disk.
TEST_F(DatasetIndexTest, HolesAreNoTable) {
  constexpr uint64_t kHole = uint64_t{24} << 36;
  dataset_index::Header header;
  header.sections = 1;
  header.file_bytes = 64 + kHole;
  const dataset_index::Section section{dataset_index::kSamples, 0, 64, kHole, 0};
  const auto bytes_of = [](const auto& value) {
    return std::span(reinterpret_cast<const uint8_t*>(&value), sizeof(value));
  };
  header.checksum = Hash64(bytes_of(section), Hash64(bytes_of(header)));
  Bytes bytes(64);
  std::memcpy(bytes.data(), &header, sizeof(header));
  std::memcpy(bytes.data() + sizeof(header), &section, sizeof(section));
  Replace(bytes);
  if (truncate(path_.c_str(), static_cast<off_t>(header.file_bytes)) != 0) {
    GTEST_SKIP() << "this file system has no such large files";
  }
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

// Far more bytes than what the file lists.
TEST_F(DatasetIndexTest, LongerThanItsList) {
  std::vector<dataset_index::Slot> slots = {{.key = 1, .offset = 0, .bytes = 3}, {}};
  Replace(ForgeTable(slots, 3 + (1 << 20)));
  EXPECT_TRUE(DatasetIndex::Open(path_).ok());
  Replace(ForgeTable(slots, 4 + (1 << 20)));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
  Replace(Forge({}, {}, Bytes(2 << 20)));
  EXPECT_EQ(OpenError(), Code::kDataLoss);
}

// All slots taken but one: a search for what is not there ends early.
TEST_F(DatasetIndexTest, SearchesAreBounded) {
  std::vector<dataset_index::Slot> slots(4096, {.key = 1, .offset = 0, .bytes = 3});
  slots.back() = {};
  slots[2000].key = 7;  // 2000 slots behind its first one
  slots[1000].key = 9;
  Replace(ForgeTable(slots, 3));
  const DatasetIndex index = DatasetIndex::Open(path_).value();
  EXPECT_FALSE(index.Has(7));
  EXPECT_TRUE(index.Has(9));
}

}  // namespace
}  // namespace stoker
