#include "bindings/cli/verify/good_samples.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/verify/verify.h"
#include "io/folder/image_folder.h"
#include "io/manifest/manifest.h"
#include "io/tar/tar.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Source = std::shared_ptr<const SampleSource>;

class GoodSamplesTest : public ::testing::Test {
 protected:
  static std::string Image() {
    const std::vector<uint8_t> png = testing::MakePng();
    return {png.begin(), png.end()};
  }
  Source ManifestOf(const std::string& name, const std::string& text,
                    const ManifestOptions& options = {}) {
    return Manifest(folder_.Write(name, text), options).value();
  }
  // Checks the source, and lists its good samples.
  Result<GoodSamples> List(const SampleSource& source) {
    const Status listable = CheckGoodSamples(source, list_);
    if (!listable.ok()) return listable.error();
    return WriteGoodSamples(source, Verify(source).value().bad, list_);
  }
  static std::string PathOf(const SampleSource& source, uint64_t id) {
    std::string path;
    source.PathOf(source.RangeOf(id).file, path);
    return path;
  }
  static std::vector<uint8_t> Row(const SampleSource& source, size_t field, uint64_t id) {
    std::vector<uint8_t> row(source.fields()[field].row_bytes());
    source.FixedRows(field, {&id, 1}, row.data());
    return row;
  }

  testing::TempFolder folder_;
  const std::string list_ = folder_.Path("good.jsonl");
};

TEST_F(GoodSamplesTest, AreAManifest) {
  folder_.Write("data/a/1.png", Image());
  folder_.Write("data/a/2.png", "x");
  folder_.Write("data/b/\xE6\x97\xA5 \"1\".png", Image());
  folder_.Write("data/b/2.png", Image());
  const Source source = ImageFolder(folder_.Path("data")).value();
  const GoodSamples written = List(*source).value();
  EXPECT_EQ(written.samples, 3u);
  EXPECT_THAT(written.lost_classes, IsEmpty());
  const Source good = Manifest(list_).value();
  ASSERT_EQ(good->size(), 3u);
  EXPECT_EQ(good->classes(), source->classes());
  for (const auto& [id, from] : {std::pair<uint64_t, uint64_t>(0, 0), {1, 2}, {2, 3}}) {
    EXPECT_EQ(PathOf(*good, id), PathOf(*source, from));
    EXPECT_EQ(good->LabelOf(id), source->LabelOf(from));
  }
  EXPECT_TRUE(Verify(*good).value().bad.empty());
}

// For any type that a manifest's label may have, type, shape and value are kept.
TEST_F(GoodSamplesTest, KeepTheirLabels) {
  folder_.Write("1.png", Image());
  folder_.Write("2.png", Image());
  for (const auto& [one, two] :
       std::vector<std::pair<std::string, std::string>>{{"7", "-9007199254740993"},
                                                        {"0.1", "-1e300"},
                                                        {"2.0", "3.0"},
                                                        {"true", "false"},
                                                        {"[1, 2]", "[-3, 4]"},
                                                        {"[5]", "[6]"},
                                                        {"[1.0, 2.5]", "[0.1, 4.0]"},
                                                        {"\"cat\"", "\"dog\""},
                                                        {"\"2\"", "\"1\""}}) {
    const Source source = ManifestOf("m.jsonl", R"({"path": "1.png", "label": )" + one + "}\n" +
                                                    R"({"path": "2.png", "label": )" + two + "}\n");
    EXPECT_EQ(List(*source).value().samples, 2u) << one;
    const Source good = Manifest(list_).value();
    const Field &was = source->fields()[1], &is = good->fields()[1];
    EXPECT_TRUE(is.is_label);
    EXPECT_EQ(is.dtype, was.dtype) << one;
    EXPECT_EQ(is.row_shape, was.row_shape) << one;
    EXPECT_EQ(good->classes(), source->classes());
    for (const uint64_t id : {0, 1}) EXPECT_EQ(Row(*good, 1, id), Row(*source, 1, id)) << one;
  }
}

