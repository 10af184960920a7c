#include "bindings/cli/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/synth/photograph.h"
#include "io/annotations/coco.h"
#include "io/folder/image_folder.h"
#include "io/folder/masks.h"
#include "io/manifest/manifest.h"
#include "io/select/clips.h"
#include "io/select/subset.h"
#include "io/tar/tar.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/storage/temp_folder.h"

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
  static std::string Mask(int width, int height) {
    return Text(testing::MakePng({.width = width, .height = height, .color = 0, .bit_depth = 4}));
  }
  void File(const std::string& path, const std::string& bytes) { folder_.Write(path, bytes); }
  Source Folder() { return ImageFolder(folder_.path()).value(); }
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  static VerifyReport Check(const SampleSource& source, const VerifyOptions& options = {}) {
    return Verify(source, options).value();
  }
  // Returns "1 truncated 812; …": ids, faults and offsets.
  static std::string Describe(const VerifyReport& report) {
    std::string text;
    for (size_t i = 0; i < report.bad.size(); ++i) {
      const BadSample sample = report.bad[i];
      text += std::to_string(sample.id) + " " + NameOf(sample.fault);
      if (sample.offset) text += " " + std::to_string(*sample.offset);
      text += "; ";
    }
    return text;
  }
  static std::string Json(const SampleSource& source, const VerifyReport& report) {
    std::string text;
    const Status written = WriteVerifyJson(source, report, [&](std::string_view piece) {
      text += piece;
      return Status();
    });
    EXPECT_TRUE(written.ok());
    return text;
  }

  testing::TempFolder folder_;
};

TEST_F(VerifyTest, FindsEveryKindOfBadSample) {
  const std::string whole = Photo();
  File("a/good.jpg", whole);
  File("a/good.png", Text(testing::MakePng()));
  File("b/a.jpg", std::string("\0\0\0\x0CJXL \r\n\x87\n", 12) + whole);
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
  EXPECT_FALSE(report.interrupted);
  std::vector<std::pair<uint64_t, std::string>> faults;
  for (size_t i = 0; i < report.bad.size(); ++i) {
    faults.emplace_back(report.bad[i].id, NameOf(report.bad[i].fault));
  }
  EXPECT_THAT(faults,
              ElementsAre(Pair(2, "unsupported"), Pair(3, "truncated"), Pair(4, "truncated"),
                          Pair(5, "truncated"), Pair(6, "truncated"), Pair(7, "vanished"),
                          Pair(8, "over_limits"), Pair(9, "undecodable")))
      << Describe(report);
  EXPECT_EQ(report.bad[1].offset, whole.size() - 200);
}

TEST_F(VerifyTest, AFolderInPlaceOfAFileIsUnreadable) {
  File("a.jpg", Photo());
  const Source source = Folder();
  fs::remove(Path("a.jpg"));
  fs::create_directory(Path("a.jpg"));
  EXPECT_EQ(Describe(Check(*source)), "0 unreadable; ");
}

TEST_F(VerifyTest, AFileThatMayNotBeReadIsUnreadable) {
  File("a.jpg", Photo());
  File("b.jpg", Photo());
  const Source source = Folder();
  fs::permissions(Path("b.jpg"), fs::perms::none);
  const uid_t user = geteuid();
  ASSERT_EQ(seteuid(user == 0 ? 65534 : user), 0);  // root reads everything
  const VerifyReport report = Check(*source, {.threads = 1});
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(Describe(report), "1 unreadable; ");
}

TEST_F(VerifyTest, CountsBoxesWithoutAnArea) {
  for (const char* const name : {"a.jpg", "b.jpg", "c.jpg"}) File(name, Photo());
  File("all.jsonl", R"({"path": "a.jpg", "b": [[0, 0, 30, 40], [-5, -5, 1, 1], [29, 39, 90, 90]]})"
                    "\n"
                    R"({"path": "b.jpg", "b": [[-5, 0, 0, 40], [30, 0, 31, 40], [7, 7, 7, 9]]})"
                    "\n"
                    R"({"path": "c.jpg", "b": [[0, 41, 30, 50]]})");
  const Source source =
      Manifest(Path("all.jsonl"), {.keyed = ParseKeyedColumns("boxes,boxes,b").value()}).value();
  for (const int threads : {1, 3}) {
    const VerifyReport report = Check(*source, {.threads = threads});
    EXPECT_TRUE(report.bad.empty());
    EXPECT_EQ(report.boxes_without_area, 4u);
    EXPECT_EQ(report.first_without_area, 1u);
    EXPECT_THAT(VerifyText(*source, report, 1),
                HasSubstr("4 boxes; the first one is of " + Path("b")));
    EXPECT_EQ(nlohmann::json::parse(Json(*source, report))["first_without_area"], Path("b.jpg"));
  }
}

