#include "bindings/cli/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/synth/photograph.h"
#include "io/sources/image_folder.h"
#include "io/sources/manifest.h"
#include "io/sources/tar.h"
#include "io/sources/tfrecord.h"
#include "tests/testing/make_png.h"
#include "tests/testing/make_tar.h"
#include "tests/testing/make_tfrecord.h"
#include "tests/testing/make_webp.h"
#include "tests/testing/photos.h"
#include "tests/testing/temp_folder.h"

namespace stoker {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Source = std::shared_ptr<const SampleSource>;

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

class VerifyTest : public ::testing::Test {
 protected:
  static std::string Photo(const PhotographRecipe& recipe = {.width = 30, .height = 40}) {
    return Text(RenderPhotograph(recipe, 1, 1));
  }
  void File(const std::string& path, const std::string& bytes) { folder_.Write(path, bytes); }
  Source Folder() { return ImageFolder(folder_.path()).value(); }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  static VerifyReport Check(const SampleSource& source, const VerifyOptions& options = {}) {
    return Verify(source, options).value();
  }
  // "cut.jpg truncated 812; …", without the folders.
  static std::string Found(const VerifyReport& report) {
    std::string text;
    for (const BadSample& sample : report.bad) {
      text += fs::path(sample.error.file).filename().string() + " " + NameOf(sample.fault);
      if (sample.error.offset) text += " " + std::to_string(*sample.error.offset);
      text += "; ";
    }
    return text;
  }

