#include "io/folder/masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using Pairs = std::vector<std::pair<std::string, std::string>>;  // image and mask, below the folder
using Source = std::shared_ptr<const SampleSource>;

class MasksTest : public ::testing::Test {
 protected:
  void Files(const std::vector<std::string>& paths) const {
    for (const std::string& path : paths) folder_.Write(path, "x");
  }
  std::string Path(const std::string& path) const { return folder_.Path(path); }

  // Of the folders "i" and "m".
  Result<Source> Join(MasksOptions options = {}) const {
    return Masks(Path("i"), Path("m"), std::move(options));
  }
  Pairs PairsOf(const Source& source) const {
    Pairs pairs;
    std::string image, mask;
    for (uint64_t id = 0; id < source->size(); ++id) {
      source->PathOf(source->RangeOf(id).file, image);
      source->PathOf(source->RangeOfPiece(id, 1).file, mask);
      pairs.emplace_back(image.substr(folder_.path().size() + 1),
                         mask.substr(folder_.path().size() + 1));
    }
    return pairs;
  }
  Error ErrorOf(const Result<Source>& made) const {
    EXPECT_FALSE(made.ok());
    return made.ok() ? Error{} : made.error();
  }

  const testing::TempFolder folder_;
};

TEST_F(MasksTest, FilesAreJoinedByPathsWithoutExtension) {
  Files({"i/b.jpg", "i/a.b.JPEG", "i/s/t/1.webp", "i/s/1.png", "i/s.tiff", "i/notes.txt",
         "i/.hidden.jpg"});
  Files({"m/b.png", "m/a.b.PNG", "m/s/t/1.png", "m/s/1.png", "m/s.png", "m/colours.csv"});
  std::filesystem::create_directories(Path("i/empty"));
  const Source source = Join({.fill = 255}).value();
  EXPECT_THAT(PairsOf(source),
              ElementsAre(Pair("i/a.b.JPEG", "m/a.b.PNG"), Pair("i/b.jpg", "m/b.png"),
                          Pair("i/s.tiff", "m/s.png"), Pair("i/s/1.png", "m/s/1.png"),
                          Pair("i/s/t/1.webp", "m/s/t/1.png")));
  ASSERT_EQ(source->fields().size(), 2u);
  EXPECT_EQ(source->fields()[0].name, "image");
  EXPECT_EQ(source->fields()[1].name, "mask");
  EXPECT_EQ(source->fields()[1].kind, Field::Kind::kMask);
  EXPECT_EQ(source->fields()[1].fill, 255);
  EXPECT_FALSE(source->label());
  EXPECT_EQ(source->Describe(), "masks(" + Path("i") + ", " + Path("m") + ")");
}

TEST_F(MasksTest, ASuffixChoosesAmongTheFilesOfTheMasksFolder) {
  Files({"i/a.jpg", "i/b.png"});
  Files({"m/a_ids.png", "m/a_colour.png", "m/b_ids.png", "m/b.png", "m/c.png", "m/a_ids.jpg"});
  EXPECT_THAT(PairsOf(Join({.suffix = "_ids"}).value()),
              ElementsAre(Pair("i/a.jpg", "m/a_ids.png"), Pair("i/b.png", "m/b_ids.png")));
}

TEST_F(MasksTest, BothMayBeInOneFolder) {
  Files({"i/a.jpg", "i/a_mask.png", "i/s/b.png", "i/s/b_mask.png", "i/x_mask.jpg",
         "i/x_mask_mask.png"});
  std::filesystem::create_directory_symlink("i", Path("link"));
  for (const std::string& masks : {Path("i"), Path("i/"), Path("link")}) {
    const Source source = Masks(Path("i"), masks, {.suffix = "_mask"}).value();
    EXPECT_EQ(source->size(), 3u);
    EXPECT_EQ(PairsOf(source)[1].first, "i/s/b.png");
    EXPECT_EQ(PairsOf(source)[2].first, "i/x_mask.jpg");
    EXPECT_EQ(PairsOf(source)[2].second.substr(PairsOf(source)[2].second.rfind('/')),
              "/x_mask_mask.png");
  }
  const Error error = ErrorOf(Masks(Path("i"), Path("link")));
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.cause, HasSubstr("in the same folder, and no suffix"));
}

TEST_F(MasksTest, TheFingerprintIsOfNamesWithoutFolders) {
  Files({"i/a.jpg", "m/a.png", "j/i/a.jpg", "j/m/a.png"});
  const uint64_t print = Join().value()->Fingerprint();
  EXPECT_EQ(Masks(Path("j/i"), Path("j/m")).value()->Fingerprint(), print);
  EXPECT_NE(Join({.fill = 1}).value()->Fingerprint(), print);
  Files({"i/b.jpg", "m/b.png"});
  EXPECT_NE(Join().value()->Fingerprint(), print);
}

TEST_F(MasksTest, FilesWithoutPartnersAreCountedAndNamed) {
  Files({"i/a.jpg", "i/c.jpg", "i/d/e.jpg", "m/a.png", "m/f.png"});
  Error error = ErrorOf(Join());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.cause, "2 images (the first is 'c.jpg') have no mask in '" + Path("m") +
                             "', where 1 mask ('f.png') has no image");
  EXPECT_EQ(error.file, Path("i"));
  EXPECT_THAT(error.advice, HasSubstr("mask of a/b.jpg is a/b.png"));
  Files({"m/c.png", "m/d/e.png"});
  error = ErrorOf(Join());
  EXPECT_EQ(error.cause, "1 mask ('f.png') has no image in '" + Path("i") + "'");
  EXPECT_EQ(error.file, Path("m"));
  Files({"i/f.jpg", "i/g.jpg", "m/g.jpg"});
  error = ErrorOf(Join());
  EXPECT_EQ(error.cause, "1 image ('g.jpg') has no mask in '" + Path("m") + "'");
  EXPECT_THAT(ErrorOf(Join({.suffix = "_x"})).advice, HasSubstr("names end with _x.png"));
}

