// Samples in TFRecord files: how records become samples, and the errors of files that are wrong.
#include "io/tfrecord/tfrecord.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "io/files/input_file.h"
#include "io/shards/shard_index_file.h"
#include "io/tfrecord/tfrecord_index_file.h"
#include "io/tfrecord/tfrecord_lists.h"
#include "io/tfrecord/tfrecord_records.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/read_sample.h"
#include "tests/testing/samples/shard_index_of.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using stoker::testing::BytesFeature;
using stoker::testing::BytesOfFile;
using stoker::testing::ExampleOf;
using stoker::testing::FloatFeature;
using stoker::testing::ImageRecord;
using stoker::testing::IntegerFeature;
using stoker::testing::ReadSample;
using stoker::testing::TempFolder;
using stoker::testing::TfRecordOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using Source = std::shared_ptr<const SampleSource>;

struct Unpacked {
  std::string image;
  std::vector<uint8_t> rows;
};

// Returns a sample as a reader reads it and a worker unpacks it.
Result<Unpacked> Take(const SampleSource& source, uint64_t id) {
  MemoryBudget budget(64 << 20);
  const ReadRequest read = ReadSample(source, id, budget);
  if (!read.status.ok()) return read.status.error();
  Unpacked sample;
  sample.rows.resize(LoadedBytes(source.fields()));
  const auto image = source.Unpack(id, {read.buffer.data(), read.size}, sample.rows);
  if (!image.ok()) return image.error();
  sample.image.assign(image->begin(), image->end());
  return sample;
}

std::string ImageOf(const SampleSource& source, uint64_t id) {
  return Take(source, id).value().image;
}

template <typename T>
std::vector<T> RowsOf(const SampleSource& source, uint64_t id) {
  const std::vector<uint8_t> bytes = Take(source, id).value().rows;
  std::vector<T> rows(bytes.size() / sizeof(T));
  std::memcpy(rows.data(), bytes.data(), bytes.size());
  return rows;
}

class TfRecordTest : public ::testing::Test {
 protected:
  std::string Shard(const std::string& bytes, const std::string& name = "a.tfrecord") const {
    return folder_.Write(name, bytes);
  }
  Source Opened(const std::string& pattern, const TfRecordOptions& options = {}) const {
    Result<Source> source = TfRecord(pattern, options);
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    return source.ok() ? *std::move(source) : nullptr;
  }
  Error Refused(const std::string& bytes, const TfRecordOptions& options = {}) const {
    const Result<Source> source = TfRecord(Shard(bytes), options);
    EXPECT_FALSE(source.ok());
    return source.ok() ? Error{} : source.error();
  }

  const TempFolder folder_;
};

TEST_F(TfRecordTest, RecordsOfAllFilesAreSamples) {
  Shard(ImageRecord("one", 1) + ImageRecord("two", -2), "train-0.tfrecord");
  Shard("", "train-1.tfrecord");
  Shard(ImageRecord("", 3), "train-2.tfrecord");
  const Source source = Opened(folder_.path() + "/train-*");
  ASSERT_EQ(source->size(), 3u);
  EXPECT_TRUE(source->has_records());
  EXPECT_EQ(source->label(), 1u);
  EXPECT_EQ(ImageOf(*source, 0), "one");
  EXPECT_EQ(ImageOf(*source, 1), "two");
  EXPECT_EQ(ImageOf(*source, 2), "");
  EXPECT_THAT(RowsOf<int64_t>(*source, 0), ElementsAre(1));
  EXPECT_THAT(RowsOf<int64_t>(*source, 1), ElementsAre(-2));
  EXPECT_THAT(RowsOf<int64_t>(*source, 2), ElementsAre(3));
  std::string path;
  source->PathOf(source->RangeOf(2).file, path);
  EXPECT_EQ(path, folder_.path() + "/train-2.tfrecord");
  EXPECT_EQ(Opened(folder_.path() + "/train-*")->size(), 3u) << "index files are no shards";
}

