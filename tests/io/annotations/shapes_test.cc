// The shapes of objects in COCO's and YOLO's files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "core/batch/object_shapes.h"
#include "io/annotations/coco.h"
#include "io/annotations/coco_runs.h"
#include "io/annotations/yolo.h"
#include "io/annotations/yolo_labels.h"
#include "io/select/combine.h"
#include "io/select/subset.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Source = std::shared_ptr<const SampleSource>;

constexpr DrawnMasks kInstances{.kind = DrawnMasks::Kind::kInstances};
constexpr DrawnMasks kSemantic{.kind = DrawnMasks::Kind::kSemantic};

// The parts of an object's shape: of runs {"runs", height, width, …}.
using Parts = std::vector<std::vector<double>>;

std::vector<Parts> PartsIn(std::span<const uint8_t> bytes) {
  std::vector<Parts> objects;
  ShapeReader reader(bytes);
  while (reader.NextObject()) {
    Parts& parts = objects.emplace_back();
    while (const std::optional<ShapePart> part = reader.NextPart()) {
      std::vector<double>& numbers = parts.emplace_back();
      if (part->has_runs) numbers.push_back(-1);
      for (size_t i = 0; i < part->words(); ++i) {
        numbers.push_back(part->has_runs ? part->Word(i) : part->Number(i));
      }
    }
  }
  return objects;
}

std::vector<Parts> PartsOf(const SampleSource& source, uint64_t id) {
  return PartsIn(source.View(source.fields().size() - 1, id));
}

// ---- COCO

class CocoShapesTest : public ::testing::Test {
 protected:
  // Two images; annotations of image 1 with these segmentations, and one of image 2.
  json FileOf(const std::vector<std::string>& segmentations) const {
    json file{{"images",
               {{{"id", 2}, {"file_name", "b"}},
                {{"id", 1}, {"file_name", "a"}, {"width", 3}, {"height", 2}}}},
              {"categories", {{{"id", 5}, {"name", "x"}}}}};
    int id = 40;
    const auto add = [&](int image, const std::string& segmentation) {
      file["annotations"].push_back({{"segmentation", json::parse(segmentation)},
                                     {"id", id++},
                                     {"image_id", image},
                                     {"category_id", 5},
                                     {"bbox", {0, 0, 1, 1}}});
    };
    for (const std::string& segmentation : segmentations) add(1, segmentation);
    add(2, "[[1, 1, 2, 2, 3, 3]]");
    return file;
  }
  Result<Source> Open(const json& file, const DrawnMasks& masks = kInstances) const {
    folder_.Write("a.json", file.dump());
    return Coco(folder_.Path("a.json"), folder_.path(), {.masks = masks});
  }
  std::string CauseOf(const std::string& segmentation) const {
    const Result<Source> made = Open(FileOf({"[]", segmentation}));
    if (made.ok()) return "none";
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_EQ(made.error().file, folder_.Path("a.json"));
    return made.error().cause;
  }

  const testing::TempFolder folder_;
};

TEST_F(CocoShapesTest, SamplesHaveTheShapesOfTheirObjects) {
  const Source source = Open(FileOf({"[[0, 0, 1.5, 0, 1, 2], [1, 1, 2, 1, 2, 2, 1, 2]]", "[]",
                                     R"({"size": [2, 3], "counts": [1, 5]})"}))
                            .value();
  EXPECT_THAT(
      PartsOf(*source, 0),
      ElementsAre(ElementsAre(ElementsAre(0, 0, 1.5, 0, 1, 2), ElementsAre(1, 1, 2, 1, 2, 2, 1, 2)),
                  IsEmpty(), ElementsAre(ElementsAre(-1, 2, 3, 1, 5))));
  EXPECT_THAT(PartsOf(*source, 1), ElementsAre(ElementsAre(ElementsAre(1, 1, 2, 2, 3, 3))));
  const Field& field = source->fields().back();
  EXPECT_EQ(field.name, "instances");
  EXPECT_EQ(field.kind, Field::Kind::kInstances);
  EXPECT_EQ(source->max_objects(), 3u);
}

