// Text members of tar archives as columns, and archives whose labels are left out.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/shards/shard_index_file.h"
#include "io/tar/tar.h"
#include "io/tar/tar_members.h"
#include "io/tar/tar_text_file.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/shard_index_of.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using testing::BytesOfFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TarEnd;
using testing::TarFile;
using testing::TarHeader;
using Source = std::shared_ptr<const SampleSource>;

// Returns the rows of all samples in a column of strings.
std::vector<std::string> TextsOf(const SampleSource& source, size_t field) {
  std::vector<uint64_t> ids(source.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::vector<std::string_view> rows(ids.size());
  source.FixedRows(field, ids, rows.data());
  return {rows.begin(), rows.end()};
}

class TarColumnsTest : public ::testing::Test {
 protected:
  std::string Shard(const std::string& bytes, const std::string& name = "a.tar") const {
    return folder_.Write(name, bytes);
  }
  Error Refused(const std::string& bytes, const TarOptions& options) const {
    const Result<Source> source = Tar(Shard(bytes), options);
    EXPECT_FALSE(source.ok());
    return source.ok() ? Error{} : source.error();
  }

  const testing::TempFolder folder_;
  const TarOptions captions_ = {.label = "", .columns = {{"caption", ".txt"}}};
};

TEST_F(TarColumnsTest, TextsAreColumns) {
  const std::string archive = Shard(
      TarFile("1.jpg", "x") + TarFile("1.txt", "a caption") + TarFile("1.cls", "7") +
      TarFile("1.Meta.JSON", "{}") + TarFile("1.bin", std::string("\0\xff", 2)) +
      TarFile("no image.txt", "unused") + TarFile("2.bin", "") + TarFile("2.meta.json", "[]") +
      TarFile("2.cls", "8") + TarFile("2.txt", "Käse") + TarFile("2.jpg", "y") + TarEnd());
  folder_.Rest();
  const TarOptions options = {
      .columns = {{"caption", ".txt"}, {"m", "meta.json"}, {"n", "bin"}, {"text of label", "cls"}}};
  for (int run = 0; run < 2; ++run) {  // the second one is from the index files
    const Source source = Tar(archive, options).value();
    const auto fields = source->fields();
    ASSERT_EQ(fields.size(), 6U);
    EXPECT_EQ(fields[2].name, "caption");
    EXPECT_EQ(fields[3].dtype, DType::kString);
    EXPECT_EQ(fields[4].dtype, DType::kBytes);
    EXPECT_EQ(source->LabelOf(1), 8);
    EXPECT_THAT(TextsOf(*source, 2), ElementsAre("a caption", "Käse"));
    EXPECT_THAT(TextsOf(*source, 3), ElementsAre("{}", "[]"));
    EXPECT_THAT(TextsOf(*source, 4), ElementsAre(std::string("\0\xff", 2), ""));
    EXPECT_THAT(TextsOf(*source, 5), ElementsAre("7", "8"));
    EXPECT_GE(source->memory_bytes(), 8 * sizeof(std::string_view) + 26);
    for (const char* part : {"", "txt", "meta.json", "bin", "cls"}) {
      EXPECT_TRUE(fs::exists(testing::ShardIndexOf(archive, part))) << part;
    }
  }
}

// Returns an .npy file with a row of two bytes.
std::string TwoBytes(std::string_view bytes, std::string_view shape = "(2,)") {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': ";
  header.append(shape).append("}");
  std::string file("\x93NUMPY\1\0", 8);
  file.append({static_cast<char>(header.size()), '\0'}).append(header).append(bytes);
  return file;
}

TEST_F(TarColumnsTest, ArraysComeWithTheImage) {
  const std::string first = TarFile("1.a.NPY", TwoBytes("ab")) + TarFile("1.txt", "one");
  const std::string second =
      TarFile("2.jpg", "photo") + TarFile("2.a.npy", TwoBytes("cd")) + TarFile("2.txt", "two");
  const std::string third = TarFile("3.txt", "three") + TarFile("3.jpg", "x") +
                            TarFile("3.a.npy", TwoBytes("efg", "(3,)"));
  const std::string bytes = first + TarFile("1.jpg", "image") + second + third + TarEnd();
  const std::string archive = Shard(bytes);
  const Source source =
      Tar(archive, {.label = "", .columns = {{"a", ".a.npy"}, {"caption", "txt"}}}).value();
  ASSERT_TRUE(source->has_records());
  EXPECT_EQ(source->fields()[1].dtype, DType::kU8);
  EXPECT_THAT(source->fields()[1].row_shape, ElementsAre(2));
  EXPECT_THAT(TextsOf(*source, 2), ElementsAre("one", "two", "three"));
  const auto unpacked = [&](uint64_t id) -> Result<std::string> {
    const ByteRange range = source->RangeOf(id);
    const std::string record = bytes.substr(range.offset, range.length);
    std::vector<uint8_t> row(2);
    const auto image =
        source->Unpack(id, {reinterpret_cast<const uint8_t*>(record.data()), record.size()}, row);
    if (!image.ok()) return image.error();
    return std::string(image->begin(), image->end()) + std::string(row.begin(), row.end());
  };
  EXPECT_EQ(unpacked(0).value(), "imageab");
  EXPECT_EQ(unpacked(1).value(), "photocd");
  const Error other = unpacked(2).error();
  EXPECT_EQ(other.file, archive);
  EXPECT_EQ(other.offset, bytes.find("\x93NUMPY", bytes.find("3.a.npy")));
  EXPECT_THAT(other.cause, AllOf(HasSubstr("column 'a'"), HasSubstr("uint8 (3)")));
  EXPECT_THAT(Refused(TarFile("1.jpg", "x") + TarEnd(), {.columns = {{"a", "npy"}}}).cause,
              HasSubstr("no member with the extension 'npy'"));
  const Error bad = Refused(TarFile("1.npy", "no") + TarFile("1.jpg", "x") + TarEnd(),
                            {.columns = {{"a", "npy"}}});
  EXPECT_EQ(bad.code, Code::kDataLoss);
  EXPECT_EQ(bad.offset, 512U);
  EXPECT_THAT(bad.cause, HasSubstr("the first sample, '1', determines the column"));
}

TEST_F(TarColumnsTest, ArraysMayBeFarFromTheImage) {
  constexpr uint64_t kVideo = uint64_t{5} << 30;
  const std::string begin = TarFile("1.jpg", "x") + TarHeader("1.mp4", kVideo);
  const std::string archive = Shard(begin);
  fs::resize_file(archive, begin.size() + kVideo);  // a hole
  const std::string array = TwoBytes("ab");
  std::ofstream(archive, std::ios::app | std::ios::binary) << TarFile("1.npy", array) << TarEnd();
  const Source source = Tar(archive, {.columns = {{"a", "npy"}}}).value();
  EXPECT_EQ(source->RangeOf(0).length, begin.size() + kVideo + array.size());
}

TEST_F(TarColumnsTest, TextsOfSeveralShardsAreInOrder) {
  std::vector<std::string> wanted;
  for (int shard = 0; shard < 10; ++shard) {
    std::string bytes;
    for (int i = 0; i < shard; ++i) {
      const std::string key = std::to_string(i);
      wanted.push_back(std::string(static_cast<size_t>(i), 'x') + std::to_string(shard));
      bytes += TarFile(key + ".txt", wanted.back()) + TarFile(key + ".jpg", "x");
    }
    Shard(bytes + TarEnd(), std::to_string(shard) + ".tar");
  }
  const std::string pattern = folder_.path() + "/{0..9}.tar";
  const Source first = Tar(pattern, captions_).value();
  EXPECT_EQ(TextsOf(*first, 1), wanted);
  const Source again = Tar(pattern, captions_).value();
  EXPECT_EQ(TextsOf(*again, 1), wanted);
  EXPECT_EQ(first->Fingerprint(), again->Fingerprint());
  EXPECT_NE(first->Fingerprint(), Tar(pattern, {.label = ""}).value()->Fingerprint());
}

TEST_F(TarColumnsTest, ColumnsAreAddedToAnIndexedArchive) {
  const std::string archive =
      Shard(TarFile("1.jpg", "x") + TarFile("1.txt", "one") + TarFile("1.json", "{}") + TarEnd());
  EXPECT_EQ(Tar(archive).value()->fields().size(), 1U);
  EXPECT_FALSE(fs::exists(testing::ShardIndexOf(archive, "txt")));
  EXPECT_THAT(TextsOf(*Tar(archive, captions_).value(), 1), ElementsAre("one"));
  const Source both = Tar(archive, {.columns = {{"j", "json"}, {"t", "txt"}}}).value();
  EXPECT_THAT(TextsOf(*both, 1), ElementsAre("{}"));
  EXPECT_THAT(TextsOf(*both, 2), ElementsAre("one"));
  EXPECT_EQ(Tar(archive).value()->fields().size(), 1U);
}

TEST_F(TarColumnsTest, LabelsCanBeLeftOut) {
  const std::string mixed =
      TarFile("1.jpg", "x") + TarFile("1.cls", "cat") + TarFile("2.jpg", "y") + TarEnd();
  EXPECT_THAT(Refused(mixed, {}).advice, HasSubstr("label=None"));
  EXPECT_THAT(Refused(mixed, {}).cause, HasSubstr("'1.cls' is not an integer"));  // by its index
  const Source source = Tar(Shard(mixed), {.label = ""}).value();
  EXPECT_EQ(source->size(), 2U);
  EXPECT_FALSE(source->label());
  const std::string named = TarFile("1.jpg", "x") + TarFile("1.cls", "cat") + TarEnd();
  const Source texts = Tar(Shard(named), {.label = "", .columns = {{"class", ".cls"}}}).value();
  EXPECT_THAT(TextsOf(*texts, 1), ElementsAre("cat"));
}

TEST_F(TarColumnsTest, RefusesTextsThatCannotBe) {
  const std::string one = TarFile("1.txt", "a") + TarFile("1.jpg", "x");
  Error error = Refused(one + TarFile("2.jpg", "y") + TarEnd(), captions_);
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.offset, 5 * kTarBlock);
  EXPECT_THAT(error.cause, HasSubstr("'2' has no member with the extension 'txt'"));
  error = Refused(one + TarFile("2.jpg", "y") + TarFile("2.txt", "\xff") + TarEnd(), captions_);
  EXPECT_EQ(error.offset, 7 * kTarBlock);
  EXPECT_THAT(error.cause, HasSubstr("'2.txt' is not UTF-8"));
  const std::string longest(kLongestTarText, 'x');
  error = Refused(one + TarFile("2.txt", longest + "x") + TarEnd(), captions_);
  EXPECT_EQ(error.offset, 5 * kTarBlock);
  EXPECT_THAT(error.cause, HasSubstr("'2.txt' has 1048577 bytes"));
  EXPECT_EQ(Tar(Shard(TarFile("2.txt", longest) + TarFile("2.jpg", "") + TarEnd()), captions_)
                .value()
                ->size(),
            1U);
  error = Refused(TarFile("2.jpg", "") + TarHeader("2.txt", 100), captions_);
  EXPECT_EQ(error.code, Code::kDataLoss);
}