TEST_F(MasksTest, ImagesOfOtherFormatsAreCountedAndExplainMasksWithoutOne) {
  Files({"i/a.jpg", "i/x.psd", "i/s/z.exr", "m/a.png", "m/y.exr"});
  const SkippedFiles skipped = Join().value()->Skipped();
  EXPECT_EQ(skipped, (SkippedFiles{{{".exr", 1}, {".psd", 1}}, "s/z.exr"}));
  Files({"m/s/z.png"});
  Error error = ErrorOf(Join());
  EXPECT_EQ(error.cause, "1 mask ('s/z.png') has no image in '" + Path("i") +
                             "'; 2 image files are skipped, because stoker does not list their "
                             "extensions (.exr 1, .psd 1)");
  EXPECT_THAT(error.advice, HasSubstr("Convert them"));
  Files({"i/b.jpg"});
  error = ErrorOf(Join());
  EXPECT_THAT(error.cause, HasSubstr("1 mask ('s/z.png') has no image; 2 image files are skipped"));
  std::filesystem::remove(Path("m/s/z.png"));
  error = ErrorOf(Join());
  EXPECT_THAT(error.cause, HasSubstr("1 image ('b.jpg') has no mask"));
  EXPECT_THAT(error.cause, Not(HasSubstr("skipped")));
  std::filesystem::remove(Path("i/b.jpg"));
  std::filesystem::remove(Path("i/a.jpg"));
  EXPECT_THAT(ErrorOf(Join()).cause, HasSubstr("that stoker lists in this folder or below it"));
}

TEST_F(MasksTest, AmbiguousNamesAreErrors) {
  Files({"i/a.jpg", "i/a.jpg.png", "i/a.png", "m/a.png", "m/a.jpg.png"});
  Error error = ErrorOf(Join());
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.file, Path("i"));
  EXPECT_EQ(error.cause, "two images differ in their extensions only: 'a.jpg' and 'a.png'");
  std::filesystem::remove(Path("i/a.png"));
  EXPECT_TRUE(Join().ok());
  Files({"m/a.PNG"});
  error = ErrorOf(Join());
  EXPECT_EQ(error.file, Path("m"));
  EXPECT_EQ(error.cause, "two masks differ in their extensions only: 'a.PNG' and 'a.png'");
}

TEST_F(MasksTest, WrongArgumentsAreNamed) {
  Files({"i/a.jpg", "m/a.jpg", "n/a.png", "file.png"});
  const auto error = [&](const char* images, const char* masks, MasksOptions options = {}) {
    return ErrorOf(Masks(Path(images), Path(masks), std::move(options)));
  };
  EXPECT_EQ(error("none", "n").code, Code::kNotFound);
  EXPECT_EQ(error("i", "none").file, Path("none"));
  EXPECT_EQ(error("i", "none").code, Code::kNotFound);
  EXPECT_EQ(error("i", "file.png").code, Code::kInvalidArgument);
  EXPECT_EQ(error("i", "file.png").advice, "Name a folder");
  EXPECT_EQ(error("i", "m").cause, "no mask in this folder or below it");
  EXPECT_THAT(error("i", "m").advice, HasSubstr("JPEG is unfit"));
  std::filesystem::create_directory(Path("empty"));
  EXPECT_EQ(error("empty", "n").cause, "no image in this folder or below it");
  EXPECT_EQ(error("empty", "n").file, Path("empty"));
  EXPECT_THAT(error("i", "n", {.suffix = "a/b"}).cause, HasSubstr("slash or a NUL"));
  EXPECT_THAT(error("i", "n", {.suffix = std::string(1, '\0')}).cause, HasSubstr("a NUL"));
  EXPECT_EQ(error("i", "n", {.threads = 1000}).code, Code::kInvalidArgument);
  EXPECT_EQ(ErrorOf(Masks("https://h/d", Path("n"))).code, Code::kUnimplemented);
}

// Random trees: the pairs are those that a map of all names gives.
TEST_F(MasksTest, TreesAreJoinedAsAMapWould) {
  for (int round = 0; round < 20; ++round) {
    RandomStream random({.seed = 3}, static_cast<uint32_t>(round));
    const std::string root = "r" + std::to_string(round) + "/";
    const std::string suffix = round % 2 == 0 ? "" : "-m";
    std::map<std::string, std::string> expected;  // masks by image
    for (int i = 0; i < 30; ++i) {
      std::string stem;
      for (int letters = 0; letters < 4; ++letters) {
        stem += std::string("ab-./!").substr(random.Below(6), 1);
      }
      // No part is empty or hidden.
      if (stem.find("/.") != std::string::npos || stem.find("//") != std::string::npos) continue;
      if (stem.front() == '/' || stem.front() == '.' || stem.back() == '/') continue;
      const std::string image = stem + (stem.size() % 2 == 0 ? ".jpg" : ".png");
      expected["i/" + image] = "m/" + stem + suffix + ".png";
    }
    if (expected.empty()) continue;
    Pairs pairs;
    for (const auto& [image, mask] : expected) {
      Files({root + image, root + mask});
      pairs.emplace_back(root + image, root + mask);
    }
    const Source source = Masks(Path(root + "i"), Path(root + "m"), {.suffix = suffix}).value();
    EXPECT_EQ(PairsOf(source), pairs) << "round " << round;
  }
}

}  // namespace
}  // namespace stoker
