#include "io/ranges/path_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/memory/string_rows.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Source = std::shared_ptr<const SampleSource>;

PathTable Paths(std::vector<std::string> paths) { return PathTable(paths); }

std::string PathAt(const SampleSource& source, uint64_t id) {
  std::string path = "old";
  source.PathOf(source.RangeOf(id).file, path);
  return path;
}

constexpr std::array<int64_t, 3> kLabels = {2, 0, 2};
constexpr std::array<float, 6> kPlaces = {0.5, 1.5, 2.5, 3.5, 4.5, 5.5};

ArrayColumn ClassNumbers() { return {"label", DType::kI64, {}, kLabels.data(), kLabels.size()}; }
ArrayColumn Places() { return {"place", DType::kF32, {2}, kPlaces.data(), 3}; }

Error FilesError(PathTable paths, FilesOptions options = {}) {
  const Result<Source> made = Files(std::move(paths), std::move(options));
  EXPECT_FALSE(made.ok());
  return made.ok() ? Error{} : made.error();
}

TEST(Files, KeepOrderAndDuplicates) {
  const Source source = Files(Paths({"/b.jpg", "/a.jpg", "/b.jpg"})).value();
  ASSERT_EQ(source->size(), 3u);
  EXPECT_EQ(PathAt(*source, 0), "/b.jpg");
  EXPECT_EQ(PathAt(*source, 1), "/a.jpg");
  EXPECT_EQ(PathAt(*source, 2), "/b.jpg");
  EXPECT_FALSE(source->in_memory());
  EXPECT_FALSE(source->label());
  EXPECT_EQ(source->fields().size(), 1u);
  EXPECT_EQ(source->Describe(), "files(/b.jpg and 2 more)");
  EXPECT_EQ(Files(Paths({"/b.jpg"})).value()->Describe(), "files(/b.jpg)");
}

TEST(Files, KeepTheBytesOfNames) {
  std::string every = "/";
  for (int byte = 1; byte < 256; ++byte) {
    if (byte != '/') every += static_cast<char>(byte);
  }
  const Source source = Files(Paths({every, "//a/../b ", "/\xff\xfe"})).value();
  EXPECT_EQ(PathAt(*source, 0), every);
  EXPECT_EQ(PathAt(*source, 1), "//a/../b ");
  EXPECT_EQ(PathAt(*source, 2), "/\xff\xfe");
}

TEST(Files, RelativePathsAreInTheRoot) {
  const Source source = Files(Paths({"a/b.jpg", "/c.jpg"}), {.root = "/photos//"}).value();
  EXPECT_EQ(PathAt(*source, 0), "/photos/a/b.jpg");
  EXPECT_EQ(PathAt(*source, 1), "/c.jpg");
  EXPECT_EQ(PathAt(*Files(Paths({"a.jpg"}), {.root = "/"}).value(), 0), "/a.jpg");
}

TEST(Files, RelativePathsAreInTheRootOfAStore) {
  EXPECT_EQ(PathAt(*Files(Paths({"a#b"}), {.root = "https://h/d"}).value(), 0),
            "https://h/d/a%23b");
  EXPECT_EQ(PathAt(*Files(Paths({"a#b"}), {.root = "s3://b/d?#"}).value(), 0), "s3://b/d?#/a#b");
  for (const char* const root : {"https://h/d?sig=x", "http://h/d#x", "https://h?x/"}) {
    const Error error = FilesError(Paths({"a.jpg", "b.jpg"}), {.root = root});
    EXPECT_EQ(error.code, Code::kInvalidArgument) << root;
    EXPECT_THAT(error.cause, HasSubstr("query or a fragment")) << root;
    EXPECT_THAT(error.file, ::testing::Not(HasSubstr("sig=x"))) << "it may be a secret";
  }
}