// No image within the limits takes so much, but a file may.
TEST_F(VerifyTest, AFileLargerThanTheMemoryIsOverTheLimits) {
  File("a.jpg", Photo());
  File("b.jpg", Photo());
  fs::resize_file(Path("b.jpg"), uint64_t{5} << 30);  // takes no room on the disk
  const Source source = Folder();
  const VerifyReport report = Check(*source);
  EXPECT_EQ(Describe(report), "1 over_limits; ");
  EXPECT_THAT(VerifyText(*source, report, 1), HasSubstr("or raise --max-pixels"));
}

TEST_F(VerifyTest, AMachineWithoutDescriptorsIsNoFaultOfSamples) {
  File("a.jpg", Photo());
  const Source source = Folder();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto report = Verify(*source, {.threads = 1});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->error.has_value());
  EXPECT_EQ(report->error->code, Code::kResourceExhausted);
  EXPECT_EQ(report->error->file, Path("a.jpg"));
  EXPECT_THAT(report->error->cause, HasSubstr("Too many open files"));
  EXPECT_TRUE(report->interrupted);
  EXPECT_EQ(report->checked, 0u);
  EXPECT_EQ(Describe(*report), "");
}

TEST_F(VerifyTest, WhatWasFoundBeforeTheMachineLackedSomethingIsReported) {
  for (const char* name : {"a.jpg", "b.jpg", "c.jpg", "d.jpg"}) File(name, "x");
  const Source source = Folder();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  const auto report = Verify(*source, {.threads = 1}, [&](uint64_t done, uint64_t) {
    return done < 2 || setrlimit(RLIMIT_NOFILE, &none) == 0;
  });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(report.ok());
  ASSERT_TRUE(report->error.has_value());
  EXPECT_EQ(report->error->file, Path("c.jpg"));
  EXPECT_TRUE(report->interrupted);
  EXPECT_EQ(Describe(*report), "0 undecodable 0; 1 undecodable 0; ");
  EXPECT_THAT(VerifyText(*source, *report, 9), HasSubstr("2 of 4 samples checked in"));
  const auto json = nlohmann::json::parse(Json(*source, *report));
  EXPECT_EQ(json["checked"], 2);
  EXPECT_EQ(json["bad"].size(), 2u);
  EXPECT_EQ(json["error"]["code"], "RESOURCE_EXHAUSTED");
  EXPECT_EQ(json["error"]["file"], Path("c.jpg"));
  EXPECT_EQ(json["error"]["exit_code"], 3);
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
  EXPECT_EQ(Json(*source, one), Json(*source, many));
}

// The offset is the archive's, of the byte at which decoding failed.
TEST_F(VerifyTest, SamplesOfArchives) {
  const std::string whole = Photo();
  const std::string cut = whole.substr(0, whole.size() - 200);
  folder_.Write("one.tar", testing::TarFile("1.jpg", whole) + testing::TarFile("2.jpg", cut) +
                               testing::TarEnd());
  const VerifyReport report = Check(*Tar(Path("one.tar")).value());
  const size_t begin = testing::TarFile("1.jpg", whole).size() + 512;
  EXPECT_EQ(Describe(report), "1 truncated " + std::to_string(begin + cut.size()) + "; ");
}

TEST_F(VerifyTest, RecordsOfTfRecordFiles) {
  const std::string whole = Photo();
  std::string bytes = testing::ImageRecord(whole, 1) + testing::ImageRecord(whole, 2) +
                      testing::ImageRecord("no image", 3);
  const size_t second = testing::ImageRecord(whole, 1).size();
  bytes[second + 500] = static_cast<char>(bytes[second + 500] ^ 1);
  folder_.Write("one.tfrecord", bytes);
  const VerifyReport report = Check(*TfRecord(Path("one.tfrecord")).value());
  ASSERT_EQ(report.bad.size(), 2u) << Describe(report);
  EXPECT_THAT(report.bad[0].cause, HasSubstr("checksum"));
  EXPECT_EQ(report.bad[0].fault, SampleFault::kUndecodable);
  const size_t image = bytes.find("no image");
  EXPECT_EQ(report.bad[1].offset, image);
}

