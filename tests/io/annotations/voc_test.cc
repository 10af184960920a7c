#include "io/annotations/voc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/annotations/voc_annotation.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/view_as.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::ViewAs;
using Source = std::shared_ptr<const SampleSource>;

std::string BoxOf(const std::string& sides) {
  constexpr const char* kNames[] = {"xmin", "ymin", "xmax", "ymax"};
  std::string text;
  size_t begin = 0;
  for (const char* const name : kNames) {
    const size_t end = std::min(sides.find(' ', begin), sides.size());
    text += std::string("<") + name + ">" + sides.substr(begin, end - begin) + "</" + name + ">";
    begin = end + 1;
  }
  return "<bndbox>" + text + "</bndbox>";
}

std::string ObjectOf(const std::string& name, const std::string& sides,
                     const std::string& others = "") {
  return "<object><name>" + name + "</name>" + others + BoxOf(sides) + "</object>\n";
}

constexpr char kVocSize[] = "<size><width>500</width><height>375</height></size>\n";

std::string AnnotationOf(const std::string& objects, const std::string& size = kVocSize) {
  return "<annotation>\n" + size + objects + "</annotation>\n";
}

class VocTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.Path(path)).parent_path());
    folder_.Write(path, text);
  }
  // Writes an image with its annotation.
  void Add(const std::string& name, const std::string& annotation,
           const std::string& root = "VOCdevkit/VOC2012") const {
    Write(root + "/JPEGImages/" + name + ".jpg", "x");
    Write(root + "/Annotations/" + name + ".xml", annotation);
  }
  void List(const std::string& text, const std::string& split = "Main/train",
            const std::string& root = "VOCdevkit/VOC2012") const {
    Write(root + "/ImageSets/" + split + ".txt", text);
  }
  Result<Source> Open(VocOptions options = {}) const {
    options.threads = 2;
    return Voc(folder_.path(), options);
  }
  Error OpenOne(const std::string& annotation, VocOptions options = {}) const {
    Add("1", annotation);
    List("1\n");
    Result<Source> made = Open(std::move(options));
    return made.ok() ? Error{.cause = "none"} : std::move(made).error();
  }
  std::vector<std::string> PathsOf(const SampleSource& source, size_t piece = 0) const {
    std::vector<std::string> paths;
    for (uint64_t id = 0; id < source.size(); ++id) {
      const uint32_t file =
          piece == 0 ? source.RangeOf(id).file : source.RangeOfPiece(id, piece).file;
      source.PathOf(file, paths.emplace_back());
      paths.back().erase(0, folder_.path().size() + 1);
    }
    return paths;
  }

  const testing::TempFolder folder_;
};

TEST_F(VocTest, ObjectsAreInTheOrderOfTheirFile) {
  Add("2008_000002", AnnotationOf(ObjectOf("tvmonitor", "34 11 448 293",
                                           "<difficult>1</difficult>"
                                           "<occluded>0</occluded>") +
                                  ObjectOf(" person\n", "1 1 500.5 375",
                                           "<pose>Left</pose><truncated> 1 </truncated>")));
  Add("2008_000003", AnnotationOf(""));
  Add("unlisted", "not XML");
  List("2008_000003 \r\n\n2008_000002");
  const Source source = Open().value();
  EXPECT_THAT(PathsOf(*source), ElementsAre("VOCdevkit/VOC2012/JPEGImages/2008_000003.jpg",
                                            "VOCdevkit/VOC2012/JPEGImages/2008_000002.jpg"));
  EXPECT_THAT(ViewAs<float>(*source, 1, 0), IsEmpty());
  EXPECT_THAT(ViewAs<float>(*source, 1, 1), ElementsAre(33, 10, 448, 293, 0, 0, 500.5F, 375));
  EXPECT_THAT(ViewAs<int64_t>(*source, 2, 1), ElementsAre(19, 14));
  EXPECT_THAT(ViewAs<uint8_t>(*source, 3, 1), ElementsAre(1, 0));
  EXPECT_THAT(ViewAs<uint8_t>(*source, 4, 1), ElementsAre(0, 1));
  EXPECT_THAT(ViewAs<uint8_t>(*source, 5, 1), ElementsAre(0, 0));
  std::vector<std::string> names;
  for (const Field& field : source->fields()) names.push_back(field.name);
  EXPECT_THAT(names, ElementsAre("image", "boxes", "labels", "difficult", "truncated", "occluded"));
  EXPECT_EQ(source->fields()[1].box_format, BoxFormat::kXyxy);
  EXPECT_FALSE(source->fields()[1].normalized);
  EXPECT_EQ(source->classes().size(), 20u);
  EXPECT_TRUE(std::ranges::is_sorted(source->classes()));
  EXPECT_EQ(source->Describe(), "voc(" + folder_.Path("VOCdevkit/VOC2012") + ", train)");
}

