// Numbered images in tar archives: samples of any number of images.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/tar/tar.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using testing::BytesOfFile;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using testing::TarEnd;
using testing::TarFile;
using Names = std::vector<std::string>;
using Source = std::shared_ptr<const SampleSource>;

constexpr uint64_t kBlock = 512;

// Returns an archive whose members hold their names.
std::string ArchiveOf(const Names& names) {
  std::string archive;
  for (const std::string& name : names) archive += TarFile(name, name);
  return archive + TarEnd();
}

// Returns the bytes of each sample's images.
std::vector<Names> NumberedImagesOf(const SampleSource& source) {
  std::vector<Names> all(source.size());
  std::string path;
  for (uint64_t id = 0; id < source.size(); ++id) {
    for (size_t piece = 0; piece < source.PiecesOf(id); ++piece) {
      const ByteRange range = source.RangeOfAny(id, piece);
      source.PathOf(range.file, path);
      all[id].push_back(BytesOfFile(path).substr(range.offset, range.length));
    }
  }
  return all;
}

class TarImagesTest : public ::testing::Test {
 protected:
  Source Opened(const Names& names, const TarOptions& options) const {
    Result<Source> source = Tar(folder_.Write("a.tar", ArchiveOf(names)), options);
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    return source.ok() ? *std::move(source) : nullptr;
  }
  Source Opened(const Names& names) const { return Opened(names, images_); }
  Error Refused(const Names& names, const TarOptions& options) const {
    const Result<Source> source = Tar(folder_.Write("a.tar", ArchiveOf(names)), options);
    EXPECT_FALSE(source.ok());
    return source.ok() ? Error{} : source.error();
  }
  Error Refused(const Names& names) const { return Refused(names, images_); }

  const testing::TempFolder folder_;
  const TarOptions images_{.image = "*.jpg;*.png", .label = ""};
  const TarOptions texts_{
      .image = "*.jpg;*.png", .label = "", .columns = {{"text", ".txt"}, {"bytes", ".bin"}}};
};

// There may be gaps between the numbers.
TEST_F(TarImagesTest, AreInTheOrderOfTheirNumbers) {
  const Source source = Opened(
      {"7.10.jpg", "7.9.PNG", "7.007.jpg", "7.json", "8.4294967295.jpg", "8.0.png", "9.3.png"});
  EXPECT_THAT(NumberedImagesOf(*source),
              ElementsAre(ElementsAre("7.007.jpg", "7.9.PNG", "7.10.jpg"),
                          ElementsAre("8.0.png", "8.4294967295.jpg"), ElementsAre("9.3.png")));
  EXPECT_TRUE(source->fields()[0].varies);
  EXPECT_EQ(source->pieces(), 3u);
  EXPECT_TRUE(source->Skipped().empty());
}

TEST_F(TarImagesTest, OneMayHaveNoNumber) {
  EXPECT_THAT(
      NumberedImagesOf(*Opened({"7.jpg", "7.left.png", "8.0.jpg", "8.1.jpg", "9.png"})),
      ElementsAre(ElementsAre("7.jpg"), ElementsAre("8.0.jpg", "8.1.jpg"), ElementsAre("9.png")));
  EXPECT_THAT(NumberedImagesOf(*Opened({"7.left.png", "8.0.left.png", "8.seg.png"},
                                       {.image = "*.left.png", .label = ""})),
              ElementsAre(ElementsAre("7.left.png"), ElementsAre("8.0.left.png")));
}

TEST_F(TarImagesTest, HaveNumbersOfTheirOwn) {
  for (const auto& [one, other] :
       std::vector<std::pair<std::string, std::string>>{{"7.7.jpg", "7.007.jpg"},
                                                        {"7.0.png", "7.0.jpg"},
                                                        {"7.jpg", "7.0.jpg"},
                                                        {"7.5.png", "7.jpg"},
                                                        {"7.png", "7.jpg"}}) {
    const Error error = Refused({"6.0.jpg", one, other});
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_EQ(error.file, folder_.Path("a.tar"));
    EXPECT_EQ(error.offset, 5 * kBlock);
    EXPECT_THAT(error.cause, HasSubstr("the sample '7' has the images '" + one + "' and '" + other +
                                       "', which do not have different numbers"));
    EXPECT_THAT(error.advice, HasSubstr("a number of its own"));
  }
  EXPECT_THAT(Refused({"7.0.jpg", "7.0.JPG"}).cause, HasSubstr("two members with the extension"));
}

TEST_F(TarImagesTest, HaveNumbersOf32Bits) {
  for (const std::string& number : {std::string("4294967296"), std::string(60, '9')}) {
    const Error error = Refused({"6.0.jpg", "7." + number + ".jpg"});
    EXPECT_THAT(error.cause, AllOf(HasSubstr("7." + number + ".jpg"), HasSubstr("4294967295")));
    EXPECT_EQ(error.offset, 3 * kBlock);
  }
}