TEST_F(CocoShapesTest, AreNotReadUnlessMasksAreAskedFor) {
  const Source source = Open(FileOf({"17"}), {}).value();
  EXPECT_EQ(source->fields().back().name, "image_id");
}

TEST_F(CocoShapesTest, FollowSubsetsAndCombinations) {
  const json file = FileOf({"[[0, 0, 1.5, 0, 1, 2]]"});
  const Source source = Open(file).value();
  const Source second = Subset(source, std::vector<uint64_t>{1}).value();
  EXPECT_EQ(PartsOf(*second, 0), PartsOf(*source, 1));
  const Source both = Combine({second, source}).value();
  EXPECT_EQ(PartsOf(*both, 1), PartsOf(*source, 0));
  EXPECT_EQ(both->max_objects(), 1u);
  const Source semantic = Open(file, kSemantic).value();
  EXPECT_THAT(Combine({source, semantic}).error().cause, HasSubstr("instances drawn as uint8"));
}

TEST_F(CocoShapesTest, AreInTheFingerprint) {
  const auto of = [&](const char* polygon, const DrawnMasks& masks = kInstances) {
    return Open(FileOf({polygon}), masks).value()->Fingerprint();
  };
  const uint64_t one = of("[[0, 0, 1, 0, 1, 2]]");
  EXPECT_EQ(of("[[0, 0, 1, 0, 1, 2]]"), one);
  EXPECT_NE(of("[[0, 0, 1, 0, 1, 3]]"), one);
  EXPECT_NE(of("[[0, 0, 1, 0, 1, 2]]", kSemantic), one);
  DrawnMasks filled = kSemantic;
  filled.background = 0;
  EXPECT_NE(of("[[0, 0, 1, 0, 1, 2]]", filled), of("[[0, 0, 1, 0, 1, 2]]", kSemantic));
}

TEST_F(CocoShapesTest, WrongOnesAreNamed) {
  EXPECT_EQ(CauseOf("[[1, 2]]"),
            "annotation 41 has a polygon of 2 coordinates, which are fewer than three points");
  EXPECT_EQ(CauseOf("[[1, 2, 3, 4, 5, 6, 7]]"),
            "annotation 41 has a polygon of 7 coordinates, which are not pairs of x and y");
  EXPECT_THAT(CauseOf("[[1, 2, 3, 4, 5, 1e39]]"), HasSubstr("41 has a polygon with a coordinate"));
  EXPECT_THAT(CauseOf("[1, 2, 3, 4, 5, 6]"), HasSubstr("41 has a 'segmentation' whose polygons"));
  EXPECT_THAT(CauseOf("null"), HasSubstr("41 has a 'segmentation' that is neither"));
  EXPECT_THAT(CauseOf("{}"), HasSubstr("41 has runs (RLE) without 'size' or 'counts'"));
  EXPECT_THAT(CauseOf(R"({"counts": [6]})"), HasSubstr("without 'size'"));
  EXPECT_THAT(CauseOf(R"({"size": [2, 3], "counts": [1, 6]})"),
              HasSubstr("41 has runs (RLE) of 7 pixels for an image of 2 × 3"));
  EXPECT_THAT(CauseOf(R"({"size": [2, 3], "counts": [1, -6]})"), HasSubstr("a run (RLE) of -6"));
  EXPECT_THAT(CauseOf(R"({"size": [0, 3], "counts": []})"), HasSubstr("an impossible 'size'"));
  EXPECT_THAT(CauseOf(R"({"size": [65536, 1], "counts": []})"), HasSubstr("an impossible 'size'"));
  EXPECT_THAT(CauseOf(R"({"size": [2, 3], "counts": "!"})"), HasSubstr("whose text is damaged"));
  EXPECT_EQ(CauseOf(R"({"size": [3, 2], "counts": [6]})"),
            "annotation 41 has runs (RLE) for an image of 3 × 2 pixels, and its image has 2 × 3");
  for (const char* const member : {R"("size": [2, 3])", R"("counts": [6])", R"("counts": "6")"}) {
    std::string twice = FileOf({"[77]"}).dump();
    const std::string runs = std::string("{\"size\": [2, 3], \"counts\": [6], ") + member + "}";
    folder_.Write("a.json", twice.replace(twice.find("[77]"), 4, runs));
    const Error error = Coco(folder_.Path("a.json"), folder_.path(), {.masks = kInstances}).error();
    EXPECT_THAT(error.cause, HasSubstr("occurs twice in runs (RLE)"));
    EXPECT_TRUE(error.offset.has_value());
  }
  json without = FileOf({"[]"});
  without["annotations"][0].erase("segmentation");
  EXPECT_EQ(Open(without).error().cause, "annotation 40 has no 'segmentation'");
  std::string text = FileOf({"[[1, 2, 3, 4, 5, 77]]"}).dump();
  folder_.Write("a.json", text.replace(text.find("77"), 2, "NaN"));
  const Error error = Coco(folder_.Path("a.json"), folder_.path(), {.masks = kInstances}).error();
  EXPECT_EQ(error.file, folder_.Path("a.json"));
  EXPECT_TRUE(error.offset.has_value());
}

