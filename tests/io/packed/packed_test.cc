// A packed set has the samples of its folder, and damage to it is noticed.
#include "io/packed/packed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "io/folder/image_folder.h"
#include "io/packed/open_packed.h"
#include "io/packed/packed_index.h"
#include "io/packed/packed_merge.h"
#include "io/packed/packed_shard.h"
#include "io/samples/sample_reads.h"
#include "tests/testing/samples/make_packed.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using packed_set::Entry;
using packed_set::Sample;
using packed_set::Shard;
using testing::BytesOfFile;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::MakePackedSet;
using testing::NamedFiles;
using Source = std::shared_ptr<const SampleSource>;

// In folders whose order is not that of their paths with slashes, with names of any bytes.
const NamedFiles kFiles = {
    {"b/1.jpg", "one"},        {"b/2.PNG", std::string(5000, 'x')},
    {"b-c/1.jpg", ""},         {"a/d/e/1.jpg", "four"},
    {"a/d-1/1.jpg", "five"},   {"a/d/1.jpg", "six"},
    {"a/ \n'\".jpg", "seven"}, {"a/\xff\xfe.jpg", "eight"},
    {"a/z.jpg", "nine"},       {"c.jpg/x.jpg", "ten"},
    {"B/1.jpg", "eleven"},     {"\xc3\xa9/1.webp", "twelve"},
};

class PackedTest : public ::testing::Test {
 protected:
  PackedTest() {
    fs::create_directory(Set());
    MakePackedSet(Set(), kFiles, 5);
  }

  std::string Set() const { return folder_.Path("set"); }
  std::string Index() const { return Set() + "/index.stoker"; }
  std::string ShardPath(int shard) const {
    return Set() + "/" + packed_set::ShardName(static_cast<uint32_t>(shard));
  }
  Error OpenError() const {
    const Result<Source> source = Packed(Set());
    EXPECT_FALSE(source.ok());
    return source.ok() ? Error{Code::kCancelled, "it opens"} : source.error();
  }
  // What the reading of every sample gives: its bytes, or the error.
  static Result<std::string> Read(const SampleSource& source, uint64_t id) {
    MemoryBudget budget(1 << 20);
    ReadRequest request;
    request.buffer = GrowingBuffer(budget);
    SampleReads(source).Read(id, request);
    if (!request.status.ok()) return request.status.error();
    const auto image = source.Unpack(id, {request.buffer.data(), request.size}, {});
    if (!image.ok()) return image.error();
    return std::string(image->begin(), image->end());
  }
  void Replace(const std::string& path, const std::string& bytes) const {
    fs::remove(path);
    folder_.Write(fs::relative(path, folder_.path()), bytes);
  }

  testing::TempFolder folder_;
};

TEST_F(PackedTest, HasWhatTheFolderHas) {
  for (const auto& [path, bytes] : kFiles) folder_.Write("photos/" + path, bytes);
  const Source folder = ImageFolder(folder_.Path("photos")).value();
  const Source packed = Packed(Set()).value();
  ASSERT_EQ(packed->size(), folder->size());
  EXPECT_EQ(packed->classes(), folder->classes());
  EXPECT_EQ(packed->Fingerprint(), folder->Fingerprint());
  EXPECT_EQ(packed->files(), 3u);
  std::string path, name;
  for (uint64_t id = 0; id < folder->size(); ++id) {
    folder->PathOf(folder->RangeOf(id).file, path);
    packed->NameOf(id, name);
    EXPECT_EQ(folder_.Path("photos/") + name, path);
    EXPECT_EQ(packed->LabelOf(id), folder->LabelOf(id));
    EXPECT_EQ(Read(*packed, id).value(), BytesOfFile(path)) << name;
  }
}

TEST_F(PackedTest, HasWhatAFlatFolderHas) {
  const NamedFiles flat = {{"b.jpg", "b"}, {"a.png", "a"}, {"c d.jpg", "c"}};
  fs::create_directory(folder_.Path("flat-set"));
  MakePackedSet(folder_.Path("flat-set"), flat);
  for (const auto& [path, bytes] : flat) folder_.Write("flat/" + path, bytes);
  const Source folder = ImageFolder(folder_.Path("flat")).value();
  const Source packed = Packed(folder_.Path("flat-set")).value();
  EXPECT_EQ(packed->Fingerprint(), folder->Fingerprint());
  EXPECT_TRUE(packed->classes().empty());
  EXPECT_FALSE(packed->label());
  EXPECT_EQ(Read(*packed, 0).value(), "a");
}

