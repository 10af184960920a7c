#include "io/annotations/coco.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/select/subset.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/view_as.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Source = std::shared_ptr<const SampleSource>;

// Two images, three objects, and two categories.
constexpr char kSmall[] = R"({
  "info": {"year": 2017, "urls": ["a", {"b": null}]},
  "annotations": [
    {"segmentation": [[1, 2.5, 3, 4]], "area": 50.5, "iscrowd": 0, "image_id": 7,
     "bbox": [10, 20.25, 30, 0], "category_id": 3, "id": 100},
    {"bbox": [1, 2, 3, 4], "iscrowd": 1, "segmentation": {"counts": [5, 6], "size": [2, 3]},
     "id": 99, "image_id": 2, "category_id": 1},
    {"id": 101, "image_id": 7, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 3}],
  "images": [
    {"id": 7, "file_name": "b/\u00e4.jpg", "width": 640, "height": 480},
    {"id": 5, "file_name": "none.jpg"},
    {"file_name": "a.jpg", "id": 2}],
  "categories": [{"id": 3, "name": "dog", "supercategory": "animal"}, {"id": 1, "name": "cat"}]
})";

template <typename T>
std::vector<T> ObjectsOf(const SampleSource& source, const char* name, uint64_t id) {
  for (size_t i = 0; i < source.fields().size(); ++i) {
    if (source.fields()[i].name == name) return testing::ViewAs<T>(source, i, id);
  }
  ADD_FAILURE() << "no field " << name;
  return {};
}

const Field* FieldNamed(const SampleSource& source, const char* name) {
  const auto found = std::ranges::find(source.fields(), name, &Field::name);
  return found == source.fields().end() ? nullptr : &*found;
}

class CocoTest : public ::testing::Test {
 protected:
  Result<Source> Open(const std::string& text, const CocoOptions& options = {}) const {
    folder_.Write("a.json", text);
    return Coco(folder_.Path("a.json"), folder_.path(), options);
  }
  Source Good(const std::string& text, const CocoOptions& options = {}) const {
    return Open(text, options).value();
  }
  // Opens kSmall, in which `from` is replaced.
  Error ErrorOf(const std::string& from, const std::string& to) const {
    std::string text = kSmall;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    const Result<Source> made = Open(text.replace(at, from.size(), to));
    EXPECT_FALSE(made.ok()) << to;
    if (made.ok()) return {};
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_EQ(made.error().file, folder_.Path("a.json"));
    return made.error();
  }
  std::string PathOf(const SampleSource& source, uint64_t id) const {
    std::string path;
    source.PathOf(source.RangeOf(id).file, path);
    return path.substr(folder_.path().size() + 1);
  }

  const testing::TempFolder folder_;
};

TEST_F(CocoTest, SamplesAreSortedByImageIdAndHaveTheirObjects) {
  const Source source = Good(kSmall);
  ASSERT_EQ(source->size(), 3u);
  EXPECT_EQ(PathOf(*source, 0), "a.jpg");
  EXPECT_EQ(PathOf(*source, 1), "none.jpg");
  EXPECT_EQ(PathOf(*source, 2), "b/ä.jpg");
  EXPECT_THAT(ObjectsOf<float>(*source, "boxes", 0), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ObjectsOf<float>(*source, "boxes", 1), IsEmpty());
  EXPECT_THAT(ObjectsOf<float>(*source, "boxes", 2), ElementsAre(10, 20.25, 30, 0, 0, 0, 2, 2));
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "labels", 2), ElementsAre(3, 1));
  EXPECT_THAT(ObjectsOf<float>(*source, "area", 0), ElementsAre(12)) << "that of the box";
  EXPECT_THAT(ObjectsOf<float>(*source, "area", 2), ElementsAre(50.5, 3));
  EXPECT_THAT(ObjectsOf<uint8_t>(*source, "iscrowd", 0), ElementsAre(1));
  EXPECT_THAT(ObjectsOf<uint8_t>(*source, "iscrowd", 2), ElementsAre(0, 0));
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "image_id", 2), ElementsAre(7));
  EXPECT_THAT(source->classes(), ElementsAre("", "cat", "", "dog"));
  EXPECT_EQ(source->max_objects(), 2u);
  EXPECT_EQ(source->Describe(), "coco(" + folder_.Path("a.json") + ", " + folder_.path() + ")");
}