TEST_F(TfRecordTest, ColumnsHaveTheShapesOfTheFirstRecord) {
  const auto record = [](int64_t height, std::vector<float> box) {
    return TfRecordOf(ExampleOf(FloatFeature("box", box) + BytesFeature("x", {"image"}) +
                                IntegerFeature("height", {height})));
  };
  const std::string path = Shard(record(5, {1, 2}) + record(6, {3, 4}) + record(7, {5}));
  const Source source = Opened(path, {.image = "x", .label = "", .columns = {"box", "height"}});
  ASSERT_EQ(source->fields().size(), 3u);
  EXPECT_FALSE(source->label());
  EXPECT_EQ(DescribeRow(source->fields()[1]), "float32 (2)");
  EXPECT_EQ(DescribeRow(source->fields()[2]), "int64");
  const std::vector<uint8_t> rows = Take(*source, 1).value().rows;
  std::array<float, 2> box{};
  std::memcpy(box.data(), rows.data(), 8);
  EXPECT_THAT(box, ElementsAre(3, 4));
  EXPECT_EQ(rows[8], 6);
  const Error error = Take(*source, 2).error();
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_THAT(error.cause, HasSubstr("'box' has 1 value, and 2 in the first record"));
  EXPECT_THAT(error.advice, HasSubstr("Pad the values to one length"));
  EXPECT_EQ(error.file, path);
  EXPECT_EQ(error.offset, source->RangeOf(2).offset);
}

TEST_F(TfRecordTest, ByteStringsAreColumns) {
  const auto record = [](const std::string& features) {
    return TfRecordOf(ExampleOf(BytesFeature("image/encoded", {"i"}) + features));
  };
  const std::string longest(1 << 20, 'x');
  const std::string path = folder_.Write(
      "a.tfrecord", record(BytesFeature("text", {"one"}) + IntegerFeature("n", {7})) +
                        record(IntegerFeature("n", {8}) + BytesFeature("text", {longest})) +
                        record(IntegerFeature("n", {9}) + BytesFeature("text", {longest + "x"})) +
                        record(IntegerFeature("n", {9}) + BytesFeature("text", {"a", "b"})) +
                        record(IntegerFeature("n", {9}) + IntegerFeature("text", {1})) +
                        record(IntegerFeature("n", {9})));
  const Source source = Opened(path, {.label = "", .columns = {"text", "n"}});
  ASSERT_EQ(source->fields().size(), 3U);
  EXPECT_EQ(source->fields()[1].dtype, DType::kBytes);
  EXPECT_EQ(LoadedBytes(source->fields()), sizeof(std::string_view) + sizeof(int64_t));
  EXPECT_TRUE(Take(*source, 0).ok());
  EXPECT_TRUE(Take(*source, 1).ok());
  EXPECT_THAT(Take(*source, 2).error().cause, HasSubstr("has 1048577 bytes"));
  EXPECT_THAT(Take(*source, 3).error().cause, HasSubstr("has 2 byte strings"));
  EXPECT_THAT(Take(*source, 4).error().cause, HasSubstr("is int64, and bytes in the first record"));
  EXPECT_THAT(Take(*source, 5).error().cause, HasSubstr("no feature 'text'"));
  EXPECT_EQ(Take(*source, 5).error().code, Code::kUnimplemented);
}

TEST_F(TfRecordTest, SaysWhatTheFirstRecordHas) {
  const std::string record = TfRecordOf(ExampleOf(
      BytesFeature("image", {"i"}) + IntegerFeature("two", {1, 2}) + FloatFeature("f", {1}) +
      BytesFeature("text", {"t", "u"}) + IntegerFeature("empty", {})));
  const auto cause = [&](const TfRecordOptions& options) { return Refused(record, options).cause; };
  EXPECT_THAT(Refused(record).ToString(),
              HasSubstr("a.tfrecord at byte 0: the first record has no feature 'image/encoded'; it "
                        "has image (bytes), two (int64), f (float), text (bytes)"));
  const std::string odd = TfRecordOf(
      ExampleOf(BytesFeature("a\x1b[31m", {}) + BytesFeature(std::string(1000, 'b'), {"i"})));
  EXPECT_THAT(Refused(odd).cause,
              EndsWith("it has a?[31m (bytes), " + std::string(100, 'b') + " (bytes)"));
  EXPECT_THAT(cause({.image = "f", .label = ""}), HasSubstr("not an encoded image"));
  EXPECT_THAT(cause({.image = "image", .label = "two"}), HasSubstr("is not a label"));
  EXPECT_THAT(cause({.image = "image", .label = "f"}), HasSubstr("is not a label"));
  EXPECT_THAT(cause({.image = "image", .label = "text"}), HasSubstr("is not a label"));
  EXPECT_THAT(cause({.image = "image", .label = "", .columns = {"text"}}),
              HasSubstr("'text' holds 2 byte strings"));
  EXPECT_THAT(cause({.image = "image", .label = "", .columns = {"empty"}}),
              HasSubstr("has 0 values"));
  EXPECT_THAT(cause({.image = "image", .label = "", .columns = {"two", "two"}}),
              HasSubstr("twice"));
  EXPECT_THAT(cause({.image = "image", .label = "", .columns = {"label"}}), HasSubstr("'label'"));
  EXPECT_THAT(cause({.image = "image", .label = "", .columns = {"a\nb"}}), HasSubstr("'a\\nb'"));
  EXPECT_THAT(cause({.image = ""}), HasSubstr("image is empty"));
  EXPECT_THAT(cause({.label = "", .class_names = {"a"}}), HasSubstr("no label"));
  EXPECT_THAT(cause({.columns = std::vector<std::string>(63, "x")}), HasSubstr("twice"));
}