TEST_F(PackedTest, SaysWhatIsMissing) {
  fs::rename(ShardPath(1), folder_.Path("shard"));
  Error error = OpenError();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.file, ShardPath(1));
  fs::rename(folder_.Path("shard"), ShardPath(1));

  fs::rename(Index(), folder_.Path("index"));
  EXPECT_TRUE(IsPackedSet(Set()));
  error = OpenError();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.cause, HasSubstr("packing has not finished"));
  for (int shard = 0; shard < 3; ++shard) fs::remove(ShardPath(shard));
  EXPECT_FALSE(IsPackedSet(Set()));
  EXPECT_EQ(OpenError().code, Code::kInvalidArgument);
  fs::remove(Set());
  EXPECT_EQ(OpenError().code, Code::kNotFound);
}

TEST_F(PackedTest, RefusesOtherShards) {
  const std::string first = BytesOfFile(ShardPath(0)), second = BytesOfFile(ShardPath(1));
  Replace(ShardPath(0), second);
  Error error = OpenError();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.file, ShardPath(0));
  EXPECT_THAT(error.cause, HasSubstr("another one than the index knows"));
  for (const size_t size : {first.size() - 1, size_t{100}, size_t{9}}) {
    Replace(ShardPath(0), first.substr(0, size));
    EXPECT_EQ(OpenError().code, Code::kDataLoss) << size;
  }
  Replace(ShardPath(0), "");
  EXPECT_EQ(OpenError().code, Code::kInvalidArgument);
}

TEST_F(PackedTest, RefusesOtherVersions) {
  for (const std::string& path : {Index(), ShardPath(0)}) {
    const std::string sound = BytesOfFile(path);
    for (const char version : {1, 5}) {
      std::string other = sound;
      other[8] = version;
      Replace(path, other);
      const Error error = OpenError();
      EXPECT_EQ(error.code, Code::kUnimplemented);
      EXPECT_EQ(error.file, path);
      EXPECT_THAT(error.cause, HasSubstr("of version " + std::to_string(version) +
                                         "; this stoker reads 2 to 4"));
      EXPECT_THAT(error.advice, HasSubstr("Pack the photographs again into a new folder"));
    }
    Replace(path, sound);
  }
}

// While the set is open, too.
TEST_F(PackedTest, NoticesADamagedRecordWhenItIsRead) {
  const Source packed = Packed(Set()).value();
  const ByteRange range = packed->RangeOf(3);
  std::string path;
  packed->PathOf(range.file, path);
  std::string shard = BytesOfFile(path);
  ASSERT_GT(range.length, packed_set::kCrcBytes);
  for (uint64_t at = 0; at < range.length; ++at) {
    std::string damaged = shard;
    damaged[range.offset + at] ^= 0x10;
    Replace(path, damaged);
    const Result<std::string> read = Read(*packed, 3);
    ASSERT_FALSE(read.ok()) << at;
    EXPECT_EQ(read.error().code, Code::kDataLoss);
    EXPECT_EQ(read.error().file, path);
    EXPECT_EQ(read.error().offset, range.offset);
    EXPECT_THAT(NamedError(*packed, 3, read.error()).cause, EndsWith("(a/\xff\xfe.jpg)"));
    for (const uint64_t other : {0, 1, 2, 4}) EXPECT_TRUE(Read(*packed, other).ok());
  }
  Replace(path, shard.substr(0, range.offset + 1));
  EXPECT_EQ(Read(*packed, 3).error().code, Code::kDataLoss);
}