TEST_F(CocoTest, FieldsSayWhatTheyAre) {
  const Source source = Good(kSmall);
  std::vector<std::string> names;
  for (const Field& field : source->fields()) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("image", "boxes", "labels", "area", "iscrowd", "image_id"));
  const Field& boxes = *FieldNamed(*source, "boxes");
  EXPECT_EQ(boxes.kind, Field::Kind::kBoxes);
  EXPECT_EQ(boxes.box_format, BoxFormat::kXywh);
  EXPECT_FALSE(boxes.normalized);
  for (const char* const name : {"labels", "area", "iscrowd"}) {
    EXPECT_EQ(FieldNamed(*source, name)->kind, Field::Kind::kObject) << name;
  }
  EXPECT_EQ(FieldNamed(*source, "image_id")->kind, Field::Kind::kFixed);
  EXPECT_FALSE(source->label());
}

TEST_F(CocoTest, ImagesWithoutAnnotationsMayBeLeftOut) {
  const Source source = Good(kSmall, {.keep_empty = false});
  ASSERT_EQ(source->size(), 2u);
  EXPECT_EQ(PathOf(*source, 1), "b/ä.jpg");
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "image_id", 1), ElementsAre(7));
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "labels", 0), ElementsAre(1));
  const std::string none = R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [],
                               "categories": []})";
  EXPECT_EQ(Good(none)->max_objects(), 0u);
  EXPECT_THAT(Open(none, {.keep_empty = false}).error().cause, HasSubstr("no image has"));
}

TEST_F(CocoTest, CrowdsMayBeLeftOut) {
  const Source source = Good(kSmall, {.keep_crowd = false});
  ASSERT_EQ(source->size(), 3u);
  EXPECT_THAT(ObjectsOf<float>(*source, "boxes", 0), IsEmpty());
  EXPECT_THAT(ObjectsOf<float>(*source, "boxes", 2), ElementsAre(10, 20.25, 30, 0, 0, 0, 2, 2));
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "labels", 2), ElementsAre(3, 1));
  const Source full = Good(kSmall, {.keep_empty = false, .keep_crowd = false});
  ASSERT_EQ(full->size(), 1u) << "an image with crowds alone";
  EXPECT_EQ(PathOf(*full, 0), "b/ä.jpg");
  const std::string crowd = R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [
      {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1], "iscrowd": 1}],
      "categories": [{"id": 1, "name": "x"}]})";
  EXPECT_EQ(Good(crowd, {.keep_crowd = false})->max_objects(), 0u);
  EXPECT_THAT(Open(crowd, {.keep_empty = false, .keep_crowd = false}).error().cause,
              HasSubstr("no image has annotations other than crowds"));
}

TEST_F(CocoTest, LabelsMayBeIndicesOfTheCategories) {
  const Source source = Good(kSmall, {.contiguous_labels = true});
  EXPECT_THAT(ObjectsOf<int64_t>(*source, "labels", 2), ElementsAre(1, 0));
  EXPECT_THAT(source->classes(), ElementsAre("cat", "dog"));
}

TEST_F(CocoTest, IdsThatAreNoIndexesHaveNoNames) {
  for (const char* const id : {"-3", "65536", "9223372036854775807"}) {
    std::string text = kSmall;
    for (const char* const from : {"\"category_id\": 3", "{\"id\": 3"}) {
      text.replace(text.find(from) + std::strlen(from) - 1, 1, id);
    }
    const Source source = Good(text);
    EXPECT_THAT(source->classes(), IsEmpty());
    EXPECT_EQ(ObjectsOf<int64_t>(*source, "labels", 2)[0], std::stoll(id));
    EXPECT_EQ(Good(text, {.contiguous_labels = true})->classes().size(), 2u);
  }
}