TEST_F(GoodSamplesTest, RefuseWhatAManifestCannotSay) {
  folder_.Write("one.tar", testing::TarFile("1.png", Image()) + testing::TarEnd());
  folder_.Write("1.png", Image());
  const auto refusal = [&](const Source& source) { return List(*source).error().Message(); };
  EXPECT_THAT(refusal(Tar(folder_.Path("one.tar")).value()), HasSubstr("which part of a file"));
  EXPECT_THAT(refusal(ManifestOf("m.csv", "path,caption\n1.png,a cat\n")),
              HasSubstr("lose the column 'caption'. Take the ids"));
  EXPECT_THAT(refusal(ManifestOf("n.csv", "path,label\n1.png,0.5\n1.png,nan\n")),
              HasSubstr("1.png: the label is not a finite number"));
  EXPECT_THAT(refusal(ManifestOf("c.csv", "path,label\n1.png,caf\xE9\n")),
              HasSubstr("the class 'caf\\xe9' is not UTF-8"));
  EXPECT_THAT(refusal(ManifestOf("p.csv", "path\ncaf\xE9.png\n")),
              HasSubstr("the name is not UTF-8"));
  for (const char* const lists : {R"({"path": ["1.png", "1.png"]})", R"({"path": ["1.png"]})"}) {
    EXPECT_THAT(
        refusal(ManifestOf("l.jsonl", std::string(lists) + "\n" + R"({"path": []})" + "\n")),
        HasSubstr("have any number of images"));
  }
  EXPECT_FALSE(fs::exists(list_));
}

TEST_F(GoodSamplesTest, CheckTheFileBeforehand) {
  folder_.Write("1.png", Image());
  const Source source = ManifestOf("m.csv", "path\n1.png\n");
  for (const char* const name : {"good.csv", "good", "good.jsonl.gz"}) {
    const Status status = CheckGoodSamples(*source, folder_.Path(name));
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_THAT(status.error().Message(), HasSubstr("ends in .jsonl or .ndjson"));
  }
  for (const char* const name : {"good.JSONL", "good.ndjson"}) {
    EXPECT_TRUE(CheckGoodSamples(*source, folder_.Path(name)).ok()) << name;
    EXPECT_FALSE(fs::exists(folder_.Path(name)));
  }
  const Status missing = CheckGoodSamples(*source, folder_.Path("no/good.jsonl"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().file, folder_.Path("no/good.jsonl"));
}

TEST_F(GoodSamplesTest, NameTheClassesThatAreLost) {
  folder_.Write("1.png", Image());
  folder_.Write("2.png", "x");
  const Source source =
      ManifestOf("m.csv", "path,label\n2.png,a\n1.png,b\n2.png,b\n2.png,c\n1.png,d\n");
  const GoodSamples written = List(*source).value();
  EXPECT_EQ(written.samples, 2u);
  EXPECT_THAT(written.lost_classes, ElementsAre("a", "c"));
}

TEST_F(GoodSamplesTest, AreNotWrittenWhereThereAreNone) {
  folder_.Write("data/a/1.png", "x");
  EXPECT_EQ(List(*ImageFolder(folder_.Path("data")).value()).value().samples, 0u);
  EXPECT_FALSE(fs::exists(list_));
}

// ".." behind a link is the parent of the link's target.
TEST_F(GoodSamplesTest, KeepPathsOverLinks) {
  folder_.Write("elsewhere/deep/1.png", "x");
  folder_.Write("elsewhere/2.png", Image());
  fs::create_directory_symlink(folder_.Path("elsewhere/deep"), folder_.Path("link"));
  const Source source = ManifestOf("m.csv", "path\nlink/../2.png\n");
  ASSERT_TRUE(Verify(*source).value().bad.empty());
  EXPECT_EQ(List(*source).value().samples, 1u);
  EXPECT_TRUE(Verify(*Manifest(list_).value()).value().bad.empty());
}

TEST_F(GoodSamplesTest, MakeRelativePathsAbsolute) {
  folder_.Write("data/a/1.png", Image());
  const fs::path before = fs::current_path();
  fs::current_path(folder_.path());
  const Source source = ImageFolder("./data").value();
  const Result<GoodSamples> written = List(*source);
  fs::remove_all(folder_.Path("gone"));
  fs::create_directory(folder_.Path("gone"));
  fs::current_path(folder_.Path("gone"));
  fs::remove(folder_.Path("gone"));
  const Status nowhere = CheckGoodSamples(*source, list_);
  fs::current_path(before);
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  EXPECT_TRUE(PathOf(*Manifest(list_).value(), 0).starts_with(folder_.path()));
  EXPECT_TRUE(Verify(*Manifest(list_).value()).value().bad.empty());
  ASSERT_FALSE(nowhere.ok());
  EXPECT_THAT(nowhere.error().cause, HasSubstr("the working folder cannot be found"));
}

}  // namespace
}  // namespace stoker