TEST_F(CocoShapesTest, ClassesFitIntoSemanticMasks) {
  constexpr char kPolygon[] = "[[0, 0, 1, 0, 1, 2]]";
  json file = FileOf({kPolygon});
  EXPECT_TRUE(Open(file, kSemantic).ok());
  EXPECT_EQ(Open(file, kSemantic).value()->fields().back().fill, 255);
  DrawnMasks masks = kSemantic;
  masks.background = 5;
  EXPECT_THAT(Open(file, masks).error().cause, HasSubstr("background of masks has the value 5"));
  EXPECT_EQ(Open(file, masks).error().file, folder_.Path("a.json"));
  file["categories"].push_back({{"id", 256}, {"name", "y"}});
  file["categories"].push_back({{"id", 255}, {"name", "z"}});
  file["annotations"][0]["category_id"] = 255;
  EXPECT_THAT(Open(file, kSemantic).error().advice, HasSubstr("mask_dtype uint16"));
  file["annotations"][0]["category_id"] = 256;
  EXPECT_THAT(Open(file, kSemantic).error().cause, HasSubstr("cannot hold the class 256"));
  masks = kSemantic;
  masks.dtype = DType::kU16;
  EXPECT_TRUE(Open(file, masks).ok());
}

TEST_F(CocoShapesTest, OnlyValuesThatAreDrawnAreChecked) {
  constexpr char kPolygon[] = "[[0, 0, 1, 0, 1, 2]]";
  json file = FileOf({"[]", kPolygon});
  file["categories"].push_back({{"id", 300}, {"name", "y"}});
  file["annotations"][0]["category_id"] = 300;
  EXPECT_TRUE(Open(file, kSemantic).ok()) << "nothing is drawn of it";
  file["annotations"][1]["category_id"] = 300;
  EXPECT_THAT(Open(file, kSemantic).error().cause, HasSubstr("cannot hold the class 300"));
  file["annotations"][1]["iscrowd"] = 1;
  EXPECT_FALSE(Open(file, kSemantic).ok());
  DrawnMasks masks = kSemantic;
  masks.crowd = 255;
  EXPECT_TRUE(Open(file, masks).ok()) << "drawn as the background";
  masks.crowd = 5;
  EXPECT_THAT(Open(file, masks).error().cause, HasSubstr("crowd of masks has the value 5"));
  file["annotations"][1]["segmentation"] = json::array();
  EXPECT_TRUE(Open(file, masks).ok()) << "there is no crowd";
}

TEST(DrawnMasks, OptionsWithoutTheirMasksAreRefused) {
  const auto ok = [](const char* masks, const char* dtype, const char* background,
                     const char* crowd) {
    return ParseMasks(masks, dtype, background, crowd).ok();
  };
  EXPECT_TRUE(ok("off", "uint8", "255", "off"));
  EXPECT_FALSE(ok("off", "uint16", "255", "off"));
  EXPECT_FALSE(ok("off", "uint8", "0", "off"));
  EXPECT_FALSE(ok("off", "uint8", "255", "255"));
  EXPECT_TRUE(ok("instances", "uint16", "255", "off"));
  EXPECT_FALSE(ok("instances", "uint8", "1", "off"));
  EXPECT_FALSE(ok("instances", "uint8", "255", "1"));
  EXPECT_TRUE(ok("semantic", "uint16", "1000", "7"));
  EXPECT_THAT(ParseMasks("off", "uint16", "255", "off").error().advice, HasSubstr("Ask for masks"));
}