// ---- Keypoints

// One image with an object of a category of `names`, and one of a category without.
std::string WithKeypoints(const std::string& names, const std::string& first,
                          const std::string& second, const std::string& second_names = "[]") {
  return R"({"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [
    {"id": 1, "name": "person", "keypoints": )" +
         names + R"(}, {"id": 2, "name": "other", "keypoints": )" + second_names + R"(}],
    "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 1, 1])" +
         first + R"(}, {"id": 2, "image_id": 1, "category_id": 2, "bbox": [0, 0, 1, 1])" + second +
         "}]}";
}

TEST_F(CocoTest, KeypointsAreCentresOfPixels) {
  const std::string names = R"(["nose", "left_eye", "right_eye", "left_ear"])";
  const Source source =
      Good(WithKeypoints(names, R"(, "keypoints": [0, 3, 2, 5, 6, 1, 9, 9, 0, 1.5, 2, 2])",
                         R"(, "keypoints": [0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 8, 1])", names));
  EXPECT_THAT(ObjectsOf<float>(*source, "keypoints", 0),
              ElementsAre(0.5, 3.5, 2, 5.5, 6.5, 1, 0, 0, 0, 2, 2.5, 2,  //
                          0, 0, 0, 0, 0, 0, 0, 0, 0, 7.5, 8.5, 1));
  const Field& field = *FieldNamed(*source, "keypoints");
  EXPECT_EQ(field.kind, Field::Kind::kKeypoints);
  EXPECT_THAT(field.row_shape, ElementsAre(4, 3));
  EXPECT_THAT(field.flip_pairs, ElementsAre(0, 2, 1, 3));
}

// Searches all names for each one.
std::vector<uint16_t> PlainFlipPairs(const std::vector<std::string>& names) {
  std::vector<uint16_t> pairs;
  for (size_t i = 0; i < names.size(); ++i) pairs.push_back(static_cast<uint16_t>(i));
  const std::vector<uint16_t> unchanged = pairs;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!names[i].starts_with("left_")) continue;
    for (size_t k = 0; k < names.size(); ++k) {
      if (names[k] != "right_" + names[i].substr(5)) continue;
      if (pairs[i] == i && pairs[k] == k) std::swap(pairs[i], pairs[k]);
      break;
    }
  }
  return pairs == unchanged ? std::vector<uint16_t>() : pairs;
}

TEST_F(CocoTest, FlipPairsAreThoseOfAPlainSearch) {
  for (int run = 0; run < testing::Effort(200); ++run) {
    testing::Random random(static_cast<uint32_t>(run));
    std::vector<std::string> names;
    json points = json::array();
    for (int i = random.Between(1, 20); i > 0; --i) {
      const char* const side = random.OneIn(3) ? "" : random.OneIn(2) ? "left_" : "right_";
      names.push_back(side + std::to_string(random.Between(0, 9)));
      for (const int number : {1, 2, 2}) points.push_back(number);
    }
    const std::string object = R"(, "keypoints": )" + points.dump();
    const std::string text = json(names).dump();
    const Source source = Good(WithKeypoints(text, object, object, text));
    EXPECT_EQ(FieldNamed(*source, "keypoints")->flip_pairs, PlainFlipPairs(names)) << text;
  }
}