TEST_F(VocTest, DifficultObjectsCanBeLeftOut) {
  Add("1", AnnotationOf(ObjectOf("cat", "1 2 3 4", "<difficult>1</difficult>") +
                        ObjectOf("dog", "1 2 3 4", "<difficult>0</difficult>")));
  List("1");
  EXPECT_THAT(ViewAs<int64_t>(*Open().value(), 2, 0), ElementsAre(7, 11));
  EXPECT_THAT(ViewAs<int64_t>(*Open({.keep_difficult = false}).value(), 2, 0), ElementsAre(11));
}

TEST_F(VocTest, SizesAreNotNeeded) {
  for (const char* const size : {"", "<size/>", "<size><width>0</width></size>",
                                 "<size><width>x</width><height>9</height></size>",
                                 "<size><width>-5</width><height>9</height></size>",
                                 "<size><width>0.5</width><height>1e300</height></size>"}) {
    EXPECT_EQ(OpenOne(AnnotationOf(ObjectOf("cat", "1 2 3 4"), size)).cause, "none") << size;
    EXPECT_TRUE(Open().value()->CheckViewed(0, {1, 2}).ok()) << size;
  }
}

TEST_F(VocTest, ImagesMustHaveTheSizesInTheirFiles) {
  Add("1", AnnotationOf("", "<size><width> 500.0 </width><height>375</height></size>"));
  Add("2", AnnotationOf("", ""));
  List("2\n1");
  const Source source = Open().value();
  EXPECT_TRUE(source->CheckViewed(0, {1, 2}).ok());
  EXPECT_TRUE(source->CheckViewed(1, {500, 375}).ok());
  EXPECT_EQ(source->CheckViewed(1, {250, 188}).error().cause,
            "the image has 250 × 188 pixels, but " +
                folder_.Path("VOCdevkit/VOC2012/Annotations/1.xml") +
                " says that it has 500 × 375");
  EXPECT_TRUE(Open({.check_sizes = false}).value()->CheckViewed(1, {250, 188}).ok());
}

TEST_F(VocTest, PartsOfAnObjectAreNoObjects) {
  const std::string part = "<part><name>head</name>" + BoxOf("9 9 20 20") + "</part>";
  Add("1", AnnotationOf(ObjectOf("person", "1 2 30 40", part + part) +
                        "<other><object><name>x</name></object></other>"));
  List("1");
  EXPECT_THAT(ViewAs<float>(*Open().value(), 1, 0), ElementsAre(0, 1, 30, 40));
}

TEST_F(VocTest, ADataSetOfOnesOwnNamesItsClasses) {
  Add("a/1", AnnotationOf(ObjectOf("vest", "0 0.5 9 9") + ObjectOf("cat", "0 0 9 9")));
  Write("VOCdevkit/VOC2012/JPEGImages/2.png", "x");
  Write("VOCdevkit/VOC2012/Annotations/2.xml", AnnotationOf(ObjectOf("helmet", "4 4 4 4")));
  List("a/1\n2\n");
  const Error error = Open().error();
  EXPECT_THAT(error.cause, HasSubstr("line 3: 'vest' is not one of the 20 classes. Such classes "
                                     "are: 'helmet', 'vest'"));
  EXPECT_EQ(error.file, folder_.Path("VOCdevkit/VOC2012/Annotations/a/1.xml"));
  const std::vector<std::string> names{"helmet", "vest", "cat"};
  const Error before = Open({.class_names = names}).error();
  EXPECT_THAT(before.cause, HasSubstr("line 3: the box of 'vest' begins before pixel 1"));
  EXPECT_THAT(before.advice, HasSubstr("one_based"));
  const Source source = Open({.one_based = false, .class_names = names}).value();
  EXPECT_EQ(source->classes(), names);
  EXPECT_THAT(ViewAs<float>(*source, 1, 0), ElementsAre(0, 0.5F, 9, 9, 0, 0, 9, 9));
  EXPECT_THAT(ViewAs<float>(*source, 1, 1), ElementsAre(4, 4, 4, 4));
  EXPECT_THAT(ViewAs<int64_t>(*source, 2, 0), ElementsAre(1, 2));
  EXPECT_THAT(PathsOf(*source)[1], HasSubstr("2.png"));
}