TEST_F(TarImagesTest, HaveDecimalNumbers) {
  for (const std::string number : {"-1", "+1", "1e3", "0x1", "", " 1", "1 ", "1.x", "a.1"}) {
    const std::string other = "7." + number + ".jpg";
    EXPECT_THAT(NumberedImagesOf(*Opened({"7.0.jpg", other})), ElementsAre(ElementsAre("7.0.jpg")))
        << other;
    const Source source = Opened({"6.0.jpg", other});
    EXPECT_EQ(source->size(), 1u) << other;
    EXPECT_THAT(source->Skipped().by_extension, ElementsAre(Pair("*.jpg", 1u))) << other;
  }
}

TEST_F(TarImagesTest, AreCountedIfTheyAreNotTaken) {
  const Source source =
      Opened({"6.0.jpg", "6.1.webp", "6.left.png", "7.2.jpeg", "7.txt", "8.webp", "8.0.png",
              "2024.01.05.jpg", "2024.txt", "9.left.png", "README.md", "data.0.bin"});
  EXPECT_THAT(NumberedImagesOf(*source),
              ElementsAre(ElementsAre("6.0.jpg"), ElementsAre("8.0.png")));
  EXPECT_THAT(source->Skipped().by_extension,
              ElementsAre(Pair("*.jpeg", 1u), Pair("*.jpg", 1u), Pair("*.png", 1u),
                          Pair("*.webp", 2u), Pair(".md", 1u), Pair("others", 1u)));
  EXPECT_THAT(source->Skipped().Warning(),
              AllOf(HasSubstr("2 samples are skipped, because they have no image; they begin with "
                              ".md 1, others 1; and 5 images are left out of their samples, "
                              "because image= does not take them (*.jpeg 1, "),
                    HasSubstr("\"*.jpg;*.ppm\"")));
  EXPECT_THAT(Opened({"6.0.jpg", "7.1.webp"})->Skipped().Warning(),
              AllOf(HasSubstr("1 image is left out of its sample"),
                    HasSubstr("a.tar: '7.1.webp', whose extension is '1.webp'"),
                    HasSubstr("(image=\"*.webp\" takes it"), Not(HasSubstr("skipped"))));
}

TEST_F(TarImagesTest, MayBeMissingInSamplesOfTexts) {
  const Source source = Opened({"1.txt", "1.bin", "2.1.jpg", "2.bin", "2.txt", "2.0.jpg",
                                "README.md", "3.bin", "3.txt", "3.left.png"},
                               texts_);
  EXPECT_THAT(NumberedImagesOf(*source),
              ElementsAre(IsEmpty(), ElementsAre("2.0.jpg", "2.1.jpg"), IsEmpty()));
  EXPECT_THAT(source->Skipped().by_extension, ElementsAre(Pair("*.png", 1u), Pair(".md", 1u)));
  EXPECT_THAT(Refused({"1.0.jpg", "1.txt", "1.bin", "2.txt"}, texts_).cause,
              HasSubstr("'2' has no member with the extension 'bin'"));
  const TarOptions columns{
      .image = "*.jpg", .label = "", .columns = {{"depth", ".0.webp"}, {"left", ".left.jpg"}}};
  EXPECT_TRUE(Opened({"1.0.webp", "1.left.jpg", "2.0.jpg", "2.0.webp", "2.left.jpg"}, columns)
                  ->Skipped()
                  .empty())
      << "columns of images";
}

TEST_F(TarImagesTest, OfOneSampleLieTogether) {
  const Error error = Refused({"a.0.png", "b.0.png", "a.1.png"});
  EXPECT_EQ(error.offset, 5 * kBlock);
  EXPECT_THAT(error.cause,
              AllOf(HasSubstr("the sample 'a' lie apart"),
                    HasSubstr("'a.0.png' is at byte 512, and 'a.1.png' is at byte 2560")));
  for (const Names& names : {Names{"a.0.png", "a.txt", "a.bin", "b.txt", "b.bin", "a.1.png"},
                             Names{"a.txt", "a.bin", "b.txt", "b.bin", "a.0.png"}}) {
    EXPECT_THAT(Refused(names, texts_).cause, HasSubstr("the sample 'a' lie apart"));
  }
  EXPECT_EQ(Opened({"a.md", "b.0.png", "a.0.png"})->size(), 2u) << "a file of no sample";
}