TEST_F(CocoTest, KeypointsThatNotAllObjectsHaveAreLeftOut) {
  const std::string points = R"(, "keypoints": [1, 2, 2])";
  for (const auto& [second, names] : std::vector<std::pair<std::string, std::string>>{
           {"", "[]"}, {points, "[]"}, {points, R"(["tail"])"}}) {
    const Source source = Good(WithKeypoints(R"(["nose"])", points, second, names));
    EXPECT_EQ(FieldNamed(*source, "keypoints"), nullptr) << second << names;
  }
  const Source source = Good(WithKeypoints(R"(["nose"])", points, points, R"(["nose"])"));
  EXPECT_THAT(FieldNamed(*source, "keypoints")->flip_pairs, IsEmpty());
}

TEST_F(CocoTest, RequiredKeypointsThatAreLeftOutAreAnError) {
  using Keypoints = CocoOptions::Keypoints;
  const CocoOptions required{.keypoints = Keypoints::kOn};
  const std::string points = R"(, "keypoints": [1, 2, 2])";
  const auto cause = [&](const std::string& text) {
    const auto made = Open(text, required);
    return made.ok() ? std::string() : made.error().cause;
  };
  EXPECT_THAT(cause(WithKeypoints(R"(["nose"])", points, "")),
              HasSubstr("annotation 2 has no 'keypoints'"));
  EXPECT_THAT(cause(WithKeypoints(R"(["nose"])", points, points)),
              HasSubstr("annotation 2 is of category 2, which does not name keypoints"));
  EXPECT_THAT(
      cause(WithKeypoints(R"(["nose"])", points, points, R"(["tail"])")),
      HasSubstr("annotation 2 is of category 2, which names other keypoints than category 1"));
  EXPECT_THAT(cause(R"({"images": [{"id": 1, "file_name": "a"}], "annotations": [],
                        "categories": []})"),
              HasSubstr("there are no annotations with keypoints"));
  const std::string same = WithKeypoints(R"(["nose"])", points, points, R"(["nose"])");
  EXPECT_NE(FieldNamed(*Good(same, required), "keypoints"), nullptr);
  EXPECT_EQ(FieldNamed(*Good(same, {.keypoints = Keypoints::kOff}), "keypoints"), nullptr);
}

TEST_F(CocoTest, KeypointsOfAnotherNumberAreRefused) {
  const auto cause = [&](const char* first) {
    const auto made = Open(WithKeypoints(R"(["nose", "tail"])", first, first, R"(["nose"])"));
    return made.ok() ? std::string() : made.error().cause;
  };
  EXPECT_THAT(cause(R"(, "keypoints": [1, 2, 2])"),
              HasSubstr("annotation 1 has 1 keypoints, but category 1 names 2"));
  EXPECT_THAT(cause(R"(, "keypoints": [1, 2])"), HasSubstr("'keypoints' is a list of 2 numbers"));
  EXPECT_THAT(cause(R"(, "keypoints": [1, 2, null])"), HasSubstr("'keypoints' is null"));
}

// ---- Errors

TEST_F(CocoTest, WhatIsMissingIsNamed) {
  struct MissingInCoco {
    const char* from;
    const char* to;
    const char* cause;
  };
  for (const MissingInCoco& missing : std::vector<MissingInCoco>{
           {"\"images\"", "\"image\"", "there is no list 'images'"},
           {"\"annotations\"", "\"objects\"", "there is no list 'annotations'"},
           {"\"categories\"", "\"names\"", "there is no list 'categories'"},
           {"\"id\": 5", "\"x\": 5", "an image has no 'id'"},
           {"\"file_name\": \"none.jpg\"", "\"x\": 1", "image 5 has no 'file_name'"},
           {"none.jpg", "", "image 5 has a 'file_name' that is empty"},
           {"none.jpg", "a\\u0000", "image 5 has a 'file_name' that is empty or has a NUL"},
           {"\"id\": 99", "\"x\": 99", "an annotation has no 'id'"},
           {"\"image_id\": 2", "\"x\": 2", "annotation 99 has no 'image_id'"},
           {"\"category_id\": 3", "\"x\": 3", "annotation 100 has no 'category_id'"},
           {"\"bbox\": [1, ", "\"x\": [1, ", "annotation 99 has no 'bbox'"},
           {"\"name\": \"cat\"", "\"x\": 1", "category 1 has no 'name'"},
           {"{\"id\": 1, \"name\"", "{\"name\"", "a category has no 'id'"}}) {
    EXPECT_THAT(ErrorOf(missing.from, missing.to).cause, HasSubstr(missing.cause));
  }
}