// Coordinates of decimal digits stay in the fifth of a pixel in which pycocotools, which has
// doubles, puts them.
TEST_F(CocoShapesTest, CoordinatesKeepTheirFifths) {
  std::string polygon = "[[";
  std::vector<double> given;
  for (int tenth = -101; tenth < 20000; tenth += 2) {
    given.push_back(tenth / 10.0);
    polygon += (given.size() == 1 ? "" : ", ") + json(given.back()).dump();
  }
  if (given.size() % 2 == 1) {
    given.push_back(0);
    polygon += ", 0";
  }
  const Source source = Open(FileOf({polygon + "]]"})).value();
  const std::vector<double> read = PartsOf(*source, 0)[0][0];
  ASSERT_EQ(read.size(), given.size());
  for (size_t i = 0; i < read.size(); ++i) {
    ASSERT_EQ(std::trunc(5 * read[i] + 0.5), std::trunc(5 * given[i] + 0.5)) << given[i];
    ASSERT_NEAR(read[i], given[i], 1e-3);
  }
}

// ---- Runs as texts

// The published way to write them.
std::string PackedOf(const std::vector<uint32_t>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size(); ++i) {
    int64_t left = runs[i];
    if (i > 2) left -= runs[i - 2];
    for (bool more = true; more;) {
      int64_t five = left & 31;
      left >>= 5;
      more = (five & 16) != 0 ? left != -1 : left != 0;
      if (more) five |= 32;
      text += static_cast<char>(five + 48);
    }
  }
  return text;
}

TEST(CocoRuns, AreReadAsTheyAreWritten) {
  // pycocotools.mask.encode of a mask of 4 × 5 with [1:3, 1:4] set.
  std::vector<uint32_t> runs;
  ASSERT_TRUE(UnpackRuns("5220003", runs));
  EXPECT_THAT(runs, ElementsAre(5, 2, 2, 2, 2, 2, 5));
  testing::Random random(1);
  for (int n = 0; n < testing::Effort(3000); ++n) {
    std::vector<uint32_t> given(static_cast<size_t>(random.Between(0, 20)));
    for (uint32_t& run : given) {
      run = static_cast<uint32_t>(random.Between(0, 1 << random.Between(1, 30)));
      if (random.OneIn(10)) run = UINT32_MAX - static_cast<uint32_t>(random.Between(0, 3));
    }
    std::vector<uint32_t> read;
    ASSERT_TRUE(UnpackRuns(PackedOf(given), read));
    ASSERT_EQ(read, given);
  }
}

TEST(CocoRuns, DamagedTextsAreRefused) {
  std::vector<uint32_t> runs;
  for (const char* const text :
       {"/", "p", "P", "5P", "\xff", "@", "PPPPPPPPPP0", "111@", "oooooooo1"}) {
    runs.clear();
    EXPECT_FALSE(UnpackRuns(text, runs)) << text;
  }
  testing::Random random(2);
  for (int n = 0; n < testing::Effort(20000); ++n) {
    std::string text(static_cast<size_t>(random.Between(0, 12)), ' ');
    for (char& c : text) c = static_cast<char>(random.Between(47, 112));
    runs.clear();
    UnpackRuns(text, runs);
    EXPECT_LE(runs.size(), text.size());
  }
}

// ---- YOLO