TEST_F(PackedTest, NoticesEveryChangedByteOfTheIndex) {
  const std::string sound = BytesOfFile(Index());
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string changed = sound;
    changed[at] ^= 0x21;
    Replace(Index(), changed);
    const Code code = OpenError().code;
    EXPECT_TRUE(code == Code::kDataLoss || code == Code::kInvalidArgument ||
                code == Code::kUnimplemented)
        << at;
  }
  for (size_t size = 0; size < sound.size(); ++size) {
    Replace(Index(), sound.substr(0, size));
    EXPECT_EQ(OpenError().code, size < 8 ? Code::kInvalidArgument : Code::kDataLoss) << size;
  }
}

// By what it says of its records, or by the records' checksums.
TEST_F(PackedTest, NoticesEveryChangedByteOfAShard) {
  const std::string sound = BytesOfFile(ShardPath(2));
  const Source packed = Packed(Set()).value();
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string changed = sound;
    changed[at] ^= 0x42;
    Replace(ShardPath(2), changed);
    size_t bad = ReadPackedShard(ShardPath(2), 2).ok() ? 0 : 1;
    for (uint64_t id = 0; id < packed->size(); ++id) bad += Read(*packed, id).ok() ? 0 : 1;
    ASSERT_EQ(bad, 1u) << at;
  }
}

// ---- Sound checksums over anything else

class ForgedSetTest : public PackedTest {
 protected:
  ForgedSetTest() {
    const PackedIndex index = PackedIndex::Open(Index()).value();
    list_ = index.list();
    shards_ = index.shards();
    samples_ = index.samples();
  }
  // The error of the index with these shards and samples; kCancelled: there is none.
  Code Forge(const std::vector<Shard>& shards, const std::vector<Sample>& samples) const {
    EXPECT_TRUE(WritePackedIndex(Index(), list_, shards, samples).ok());
    const Result<PackedIndex> index = PackedIndex::Open(Index());
    return index.ok() ? Code::kCancelled : index.error().code;
  }
  Code ForgeSample(uint32_t shard, uint64_t offset, uint32_t bytes) const {
    std::vector<Sample> samples = samples_;
    samples[1].place = uint64_t{shard} << packed_set::kShardShift | offset;
    samples[1].bytes = bytes;
    return Forge(shards_, samples);
  }

  ImageList list_;
  std::vector<Shard> shards_;
  std::vector<Sample> samples_;
};

TEST_F(ForgedSetTest, EachRecordLiesInItsShard) {
  const uint64_t whole = shards_[1].bytes;
  EXPECT_EQ(Forge(shards_, samples_), Code::kCancelled);
  EXPECT_EQ(ForgeSample(1, whole - 14, 10), Code::kCancelled);
  EXPECT_EQ(ForgeSample(1, whole - 13, 10), Code::kDataLoss);
  EXPECT_EQ(ForgeSample(1, 0, ~uint32_t{0}), Code::kDataLoss);
  EXPECT_EQ(ForgeSample(1, packed_set::kMaxShardBytes - 1, 10), Code::kDataLoss);
  EXPECT_EQ(ForgeSample(3, 200, 10), Code::kDataLoss);
  EXPECT_EQ(ForgeSample((1 << 24) - 1, 200, 10), Code::kDataLoss);
}

TEST_F(ForgedSetTest, ShardsAndSamplesFitTogether) {
  EXPECT_EQ(Forge({}, samples_), Code::kDataLoss);
  EXPECT_EQ(Forge({shards_[0], {}, shards_[2]}, samples_), Code::kDataLoss) << "in no shard";
  std::vector<Shard> shards = shards_;
  shards[0].bytes = packed_set::kMaxShardBytes;
  EXPECT_EQ(Forge(shards, samples_), Code::kDataLoss);
  shards = shards_;
  shards.push_back({.bytes = 0, .fingerprint = 1});
  EXPECT_EQ(Forge(shards, samples_), Code::kDataLoss);
  shards.back() = {};  // a number that no shard has
  EXPECT_EQ(Forge(shards, samples_), Code::kCancelled);
  EXPECT_TRUE(Packed(Set()).ok());
  EXPECT_EQ(Forge(shards_, {samples_.begin(), samples_.end() - 1}), Code::kDataLoss);
  std::vector<Sample> samples = samples_;
  samples.push_back(samples[0]);
  EXPECT_EQ(Forge(shards_, samples), Code::kDataLoss);
}