TEST_F(CocoTest, WrongValuesAreNamedWithTheirPlace) {
  struct WrongInCoco {
    const char* from;
    const char* to;
    const char* cause;
    const char* at;  // begins at the offset; empty: no offset
  };
  for (const WrongInCoco& wrong : std::vector<WrongInCoco>{
           {"\"image_id\": 2,", "\"image_id\": 4,", "annotation 99 has image_id 4, and no", ""},
           {"\"category_id\": 3", "\"category_id\": 2", "annotation 100 has category_id 2", ""},
           {"\"id\": 101", "\"id\": 99", "two annotations have the id 99", ""},
           {"\"id\": 5", "\"id\": 2", "two images have the id 2", ""},
           {"{\"id\": 3", "{\"id\": 1", "two categories have the id 1", ""},
           {"[1, 2, 3, 4]", "[1, 2, 3]", "'bbox' is a list of 3 numbers", "[1, 2, 3]"},
           {"[1, 2, 3, 4]", "[1, 2, 3, 4, 5]", "'bbox' is a list of 5 numbers", "[1, 2, 3, 4"},
           {"[1, 2, 3, 4]", "[1, 2, -3, 4]", "annotation 99 has a box of negative", "{\"bbox"},
           {"[1, 2, 3, 4]", "[1, NaN, 3, 4]", "NaN is not JSON", "NaN"},
           {"[1, 2, 3, 4]", "[1, 1e39, 3, 4]", "float32 cannot hold", "1e39"},
           {"[1, 2, 3, 4]", "[1, 2, 3e30, 4e30]", "annotation 99 has a box whose area", "{\"bbox"},
           {"[1, 2, 3, 4]", "{\"x\": 1}", "'bbox' is not a list", "{\"x"},
           {"[1, 2, 3, 4]", "[1, 2, \"3\", 4]", "'bbox' is a string, not a number", "\"3"},
           {"50.5", "-50.5", "annotation 100 has a negative area", "{\"segm"},
           {"50.5", "\"50\"", "'area' is a string", "\"50"},
           {"\"iscrowd\": 1", "\"iscrowd\": 2", "'iscrowd' is 2, not 0 or 1", "2, \"segm"},
           {"\"id\": 99", "\"id\": \"99\"", "'id' is a string", "\"99"},
           {"\"id\": 99", "\"id\": 99, \"id\": 98", "'id' occurs twice in an annotation", ""},
           {"\"images\": [", "\"images\": [3, ", "an image is not an object", "3, "},
           {"\"annotations\": [", "\"annotations\": [[], ", "an annotation is not", "[], "},
           {"\"categories\": [", "\"categories\": [\"x\", ", "a category is not", "\"x\""},
           {"\"categories\": [", "\"categories\": [}", "not JSON: found }", "}{"},
           {"\"info\": {", "\"info\": {]", "not JSON: found ]", "]\"year"}}) {
    const Error error = ErrorOf(wrong.from, wrong.to);
    EXPECT_THAT(error.cause, HasSubstr(wrong.cause)) << wrong.to;
    if (*wrong.at == '\0' || !error.offset) continue;
    std::string text = kSmall;
    text.replace(text.find(wrong.from), std::strlen(wrong.from), wrong.to);
    EXPECT_THAT(text.substr(*error.offset), ::testing::StartsWith(wrong.at)) << wrong.to;
  }
}