// Advice that suits what has another number of values, in the first record and in others.
TEST_F(TfRecordTest, SaysHowRecordsHaveAsManyValues) {
  const auto record = [](std::vector<std::string> images, std::vector<int64_t> labels,
                         std::vector<float> box, std::vector<std::string> text) {
    return TfRecordOf(ExampleOf(BytesFeature("image", images) + IntegerFeature("label", labels) +
                                FloatFeature("box", box) + BytesFeature("text", text)));
  };
  const std::string sound = record({"i"}, {1}, {1, 2}, {"t"});
  const struct {
    const char* what;
    std::string other;
    const char* advice;
    std::optional<Code> in_first;  // none: found when it is read
  } cases[] = {
      {"images", record({"i", "j"}, {1}, {1, 2}, {"t"}), "Write one encoded image in each record",
       std::nullopt},
      {"labels", record({"i"}, {1, 2}, {1, 2}, {"t"}),
       "Write one integer in each record, or give label=None", Code::kInvalidArgument},
      {"box", record({"i"}, {1}, {}, {"t"}), "Pad the values to one length", Code::kUnimplemented},
      {"text", record({"i"}, {1}, {1, 2}, {"t", "u"}), "Write one in each record (tf.io",
       Code::kUnimplemented},
  };
  const TfRecordOptions options{.image = "image", .label = "label", .columns = {"box", "text"}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.what);
    const Error later = Take(*Opened(Shard(sound + one.other), options), 1).error();
    EXPECT_EQ(later.code, Code::kUnimplemented);
    EXPECT_THAT(later.advice, HasSubstr(one.advice));
    if (!one.in_first) continue;
    const Error first = Refused(one.other + sound, options);
    EXPECT_EQ(first.code, *one.in_first);
    EXPECT_THAT(first.advice, HasSubstr(one.advice));
  }
}

TEST_F(TfRecordTest, LabelsHaveClassNames) {
  const std::string path = Shard(ImageRecord("a", 1) + ImageRecord("b", 2) + ImageRecord("c", -1));
  const Source source = Opened(path, {.class_names = {"cat", "dog"}});
  EXPECT_THAT(source->classes(), ElementsAre("cat", "dog"));
  EXPECT_TRUE(Take(*source, 0).ok());
  EXPECT_THAT(Take(*source, 1).error().cause, HasSubstr("label 2 has no class name"));
  EXPECT_THAT(Take(*source, 2).error().cause, HasSubstr("label -1 has no class name"));
}