TEST_F(ForgedSetTest, PartsLieInTheirRecord) {
  const auto forge = [&](const std::function<void(Sample&)>& change) {
    std::vector<Sample> samples = samples_;
    Sample& sample = samples[1];
    sample.form = packed_set::Form::kPackedJpeg;
    sample.bytes = 1000;
    sample.width = 80;
    sample.height = 64;
    sample.mcu_height = 16;
    sample.parts = {{0, 0, 0, 4, 4, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 16}};
    change(sample);
    std::vector<Shard> shards = shards_;
    for (Shard& shard : shards) shard.bytes += 1000;
    return Forge(shards, samples);
  };
  EXPECT_EQ(forge([](Sample&) {}), Code::kCancelled);
  EXPECT_EQ(forge([](Sample& s) { s.height = 0; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.height = 65536; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.form = packed_set::Form::kFile; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.bytes = 960; }), Code::kDataLoss) << "the last part ends later";
  EXPECT_EQ(forge([](Sample& s) { s.parts.at[15] = 17; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.parts.at[3] = 6; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.parts.at[7] = 7; }), Code::kDataLoss) << "no header";
  EXPECT_EQ(forge([](Sample& s) { s.parts = {}; }), Code::kDataLoss);
  EXPECT_EQ(forge([](Sample& s) { s.mcu_height = 0, s.parts = {}; }), Code::kCancelled);
}

TEST_F(ForgedSetTest, RowsAreAPartOfTheirRecord) {
  const auto long_one = std::ranges::find(samples_, 5000u, &Sample::bytes);
  const auto id = static_cast<uint64_t>(long_one - samples_.begin());
  long_one->form = packed_set::Form::kPackedJpeg;
  long_one->width = 80;
  long_one->height = 70;
  long_one->mcu_height = 16;
  long_one->parts = {{0, 0, 0, 4, 4, 4, 4, 5, 7, 8, 9, 10, 11, 79, 79, 79}};
  ASSERT_EQ(Forge(shards_, samples_), Code::kCancelled);
  const Source source = Packed(Set()).value();
  EXPECT_TRUE(source->has_row_ranges(id));
  EXPECT_FALSE(source->has_row_ranges(id + 1));
  const ByteRange record = source->RangeOf(id);
  const auto expect = [&](int top, int bottom, uint64_t begin, uint64_t end) {
    const ByteRange rows = source->RangeOfRows(id, top, bottom);
    EXPECT_EQ(rows.file, record.file);
    EXPECT_EQ(rows.offset, record.offset + begin);
    EXPECT_EQ(rows.length, end - begin);
  };
  expect(0, 70, 0, 5000);
  expect(33, 40, 5 * 64, 8 * 64);
  expect(31, 40, 4 * 64, 8 * 64);
  expect(48, 70, 5 * 64, 5000);
  EXPECT_EQ(source->RangeOfRows(id + 1, 0, 1).length, source->RangeOf(id + 1).length);
  // Only objects are cached, so a folder's rows are read as without a cache.
  const Source cached =
      Packed(Set(), {.cache = {.folder = folder_.Path("cache"), .bytes = 64 << 20}}).value();
  EXPECT_TRUE(cached->has_row_ranges(id));
  EXPECT_EQ(cached->RangeOfRows(id, 33, 40).length, uint64_t{3} * 64);
}

TEST_F(ForgedSetTest, OddFactsAreUnknown) {
  std::vector<Sample> samples = samples_;
  samples[0].orientation = 77;
  samples[0].width = ~uint32_t{0};
  EXPECT_EQ(Forge(shards_, samples), Code::kCancelled);
  EXPECT_EQ(PackedIndex::Open(Index())->FactsOf(0).orientation, 1);
}

// ---- Samples of several images

const NamedFiles kPairs = {{"b/1.jpg", "one"},   {"x/1.png", "mask 1"}, {"a-b/2.jpg", "two"},
                           {"2.png", "mask 2"},  {"a/3.jpg", "three"},  {"3.png", "mask 3"},
                           {"root.jpg", "four"}, {"r.png", ""}};