TEST(Files, RelativePathsAreInTheWorkingFolderOfTheCall) {
  const std::string before = std::filesystem::current_path().string();
  const Source here = Files(Paths({"a.jpg"})).value();
  const Source below = Files(Paths({"a.jpg"}), {.root = "b/"}).value();
  std::filesystem::current_path("/");
  EXPECT_EQ(PathAt(*here, 0), before + "/a.jpg");
  EXPECT_EQ(PathAt(*below, 0), before + "/b/a.jpg");
  EXPECT_EQ(PathAt(*Files(Paths({"a.jpg"})).value(), 0), "/a.jpg");
  std::filesystem::current_path(before);
}

TEST(Files, FieldsAreTheImageAndTheColumns) {
  const Source source = Files(Paths({"/a", "/b", "/c"}), {.columns = {ClassNumbers(), Places()},
                                                          .class_names = {"ant", "bee", "cat"}})
                            .value();
  ASSERT_EQ(source->fields().size(), 3u);
  EXPECT_EQ(source->fields()[0].name, "image");
  EXPECT_EQ(source->fields()[1].name, "label");
  EXPECT_EQ(source->fields()[2].name, "place");
  EXPECT_EQ(source->label(), 1u);
  EXPECT_EQ(source->LabelOf(0), 2);
  EXPECT_EQ(source->LabelOf(1), 0);
  EXPECT_THAT(source->classes(), ElementsAre("ant", "bee", "cat"));
  std::array<float, 4> rows{};
  source->FixedRows(2, std::array<uint64_t, 2>{2, 0}, rows.data());
  EXPECT_THAT(rows, ElementsAre(4.5, 5.5, 0.5, 1.5));

  const Source alone = Files(Paths({"/a", "/b", "/c"}), {.columns = {Places()}}).value();
  EXPECT_FALSE(alone->label());
  EXPECT_EQ(alone->LabelOf(0), kNoLabel);
  EXPECT_TRUE(alone->classes().empty());
}

TEST(Files, StringsAreViews) {
  const auto captions = std::make_shared<StringRows>();
  const std::string longest(3 << 20, 'x');
  for (const std::string_view text : {"", "ä", longest.c_str()}) captions->Add(text);
  const Source source =
      Files(Paths({"/a", "/b", "/c"}),
            {.columns = {captions->Column("caption", DType::kString)}, .owner = captions})
          .value();
  std::array<std::string_view, 4> rows;
  source->FixedRows(1, std::array<uint64_t, 4>{2, 0, 1, 2}, rows.data());
  EXPECT_THAT(rows, ElementsAre(longest, "", "ä", longest));
  EXPECT_EQ(rows[0].data(), rows[3].data());
}

TEST(Files, StringsAreInTheFingerprint) {
  const auto print = [](std::string_view first, std::string_view second) {
    const std::array<std::string_view, 2> texts{first, second};
    return Files(Paths({"/a", "/b"}), {.columns = {{"x", DType::kBytes, {}, texts.data(), 2}}})
        .value()
        ->Fingerprint();
  };
  EXPECT_EQ(print("ab", "c"), print("ab", "c"));
  EXPECT_NE(print("ab", "c"), print("a", "bc"));
  EXPECT_NE(print("ab", "c"), print("ab", ""));
  EXPECT_NE(print("", "ab"), print("ab", ""));
}