TEST_F(CocoTest, EveryTruncatedFileIsRefused) {
  const std::string text = kSmall;
  const size_t length = text.rfind('}');
  for (size_t bytes = 0; bytes <= length; ++bytes) {
    const Result<Source> made = Open(text.substr(0, bytes));
    ASSERT_FALSE(made.ok()) << bytes;
    EXPECT_THAT(made.error().cause, HasSubstr("truncated")) << bytes;
  }
}

TEST_F(CocoTest, OtherFilesAreRefused) {
  EXPECT_THAT(Open("[]").error().cause, HasSubstr("results of a detector"));
  EXPECT_THAT(Open("7").error().cause, HasSubstr("not an object"));
  EXPECT_THAT(Open(std::string(kSmall) + "{}").error().cause, HasSubstr("not JSON"));
  EXPECT_THAT(Open(R"({"a": )" + std::string(100000, '[')).error().cause, HasSubstr("nested"));
  EXPECT_EQ(Coco(folder_.Path("none.json"), folder_.path()).error().code, Code::kNotFound);
  const auto made = Coco(folder_.Path("a.json"), folder_.Path("none"));
  EXPECT_EQ(made.error().code, Code::kNotFound);
  EXPECT_EQ(made.error().file, folder_.Path("none"));
}

TEST_F(CocoTest, AMillionObjectsInOneImage) {
  if (testing::Effort(100) < 10) GTEST_SKIP() << "a sanitizer needs a minute";
  std::string text = R"({"images": [{"id": 1, "file_name": "a"}],
    "categories": [{"id": 1, "name": "x"}], "annotations": [)";
  const int objects = 1'000'000;
  for (int i = 0; i < objects; ++i) {
    text += (i == 0 ? "" : ",") + (R"({"id":)" + std::to_string(i)) +
            R"(,"image_id":1,"category_id":1,"bbox":[1,2,3,4]})";
  }
  const Source source = Good(text + "]}");
  EXPECT_EQ(source->max_objects(), 1'000'000u);
  EXPECT_EQ(ObjectsOf<float>(*source, "boxes", 0).size(), 4'000'000u);
  std::string more = text;
  for (int i = objects; i < 1'050'000; ++i) {
    more += R"(,{"id":)" + std::to_string(i) + R"(,"image_id":1,"category_id":1,"bbox":[1,2,3,4]})";
  }
  EXPECT_THAT(Open(more + "]}").error().cause, HasSubstr("objects in sample 0; at most 1048576"));
}

TEST_F(CocoTest, ImagesMustHaveTheSizesInTheFile) {
  const Source source = Good(kSmall);
  for (const uint64_t id : {0, 1}) EXPECT_TRUE(source->CheckViewed(id, {1, 2}).ok()) << "unknown";
  EXPECT_TRUE(source->CheckViewed(2, {640, 480}).ok());
  const Error other = source->CheckViewed(2, {320, 240}).error();
  EXPECT_EQ(other.code, Code::kDataLoss);
  EXPECT_EQ(other.cause, "the image has 320 × 240 pixels, but " + folder_.Path("a.json") +
                             " says that it has 640 × 480");
  EXPECT_THAT(other.advice, HasSubstr("or scale its objects"));
  const Source second = Subset(source, std::vector<uint64_t>{2}).value();
  EXPECT_THAT(second->CheckViewed(0, {480, 640}).error().advice, HasSubstr("EXIF orientation"));
  for (const ImageSize viewed : {ImageSize{320, 240}, ImageSize{480, 640}}) {
    EXPECT_THAT(source->CheckViewed(2, viewed).error().advice, HasSubstr("turn off check_sizes"));
    EXPECT_TRUE(Good(kSmall, {.check_sizes = false})->CheckViewed(2, viewed).ok());
  }
}