TEST_F(VocTest, RootsAreFoldersOnTheWay) {
  for (const char* const root : {"a/VOCdevkit/VOC2012", "b/VOC2012", "c/TrainVal/VOCdevkit/VOC2012",
                                 "d/VOC2007", "e/mine"}) {
    Add("1", AnnotationOf(""), root);
    List("1", "Main/train", root);
  }
  for (const char* const root : {"a", "a/VOCdevkit", "a/VOCdevkit/VOC2012/", "b", "c", "e/mine"}) {
    EXPECT_TRUE(Voc(folder_.Path(root)).ok()) << root;
    EXPECT_TRUE(IsVocFolder(folder_.Path(root))) << root;
  }
  EXPECT_TRUE(Voc(folder_.Path("d"), {.year = "2007"}).ok());
  EXPECT_TRUE(IsVocFolder(folder_.Path("d")));
  for (const char* const year : {"", "2007"}) {
    EXPECT_TRUE(Voc(folder_.Path("d/VOC2007/"), {.year = year}).ok()) << year;
  }
  EXPECT_FALSE(Voc(folder_.Path("d")).ok()) << "2012";
  const Error other = Voc(folder_.Path("d/VOC2007/"), {.year = "2012"}).error();
  EXPECT_THAT(other.cause, HasSubstr("this is the folder of the year 2007, not 2012"));
  const Error none = Voc(folder_.Path("e")).error();
  EXPECT_EQ(none.code, Code::kNotFound);
  EXPECT_THAT(none.cause, HasSubstr("there is no folder VOC2012"));
  EXPECT_FALSE(IsVocFolder(folder_.Path("e")));
  EXPECT_EQ(Voc("s3://bucket/VOCdevkit").error().code, Code::kUnimplemented);
}

TEST_F(VocTest, MasksAreThoseOfTheList) {
  for (const char* const name : {"1", "2"}) {
    const std::string file = std::string(name) + ".png";
    Write("VOCdevkit/VOC2012/JPEGImages/" + std::string(name) + ".jpg", "x");
    Write("VOCdevkit/VOC2012/SegmentationClass/" + file, "x");
  }
  Write("VOCdevkit/VOC2012/SegmentationObject/2.png", "x");
  List("2\n1\n", "Segmentation/val");
  List("2\n", "Segmentation/train");
  using Task = VocOptions::Task;
  const VocOptions val{.split = "val", .task = Task::kSegmentation};
  const Source source = Open(val).value();
  EXPECT_THAT(PathsOf(*source, 1), ElementsAre("VOCdevkit/VOC2012/SegmentationClass/2.png",
                                               "VOCdevkit/VOC2012/SegmentationClass/1.png"));
  ASSERT_EQ(source->fields().size(), 2u);
  EXPECT_EQ(source->fields()[1].name, "mask");
  EXPECT_EQ(source->fields()[1].kind, Field::Kind::kMask);
  EXPECT_EQ(source->fields()[1].fill, 255);
  EXPECT_THAT(source->classes(), IsEmpty());
  VocOptions with = val;
  with.instances = true;
  const Error missing = Open(with).error();
  EXPECT_EQ(missing.file, folder_.Path("VOCdevkit/VOC2012/ImageSets/Segmentation/val.txt"));
  EXPECT_THAT(missing.cause, HasSubstr("'1' has no file in '"));
  with.split = "train";
  with.fill = 0;
  const Source instances = Open(with).value();
  EXPECT_EQ(instances->fields()[2].name, "instances");
  EXPECT_EQ(instances->fields()[2].fill, 0);
  EXPECT_THAT(PathsOf(*instances, 2), ElementsAre("VOCdevkit/VOC2012/SegmentationObject/2.png"));
}

TEST_F(VocTest, OptionsOfTheOtherTaskAreRefused) {
  for (const VocOptions& options : std::vector<VocOptions>{{.instances = true}, {.fill = 0}}) {
    EXPECT_THAT(Open(options).error().cause, HasSubstr("instances and fill are of segmentation"));
  }
  for (const VocOptions& options : std::vector<VocOptions>{{.keep_difficult = false},
                                                           {.one_based = false},
                                                           {.class_names = {"x"}},
                                                           {.check_sizes = false}}) {
    VocOptions given = options;
    given.task = VocOptions::Task::kSegmentation;
    EXPECT_THAT(Open(given).error().cause, HasSubstr("are of detection"));
  }
}