TEST_F(TfRecordTest, NamesTheDamagedPlace) {
  const std::string one = ImageRecord("one", 1), two = ImageRecord("a second image", 2);
  const uint64_t begin = one.size();
  const auto refused = [&](const std::string& bytes, uint64_t offset, const char* words) {
    const Error error = Refused(bytes);
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_EQ(error.file, folder_.path() + "/a.tfrecord");
    EXPECT_EQ(error.offset, offset) << error.ToString();
    EXPECT_THAT(error.cause, HasSubstr(words));
  };
  for (size_t size = begin + 1; size < begin + two.size(); ++size) {
    refused((one + two).substr(0, size), begin, "cut off");
  }
  for (size_t at = 0; at < kTfRecordHeader; ++at) {
    std::string flipped = one + two;
    flipped[begin + at] ^= 4;
    refused(flipped, begin, "checksum of a record's length");
    flipped = one + two;
    flipped[at] ^= 4;
    refused(flipped, 0, "not a TFRecord file");
  }
  refused("GIF89a", 0, "not a TFRecord file");
  refused(std::string(1000, '\0'), 0, "not a TFRecord file");
  // The largest possible length, with its checksum.
  std::string largest(8, '\xff');
  const uint32_t crc = MaskedCrc({reinterpret_cast<const uint8_t*>(largest.data()), 8});
  largest.append(reinterpret_cast<const char*>(&crc), 4);
  refused(one + largest + "data and checksum", begin, "cut off");
}

TEST_F(TfRecordTest, ChecksTheDataWhenItIsRead) {
  const std::string one = ImageRecord("one", 1), two = ImageRecord("two", 2);
  for (size_t at = kTfRecordHeader; at < two.size(); ++at) {
    std::string bytes = one + two;
    bytes[one.size() + at] ^= 1;
    const std::string path = Shard(bytes);
    const Source source = Opened(path);
    EXPECT_TRUE(Take(*source, 0).ok());
    const Error error = Take(*source, 1).error();
    EXPECT_EQ(error.code, Code::kDataLoss);
    EXPECT_THAT(error.cause, HasSubstr("checksum of the record's data"));
    EXPECT_EQ(error.file, path);
    EXPECT_EQ(error.offset, one.size());
  }
}

TEST_F(TfRecordTest, RefusesRecordsOfAnotherKindWhenTheyAreRead) {
  const std::string one = ImageRecord("one", 1);
  const auto second = [&](const std::string& data, Code code = Code::kUnimplemented) {
    const Source source = Opened(Shard(one + TfRecordOf(data)));
    const Error error = Take(*source, 1).error();
    EXPECT_EQ(error.code, code);
    EXPECT_EQ(error.offset, one.size());
    return error.cause;
  };
  const std::string image = BytesFeature("image/encoded", {"i"});
  EXPECT_THAT(second("\xff\xd8\xff", Code::kDataLoss), HasSubstr("not a tf.train.Example"));
  EXPECT_THAT(second(""), HasSubstr("no feature 'image/encoded'"));
  EXPECT_THAT(second(ExampleOf(image)), HasSubstr("no feature 'image/class/label'"));
  EXPECT_THAT(second(ExampleOf(image + FloatFeature("image/class/label", {1}))),
              HasSubstr("'image/class/label' is float, and int64 in the first record"));
  EXPECT_THAT(second(ExampleOf(image + IntegerFeature("image/class/label", {1, 2}))),
              HasSubstr("has 2 values, and 1 in the first record"));
}

TEST_F(TfRecordTest, SaysHowToDecompress) {
  const Error gzip = Refused("\x1f\x8b\x08 and so on, for a while");
  EXPECT_EQ(gzip.code, Code::kUnimplemented);
  EXPECT_THAT(gzip.ToString(), HasSubstr("gunzip"));
  const Error zlib = Refused("\x78\x9c and so on, for a while");
  EXPECT_EQ(zlib.code, Code::kUnimplemented);
  EXPECT_THAT(zlib.ToString(), HasSubstr("zlib.decompressobj"));
}

TEST_F(TfRecordTest, RefusesFilesWithoutRecords) {
  EXPECT_THAT(Refused("").cause, HasSubstr("no record in 1 file"));
  EXPECT_EQ(TfRecord(folder_.path() + "/none-*").error().code, Code::kNotFound);
  EXPECT_EQ(TfRecord(folder_.path() + "/none").error().code, Code::kNotFound);
  EXPECT_EQ(TfRecord(folder_.path()).error().code, Code::kInvalidArgument);
}

// Small records are read in windows, large ones skipped: all sizes around that.
TEST_F(TfRecordTest, IndexesRecordsOfAllSizes) {
  std::string bytes;
  std::vector<uint64_t> ends;
  for (size_t i = 0; i < 400; ++i) {
    const size_t size = i % 7 == 0 ? i * 150 : i % 5 == 0 ? 65'520 + i : i % 40;
    bytes += TfRecordOf(std::string(size, 'x'));
    ends.push_back(bytes.size());
  }
  FileStamp stamp;
  const Result<TfRecords> records = ReadTfRecords(InputFile::Open(Shard(bytes)).value(), stamp);
  ASSERT_TRUE(records.ok());
  EXPECT_EQ(records->ends, ends);
  EXPECT_EQ(stamp.bytes, bytes.size());
}