TEST_F(TarColumnsTest, TheirMemoryIsLimited) {
  Shard(TarFile("1.jpg", "x") + TarFile("1.txt", "0123456789") + TarEnd(), "0.tar");
  Shard(TarFile("2.jpg", "x") + TarFile("2.txt", "0123456789") + TarEnd(), "1.tar");
  TarOptions options = captions_;
  options.threads = 1;
  options.column_bytes = 2 * (16 + 10);
  const std::string pattern = folder_.path() + "/{0,1}.tar";
  for (int run = 0; run < 2; ++run) {  // the second one is from the index files
    options.column_bytes = 2 * (16 + 10);
    EXPECT_TRUE(Tar(pattern, options).ok());
    --options.column_bytes;
    const Error error = Tar(pattern, options).error();
    EXPECT_EQ(error.code, Code::kResourceExhausted);
    EXPECT_EQ(error.file, folder_.path() + "/1.tar");
    EXPECT_THAT(error.cause, HasSubstr("more than 51 bytes"));
  }
}

TEST_F(TarColumnsTest, RefusesColumnsThatCannotBe) {
  const std::string bytes = TarFile("1.jpg", "x") + TarFile("1.txt", "a") + TarEnd();
  const auto cause = [&](std::vector<TarColumn> columns, const std::string& label = "cls") {
    const Error error = Refused(bytes, {.label = label, .columns = std::move(columns)});
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    return error.cause;
  };
  EXPECT_THAT(cause({{"", "txt"}}), HasSubstr("the name ''"));
  EXPECT_THAT(cause({{"image", "txt"}}), HasSubstr("the name 'image'"));
  EXPECT_THAT(cause({{"label", "txt"}}), HasSubstr("the name 'label'"));
  EXPECT_THAT(cause({{"a", "txt"}, {"a", "json"}}), HasSubstr("the name 'a'"));
  EXPECT_THAT(cause({{"a", "txt"}, {"b", ".TXT"}}), HasSubstr("extension 'txt'"));
  for (const char* wrong : {"", ".", "a b", "a/b", "a;b"}) {
    EXPECT_THAT(cause({{"a", wrong}}), HasSubstr("must have one extension")) << wrong;
  }
  EXPECT_THAT(cause({}, "json"), HasSubstr("label is 'json'"));
  EXPECT_TRUE(Tar(Shard(bytes), {.label = ".CLS"}).ok());
}