TEST_F(CocoTest, WhatIsNotASizeIsNotCompared) {
  for (const char* const side :
       {"0", "-640", "640.5", "65536", "1e300", "null", "\"640\"", "[640]", "{}"}) {
    std::string text = kSmall;
    const Source source = Good(text.replace(text.find("640"), 3, side));
    EXPECT_TRUE(source->CheckViewed(2, {1, 2}).ok()) << side;
  }
  std::string text = kSmall;
  const Source source = Good(text.replace(text.find("640"), 3, "640.0"));
  EXPECT_FALSE(source->CheckViewed(2, {1, 2}).ok());
  EXPECT_THAT(ErrorOf("\"width\"", "\"height\"").cause, HasSubstr("'height' occurs twice"));
}

// ---- Against a plain reader

// The annotations of each image of a file, by the image's id.
struct SaidOfImage {
  std::string file_name;
  std::vector<float> boxes, areas;
  std::vector<int64_t> labels;
  std::vector<uint8_t> crowds;
};

std::map<int64_t, SaidOfImage> PlainCoco(const json& file, bool keep_crowd) {
  std::map<int64_t, SaidOfImage> said;
  for (const json& image : file["images"]) said[image["id"]].file_name = image["file_name"];
  for (const json& object : file["annotations"]) {
    if (!keep_crowd && object.value("iscrowd", 0) != 0) continue;
    SaidOfImage& image = said[object["image_id"]];
    for (const double number : object["bbox"]) image.boxes.push_back(static_cast<float>(number));
    image.areas.push_back(object["area"]);
    image.labels.push_back(object["category_id"]);
    image.crowds.push_back(object.value("iscrowd", uint8_t{0}));
  }
  return said;
}

json RandomCoco(testing::Random& random) {
  json file{{"images", json::array()}, {"annotations", json::array()}};
  const int images = random.Between(1, 20);
  for (int i = 0; i < images; ++i) {
    file["images"].push_back({{"id", i * 7919 % 10007 - 50}, {"file_name", std::to_string(i)}});
  }
  for (int i = 1; i < 6; ++i) file["categories"].push_back({{"id", i}, {"name", "c"}});
  const auto number = [&] { return random.Between(0, 1'000'000) * 1e-3; };
  const int objects = random.Between(0, 60);
  for (int i = 0; i < objects; ++i) {
    json object{
        {"id", i},
        {"image_id", file["images"][static_cast<size_t>(random.Between(0, images - 1))]["id"]},
        {"category_id", random.Between(1, 5)},
        {"bbox", {number(), number(), number(), number()}},
        {"segmentation", {{number(), number()}}},
        {"area", number()}};
    if (random.OneIn(2)) object["iscrowd"] = random.Between(0, 1);
    file["annotations"].push_back(object);
  }
  return file;
}

TEST_F(CocoTest, RandomFilesAreReadAsByAPlainReader) {
  for (int run = 0; run < testing::Effort(300); ++run) {
    testing::Random random(static_cast<uint32_t>(run));
    const json file = RandomCoco(random);
    const bool keep_crowd = random.OneIn(2);
    const std::map<int64_t, SaidOfImage> expected = PlainCoco(file, keep_crowd);
    const Source source = Good(file.dump(random.Between(-1, 1)), {.keep_crowd = keep_crowd});
    ASSERT_EQ(source->size(), expected.size());
    uint64_t id = 0;
    for (const auto& [image_id, said] : expected) {
      EXPECT_EQ(PathOf(*source, id), said.file_name);
      EXPECT_THAT(ObjectsOf<int64_t>(*source, "image_id", id), ElementsAre(image_id));
      EXPECT_EQ(ObjectsOf<float>(*source, "boxes", id), said.boxes);
      EXPECT_EQ(ObjectsOf<float>(*source, "area", id), said.areas);
      EXPECT_EQ(ObjectsOf<int64_t>(*source, "labels", id), said.labels);
      EXPECT_EQ(ObjectsOf<uint8_t>(*source, "iscrowd", id), said.crowds);
      ++id;
    }
  }
}

}  // namespace
}  // namespace stoker