// Each sample is bad for one of its files, which the reports name.
TEST_F(VerifyTest, MasksAreChecked) {
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) {
    File(std::string("i/") + name + ".jpg", Photo());
    File(std::string("m/") + name + ".png", Mask(30, 40));
  }
  File("i/b.jpg", Photo().substr(0, 300));
  File("m/c.png", Mask(30, 40).substr(0, 100));
  File("m/d.png", Mask(40, 30));
  File("m/e.png", Photo());
  File("m/f.png", Text(testing::MakePng({.width = 30, .height = 40})));
  const Source source = Masks(Path("i"), Path("m")).value();
  const VerifyReport report = Check(*source);
  EXPECT_EQ(report.checked, 6u);
  ASSERT_EQ(report.bad.size(), 5u) << Describe(report);
  const std::string text = VerifyText(*source, report, 9);
  for (const char* const bad : {"i/b.jpg", "m/c.png", "m/d.png", "m/e.png", "m/f.png"}) {
    EXPECT_THAT(text, HasSubstr(Path(bad)));
    EXPECT_THAT(Json(*source, report), HasSubstr("\"" + Path(bad) + "\""));
  }
  EXPECT_THAT(report.bad[2].cause, HasSubstr("40 × 30"));
  EXPECT_THAT(report.bad[2].cause, HasSubstr("30 × 40"));
  EXPECT_EQ(report.bad[3].fault, SampleFault::kUnsupported);
  EXPECT_EQ(report.bad[4].fault, SampleFault::kUnsupported) << "it has three channels";
  EXPECT_EQ(report.bad[0].piece, 0u);
  EXPECT_EQ(report.bad[1].piece, 1u);
}

// As for a loader, which by default refuses masks of pixels as they are stored.
TEST_F(VerifyTest, MasksHaveTheSizeOfTheTurnedImage) {
  const auto photo = [](int orientation) {
    return Text(testing::WithChunk(
        testing::MakePng({.width = 30, .height = 40}), "IDAT",
        testing::PngChunk("eXIf", testing::OrientationTiff(orientation, /*big_endian=*/true))));
  };
  File("i/a.png", photo(6));
  File("i/b.png", photo(6));
  File("i/c.png", photo(3));
  for (const char* const name : {"a", "c"}) {
    File(std::string("m/") + name + ".png", Mask(40, 30));
  }
  File("m/b.png", Mask(30, 40));
  const Source source = Masks(Path("i"), Path("m")).value();
  const VerifyReport report = Check(*source);
  EXPECT_EQ(Describe(report), "1 undecodable; 2 undecodable; ");
  EXPECT_EQ(report.bad[0].cause, "it has 30 × 40 pixels, and " + Path("i/b.png") +
                                     ", the image of this sample, has 40 × 30");
  EXPECT_THAT(VerifyText(*source, report, 9), HasSubstr("Ignore the tags if this file fits"));
  EXPECT_EQ(Describe(Check(*source, {.exif_orientation = false})),
            "0 undecodable; 2 undecodable; ");
}

TEST_F(VerifyTest, AnnotationsHaveTheSizeOfTheTurnedOrTheStoredImage) {
  File("a.png", Text(testing::WithChunk(
                    testing::MakePng({.width = 30, .height = 40}), "IDAT",
                    testing::PngChunk("eXIf", testing::OrientationTiff(6, /*big_endian=*/true)))));
  for (const bool turned : {false, true}) {
    const std::string size =
        turned ? R"("width": 40, "height": 30)" : R"("width": 30, "height": 40)";
    File("a.json", R"({"images": [{"id": 1, "file_name": "a.png", )" + size +
                       R"(}], "annotations": [{"id": 1, "image_id": 1, "category_id": 1,)"
                       R"( "bbox": [1, 2, 3, 4]}], "categories": [{"id": 1, "name": "x"}]})");
    const Source source = Coco(Path("a.json"), folder_.path()).value();
    for (const bool exif_orientation : {false, true}) {
      const VerifyReport report = Check(*source, {.exif_orientation = exif_orientation});
      EXPECT_EQ(report.bad.empty(), turned == exif_orientation) << Describe(report);
    }
  }
}