TEST(YoloShapes, LinesAreBoxesOrPolygons) {
  YoloLabels labels;
  const std::string text =
      "1 0.1 0.2 0.5 0.2 0.5 0.8\n0 0.5 0.5 0.2 0.2\n\n1 1 1 0 0 0.5 0.25 0.5 0.5\n";
  ASSERT_TRUE(ParseYoloLabels(text, "a.txt", {.classes = 2, .shapes = true}, labels).ok());
  EXPECT_THAT(labels.classes, ElementsAre(1, 0, 1));
  using ::testing::FloatEq;
  EXPECT_THAT(labels.boxes, ElementsAre(FloatEq(0.3F), FloatEq(0.5F), FloatEq(0.4F), FloatEq(0.6F),
                                        0.5F, 0.5F, 0.2F, 0.2F, 0.5F, 0.5F, 1, 1));
  const std::span<const uint32_t> words = labels.shapes.words();
  const std::vector<Parts> parts =
      PartsIn({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_THAT(parts[0], ElementsAre(ElementsAre(0.1F, 0.2F, 0.5F, 0.2F, 0.5F, 0.8F)));
  EXPECT_THAT(parts[1], IsEmpty());
  EXPECT_THAT(parts[2], ElementsAre(ElementsAre(1, 1, 0, 0, 0.5, 0.25, 0.5, 0.5)));
  YoloLabels boxes;
  ASSERT_TRUE(ParseYoloLabels(text, "a.txt", {.classes = 2}, boxes).ok());
  EXPECT_EQ(boxes.boxes, labels.boxes);
  EXPECT_THAT(boxes.shapes.words(), IsEmpty());
}

TEST(YoloShapes, WrongLinesAreNamed) {
  YoloLabels labels;
  const auto error_of = [&](const char* line, bool keypoints = false) {
    return ParseYoloLabels(line, "a.txt", {.classes = 1, .keypoints = keypoints}, labels).error();
  };
  EXPECT_THAT(
      error_of("0 .1 .1 .2 .2 .3 .3 .4").cause,
      HasSubstr("8 numbers on this line; a box has 5: class, x, y, width, height; a polygon"));
  EXPECT_THAT(error_of("0 .1 .1 .2 .2 .3 1.3").cause, HasSubstr("'1.3' is not a normalized"));
  EXPECT_THAT(error_of("0 .1 .1 .2 .2 .3 nan").cause, HasSubstr("'nan' is not a normalized"));
  EXPECT_THAT(error_of("0 .1 .1 .2 .2 .3 .3", true).advice, HasSubstr("kpt_shape"));
}

TEST(YoloShapes, SamplesHaveTheShapesOfTheirObjects) {
  const testing::TempFolder folder;
  for (const char* const name : {"images", "labels"}) {
    std::filesystem::create_directory(folder.Path(name));
  }
  for (const char* const name : {"1", "2", "3"}) {
    folder.Write(std::string("images/") + name + ".jpg", "x");
  }
  folder.Write("labels/1.txt", "0 0 0 1 0 1 1\n0 .5 .5 1 1\n");
  folder.Write("labels/3.txt", "0 0 0 1 0 1 0.5\n");
  folder.Write("a.yaml", "names: [x]\ntrain: images\n");
  const auto open = [&](const DrawnMasks& masks) {
    return Yolo(folder.Path("a.yaml"), "train", {.masks = masks});
  };
  const Source source = open(kInstances).value();
  EXPECT_THAT(PartsOf(*source, 0),
              ElementsAre(ElementsAre(ElementsAre(0, 0, 1, 0, 1, 1)), IsEmpty()));
  EXPECT_THAT(PartsOf(*source, 1), IsEmpty());
  EXPECT_THAT(PartsOf(*source, 2), ElementsAre(ElementsAre(ElementsAre(0, 0, 1, 0, 1, 0.5))));
  EXPECT_TRUE(source->fields().back().normalized);
  EXPECT_EQ(open(kSemantic).value()->fields().back().name, "mask");
  EXPECT_EQ(open(kInstances).value()->fields().back().fill, 0);
  DrawnMasks masks = kSemantic;
  masks.background = 0;
  EXPECT_THAT(open(masks).error().advice, HasSubstr("mask_background"));
  folder.Write("a.yaml", "names: [x]\ntrain: images\nkpt_shape: [2, 3]\n");
  EXPECT_THAT(open({}).error().advice, HasSubstr("Poses"));
}

}  // namespace
}  // namespace stoker