TEST(StringRows, MemoryIsTheTextAndSixteenBytesEach) {
  StringRows rows;
  for (int i = 0; i < 100'000; ++i) rows.Add("0123456789012345");
  EXPECT_GE(rows.memory_bytes(), 100'000 * (16u + 16));
  EXPECT_LT(rows.memory_bytes(), 100'000 * (16u + 16) * 3 / 2);
}

TEST(Files, TheOwnerOfColumnsIsKept) {
  const auto labels = std::make_shared<std::vector<int64_t>>(3, 7);
  const ArrayColumn column{"label", DType::kI64, {}, labels->data(), 3};
  Source source = Files(Paths({"/a", "/b", "/c"}), {.columns = {column}, .owner = labels}).value();
  EXPECT_EQ(labels.use_count(), 2);
  EXPECT_EQ(source->LabelOf(2), 7);
  source.reset();
  EXPECT_EQ(labels.use_count(), 1);
}

TEST(Files, MemoryIsTheNamesAndEightBytesEach) {
  PathTable paths;
  for (int i = 0; i < 10'000; ++i) paths.Add("/photos/0123456789.jpg");
  const Source source = Files(std::move(paths)).value();
  EXPECT_GE(source->memory_bytes(), 10'000 * (22u + 8));
  EXPECT_LT(source->memory_bytes(), 10'000 * (22u + 8) + 1000);
}

uint64_t PrintOfFiles(std::vector<std::string> paths, FilesOptions options = {}) {
  return Files(Paths(std::move(paths)), std::move(options)).value()->Fingerprint();
}

TEST(Files, FingerprintCoversNamesAndColumns) {
  const uint64_t print = PrintOfFiles({"/a", "/b", "/c"}, {.columns = {ClassNumbers(), Places()}});
  EXPECT_NE(PrintOfFiles({"/b", "/a", "/c"}, {.columns = {ClassNumbers(), Places()}}), print);
  EXPECT_NE(PrintOfFiles({"/a/", "b", "/c"}, {.columns = {ClassNumbers(), Places()}}), print);
  EXPECT_NE(PrintOfFiles({"/a", "/b", "/c"}, {.columns = {ClassNumbers()}}), print);
  EXPECT_NE(PrintOfFiles({"/a", "/b", "/c"}, {.columns = {Places(),
                                                          [] {
                                                            ArrayColumn other = ClassNumbers();
                                                            other.name = "number";
                                                            return other;
                                                          }()}}),
            print);
  auto labels = kLabels;
  ArrayColumn same = ClassNumbers();
  same.data = labels.data();
  EXPECT_EQ(PrintOfFiles({"/a", "/b", "/c"}, {.columns = {same, Places()}}), print);
  labels[1] = 1;
  EXPECT_NE(PrintOfFiles({"/a", "/b", "/c"}, {.columns = {same, Places()}}), print);
  EXPECT_NE(PrintOfFiles({"/a", "/b", "/c"},
                         {.columns = {ClassNumbers(), Places()}, .class_names = {"x", "y", "z"}}),
            print);
}

TEST(Files, FingerprintIgnoresTheRoot) {
  EXPECT_EQ(PrintOfFiles({"a", "b"}, {.root = "/x"}), PrintOfFiles({"a", "b"}, {.root = "/y"}));
  EXPECT_NE(PrintOfFiles({"a", "b"}, {.root = "/x"}), PrintOfFiles({"/x/a", "/x/b"}));
}

// A change of any label of many is noticed.
TEST(Files, FingerprintCoversAllNumbers) {
  constexpr size_t kMany = 100'000;
  PathTable paths;
  for (size_t i = 0; i < kMany; ++i) paths.Add("/a");
  std::vector<uint16_t> labels(2 * kMany);
  ArrayColumn column{"label", DType::kU16, {}, labels.data(), kMany};
  const auto print = [&] { return Files(paths, {.columns = {column}}).value()->Fingerprint(); };
  const uint64_t before = print();
  for (const size_t at : {size_t{0}, size_t{4095}, size_t{54'321}, kMany - 1}) {
    labels[at] = 1;
    EXPECT_NE(print(), before) << "label " << at;
    labels[at] = 0;
  }
  column.row_stride = 4;
  EXPECT_EQ(print(), before) << "how far apart labels lie does not matter";
}

FurtherImages MasksOf(std::vector<std::string> paths, uint8_t fill = 0) {
  return {.name = "mask", .fill = fill, .paths = Paths(std::move(paths))};
}

std::string PathOfPiece(const SampleSource& source, uint64_t id, size_t piece) {
  std::string path = "old";
  source.PathOf(source.RangeOfPiece(id, piece).file, path);
  return path;
}

TEST(Files, FurtherImagesComeBeforeColumns) {
  FurtherImages right{
      .name = "right", .kind = Field::Kind::kImage, .fill = 7, .paths = Paths({"x", "/y", "z"})};
  const Source source = Files(Paths({"/a", "b", "/c"}),
                              {.root = "/photos",
                               .further = {MasksOf({"/a.png", "b.png", "/c.png"}, 255), right},
                               .columns = {ClassNumbers(), Places()},
                               .class_names = {"ant", "bee", "cat"}})
                            .value();
  ASSERT_EQ(source->fields().size(), 5u);
  EXPECT_EQ(source->pieces(), 3u);
  EXPECT_EQ(source->fields()[1].name, "mask");
  EXPECT_EQ(source->fields()[1].kind, Field::Kind::kMask);
  EXPECT_EQ(source->fields()[1].fill, 255);
  EXPECT_EQ(source->fields()[2].kind, Field::Kind::kImage);
  EXPECT_EQ(source->fields()[2].fill, 0) << "images have none";
  EXPECT_EQ(source->label(), 3u);
  EXPECT_EQ(source->LabelOf(2), 2);
  std::array<float, 2> row{};
  source->FixedRows(4, std::array<uint64_t, 1>{1}, row.data());
  EXPECT_THAT(row, ElementsAre(2.5, 3.5));
  EXPECT_EQ(source->size(), 3u);
  EXPECT_EQ(source->files(), 9u);
  EXPECT_EQ(PathAt(*source, 1), "/photos/b");
  EXPECT_EQ(PathOfPiece(*source, 0, 1), "/a.png");
  EXPECT_EQ(PathOfPiece(*source, 1, 1), "/photos/b.png");
  EXPECT_EQ(PathOfPiece(*source, 2, 2), "/photos/z");
  EXPECT_EQ(source->Describe(), "files(/a and 2 more)");
}

TEST(Files, FurtherImagesMayHaveARootOfTheirOwn) {
  FurtherImages masks = MasksOf({"a.png"});
  masks.root = "/masks";
  const Source source = Files(Paths({"a.jpg"}), {.root = "/photos", .further = {masks}}).value();
  EXPECT_EQ(PathAt(*source, 0), "/photos/a.jpg");
  EXPECT_EQ(PathOfPiece(*source, 0, 1), "/masks/a.png");
  EXPECT_EQ(source->objects(), nullptr);
  masks.root = "https://h/d";
  const Source remote = Files(Paths({"a.jpg"}), {.root = "/photos", .further = {masks}}).value();
  EXPECT_EQ(PathOfPiece(*remote, 0, 1), "https://h/d/a.png");
  EXPECT_NE(remote->objects(), nullptr);
}

TEST(Files, FingerprintCoversFurtherImages) {
  const auto print = [](std::vector<FurtherImages> further) {
    return PrintOfFiles({"/a", "/b"}, {.further = std::move(further)});
  };
  const uint64_t masks = print({MasksOf({"/1", "/2"})});
  EXPECT_EQ(print({MasksOf({"/1", "/2"})}), masks);
  EXPECT_NE(print({}), masks);
  EXPECT_NE(print({MasksOf({"/2", "/1"})}), masks);
  EXPECT_NE(print({MasksOf({"/1", "/2"}, 1)}), masks);
  FurtherImages other = MasksOf({"/1", "/2"});
  other.name = "depth";
  EXPECT_NE(print({other}), masks);
  other.name = "mask";
  other.kind = Field::Kind::kImage;
  EXPECT_NE(print({other}), masks);
  other.name = "right";
  EXPECT_NE(print({MasksOf({"/1", "/2"}), other}), masks);
}

TEST(Files, MemoryCoversFurtherImages) {
  PathTable paths;
  for (int i = 0; i < 10'000; ++i) paths.Add("/photos/0123456789.jpg");
  const uint64_t alone = Files(paths).value()->memory_bytes();
  const uint64_t both =
      Files(paths, {.further = {{.name = "mask", .paths = paths}}}).value()->memory_bytes();
  EXPECT_GE(both, 2 * alone - 1000);
  EXPECT_LT(both, 2 * alone + 1000);
}

TEST(Files, GivenPathsAreThoseOfEachField) {
  FurtherImages masks = MasksOf({"a.png"}, 3);
  masks.root = "/masks/";
  const Source source = Files(Paths({"/a.jpg"}), {.further = {masks}}).value();
  const std::vector<GivenPaths> given = GivenPathsOf(*source);
  ASSERT_EQ(given.size(), 2u);
  EXPECT_EQ(given[0].field.name, "image");
  EXPECT_EQ(given[0].paths[0], "/a.jpg");
  EXPECT_EQ(given[0].root, "");
  EXPECT_EQ(given[1].field.fill, 3);
  EXPECT_EQ(given[1].paths[0], "a.png");
  EXPECT_EQ(given[1].root, "/masks/");
}

TEST(Files, WrongFurtherImagesAreNamed) {
  const auto cause = [](std::vector<FurtherImages> further, std::vector<ArrayColumn> columns = {}) {
    const Error error = FilesError(Paths({"/a", "/b", "/c"}),
                                   {.further = std::move(further), .columns = std::move(columns)});
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    return error.cause;
  };
  FurtherImages masks = MasksOf({"/1", "/2", "/3"});
  EXPECT_EQ(cause({MasksOf({"/1"})}), "files: 'mask' has 1 path for 3 images");
  EXPECT_EQ(cause({MasksOf({"/1", "", "/3"})}), "mask[1] is empty");
  EXPECT_EQ(cause({masks, masks}), "files: 'mask' was given twice");
  for (const char* const name : {"image", "label"}) {
    masks.name = name;
    EXPECT_EQ(cause({masks}), "files: '" + masks.name + "' is the name of another field");
  }
  masks.name = "";
  EXPECT_EQ(cause({masks}), "files: further images have no name");
  masks.name = "place";
  EXPECT_EQ(cause({masks}, {Places()}), "array 'place' was given twice");
  masks.kind = Field::Kind::kFixed;
  EXPECT_EQ(cause({masks}), "files: 'place' is neither images nor masks");
}

TEST(Files, LabelsOfObjectsMayHaveClassNames) {
  static constexpr std::array<int64_t, 4> kOffsets = {1, 3, 3, 4};
  static constexpr std::array<uint8_t, 4> kOfObjects = {9, 2, 0, 1};
  ArrayColumn labels{"labels", DType::kU8, {}, kOfObjects.data(), 3};
  labels.offsets = kOffsets.data();
  labels.kind = Field::Kind::kObject;
  const Source source = Files(Paths({"/a", "/b", "/c"}),
                              {.columns = {Places(), labels}, .class_names = {"x", "y", "z"}})
                            .value();
  EXPECT_THAT(source->classes(), ElementsAre("x", "y", "z"));
  EXPECT_FALSE(source->label());
  const auto error_of = [&](std::vector<std::string> names) {
    return FilesError(Paths({"/a", "/b", "/c"}), {.columns = {labels}, .class_names = names});
  };
  EXPECT_EQ(error_of({"x", "y"}).cause, "array 'labels' has 2 at 1, and there are 2 class names");
  labels.name = "other";
  EXPECT_EQ(error_of({"x"}).cause, "class names were given, and no labels");
}

TEST(Files, WrongPathsAreNamed) {
  EXPECT_THAT(FilesError({}).cause, HasSubstr("no path"));
  EXPECT_EQ(FilesError({}).code, Code::kInvalidArgument);
  EXPECT_EQ(FilesError(Paths({"/a", ""})).cause, "paths[1] is empty");
  const Error nul = FilesError(Paths({"/a", "/b", std::string("/c\0d", 4)}));
  EXPECT_EQ(nul.cause, "paths[2] contains a NUL");
  EXPECT_EQ(nul.code, Code::kInvalidArgument);
  EXPECT_THAT(FilesError(Paths({"a"}), {.root = std::string("/a\0b", 4)}).cause, HasSubstr("NUL"));
}

TEST(Files, WrongColumnsAreNamed) {
  const auto cause = [](std::vector<ArrayColumn> columns, std::vector<std::string> names = {}) {
    const Error error = FilesError(Paths({"/a", "/b", "/c"}), {.columns = std::move(columns),
                                                               .class_names = std::move(names)});
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    return error.cause;
  };
  ArrayColumn column = ClassNumbers();
  column.samples = 2;
  EXPECT_EQ(cause({column}), "array 'label' has 2 rows for 3 paths");
  EXPECT_EQ(cause({Places(), Places()}), "array 'place' was given twice");
  EXPECT_EQ(cause({Places(), ClassNumbers()}),
            "array 'label' is the label, which is the first column");
  column = Places();
  column.name = "image";
  EXPECT_EQ(cause({column}), "array 'image' has the name of the images");
  column.name = "";
  EXPECT_EQ(cause({column}), "array '' has no name");
  EXPECT_EQ(cause({Places()}, {"x"}), "class names were given, and no labels");
  EXPECT_EQ(cause({ClassNumbers()}, {"x", "y"}),
            "array 'label' has 2 at 0, and there are 2 class names");
  column = Places();
  column.name = "label";
  EXPECT_EQ(cause({column}, {"x"}), "array 'label' has class names, but its rows are float32 (2)");
}

TEST(Files, OfListsHaveAnEndForEachSample) {
  const auto make = [](std::vector<uint64_t> ends, size_t paths = 3) {
    return Files(Paths(std::vector<std::string>(paths, "a.jpg")),
                 {.images = ImageNumbers(std::move(ends))});
  };
  const auto refused = [&](const std::vector<uint64_t>& ends, size_t paths = 3) {
    const auto made = make(ends, paths);
    return made.ok() ? "" : made.error().Message();
  };
  EXPECT_EQ(refused({0, 2, 2, 3}), "");
  EXPECT_THAT(refused({2, 1, 3}), HasSubstr("other numbers of paths"));
  EXPECT_THAT(refused({1, 2}), HasSubstr("other numbers of paths"));
  EXPECT_THAT(refused({1, 4}), HasSubstr("other numbers of paths"));
  EXPECT_EQ(refused({1, 1025}, 1025), "");
  EXPECT_THAT(refused({0, 1025}, 1025), HasSubstr("paths[1] has 1025 images; at most 1024"));
  EXPECT_NE(make({1, 3}).value()->Fingerprint(), make({2, 3}).value()->Fingerprint());
  EXPECT_NE(make({1, 2, 3}).value()->Fingerprint(), make({3}).value()->Fingerprint());
}

TEST(ImageNumbers, SkipSamplesWithoutImages) {
  const ImageNumbers numbers({0, 0, 2, 2, 2, 5, 5});
  for (const auto& [number, sample, piece] :
       std::vector<std::array<size_t, 3>>{{0, 2, 0}, {1, 2, 1}, {2, 5, 0}, {4, 5, 2}}) {
    EXPECT_EQ(numbers.PlaceOf(number).sample, sample);
    EXPECT_EQ(numbers.PlaceOf(number).piece, piece);
    EXPECT_EQ(numbers.Begin(sample) + piece, number);
  }
  EXPECT_EQ(numbers.CountOf(0) + numbers.CountOf(1) + numbers.CountOf(3) + numbers.CountOf(6), 0u);
  EXPECT_EQ(numbers.CountOf(5), 3u);
  EXPECT_EQ(numbers.Begin(7), 5u);
}

}  // namespace
}  // namespace stoker