// Cameras may differ in size, the images of one may not.
TEST_F(VerifyTest, ClipsAreChecked) {
  for (const char* const name : {"a", "b", "c", "d", "e", "f"}) {
    File(std::string("front/") + name + ".jpg", Photo());
    File(std::string("wrist/") + name + ".jpg", Photo({.width = 24, .height = 16}));
  }
  File("wrist/d.jpg", Photo({.width = 24, .height = 17}));
  File("wrist/f.jpg", "hello");
  const Source source = Clips({{"front", ImageFolder(Path("front")).value()},
                               {"wrist", ImageFolder(Path("wrist")).value()}},
                              {.frames = 2, .step = 2})
                            .value();
  for (const Source& checked : {source, Subset(source, std::vector<uint64_t>{0, 1, 2}).value()}) {
    const VerifyReport report = Check(*checked);
    EXPECT_EQ(Describe(report), "1 undecodable; 2 undecodable 0; ");
    EXPECT_EQ(report.bad[0].piece, 3u);
    EXPECT_EQ(report.bad[0].cause, "it has 24 × 17 pixels, and " + Path("wrist/c.jpg") +
                                       ", the first image of its clip, has 24 × 16");
    EXPECT_THAT(VerifyText(*checked, report, 9), HasSubstr(Path("wrist/d.jpg")));
  }
}

TEST_F(VerifyTest, MissingEndMarkersAreCountedAndNotBad) {
  const std::string whole = Photo({.width = 100, .height = 50});
  File("lost.jpg", whole.substr(0, whole.size() - 2) + std::string(100, '\0'));
  const Source source = Folder();
  const VerifyReport report = Check(*source);
  EXPECT_EQ(Describe(report), "");
  EXPECT_EQ(report.no_end_marker, 1u);
  EXPECT_THAT(VerifyText(*source, report, 100),
              HasSubstr("without an end marker, but complete: 1 JPEG\n"));
}

TEST_F(VerifyTest, AcceptedTruncatedSamplesAreCountedAndNotBad) {
  const std::string whole = Photo({.width = 100, .height = 50});
  File("cut.jpg", whole.substr(0, whole.size() / 2));
  File("whole.jpg", whole);
  File("without_data.jpg", whole.substr(0, 100));
  const Source source = Folder();
  EXPECT_EQ(Check(*source).bad.counts()[static_cast<size_t>(SampleFault::kTruncated)], 2u);
  EXPECT_EQ(Check(*source).accepted_truncated, 0u);
  const VerifyReport report = Check(*source, {.limits = {.accept_truncated = true}});
  EXPECT_EQ(Describe(report), "2 truncated 100; ");
  EXPECT_EQ(report.accepted_truncated, 1u);
  EXPECT_THAT(VerifyText(*source, report, 100), HasSubstr("truncated, and accepted: 1 JPEG\n"));
  EXPECT_EQ(nlohmann::json::parse(Json(*source, report))["accepted_truncated"], 1);
}

TEST_F(VerifyTest, ProgressReachesTheEnd) {
  for (int i = 0; i < 100; ++i) File(std::to_string(i) + ".jpg", "x");
  uint64_t last = 0;
  const auto progress = [&](uint64_t done, uint64_t total) {
    EXPECT_EQ(total, 100u);
    EXPECT_EQ(done, ++last);
    return true;
  };
  EXPECT_TRUE(Verify(*Folder(), {.threads = 3}, progress).ok());
  EXPECT_EQ(last, 100u);
}

TEST_F(VerifyTest, AnInterruptedReportHasWhatWasFound) {
  for (int i = 0; i < 100; ++i) File(std::to_string(i) + ".jpg", "x");
  const Source source = Folder();
  const auto stopped = [&](int threads, uint64_t after) {
    return Verify(*source, {.threads = threads},
                  [after](uint64_t done, uint64_t) { return done < after; })
        .value();
  };
  const VerifyReport one = stopped(1, 5);
  EXPECT_TRUE(one.interrupted);
  EXPECT_EQ(one.checked, 5u);
  EXPECT_EQ(one.bad.size(), 5u);
  EXPECT_THAT(VerifyText(*source, one, 1), HasSubstr("5 of 100 samples checked in"));
  EXPECT_THAT(VerifyText(*source, one, 1), HasSubstr("then interrupted\n"));
  EXPECT_EQ(nlohmann::json::parse(Json(*source, one))["interrupted"], true);
  EXPECT_LE(stopped(3, 5).checked, 7u) << "each thread ends with the sample that it has";
  EXPECT_FALSE(stopped(1, 100).interrupted) << "nothing was left to check";
}

