// Samples in Arrow IPC files, which pyarrow wrote (tests/fuzz/make_arrow.py).
#include "io/arrow/arrow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/arrow/arrow_batches.h"
#include "io/arrow/flat_buffer.h"
#include "io/arrow/huggingface.h"
#include "io/files/input_file.h"
#include "io/open_source.h"
#include "io/shards/shard_pattern.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using stoker::testing::BytesOfFile;
using stoker::testing::TempFolder;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Source = std::shared_ptr<const SampleSource>;

std::string Golden(const char* name) { return std::string(STOKER_ARROW_FILES) + "/" + name; }

std::string ArrowImageOf(const SampleSource& source, uint64_t id) {
  const ByteRange range = source.RangeOf(id);
  std::string path;
  source.PathOf(range.file, path);
  return BytesOfFile(path).substr(range.offset, range.length);
}

// Returns the row of a sample in a field.
template <typename T>
T RowOf(const SampleSource& source, const char* name, uint64_t id) {
  T row{};
  for (size_t field = 0; field < source.fields().size(); ++field) {
    if (source.fields()[field].name != name) continue;
    EXPECT_EQ(source.fields()[field].row_bytes(), sizeof(T)) << name;
    source.FixedRows(field, {&id, 1}, &row);
    return row;
  }
  ADD_FAILURE() << "no field " << name;
  return row;
}

std::vector<int64_t> ArrowLabelsOf(const SampleSource& source) {
  std::vector<int64_t> labels;
  for (uint64_t id = 0; id < source.size(); ++id) labels.push_back(source.LabelOf(id));
  return labels;
}

// The golden images.
void ExpectImages(const SampleSource& source) {
  ASSERT_EQ(source.size(), 5u);
  for (uint64_t id = 0; id < source.size(); ++id) {
    EXPECT_EQ(ArrowImageOf(source, id), std::string(100 * id, 'x')) << source.Describe();
  }
}