TEST_F(VocTest, WrongListsAreNamed) {
  Add("1", AnnotationOf(""));
  List("1", "Main/val");
  const std::string main = folder_.Path("VOCdevkit/VOC2012/ImageSets/Main");
  const Error none = Open().error();
  EXPECT_EQ(none.code, Code::kNotFound);
  EXPECT_EQ(none.file, main + "/train.txt");
  EXPECT_EQ(none.advice, "The folder has: val");
  List(" \n\n");
  EXPECT_THAT(Open().error().cause, HasSubstr("the list has no name of an image"));
  List("1  1\n");  // as cat_train.txt
  EXPECT_THAT(Open().error().cause, HasSubstr("'1  1' has no file in"));
  EXPECT_EQ(Open().error().file, main + "/train.txt");
  List("../Annotations/1\n");
  EXPECT_THAT(Open().error().cause, HasSubstr("has no file in"));
  for (const char* const split : {"", "../Main/val", "a/b"}) {
    EXPECT_THAT(Open({.split = split}).error().cause, HasSubstr("is not the name of a split"));
  }
  List("1\n");
  Write("VOCdevkit/VOC2012/JPEGImages/1.png", "x");
  EXPECT_THAT(Open().error().cause,
              HasSubstr("two images differ in their extensions only: '1.jpg' and '1.png'"));
  List("2\n");
  Write("VOCdevkit/VOC2012/JPEGImages/2.exr", "x");
  EXPECT_THAT(Open().error().cause, HasSubstr("'2' has no file in"));
  EXPECT_THAT(Open().error().cause, HasSubstr(".exr 1"));
  Write("VOCdevkit/VOC2012/JPEGImages/3.jpg", "x");
  List("3\n");
  EXPECT_EQ(Open().error().code, Code::kNotFound);
  EXPECT_EQ(Open().error().file, folder_.Path("VOCdevkit/VOC2012/Annotations/3.xml"));
}

TEST_F(VocTest, WrongAnnotationsAreNamedWithTheirLine) {
  struct WrongAnnotation {
    std::string text;
    const char* cause;
  };
  const std::string cat = "<object><name>cat</name>";
  for (const WrongAnnotation& wrong : std::vector<WrongAnnotation>{
           {"", "this is not XML: No document element found"},
           {"x", "line 1: this is not XML"},
           {"<annotation>", "line 1: this is not XML: Start-end tags mismatch"},
           {"<html/>", "line 1: the file has no <annotation>"},
           {AnnotationOf("<object>" + BoxOf("1 2 3 4") + "</object>"),
            "line 3: <object> has no <name>"},
           {AnnotationOf(cat + "</object>"), "line 3: <object> has no <bndbox>"},
           {AnnotationOf(cat + "<bndbox><xmin>1</xmin></bndbox></object>"),
            "<bndbox> has no <ymin>"},
           {AnnotationOf(cat + "<name>dog</name></object>"), "<object> has two <name>"},
           {AnnotationOf(cat + BoxOf("1 2 3 4") + BoxOf("1 2 3 4") + "</object>"),
            "<object> has two <bndbox>"},
           {AnnotationOf(ObjectOf(" ", "1 2 3 4")), "an object has an empty <name>"},
           {AnnotationOf(ObjectOf("cat", "nan 2 3 4")), "<xmin> is 'nan', not a coordinate"},
           {AnnotationOf(ObjectOf("cat", "1 inf 3 4")), "<ymin> is 'inf', not a coordinate"},
           {AnnotationOf(ObjectOf("cat", "1 2 1e39 4")), "<xmax> is '1e39', not a coordinate"},
           {AnnotationOf(ObjectOf("cat", "1 2 3 ")), "<ymax> is '', not a coordinate"},
           {AnnotationOf(ObjectOf("cat", "1 2 3 4x")), "<ymax> is '4x', not a coordinate"},
           {AnnotationOf(ObjectOf("cat", "4 2 3 4")), "'cat' has xmax less than xmin"},
           {AnnotationOf(ObjectOf("cat", "1 5 3 4")), "'cat' has ymax less than ymin"},
           {AnnotationOf(ObjectOf("cat", "0 5 3 6")), "begins before pixel 1"},
           {AnnotationOf(ObjectOf("cat", "1 2 3 4", "<difficult>2</difficult>")),
            "line 3: <difficult> is '2', not 0 or 1"},
           {AnnotationOf("") + AnnotationOf(""), "line 4: the file has two <annotation>"},
           {"<!DOCTYPE a [<!ENTITY b \"xx\"><!ENTITY c \"&b;&b;\">]>" + AnnotationOf("&c;"),
            "line 1: the file has a DOCTYPE"},
           {AnnotationOf(ObjectOf("&c;", "1 2 3 4")), "line 3: '&c;' is not one of the 20 classes"},
           {AnnotationOf(ObjectOf("\xff\x01", "1 2 3 4")), "line 3: '\\xff\\x01' is not one"},
           {AnnotationOf("<a></b>"), "line 3: this is not XML"},
           {AnnotationOf(std::string(1, '\0')), "this is not XML"}}) {
    const Error error = OpenOne(wrong.text);
    EXPECT_EQ(error.code, Code::kInvalidArgument) << wrong.text;
    EXPECT_THAT(error.cause, HasSubstr(wrong.cause)) << wrong.text;
    EXPECT_EQ(error.file, folder_.Path("VOCdevkit/VOC2012/Annotations/1.xml"));
  }
}