TEST_F(VerifyTest, TextAndJson) {
  const std::string whole = Photo();
  const std::string size = std::to_string(whole.size() - 200);
  File("a/\x1b[2J.jpg", "x");
  File("a/2.jpg", whole.substr(0, whole.size() - 200));
  File("a/3.exr", "GIF89a");
  File("a/4.jpg", Photo({.width = 200, .height = 100}));
  const Source source = Folder();
  const VerifyReport report = Check(*source, {.limits = {.max_pixels = 15000}});
  const std::string text = VerifyText(*source, report, 3);
  EXPECT_THAT(text, HasSubstr("3 samples checked in"));
  EXPECT_THAT(text, HasSubstr("bad: 3 (1 truncated, 1 undecodable, 1 over limits)"));
  EXPECT_THAT(text, HasSubstr("skipped: 1 image file is skipped"));
  EXPECT_THAT(text, HasSubstr("\\x1b[2J.jpg at byte 0: undecodable: not a supported image."));
  EXPECT_THAT(text, HasSubstr("  " + Path("a/2.jpg") + " at byte " + size +
                              ": truncated: truncated JPEG: no end-of-image marker. Remove or "
                              "re-create the image, or use --accept-truncated.\n"));
  EXPECT_THAT(text, HasSubstr("a/4.jpg at byte "));
  EXPECT_THAT(text, HasSubstr(": over limits: an image of 200 × 100 pixels"));
  EXPECT_THAT(VerifyText(*source, report, 1), HasSubstr("and 2 more"));
  const auto json = nlohmann::json::parse(Json(*source, report));
  EXPECT_EQ(json["source"], source->Describe());
  EXPECT_EQ(json["samples"], 3);
  EXPECT_EQ(json["checked"], 3);
  EXPECT_EQ(json["interrupted"], false);
  EXPECT_FALSE(json.contains("error"));
  EXPECT_EQ(json["skipped"][".exr"], 1);
  EXPECT_EQ(json["bad"][1]["id"], 1);
  EXPECT_EQ(json["bad"][1]["path"], Path("a/2.jpg"));
  EXPECT_EQ(json["bad"][1]["offset"], whole.size() - 200);
  EXPECT_EQ(json["bad"][1]["class"], "truncated");
  EXPECT_EQ(json["bad"][2]["class"], "over_limits");
  EXPECT_THAT(json["bad"][1]["cause"].get<std::string>(), HasSubstr("truncated JPEG"));
  EXPECT_THAT(json["bad"][2]["advice"].get<std::string>(), HasSubstr("raise --max-pixels"));
  EXPECT_EQ(json["bad_by_class"]["over_limits"], 1);
  EXPECT_EQ(json["bad_by_class"]["vanished"], 0);
}

// Only the first error of standard output is reported.
TEST_F(VerifyTest, JsonEndsWithTheFirstErrorOfWriting) {
  File("a.jpg", "x");
  const Source source = Folder();
  const Status status = WriteVerifyJson(*source, Check(*source), [](std::string_view) {
    return Status(Error{Code::kUnavailable, "no room"});
  });
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().cause, "no room");
}

TEST(BadSampleList, KeepEachCauseOnce) {
  BadSampleList bad;
  for (uint64_t id = 5; id > 0; --id) {
    bad.Add(id, SampleFault::kVanished, {.code = Code::kNotFound, .cause = "gone", .file = "x"});
  }
  bad.Add(0, SampleFault::kTruncated,
          {.code = Code::kDataLoss, .cause = "cut", .offset = 0, .advice = "Mend it"});
  const BadSampleList moved = std::move(bad);
  ASSERT_EQ(moved.size(), 6u);
  EXPECT_EQ(moved[0].cause.data(), moved[4].cause.data());
  EXPECT_EQ(moved[0].id, 5u);
  EXPECT_FALSE(moved[0].offset.has_value());
  EXPECT_EQ(moved[5].cause, "cut");
  EXPECT_EQ(moved[5].advice, "Mend it");
  EXPECT_EQ(moved[5].offset, 0u);
  EXPECT_EQ(moved.counts()[static_cast<size_t>(SampleFault::kVanished)], 5u);
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
  EXPECT_EQ(Describe(report), "");
}

}  // namespace
}  // namespace stoker