TEST_F(TarImagesTest, HaveLabelsOrNone) {
  const std::string one = TarFile("1.0.jpg", "x") + TarFile("1.1.jpg", "y") + TarFile("1.cls", "5");
  const std::string two = TarFile("2.0.jpg", "x");
  const auto open = [this](const std::string& bytes) {
    return Tar(folder_.Write("a.tar", bytes + TarEnd()), {.image = "*.jpg"});
  };
  const Source source = open(one + TarFile("README.md", "") + TarFile("3.cls", "7")).value();
  EXPECT_EQ(source->size(), 1u);
  EXPECT_EQ(source->LabelOf(0), 5);
  EXPECT_EQ(source->Skipped().files(), 2u);
  EXPECT_THAT(open(one + two).error().cause, HasSubstr("'2' has no label (.cls)"));
  folder_.Write("0.tar", one + TarEnd());
  folder_.Write("1.tar", two + TarEnd());
  EXPECT_THAT(Tar(folder_.Path("{0..1}.tar"), {.image = "*.jpg"}).error().cause,
              HasSubstr("'2' has no label (.cls), and '1' in "));
}

TEST_F(TarImagesTest, AreAtMost1024) {
  Names names;
  for (size_t i = 0; i < kMostPieces; ++i) names.push_back("a." + std::to_string(i) + ".jpg");
  EXPECT_EQ(Opened(names)->PiecesOf(0), kMostPieces);
  names.emplace_back("a.1024.jpg");
  const Error error = Refused(names);
  EXPECT_THAT(error.cause, HasSubstr("more than 1024 images"));
  EXPECT_EQ(error.offset, (2 * kMostPieces + 1) * kBlock);
}

// Keys are those of a shard, and the first ones have no image.
TEST_F(TarImagesTest, OfSeveralShardsAreThoseOfTheirSamples) {
  folder_.Write("0.tar", TarEnd());
  folder_.Write("1.tar", ArchiveOf({"1.txt", "1.bin"}));
  folder_.Write("2.tar", ArchiveOf({"2.0.jpg", "2.1.jpg", "2.txt", "2.bin", "3.txt", "3.bin"}));
  folder_.Write("3.tar", TarFile("1.0.png", "") + ArchiveOf({"1.txt", "1.bin"}));
  const Source source = Tar(folder_.Path("{0..3}.tar"), texts_).value();
  EXPECT_THAT(NumberedImagesOf(*source), ElementsAre(IsEmpty(), ElementsAre("2.0.jpg", "2.1.jpg"),
                                                     IsEmpty(), ElementsAre("")));
  for (const auto& [id, file] : {std::pair(0, 1u), {1, 2u}, {2, 2u}, {3, 3u}}) {
    EXPECT_EQ(source->RangeOf(static_cast<uint64_t>(id)).file, file);
  }
  EXPECT_EQ(source->RangeOf(0).length, 0u);
}

TEST_F(TarImagesTest, NamesWhatThereIsIfThereIsNone) {
  const Error error = Refused({"1.0.webp", "1.txt", "2.md"});
  EXPECT_THAT(error.cause, AllOf(HasSubstr("has an image (*.jpg;*.png)"),
                                 HasSubstr("they have *.webp 1, .md 1")));
  EXPECT_THAT(error.advice, HasSubstr("image=\"*.jpg;*.ppm\""));
  EXPECT_THAT(Refused({"1.txt", "1.bin"}, texts_).cause, HasSubstr("has an image"));
}

TEST_F(TarImagesTest, RefusesOtherOptions) {
  const Names names = {"1.0.jpg"};
  for (const char* image : {"*.", "*.*.jpg", "*", "*jpg", "a*.jpg", "*.jpg;*."}) {
    EXPECT_THAT(Refused(names, {.image = image}).cause, HasSubstr("an extension that has '*'"))
        << image;
  }
  for (const char* image : {"*.jpg;png", "jpg;*.png"}) {
    EXPECT_THAT(Refused(names, {.image = image}).cause, HasSubstr("and others without")) << image;
  }
  EXPECT_THAT(Refused(names, {.image = "*.jpg", .columns = {{"x", ".npy"}}}).cause,
              HasSubstr("the column 'x' has arrays, and samples have any number of images"));
  for (const auto& [column, words] : std::vector<std::pair<std::string, std::string>>{
           {"seg,mask,seg.png", "the column 'seg' has masks"},
           {"boxes,boxes,json:b", "the column 'boxes' has values of objects"}}) {
    EXPECT_THAT(
        Refused(names, {.image = "*.jpg", .keyed = ParseKeyedColumns(column).value()}).cause,
        HasSubstr(words));
  }
}

TEST_F(TarImagesTest, HaveFingerprintsByTheirOrder) {
  const uint64_t one = Opened({"1.0.jpg", "1.1.jpg", "2.2.jpg"})->Fingerprint();
  EXPECT_EQ(Opened({"1.1.jpg", "1.3.jpg", "2.0.png"})->Fingerprint(), one);
  EXPECT_NE(Opened({"1.0.jpg", "2.1.jpg", "2.2.jpg"})->Fingerprint(), one);
}

}  // namespace
}  // namespace stoker