TEST_F(TarColumnsTest, IndexesAnewWhenAnIndexOfTextsIsDamaged) {
  const std::string archive = Shard(TarFile("1.jpg", "x") + TarFile("1.txt", "abc") + TarEnd());
  folder_.Rest();
  ASSERT_TRUE(Tar(archive, captions_).ok());
  const std::string path = testing::ShardIndexOf(archive, "txt"), index = BytesOfFile(path);
  for (size_t at = 0; at < index.size(); ++at) {
    std::string damaged = index;
    damaged[at] ^= 1;
    folder_.Write(path, damaged);
    EXPECT_THAT(TextsOf(*Tar(archive, captions_).value(), 1), ElementsAre("abc"));
    EXPECT_EQ(BytesOfFile(path), index) << "it is mended";
  }
  fs::permissions(path, fs::perms(0666));
  folder_.Write(path, std::string(index));
  EXPECT_THAT(TextsOf(*Tar(archive, captions_).value(), 1), ElementsAre("abc"));
}

TEST(TarTextFile, GivesBackTextsOfTheirMembersOnly) {
  const FileStamp stamp{.bytes = 100'000, .modified_ns = 1};
  const TarMembers all{{{512, 3, 5}, {2048, 0, 10}, {4096, 2, 15}}, "1.jpg1.txt2.TXT", {}};
  const auto accepts = [&](const std::string& bytes, std::vector<uint64_t> ends,
                           const char* extension = "txt") {
    const TarMembers::Texts texts{{bytes.begin(), bytes.end()}, std::move(ends)};
    const std::vector<uint8_t> packed = PackTarTexts(texts, stamp);
    const auto back = UnpackTarTexts(packed, stamp, all, extension);
    EXPECT_TRUE(!back || back->bytes == texts.bytes);
    EXPECT_FALSE(UnpackTarTexts(packed, {.bytes = 100'001, .modified_ns = 1}, all, extension));
    return back.has_value();
  };
  EXPECT_TRUE(accepts("ab", {0, 2}));
  EXPECT_TRUE(accepts("abc", {3}, "jpg"));
  EXPECT_TRUE(accepts("", {}, "json"));
  EXPECT_FALSE(accepts("ab", {1, 2})) << "other lengths";
  EXPECT_FALSE(accepts("ab", {0})) << "too few";
  EXPECT_FALSE(accepts("ab", {0, 2, 2})) << "too many";
  EXPECT_FALSE(accepts("abc", {0, 2})) << "bytes are left";
  EXPECT_FALSE(accepts("a", {0, 2})) << "too few bytes";
  EXPECT_FALSE(accepts("ab", {3, 2})) << "falling";
}

// Returns an archive of two samples with a mask, and a JSON member each.
std::string Scenes(const std::string& first, const std::string& second) {
  return TarFile("1.jpg", "image") + TarFile("1.png", "mask") + TarFile("1.json", first) +
         TarFile("2.json", second) + TarFile("2.png", "other mask") + TarFile("2.jpg", "x") +
         TarEnd();
}

TarOptions KeyedBy(const char* columns) {
  return {.label = "", .keyed = ParseKeyedColumns(columns).value()};
}

TEST_F(TarColumnsTest, MasksArePieces) {
  const std::string archive = Shard(Scenes("", ""));
  const Source source = Tar(archive, KeyedBy("mask,mask,png,uint16,7")).value();
  ASSERT_EQ(source->pieces(), 2U);
  EXPECT_EQ(source->fields()[1].name, "mask");
  EXPECT_EQ(source->fields()[1].dtype, DType::kU16);
  EXPECT_EQ(source->fields()[1].fill, 7);
  EXPECT_FALSE(source->has_records());
  const std::string bytes = BytesOfFile(archive);
  const auto piece = [&](uint64_t id, size_t number) {
    const ByteRange range = number == 0 ? source->RangeOf(id) : source->RangeOfPiece(id, number);
    return bytes.substr(range.offset, range.length);
  };
  EXPECT_EQ(piece(0, 0), "image");
  EXPECT_EQ(piece(0, 1), "mask");
  EXPECT_EQ(piece(1, 0), "x");
  EXPECT_EQ(piece(1, 1), "other mask");
  EXPECT_NE(source->Fingerprint(), Tar(archive, KeyedBy("mask,mask,png")).value()->Fingerprint());
}

TEST_F(TarColumnsTest, ObjectsAreInMemory) {
  const std::string first = R"({"b": [[1, 2, 3, 4], [5, 6, 7, 8]], "id": [7, 8]})";
  const std::string archive = Shard(Scenes(first, R"({"id": [], "b": []})"));
  constexpr char kColumns[] = "boxes,boxes,json:b,xywh\nmask,mask,png\nid,object,json:id,uint8";
  for (int by_index = 0; by_index < 2; ++by_index) {
    const Source source = Tar(archive, KeyedBy(kColumns)).value();
    ASSERT_EQ(source->fields().size(), 4U);
    EXPECT_EQ(source->fields()[2].kind, Field::Kind::kBoxes);
    EXPECT_EQ(source->max_objects(), 2U);
    EXPECT_EQ(source->View(2, 0).size(), 2 * 4 * sizeof(float));
    EXPECT_THAT(source->View(3, 0), ElementsAre(7, 8));
    EXPECT_TRUE(source->View(3, 1).empty());
    EXPECT_GE(source->memory_bytes(), Tar(archive).value()->memory_bytes() + 2 * 17);
  }
}

TEST_F(TarColumnsTest, AnExtensionHasOneColumn) {
  for (const char* columns : {"m,mask,seg\nb,boxes,seg:b", "b,boxes,seg:b\nm,mask,.SEG",
                              "m,mask,seg\nn,mask,seg", "m,mask,txt", "m,mask,npy"}) {
    TarOptions options = KeyedBy(columns);
    options.columns = {{"text", ".txt"}, {"array", "npy"}};
    EXPECT_THAT(Refused(Scenes("", ""), options).cause, HasSubstr("two columns have the extension"))
        << columns;
  }
}

TEST_F(TarColumnsTest, WrongObjectsNameTheSample) {
  const Error error = Refused(Scenes(R"({"b": [[1, 2, 3, 4]]})", R"({"b": [[1, 2, 3]]})"),
                              KeyedBy("boxes,boxes,json:b"));
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.file, HasSubstr("a.tar"));
  EXPECT_THAT(error.cause, HasSubstr("the json of the sample '2', at its byte 7: 'boxes' has"));
  EXPECT_EQ(error.offset, 7 * kTarBlock + 7);
  EXPECT_THAT(Refused(Scenes("", ""), KeyedBy("v,value,json")).cause, HasSubstr("neither a mask"));
}

}  // namespace
}  // namespace stoker