TEST_F(TfRecordTest, TheFingerprintKnowsContentAndNoFiles) {
  const std::string one = ImageRecord("one", 1), two = ImageRecord("two", 2),
                    other = ImageRecord("two", 3);
  const auto print = [&](const std::vector<std::string>& shards) {
    std::string pattern;
    for (size_t i = 0; i < shards.size(); ++i) {
      const std::string path = Shard(shards[i], "p" + std::to_string(i));
      fs::remove(testing::ShardIndexOf(path));
      pattern += (i == 0 ? "" : "::") + path;
    }
    return Opened(pattern)->Fingerprint();
  };
  EXPECT_EQ(print({one + two + one}), print({one, two + one}));
  EXPECT_EQ(print({one + two + one}), print({one + two, "", one}));
  EXPECT_NE(print({one + two}), print({two + one}));
  EXPECT_NE(print({one + two}), print({one + other}));
  EXPECT_NE(print({one + two}), print({one + two + one}));
}

TEST_F(TfRecordTest, AnIndexIsReusedAndChecked) {
  const std::string one = ImageRecord("one", 1);
  const std::string path = Shard(one + one);
  const std::string index_path = testing::ShardIndexOf(path);
  folder_.Rest();
  EXPECT_EQ(Opened(path)->size(), 2u);
  const std::string index = BytesOfFile(index_path);
  EXPECT_EQ(index.size(), sizeof(ShardIndexHeader) + 2 * 8);
  // An index that says something else, and holds, shows that it is used.
  FileStamp stamp;
  TfRecords records = ReadTfRecords(InputFile::Open(path).value(), stamp).value();
  records.ends = {records.ends.back()};
  ASSERT_TRUE(WriteShardIndex(path, PackTfRecordIndex(records, stamp)).ok());
  const Result<Source> joined = TfRecord(path);
  EXPECT_THAT(joined.error().ToString(), HasSubstr("has changed since it was indexed"));
  for (const std::string& damaged :
       {std::string(), index.substr(0, index.size() - 1), std::string(index.size(), '?'),
        "STKTARIX" + index.substr(8)}) {
    folder_.Write(index_path, damaged);
    EXPECT_EQ(Opened(path)->size(), 2u);
    EXPECT_EQ(BytesOfFile(index_path), index) << "it is mended";
  }
  Shard(one + one + one);
  EXPECT_EQ(Opened(path)->size(), 3u);
  const std::string new_path = testing::ShardIndexOf(path);
  fs::remove(new_path);
  fs::create_directories(new_path + "/in the way");
  EXPECT_EQ(Opened(path)->size(), 3u);
}

// An Example of two or more objects, whose boxes are those of the Object Detection API.
std::string SceneRecord(const std::vector<float>& xmin, const std::vector<int64_t>& labels) {
  const std::vector<float> others(xmin.size(), 7);
  return TfRecordOf(ExampleOf(FloatFeature("box/ymin", others) + FloatFeature("box/xmin", xmin) +
                              BytesFeature("image/encoded", {"x"}) +
                              FloatFeature("box/xmax", others) + FloatFeature("box/ymax", others) +
                              IntegerFeature("label", labels)));
}

TfRecordOptions Scenes(const char* columns = "boxes,boxes,box\nlabels,object,label,uint8") {
  return {.label = "", .keyed = ParseKeyedColumns(columns).value()};
}