class PackedPairsTest : public PackedTest {
 protected:
  PackedPairsTest() {
    fs::remove_all(Set());
    fs::create_directory(Set());
    MakePackedSet(Set(), kPairs, 4, testing::ImageAndMask());
  }
};

TEST_F(PackedPairsTest, HaveWhatTheirFilesHave) {
  const Source packed = Packed(Set()).value();
  ASSERT_EQ(packed->size(), 4u);
  ASSERT_EQ(packed->pieces(), 2u);
  EXPECT_EQ(packed->fields()[0].name, "image");
  EXPECT_EQ(packed->fields()[1].name, "mask");
  EXPECT_EQ(packed->fields()[1].fill, 255);
  EXPECT_TRUE(packed->classes().empty());
  MemoryBudget budget(1 << 20);
  ReadRequest request;
  request.buffer = GrowingBuffer(budget);
  std::string name;
  constexpr size_t kOrder[] = {2, 4, 0, 6};  // bytewise by the images' paths, in kPairs
  for (uint64_t id = 0; id < 4; ++id) {
    const auto& [path, bytes] = kPairs[kOrder[id] + 1];
    EXPECT_EQ(Read(*packed, id).value(), kPairs[kOrder[id]].second);
    SampleReads(*packed).Read(id, request, 1);
    const auto mask = packed->UnpackPiece(id, 1, {request.buffer.data(), request.size}).value();
    EXPECT_EQ(std::string(mask.begin(), mask.end()), bytes);
    packed->NameOfPiece(id, 1, name);
    EXPECT_EQ(name, path);
  }
}

TEST_F(PackedPairsTest, EveryChangedByteOfTheIndexIsNoticed) {
  const std::string sound = BytesOfFile(Index());
  for (size_t at = 0; at < sound.size(); ++at) {
    std::string changed = sound;
    changed[at] ^= 0x21;
    Replace(Index(), changed);
    EXPECT_FALSE(Packed(Set()).ok()) << at;
  }
}

TEST_F(PackedPairsTest, ForgedPiecesAreRefused) {
  const PackedIndex index = PackedIndex::Open(Index()).value();
  const auto forge = [&](const std::function<void(PackedPieces&)>& change) {
    PackedPieces further = index.further();
    change(further);
    EXPECT_TRUE(
        WritePackedIndex(Index(), index.list(), index.shards(), index.samples(), further).ok());
    const Result<PackedIndex> forged = PackedIndex::Open(Index());
    return forged.ok() ? Code::kCancelled : forged.error().code;
  };
  const auto with_path = [&](const std::string& path) {
    return forge([&](PackedPieces& p) {
      PathTable paths;
      for (size_t i = 0; i + 1 < p.paths.size(); ++i) paths.Add(p.paths[i]);
      paths.Add(path);
      p.paths = paths;
    });
  };
  EXPECT_EQ(forge([](PackedPieces&) {}), Code::kCancelled);
  EXPECT_EQ(with_path("a/b.png"), Code::kCancelled);
  for (const char* const path : {"", "../a.png", "/a.png", "a//b.png", ".a.png"}) {
    EXPECT_EQ(with_path(path), Code::kDataLoss) << path;
  }
  const std::vector<std::function<void(PackedPieces&)>> lies = {
      [](PackedPieces& p) { p.samples.pop_back(); },
      [](PackedPieces& p) { p.samples.push_back(p.samples[0]); },
      [](PackedPieces& p) { p.samples[2].place = ~uint64_t{0}; },
      [](PackedPieces& p) {  // whose file would lie after the shard
        p.samples[0].form = packed_set::Form::kPackedMask;
        p.samples[0].file_bytes = ~uint32_t{0};
      },
      [](PackedPieces& p) { p.paths.Add("more.png"); },
      [](PackedPieces& p) { p.fields.pop_back(); },
      [](PackedPieces& p) { p.fields.push_back(p.fields[1]); },
      [](PackedPieces& p) { p.fields[1] = p.fields[0]; },
      [](PackedPieces& p) { p.fields[0].mask_bits = 8; },
      [](PackedPieces& p) { p.fields[1].mask_bits = 32; },
      [](PackedPieces& p) { p.fields[1].fill = 256; },
      [](PackedPieces& p) { p.fields[1].name.fill('x'); },
      [](PackedPieces& p) { p.fields[1].name = {}; },
      [](PackedPieces& p) {
        p.fields[1].name = {'.', '.'};
      },
      [](PackedPieces& p) {
        p.fields[1].name = {'a', '/', 'b'};
      },
  };
  for (size_t i = 0; i < lies.size(); ++i) EXPECT_EQ(forge(lies[i]), Code::kDataLoss) << i;
}