  testing::TempFolder folder_;
};

TEST_F(VerifyTest, FindsEveryKindOfBadSample) {
  const std::string whole = Photo();
  File("a/good.jpg", whole);
  File("a/good.png", Text(testing::MakePng()));
  File("b/avif.jpg", std::string("\0\0\0\x1c"
                                 "ftypavif\0\0\0\0avifmif1miaf",
                                 28) +
                         whole);
  File("b/cut.jpg", whole.substr(0, whole.size() - 200));
  File("b/cut.png", Text(testing::MakePng()).substr(0, 200));
  File("b/cut.webp", Text(testing::MakeWebp()).substr(0, 200));
  File("b/empty.jpg", "");
  File("b/gone.jpg", whole);
  File("b/large.jpg", Photo({.width = 200, .height = 100}));
  File("b/text.jpg", "hello");
  const Source source = Folder();
  fs::remove(Path("b/gone.jpg"));
  const VerifyReport report = Check(*source, {.limits = {.max_pixels = 15000}});
  EXPECT_EQ(report.checked, 10u);
  EXPECT_EQ(report.source, source->Describe());
  std::vector<std::pair<uint64_t, std::string>> faults;
  for (const BadSample& bad : report.bad) faults.emplace_back(bad.id, NameOf(bad.fault));
  EXPECT_THAT(faults,
              ElementsAre(Pair(2, "unsupported"), Pair(3, "truncated"), Pair(4, "truncated"),
                          Pair(5, "truncated"), Pair(6, "truncated"), Pair(7, "vanished"),
                          Pair(8, "over the limits"), Pair(9, "undecodable")))
      << Found(report);
  EXPECT_EQ(report.bad[1].error.file, Path("b/cut.jpg"));
  EXPECT_EQ(report.bad[1].error.offset, whole.size() - 200);
}

TEST_F(VerifyTest, AFileThatMayNotBeReadIsUnreadable) {
  File("a.jpg", Photo());
  const Source source = Folder();
  fs::remove(Path("a.jpg"));
  fs::create_directory(Path("a.jpg"));
  const VerifyReport report = Check(*source);
  EXPECT_EQ(Found(report), "a.jpg unreadable; ");
}

TEST_F(VerifyTest, DoesNotDependOnThreads) {
  const std::string good = Photo();
  for (int i = 0; i < 300; ++i) {
    File(std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg", i % 7 == 0 ? "broken" : good);
  }
  const Source source = Folder();
  VerifyReport one = Check(*source, {.threads = 1}), many = Check(*source, {.threads = 5});
  EXPECT_EQ(one.bad.size(), 43u);
  one.seconds = many.seconds = 0;
  EXPECT_EQ(VerifyJson(one), VerifyJson(many));
}

// The offset is the archive's, of the byte at which decoding failed.
TEST_F(VerifyTest, SamplesOfArchives) {
  const std::string whole = Photo();
  const std::string cut = whole.substr(0, whole.size() - 200);
  folder_.Write("one.tar", testing::TarFile("1.jpg", whole) + testing::TarFile("2.jpg", cut) +
                               testing::TarEnd());
  const VerifyReport report = Check(*Tar(Path("one.tar")).value());
  const size_t begin = testing::TarFile("1.jpg", whole).size() + 512;
  EXPECT_EQ(Found(report), "one.tar truncated " + std::to_string(begin + cut.size()) + "; ");
  EXPECT_EQ(report.bad[0].id, 1u);
}

TEST_F(VerifyTest, RecordsOfTfRecordFiles) {
  const std::string whole = Photo();
  std::string bytes = testing::ImageRecord(whole, 1) + testing::ImageRecord(whole, 2) +
                      testing::ImageRecord("no image", 3);
  const size_t second = testing::ImageRecord(whole, 1).size();
  bytes[second + 500] = static_cast<char>(bytes[second + 500] ^ 1);
  folder_.Write("one.tfrecord", bytes);
  const VerifyReport report = Check(*TfRecord(Path("one.tfrecord")).value());
  ASSERT_EQ(report.bad.size(), 2u) << Found(report);
  EXPECT_THAT(report.bad[0].error.cause, HasSubstr("checksum"));
  EXPECT_EQ(report.bad[0].fault, SampleFault::kUndecodable);
  const size_t image = bytes.find("no image");
  EXPECT_EQ(report.bad[1].error.offset, image);
}

TEST_F(VerifyTest, MissingEndMarkersAreCountedAndNotBad) {
  const std::string whole = Photo({.width = 100, .height = 50});
  File("lost.jpg", whole.substr(0, whole.size() - 2) + std::string(100, '\0'));
  const VerifyReport report = Check(*Folder());
  EXPECT_EQ(Found(report), "");
  EXPECT_EQ(report.no_end_marker, 1u);
  EXPECT_THAT(VerifyText(report, 100), HasSubstr("without an end marker, but complete: 1 JPEG\n"));
}

TEST_F(VerifyTest, ProgressReachesTheEndAndStops) {
  for (int i = 0; i < 100; ++i) File(std::to_string(i) + ".jpg", "x");
  const Source source = Folder();
  uint64_t last = 0;
  const auto all = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 100u);
    EXPECT_GT(done, last);
    last = done;
    return true;
  };
  EXPECT_TRUE(Verify(*source, {.threads = 3}, all).ok());
  EXPECT_EQ(last, 100u);
  const auto stopped = Verify(*source, {.threads = 3}, [](uint64_t, uint64_t) { return false; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
}

TEST_F(VerifyTest, TextAndJson) {
  const std::string whole = Photo();
  File("a/\x1b[2J.jpg", "x");
  File("a/2.jpg", whole.substr(0, whole.size() - 200));
  File("a/3.gif", "GIF89a");
  const VerifyReport report = Check(*Folder());
  const std::string text = VerifyText(report, 1);
  EXPECT_THAT(text, HasSubstr("2 samples decoded in"));
  EXPECT_THAT(text, HasSubstr("bad: 2 (1 truncated, 1 undecodable)"));
  EXPECT_THAT(text, HasSubstr("skipped: 1 image file is skipped"));
  EXPECT_THAT(text, HasSubstr("\\x1b[2J.jpg"));
  EXPECT_THAT(text, HasSubstr("and 1 more"));
  const auto json = nlohmann::json::parse(VerifyJson(report));
  EXPECT_EQ(json["checked"], 2);
  EXPECT_EQ(json["bad"][1]["id"], 1);
  EXPECT_EQ(json["bad"][1]["path"], Path("a/2.jpg"));
  EXPECT_EQ(json["bad"][1]["offset"], whole.size() - 200);
  EXPECT_EQ(json["bad"][1]["class"], "truncated");
  EXPECT_THAT(json["bad"][1]["cause"].get<std::string>(), HasSubstr("truncated JPEG"));
  EXPECT_EQ(json["bad_by_class"]["undecodable"], 1);
  EXPECT_EQ(json["bad_by_class"]["vanished"], 0);
}

TEST_F(VerifyTest, TheGoodSamplesAreAManifest) {
  File("a/1.jpg", Photo());
  File("a/2.jpg", "x");
  File("b/\xE6\x97\xA5 \"1\".jpg", Photo());
  File("b/2.jpg", Photo());
  const Source source = Folder();
  const std::string path = Path("good.jsonl");
  const Status written = WriteGoodSamples(*source, Check(*source), path);
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  const Source good = Manifest(path).value();
  ASSERT_EQ(good->size(), 3u);
  EXPECT_EQ(good->classes(), source->classes());
  std::string wanted, found;
  for (const auto& [id, from] : {std::pair<uint64_t, uint64_t>(0, 0), {1, 2}, {2, 3}}) {
    good->PathOf(good->RangeOf(id).file, found);
    source->PathOf(source->RangeOf(from).file, wanted);
    EXPECT_EQ(found, fs::absolute(wanted));
    EXPECT_EQ(good->LabelOf(id), source->LabelOf(from));
  }
  EXPECT_TRUE(Check(*good).bad.empty());
}

TEST_F(VerifyTest, NoManifestOfWhatItCannotSay) {
  folder_.Write("one.tar", testing::TarFile("1.jpg", Photo()) + testing::TarEnd());
  const Source tar = Tar(Path("one.tar")).value();
  const Status parts = WriteGoodSamples(*tar, Check(*tar), Path("good.jsonl"));
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(parts.error().ToString(), HasSubstr("which part of a file"));
  folder_.Write("1.jpg", Photo());
  const Source more = Manifest(folder_.Write("m.csv", "path,caption\n1.jpg,a cat\n")).value();
  const Status columns = WriteGoodSamples(*more, Check(*more), Path("good.jsonl"));
  ASSERT_FALSE(columns.ok());
  EXPECT_THAT(columns.error().ToString(), HasSubstr("lose the column 'caption'"));
  EXPECT_FALSE(fs::exists(Path("good.jsonl")));
}

TEST_F(VerifyTest, RefusesThreadsOutOfRange) {
  File("a.jpg", "x");
  for (const int threads : {-1, 100000}) {
    const auto report = Verify(*Folder(), {.threads = threads});
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.error().cause, HasSubstr("threads"));
  }
}

TEST_F(VerifyTest, RealPhotographsAreGood) {
  const auto photos = testing::Photos();
  if (photos.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no folder of photographs";
  std::string list = "path\n";
  for (const fs::path& photo : photos) list += fs::absolute(photo).string() + "\n";
  const VerifyReport report = Check(*Manifest(folder_.Write("all.csv", list)).value());
  EXPECT_EQ(report.checked, photos.size());
  EXPECT_EQ(Found(report), "");
}

}  // namespace
}  // namespace stoker