// A file in memory, whose content is replaced.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("arrow", MFD_CLOEXEC)) {}
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // Writes the file, and returns its path.
  std::string Write(const std::string& bytes) const {
    EXPECT_EQ(ftruncate(descriptor_, 0), 0);
    EXPECT_EQ(pwrite(descriptor_, bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  const int descriptor_;
};

Source Opened(const std::string& pattern, const ArrowOptions& options = {}) {
  Result<Source> source = Arrow(pattern, options);
  EXPECT_TRUE(source.ok()) << source.error().ToString();
  return source.ok() ? *std::move(source) : nullptr;
}

Error RefusedFile(const std::string& path, const ArrowOptions& options = {}) {
  const Result<Source> source = Arrow(path, options);
  EXPECT_FALSE(source.ok());
  if (source.ok()) return {};
  EXPECT_EQ(source.error().file, path);
  return source.error();
}

TEST(Arrow, TakesBoolsAsLabels) {
  const Source source = Opened(Golden("columns"), {.label = "flag"});
  EXPECT_EQ(ArrowLabelsOf(*source), (std::vector<int64_t>{1, 0, 1, 1, 0}));
}

TEST(Arrow, ReadsBothForms) {
  for (const char* name :
       {"labelled", "alone", "alone_stream", "several_batches", "version_4", "columns", "polars"}) {
    ExpectImages(*Opened(Golden(name), {.label = ""}));
  }
  const Source labelled = Opened(Golden("labelled"));
  EXPECT_EQ(labelled->label(), 1u);
  EXPECT_THAT(ArrowLabelsOf(*labelled), ElementsAre(0, 1, 1, 0, 1));
  EXPECT_THAT(labelled->classes(), ElementsAre("cat", "dog"));
  EXPECT_FALSE(Opened(Golden("alone"))->label());
}

TEST(Arrow, ReadsColumns) {
  const std::vector<std::string> names = {"text",   "bytes",  "flag", "flags",
                                          "vector", "matrix", "half"};
  const Source source = Opened(Golden("columns"), {.columns = names});
  ExpectImages(*source);
  EXPECT_THAT(source->classes(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(ArrowLabelsOf(*source), ElementsAre(1, 0, 2, 0, 1));
  using Text = std::string_view;
  EXPECT_EQ(RowOf<Text>(*source, "text", 1), "ä");
  EXPECT_EQ(RowOf<Text>(*source, "text", 3), "longlonglonglonglonglonglonglonglong");
  EXPECT_EQ(RowOf<Text>(*source, "bytes", 2), Text("\0", 1));
  EXPECT_TRUE(RowOf<bool>(*source, "flag", 3));
  EXPECT_FALSE(RowOf<bool>(*source, "flag", 4));
  EXPECT_THAT((RowOf<std::array<bool, 3>>(*source, "flags", 4)), ElementsAre(true, false, true));
  EXPECT_THAT((RowOf<std::array<float, 4>>(*source, "vector", 3)), ElementsAre(12, 13, 14, 15));
  EXPECT_THAT((RowOf<std::array<int64_t, 4>>(*source, "matrix", 4)), ElementsAre(16, 17, 18, 19));
  EXPECT_EQ(RowOf<uint16_t>(*source, "half", 2), 0x4000);
  EXPECT_EQ(DescribeRow(source->fields()[7]), "int64 (2, 2)");
}

TEST(Arrow, ReadsListsOfListsOfLists) {
  const Source source = Opened(Golden("column_cube"), {.columns = {"cube"}});
  ExpectImages(*source);
  EXPECT_EQ(DescribeRow(source->fields()[1]), "int16 (2, 3, 2)");
  for (uint64_t id = 0; id < 5; ++id) {
    std::array<int16_t, 12> expected{};
    std::iota(expected.begin(), expected.end(), static_cast<int16_t>(12 * id));
    EXPECT_EQ((RowOf<std::array<int16_t, 12>>(*source, "cube", id)), expected);
  }
}

TEST(Arrow, SeveralFilesAreOneSource) {
  const Source one = Opened(Golden("labelled"));
  const Source two = Opened(Golden("labelled") + "::" + Golden("empty") + "::" + Golden("others"));
  ASSERT_EQ(two->size(), 10u);
  EXPECT_EQ(ArrowImageOf(*two, 7), ArrowImageOf(*one, 2));
  EXPECT_THAT(ArrowLabelsOf(*two), ElementsAre(0, 1, 1, 0, 1, 1, 1, 1, 0, 1));
  EXPECT_NE(one->Fingerprint(), two->Fingerprint());
  EXPECT_NE(one->Fingerprint(), Opened(Golden("others"))->Fingerprint());
  EXPECT_EQ(Opened(Golden("alone"))->Fingerprint(), Opened(Golden("alone_stream"))->Fingerprint());
  const std::string pattern = Golden("labelled") + "::" + Golden("alone");
  EXPECT_THAT(Arrow(pattern).error().cause, HasSubstr("no labels, unlike those in"));
}

TEST(Arrow, MatchesOpenSource) {
  SourceArguments given{{"shards", Golden("columns")}, {"columns", "text\nflag"}};
  const ArrowOptions options{.columns = {"text", "flag"}};
  EXPECT_EQ(OpenSource("arrow", given).value()->Fingerprint(),
            Opened(Golden("columns"), options)->Fingerprint());
  given["label"] = "";
  EXPECT_FALSE(OpenSource("arrow", given).value()->label());
  given["shards"] = "columns";
  EXPECT_EQ(OpenSource("arrow", given).error().code, Code::kInvalidArgument) << "not absolute";
}

// The lengths of a sample's images.
std::vector<uint64_t> LengthsOf(const SampleSource& source, uint64_t id) {
  std::vector<uint64_t> lengths;
  std::string path;
  for (size_t piece = 0; piece < source.PiecesOf(id); ++piece) {
    const ByteRange range = source.RangeOfAny(id, piece);
    source.PathOf(range.file, path);
    EXPECT_EQ(BytesOfFile(path).substr(range.offset, range.length), std::string(range.length, 'x'));
    lengths.push_back(range.length);
  }
  return lengths;
}

TEST(Arrow, ReadsListsOfImages) {
  for (const char* name : {"lists", "lists_binary", "lists_large"}) {
    const Source source = Opened(Golden(name), {.label = ""});
    ASSERT_EQ(source->size(), 5u) << name;
    EXPECT_TRUE(source->varies()) << name;
    EXPECT_EQ(source->pieces(), 3u) << name;
    EXPECT_THAT(LengthsOf(*source, 0), ElementsAre(100, 0)) << name;
    EXPECT_THAT(LengthsOf(*source, 1), IsEmpty()) << name;
    EXPECT_THAT(LengthsOf(*source, 2), IsEmpty()) << name << ": a null list";
    EXPECT_THAT(LengthsOf(*source, 3), ElementsAre(200, 0, 300)) << name << ": with a null";
    EXPECT_THAT(LengthsOf(*source, 4), ElementsAre(400)) << name;
    std::string path = "x";
    source->PathOf(source->RangeOf(1).file, path);
    EXPECT_EQ(path, "") << name;
    EXPECT_EQ(source->RangeOf(1).length, 0u) << name;
  }
  const Source source = Opened(Golden("lists"), {.columns = {"text"}});
  EXPECT_THAT(ArrowLabelsOf(*source), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_EQ(RowOf<std::string_view>(*source, "text", 3), "d");
}

TEST(Arrow, OtherListsOfImages) {
  const Source fixed = Opened(Golden("lists_fixed"));
  ASSERT_EQ(fixed->size(), 6u);
  EXPECT_THAT(LengthsOf(*fixed, 0), IsEmpty());
  EXPECT_THAT(LengthsOf(*fixed, 3), ElementsAre(200, 200));
  const Source null = Opened(Golden("lists_null"));
  EXPECT_THAT(LengthsOf(*null, 0), ElementsAre(0, 100));
  EXPECT_THAT(LengthsOf(*null, 1), IsEmpty()) << "although there are bytes";
  EXPECT_THAT(LengthsOf(*null, 2), ElementsAre(400));
  const Source empty = Opened(Golden("lists_empty"));
  EXPECT_EQ(empty->size(), 3u);
  EXPECT_TRUE(empty->varies());
  for (uint64_t id = 0; id < 3; ++id) EXPECT_THAT(LengthsOf(*empty, id), IsEmpty());
}

TEST(Arrow, ListsOfSeveralFilesAreOneSource) {
  const Source source =
      Opened(Golden("lists") + "::" + Golden("lists_empty") + "::" + Golden("lists_binary"),
             {.label = ""});
  ASSERT_EQ(source->size(), 13u);
  EXPECT_THAT(LengthsOf(*source, 11), ElementsAre(200, 0, 300));
  const Source lists = Opened(Golden("lists"), {.label = ""});
  EXPECT_EQ(lists->Fingerprint(), Opened(Golden("lists_binary"))->Fingerprint());
  EXPECT_NE(lists->Fingerprint(), Opened(Golden("lists_null"))->Fingerprint());
  EXPECT_THAT(Arrow(Golden("lists_fixed") + "::" + Golden("alone")).error().cause,
              HasSubstr("rows have one image, unlike those in"));
  std::string name;
  source->NameOfPiece(11, 2, name);
  EXPECT_EQ(name, "image 2 of its sample");
  source->NameOf(1, name);
  EXPECT_EQ(name, "");
  lists->NameOf(0, name);
  EXPECT_EQ(name, "image 0 of its sample");
  Opened(Golden("alone"))->NameOf(0, name);
  EXPECT_EQ(name, "");
}

// on_bad decides what becomes of them, as of an empty file.
TEST(Arrow, NullImagesHaveNoBytes) {
  const auto source = Opened(Golden("null_struct"));
  for (uint64_t id = 0; id < source->size(); ++id) {
    EXPECT_EQ(source->RangeOf(id).length == 0, id == 1) << id;
  }
}

TEST(Arrow, SaysWhatIsWrong) {
  const auto cause = [](const char* name, const ArrowOptions& options = {}) {
    return RefusedFile(Golden(name), options).ToString();
  };
  EXPECT_THAT(cause("null_bytes"), HasSubstr("row 3 of column 'image' has no bytes"));
  EXPECT_THAT(
      cause("lists_path"),
      HasSubstr("image 1 of row 1 of column 'image' has no bytes; the dataset stores only"));
  EXPECT_THAT(cause("lists_many"),
              HasSubstr("row 1 of column 'image' has 1025 images; at most 1024 are possible"));
  EXPECT_THAT(cause("lists_numbers"), HasSubstr("'image' is list<int64>; encoded images are"));
  EXPECT_THAT(cause("lists", {.label = "", .columns = {"image"}}),
              HasSubstr("cannot be a further"));
  EXPECT_THAT(cause("label_without_name"),
              HasSubstr("row 2 of column 'label' is 2, which has no class name: there are 2"));
  EXPECT_THAT(cause("label_unknown"),
              HasSubstr("row 2 of column 'label' is -1, which has no class"));
  EXPECT_THAT(cause("label_large"), HasSubstr("row 3 of column 'label' is a label above 2^63 - 1"));
  EXPECT_THAT(cause("empty"), HasSubstr("no row in 1 file"));
  EXPECT_THAT(cause("compressed"), HasSubstr("uncompressed"));
  EXPECT_THAT(cause("parquet"), HasSubstr("a Parquet file, not an Arrow IPC file"));
  EXPECT_THAT(cause("one_byte"), HasSubstr("this is not an Arrow IPC file"));
  EXPECT_THAT(cause("columns", {.columns = {"gap"}}), HasSubstr("row 3 of column 'gap' is null"));
  EXPECT_THAT(cause("columns", {.columns = {"words"}}), HasSubstr("dictionary_decode"));
  for (const char* name : {"null", "union", "list", "view", "run"}) {
    EXPECT_THAT(cause("columns", {.columns = {name}}), HasSubstr("columns are numbers, bool"));
  }
  EXPECT_THAT(cause("columns", {.columns = {"words"}}), HasSubstr("polars.String"));
  EXPECT_THAT(cause("columns", {.image = "view"}), HasSubstr("polars.CompatLevel.oldest()"));
  EXPECT_THAT(cause("columns", {.label = "half"}),
              HasSubstr("float16; labels are integers, bool, str"));
  EXPECT_THAT(cause("column_text_view", {.columns = {"text"}}),
              AllOf(HasSubstr("'text' is string_view; columns are"), HasSubstr("CompatLevel")));
  EXPECT_THAT(cause("column_text_latin", {.columns = {"text"}}),
              HasSubstr("row 2 of column 'text' is not valid UTF-8"));
  for (const char* name : {"image", "label", "a\nb"}) {
    EXPECT_THAT(Arrow(Golden("columns"), {.columns = {name}}).error().cause,
                HasSubstr("cannot be a further column's"));
  }
  EXPECT_THAT(cause("joined"), HasSubstr("after the end of the stream"));
  EXPECT_THAT(cause("footer_empty"), HasSubstr("the footer's length is 0"));
  EXPECT_THAT(cause("long_metadata"), HasSubstr("2147483647 bytes of metadata"));
}

TEST(Arrow, OlderFormsAreUnimplemented) {
  for (const char* name : {"legacy", "legacy_file"}) {
    const Error error = RefusedFile(Golden(name));
    EXPECT_EQ(error.code, Code::kUnimplemented) << error.ToString();
    EXPECT_THAT(error.cause, HasSubstr("before version 0.15"));
    EXPECT_TRUE(error.offset);
  }
}

TEST(Arrow, ALabelThatIsWrongNamesItsOwnFile) {
  const auto refused = Arrow(Golden("labelled") + "::" + Golden("label_unknown"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().file, Golden("label_unknown"));
  const Error alone = RefusedFile(Golden("label_unknown"));
  EXPECT_EQ(refused.error().offset, alone.offset);
  EXPECT_EQ(refused.error().cause, alone.cause);
}

TEST(Arrow, ColumnsTakeNoMoreMemoryThanTheirRows) {
  const Source source = Opened(Golden("columns"), {.columns = {"vector"}});
  const Source without = Opened(Golden("columns"));
  EXPECT_EQ(source->memory_bytes() - without->memory_bytes(), 5 * 4 * sizeof(float));
}

TEST(Arrow, AListMayNotHaveMoreElementsThanCanBeCounted) {
  const Error error = RefusedFile(Golden("list_overflow"), {.columns = {"v"}});
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.cause, HasSubstr("a row has more than 2^32 elements"));
}

// 8 KB of a schema, which says 1,000 times that a column has the one name of 4,000 bytes.
TEST(Arrow, ColumnsThatShareAName) {
  const Error error = RefusedFile(Golden("names_shared"));
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_THAT(error.cause, HasSubstr("the schema is damaged"));
}

TEST(Arrow, AFooterIsCheckedAgainstItsFile) {
  const std::pair<const char*, const char*> wrong[] = {
      {"footer_outside", "record batch 0 of the footer lies outside"},
      {"footer_negative", "record batch 0 of the footer lies outside"},
      {"footer_in_itself", "record batch 0 of the footer lies outside"},
      {"footer_off", "no message is here"},
      {"footer_schema", "not the record batch that the footer has"},
      {"footer_short", "a message is longer than the footer says"},
      {"footer_short_body", "bytes that begins here is longer than the footer says"},
      {"footer_short_message", "not the record batch that the footer has"},
      {"footer_overlap", "record batches of the footer overlap"},
  };
  for (const auto& [name, cause] : wrong) {
    const Error error = RefusedFile(Golden(name));
    EXPECT_EQ(error.code, Code::kDataLoss) << name;
    EXPECT_THAT(error.cause, HasSubstr(cause)) << name;
    EXPECT_TRUE(error.offset) << name;
  }
  EXPECT_EQ(ArrowImageOf(*Opened(Golden("footer_twice")), 3).size(), 100u)
      << "the first record batch";
}

TEST(Arrow, AFooterHasALimit) {
  const MemoryFile file;
  const std::string path = file.Write("ARROW1");
  std::filesystem::resize_file(path, 300 << 20);  // takes no memory
  constexpr int32_t kLength = (256 << 20) + 1;
  std::ofstream(path, std::ios::app | std::ios::binary)
      .write(reinterpret_cast<const char*>(&kLength), sizeof(kLength))
      .write("ARROW1", 6);
  EXPECT_THAT(RefusedFile(path).cause, HasSubstr("the footer's length is 268435457"));
}

TEST(Arrow, AFileThatIsCutIsRefusedAtEachByte) {
  const MemoryFile file;
  for (const char* name : {"labelled", "alone"}) {
    const std::string whole = BytesOfFile(Golden(name));
    for (size_t size = 0; size < whole.size(); ++size) {
      const Error error = RefusedFile(file.Write(whole.substr(0, size)), {.threads = 1});
      EXPECT_EQ(error.code, Code::kDataLoss) << size << ": " << error.ToString();
      EXPECT_LE(error.offset, size);
    }
  }
}

// For any file, images lie in it and columns have a row for each. For the sanitizers.
TEST(Arrow, AnyByteMayBeWrong) {
  const MemoryFile file;
  for (const char* name : {"labelled", "alone", "columns", "lists", "lists_fixed", "lists_null"}) {
    const std::string whole = BytesOfFile(Golden(name));
    const bool columns = std::string_view(name) == "columns";
    ArrowOptions options{.threads = 1};
    if (columns) options.columns = {"text", "flags", "matrix"};
    for (size_t at = 0; at < whole.size(); ++at) {
      for (const int change : {0x01, 0xFF}) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ change);
        const Result<Source> source = Arrow(file.Write(changed), options);
        if (!source.ok()) continue;
        for (uint64_t id = 0; id < (*source)->size(); ++id) {
          for (size_t piece = 0; piece < (*source)->PiecesOf(id); ++piece) {
            const ByteRange range = (*source)->RangeOfAny(id, piece);
            ASSERT_LE(range.offset + range.length, whole.size()) << at;
          }
          if (columns) (void)RowOf<std::string_view>(**source, "text", id);
        }
      }
    }
  }
}

TEST(FlatBuffer, KeepsWithinItsBytes) {
  // A root at 8, whose vtable at 4 says: 4 bytes of vtable, of table 4.
  const std::vector<uint8_t> bytes = {8, 0, 0, 0, 4, 0, 4, 0, 4, 0, 0, 0};
  FlatBuffer empty_table{bytes};
  const FlatTable root = empty_table.Root();
  EXPECT_TRUE(root.present());
  EXPECT_EQ(root.Number<int32_t>(0, 7), 7);
  EXPECT_FALSE(root.Table(3).present());
  EXPECT_EQ(root.Vector(1, 4).size(), 0u);
  EXPECT_THAT(root.Text(2), IsEmpty());
  EXPECT_TRUE(empty_table.sound());
  for (size_t size = 0; size < bytes.size(); ++size) {
    FlatBuffer cut{std::span(bytes).first(size)};
    EXPECT_FALSE(cut.Root().present());
    EXPECT_FALSE(cut.sound());
  }
}

TEST(HuggingFace, ReadsClassNames) {
  const auto names = [](const std::string& feature) {
    return ClassLabelNames(R"({"info": {"features": {"label": )" + feature + "}}}", "label");
  };
  EXPECT_THAT(names(R"({"_type": "ClassLabel", "names": ["a", "b"]})"), ElementsAre("a", "b"));
  for (const char* other : {R"({"_type": "Value", "names": ["a"]})", R"({"_type": "ClassLabel"})",
                            R"({"_type": "ClassLabel", "names": ["a", 5]})", "5", "[]", "{", ""}) {
    EXPECT_THAT(names(other), IsEmpty()) << other;
  }
}

TEST(HuggingFace, ReadsTheFilesOfASavedDataset) {
  const TempFolder folder;
  const auto files = [&](const std::string& state) {
    folder.Write("state.json", state);
    return SavedDatasetFiles(folder.path());
  };
  EXPECT_THAT(SavedDatasetFiles(folder.path()).error().cause, HasSubstr("has no state.json"));
  EXPECT_FALSE(IsSavedDataset(folder.path()));
  EXPECT_THAT(files(R"({"_data_files": [{"filename": "b"}, {"filename": "a"}]})").value(),
              ElementsAre(folder.path() + "/b", folder.path() + "/a"));
  EXPECT_TRUE(IsSavedDataset(folder.path()));
  std::string many = "0";
  for (size_t i = 0; i < kMaxShards; ++i) many += ",0";
  EXPECT_THAT(files(R"({"_data_files": [)" + many + "]}").error().ToString(),
              HasSubstr("has 1048577; at most 1048576 are possible"));
  for (const char* wrong :
       {"", "[", "[]", "{}", R"({"_data_files": []})", R"({"_data_files": {}})",
        R"({"_data_files": ["a"]})", R"({"_data_files": [{"filename": "../a"}]})"}) {
    const auto refused = files(wrong);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().file, folder.path() + "/state.json");
  }
  folder.Write("dataset_dict.json", R"({"splits": ["a", "b"]})");
  EXPECT_THAT(SavedDatasetFiles(folder.path()).error().ToString(), HasSubstr("splits: a, b"));
}

TEST(HuggingFace, OtherProgramsWriteAStateToo) {
  const TempFolder folder;
  for (const char* other : {"", "{}", "[]", R"({"epoch": 3})", R"({"_data_files": 3})"}) {
    folder.Write("state.json", other);
    EXPECT_FALSE(IsSavedDataset(folder.path())) << other;
  }
  folder.Write("state.json", R"({"_data_files": []})");
  EXPECT_TRUE(IsSavedDataset(folder.path()));
  folder.Write("state.json", "damaged");
  folder.Write("dataset_info.json", "{}");
  EXPECT_TRUE(IsSavedDataset(folder.path()))
      << "its list is reported, not the folder's photographs";
}

}  // namespace
}  // namespace stoker