// Shards with one entry of any content.
class ForgedShardTest : public ::testing::Test {
 protected:
  Code Forge(std::string path, const std::function<void(Entry&)>& change = {}) const {
    const std::string file = folder_.Path("00007.stoker");
    SectionFileWriter writer = SectionFileWriter::Create(file, 3).value();
    Entry entry;
    entry.sample.place = uint64_t{7} << packed_set::kShardShift | writer.written();
    entry.sample.bytes = 6;
    entry.path_bytes = static_cast<uint32_t>(path.size());
    if (change) change(entry);
    const std::string record = "abcdef\x1\x2\x3\x4";
    EXPECT_TRUE(writer.Write(sections::ColumnBytes(record)).ok());
    writer.AddWritten(sections::kRecords);
    EXPECT_TRUE(writer.Add(sections::kEntries, sections::BytesOf(std::as_const(entry))).ok());
    EXPECT_TRUE(writer.Add(sections::kEntryPaths, sections::ColumnBytes(path)).ok());
    EXPECT_TRUE(writer.Commit(packed_set::kShardFile, 1).ok());
    const Result<PackedShard> shard = ReadPackedShard(file, 7);
    return shard.ok() ? Code::kCancelled : shard.error().code;
  }

  testing::TempFolder folder_;
};

TEST_F(ForgedShardTest, PathsStayBelowTheFolder) {
  for (const char* path : {"a", "a/b.jpg", "a/b/c d.jpg", "\xff/\n"}) {
    EXPECT_EQ(Forge(path), Code::kCancelled) << path;
  }
  for (const std::string& path :
       {std::string(""), std::string("/etc/passwd"), std::string("../a"), std::string("a/../../b"),
        std::string("."), std::string("a/./b"), std::string("a//b"), std::string("a/"),
        std::string(".hidden/a"), std::string("a\0b", 3)}) {
    EXPECT_EQ(Forge(path), Code::kDataLoss) << path;
  }
}

TEST_F(ForgedShardTest, RecordsLieInTheShard) {
  const std::vector<std::function<void(Entry&)>> lies = {
      [](Entry& e) { ++e.sample.bytes; },
      [](Entry& e) { e.sample.bytes = ~0u; },
      [](Entry& e) { ++e.sample.place; },
      [](Entry& e) { --e.sample.place; },
      [](Entry& e) { e.sample.place = 0; },
      [](Entry& e) { e.sample.place = ~uint64_t{0}; },
      [](Entry& e) { e.sample.place = uint64_t{7} << packed_set::kShardShift; },
      [](Entry& e) { e.sample.place += uint64_t{1} << packed_set::kShardShift; },
      [](Entry& e) { e.sample.mcu_height = 8; },
      [](Entry& e) { e.piece = 1; },
      [](Entry& e) {
        e.sample.form = packed_set::Form::kPackedMask;
        e.sample.file_bytes = 1;
      },
      [](Entry& e) { ++e.path_bytes; },
      [](Entry& e) { --e.path_bytes; },
      [](Entry& e) { e.path_bytes = ~0u; },
  };
  for (size_t i = 0; i < lies.size(); ++i) EXPECT_EQ(Forge("a/b", lies[i]), Code::kDataLoss) << i;
}

TEST(MergeShardsTest, RefusesPhotographsBesideClassFolders) {
  const Result<MergedSet> set = MergeShards({{"a/b.jpg", {}}, {"c.jpg", {}}});
  ASSERT_FALSE(set.ok());
  EXPECT_EQ(set.error().code, Code::kInvalidArgument);
  EXPECT_THAT(set.error().cause, HasSubstr("'c.jpg' would belong to no class"));
}

}  // namespace
}  // namespace stoker