TEST_F(VocTest, LargeAndDeepAnnotationsAreRefused) {
  std::string deep;
  for (int i = 0; i < 300'000; ++i) deep += "<a>";
  EXPECT_THAT(OpenOne("<annotation>" + deep).cause, HasSubstr("this is not XML"));
  EXPECT_THAT(OpenOne(AnnotationOf(std::string(size_t{1} << 20, ' '))).cause,
              HasSubstr("the file has more than 1 MiB"));
  std::string many;
  for (int i = 0; i < 8'000; ++i) many += ObjectOf("cat", "1 2 3 4");
  EXPECT_THAT(OpenOne(AnnotationOf(many)).cause, "none");
  EXPECT_EQ(Open().value()->max_objects(), 8'000u);
  many += many;
  EXPECT_THAT(OpenOne(AnnotationOf(many)).cause, HasSubstr("the file has more than 1 MiB"));
}

TEST_F(VocTest, TheFirstWrongFileIsNamedForAnyNumberOfThreads) {
  std::string list;
  for (int i = 0; i < 600; ++i) {
    const std::string name = std::to_string(1000 + i);
    const bool is_wrong = i == 300 || i == 301 || i == 500;
    Add(name, AnnotationOf(is_wrong ? ObjectOf("cat", "4 2 3 4") : ObjectOf("cat", "1 2 3 4")));
    list += name + "\n";
  }
  List(list);
  for (const int threads : {1, 4}) {
    const Result<Source> made = Voc(folder_.path(), {.threads = threads});
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().file, folder_.Path("VOCdevkit/VOC2012/Annotations/1300.xml"));
  }
}

TEST(VocAnnotation, IsReadAsItWasWritten) {
  for (int run = 0; run < testing::Effort(500); ++run) {
    testing::Random random(static_cast<uint32_t>(run));
    const auto blank = [&] { return std::string(static_cast<size_t>(random.Between(0, 2)), '\n'); };
    std::vector<VocObject> expected(static_cast<size_t>(random.Between(0, 9)));
    std::string text;
    for (VocObject& object : expected) {
      object.name = "class<" + std::to_string(random.Between(0, 99));
      std::string sides;
      for (int k = 0; k < 4; ++k) {
        const std::string side = std::to_string(random.Between(0, 1000) + (k < 2 ? 0 : 1000)) +
                                 (random.OneIn(3) ? ".25" : "");
        object.box[k] = std::stod(side);
        sides += (k == 0 ? "" : " ") + side;
      }
      object.truncated = random.OneIn(2) ? 1 : 0;
      text +=
          ObjectOf("<!-- & -->class&lt;<![CDATA[" + object.name.substr(6) + "]]>" + blank(), sides,
                   blank() + "<truncated>" + std::to_string(object.truncated) + "</truncated>" +
                       "<part a=\"1\"><bndbox/></part>");
    }
    const bool is_size_last = random.OneIn(2);
    const std::string whole =
        is_size_last ? "<annotation>" + text + kVocSize + "</annotation>" : AnnotationOf(text);
    const VocAnnotation read = ParseVocAnnotation(whole, "a.xml").value();
    ASSERT_EQ(read.objects.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(read.objects[i].name, expected[i].name);
      EXPECT_THAT(read.objects[i].box, ::testing::ElementsAreArray(expected[i].box));
      EXPECT_EQ(read.objects[i].truncated, expected[i].truncated);
      EXPECT_EQ(read.objects[i].difficult, 0);
    }
  }
}

}  // namespace
}  // namespace stoker