TEST_F(TfRecordTest, ObjectsAreInMemory) {
  const std::string path =
      Shard(SceneRecord({1, 2}, {3, 4}) + ImageRecord("none", 1) + SceneRecord({5}, {6}));
  const std::string index_path = testing::ShardIndexOf(path);
  folder_.Rest();
  for (int by_index = 0; by_index < 2; ++by_index) {
    const Source source = Opened(path, Scenes());
    ASSERT_EQ(source->fields().size(), 3U);
    EXPECT_EQ(source->max_objects(), 2U);
    std::vector<float> boxes(8);
    std::memcpy(boxes.data(), source->View(1, 0).data(), source->View(1, 0).size());
    EXPECT_THAT(boxes, ElementsAre(1, 7, 7, 7, 2, 7, 7, 7));
    EXPECT_TRUE(source->View(1, 1).empty());
    EXPECT_THAT(source->View(2, 2), ElementsAre(6));
    EXPECT_EQ(ImageOf(*source, 1), "none");
    EXPECT_TRUE(fs::exists(index_path));
  }
  EXPECT_NE(Opened(path, Scenes())->Fingerprint(),
            Opened(path, Scenes("boxes,boxes,box"))->Fingerprint());
  const auto refused = [&](const std::string& second, const char* columns) {
    const Error error = Refused(SceneRecord({1, 2}, {3, 4}) + second, Scenes(columns));
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    return error.cause;
  };
  constexpr char kBoth[] = "boxes,boxes,box\nlabels,object,label";
  EXPECT_THAT(refused(SceneRecord({1}, {3, 4}), kBoth), HasSubstr("'boxes' has 1 object"));
  EXPECT_THAT(refused("", "k,keypoints,box"), HasSubstr("is of masks or keypoints"));
  EXPECT_THAT(refused("", "b,boxes,box,xywh"), HasSubstr("the format xywh"));
  EXPECT_THAT(refused("", "b,boxes,other"), HasSubstr("no record has the feature"));
  EXPECT_THAT(refused("", "v,value,label\nv2,value,no"), HasSubstr("no feature 'no'"));
}

TEST(TfRecordListsFile, RefusesListsThatCannotBe) {
  const FileStamp stamp{.bytes = 100, .modified_ns = 1};
  const auto accepts = [&stamp](TfRecordLists lists) {
    const auto back = UnpackTfRecordLists(PackTfRecordLists(lists, stamp), stamp, 2);
    EXPECT_TRUE(!back || (back->ends == lists.ends && back->kinds == lists.kinds));
    return back.has_value();
  };
  EXPECT_TRUE(accepts({{0, 3}, {0, 2}, {1, 2}}));
  EXPECT_FALSE(accepts({{0, 4}, {0, 2}, {1, 2}})) << "no kind";
  EXPECT_FALSE(accepts({{0, 3}, {0, 3}, {1, 2}})) << "after the end";
  EXPECT_FALSE(accepts({{0, 3}, {0, 1}, {1, 2}})) << "a rest";
  EXPECT_FALSE(accepts({{0, 3}, {3, 2}, {1, 2}})) << "backwards";
  EXPECT_FALSE(accepts({{0}, {2}, {1, 2}})) << "another number of records";
  EXPECT_FALSE(accepts({{0, 3}, {~uint64_t{0}, 2}, {1, 2}})) << "overflow";
}

TEST(TfRecordIndexFile, RefusesRecordsThatCannotBe) {
  const FileStamp stamp{.bytes = 100, .modified_ns = 1};
  const auto accepts = [&stamp](std::vector<uint64_t> ends) {
    const TfRecords all{.ends = std::move(ends), .content = 5};
    const auto back = UnpackTfRecordIndex(PackTfRecordIndex(all, stamp), stamp);
    EXPECT_TRUE(!back || (back->ends == all.ends && back->content == 5));
    return back.has_value();
  };
  EXPECT_TRUE(accepts({100}));
  EXPECT_TRUE(accepts({16, 84, 100}));
  EXPECT_FALSE(accepts({})) << "the file is not empty";
  EXPECT_FALSE(accepts({16, 84})) << "a rest";
  EXPECT_FALSE(accepts({101})) << "behind the end";
  EXPECT_FALSE(accepts({15, 100})) << "no room for a header";
  EXPECT_FALSE(accepts({100, 100})) << "nothing";
  EXPECT_FALSE(accepts({60, 40, 100})) << "backwards";
  EXPECT_FALSE(accepts({~uint64_t{0}, 100})) << "overflow";
  const TfRecords sound{.ends = {100}, .content = 0};
  EXPECT_FALSE(
      UnpackTfRecordIndex(PackTfRecordIndex(sound, stamp), {.bytes = 100, .modified_ns = 2}));
}

}  // namespace
}  // namespace stoker
