#include "io/annotations/yolo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/annotations/yolo_data.h"
#include "io/annotations/yolo_labels.h"
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

class YoloTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(folder_.Path(path)).parent_path());
    folder_.Write(path, text);
  }
  Result<Source> Open(const std::string& yaml, const std::string& split = "train",
                      int threads = 2) const {
    Write("data.yaml", yaml);
    return Yolo(folder_.Path("data.yaml"), split, {.threads = threads});
  }
  std::vector<std::string> PathsOf(const SampleSource& source) const {
    std::vector<std::string> paths;
    for (uint64_t id = 0; id < source.size(); ++id) {
      source.PathOf(source.RangeOf(id).file, paths.emplace_back());
      paths.back().erase(0, folder_.path().size() + 1);
    }
    return paths;
  }

  const testing::TempFolder folder_;
};

TEST_F(YoloTest, LabelsAreNextToTheFolderOfImages) {
  for (const char* const image :
       {"images/train/b.jpg", "images/train/a/1.png", "images/train/c.d.jpg", "images/val/x.jpg"}) {
    Write(image, "x");
  }
  Write("labels/train/b.txt", "1 0.5 0.25 0.125 1\n\n  0\t1e-3 1.0 0 0.5 \r\n");
  Write("labels/train/c.d.txt", "");
  Write("labels/train/a/1.txt", "2.0 0 0 1 1");
  const Source source =
      Open(
          "# comment\npath: .\ntrain: images/train\nval: images/val\nnc: 3\n"
          "names:\n  0: cat\n  1: dog\n  2: a b\ndownload: |\n  curl x\nkpt_shape: [17, 3]\n")
          .value();
  EXPECT_THAT(PathsOf(*source),
              ElementsAre("images/train/a/1.png", "images/train/b.jpg", "images/train/c.d.jpg"));
  EXPECT_THAT(ViewAs<float>(*source, 1, 1),
              ElementsAre(0.5F, 0.25F, 0.125F, 1.F, 1e-3F, 1.F, 0.F, 0.5F));
  EXPECT_THAT(ViewAs<int64_t>(*source, 2, 1), ElementsAre(1, 0));
  EXPECT_THAT(ViewAs<int64_t>(*source, 2, 0), ElementsAre(2));
  EXPECT_THAT(ViewAs<int64_t>(*source, 2, 2), IsEmpty());
  EXPECT_THAT(source->classes(), ElementsAre("cat", "dog", "a b"));
  const Field& boxes = source->fields()[1];
  EXPECT_EQ(boxes.name, "boxes");
  EXPECT_EQ(boxes.box_format, BoxFormat::kCxcywh);
  EXPECT_TRUE(boxes.normalized);
  EXPECT_EQ(source->fields()[2].name, "labels");
  EXPECT_EQ(source->Describe(), "yolo(" + folder_.Path("data.yaml") + ", train)");
}

TEST_F(YoloTest, SplitsAreFoldersOrLists) {
  for (const char* const image : {"a/images/1.jpg", "b/images/2.jpg", "b/plain/3.jpg"}) {
    Write(image, "x");
  }
  Write("a/labels/1.txt", "0 0 0 1 1");
  Write("b/plain/3.txt", "0 0.5 0.5 1 1");
  Write("lists/some.txt",
        "../b/plain/3.jpg\n\n./../a/images/1.jpg \r\n" + folder_.Path("b/images/2.jpg"));
  const std::string yaml = "names: [x]\ntrain: [a/images, b/images]\nval: lists/some.txt\ntest:\n";
  EXPECT_THAT(PathsOf(*Open(yaml).value()), ElementsAre("a/images/1.jpg", "b/images/2.jpg"));
  const Source listed = Open(yaml, "val").value();
  EXPECT_THAT(PathsOf(*listed), ElementsAre("b/plain/3.jpg", "a/images/1.jpg", "b/images/2.jpg"));
  EXPECT_THAT(ViewAs<float>(*listed, 1, 0), ElementsAre(0.5, 0.5, 1, 1)) << "next to the image";
  EXPECT_THAT(Open(yaml, "test").error().cause, HasSubstr("there are no images for 'test'"));
  EXPECT_THAT(Open(yaml, "test").error().advice, HasSubstr("The file has: train, val"));
}

TEST_F(YoloTest, ValidationIsAnotherNameOfVal) {
  for (const char* const name : {"1", "2"}) {
    Write(std::string(name) + "/images/" + name + ".jpg", "x");
    Write(std::string(name) + "/labels/" + name + ".txt", "0 0 0 1 1");
  }
  for (const char* const split : {"val", "validation"}) {
    for (const char* const key : {"val", "validation"}) {
      const Source source = Open(std::string(key) + ": 1/images\nnames: [x]", split).value();
      EXPECT_THAT(PathsOf(*source), ElementsAre("1/images/1.jpg")) << split << key;
    }
  }
  const std::string both = "val: 1/images\nvalidation: 2/images\nnames: [x]";
  EXPECT_THAT(PathsOf(*Open(both, "val").value()), ElementsAre("1/images/1.jpg"));
  EXPECT_THAT(PathsOf(*Open(both, "validation").value()), ElementsAre("2/images/2.jpg"));
  EXPECT_THAT(Open(both, "train").error().advice, HasSubstr("The file has: val, validation"));
}

TEST_F(YoloTest, PathsAreRelativeToTheYamlFile) {
  Write("set/train/images/1.jpg", "x");
  Write("set/train/labels/1.txt", "0 0 0 1 1");
  for (const char* const yaml : {"path: set\ntrain: train/images\nnames: [x]",
                                 "path: set\ntrain: ../train/images\nnames: [x]",
                                 "train: set/train/images/\nnames: {0: x}"}) {
    EXPECT_THAT(PathsOf(*Open(yaml).value()), ElementsAre("set/train/images/1.jpg")) << yaml;
  }
  const Error missing = Open("path: other\ntrain: images\nnames: [x]").error();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_EQ(missing.file, folder_.Path("other/images"));
}

TEST_F(YoloTest, ImagesWithoutAnyLabelFileAreRefused) {
  Write("images/1.jpg", "x");
  const Error error = Open("train: images\nnames: [x]").error();
  EXPECT_THAT(error.cause, HasSubstr("1 image has no file of labels"));
  EXPECT_EQ(error.file, folder_.Path("labels/1.txt"));
}

TEST_F(YoloTest, WrongLabelsAreNamedWithTheirLine) {
  struct WrongLine {
    const char* line;
    const char* cause;
  };
  Write("images/1.jpg", "x");
  for (const WrongLine& wrong : std::vector<WrongLine>{
           {"0 0.1 0.2 0.3", "4 numbers on this line"},
           {"0 0.1 0.2 0.3 0.4 0.5", "6 numbers on this line; a box has 5"},
           {"2 0.1 0.2 0.3 0.4", "'2' is not a class: there are 2 names, from 0"},
           {"-1 0.1 0.2 0.3 0.4", "'-1' is not a class"},
           {"0.5 0.1 0.2 0.3 0.4", "'0.5' is not a class"},
           {"cat 0.1 0.2 0.3 0.4", "'cat' is not a class"},
           {"nan 0.1 0.2 0.3 0.4", "'nan' is not a class"},
           {"1e999 0.1 0.2 0.3 0.4", "'1e999' is not a class"},
           {"0 nan 0.2 0.3 0.4", "'nan' is not a normalized coordinate (0 to 1)"},
           {"0 inf 0.2 0.3 0.4", "'inf' is not a normalized coordinate (0 to 1)"},
           {"0 0.1 320 0.3 0.4", "'320' is not a normalized coordinate (0 to 1)"},
           {"0 0.1 0.2 -0.3 0.4", "'-0.3' is not a normalized coordinate"},
           {"0 0.1 0.2 0.3x 0.4", "'0.3x' is not a normalized coordinate"},
           {"0 0.1 0.2 0.3 \x1b", "'\\x1b' is not a normalized coordinate"}}) {
    Write("labels/1.txt", std::string("0 0 0 1 1\n\n") + wrong.line + "\n");
    const Result<Source> made = Open("train: images\nnames: [x, y]");
    ASSERT_FALSE(made.ok()) << wrong.line;
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    EXPECT_THAT(made.error().cause, HasSubstr(std::string("line 3: ") + wrong.cause));
    EXPECT_EQ(made.error().file, folder_.Path("labels/1.txt"));
    EXPECT_EQ(made.error().offset, 11u);
  }
}

TEST_F(YoloTest, LargeLabelFilesAreNamed) {
  Write("images/1.jpg", "x");
  std::string text;
  for (int i = 0; i < (1 << 20); ++i) text += "0 0 0 1 1\n";
  Write("labels/1.txt", text);
  EXPECT_EQ(Open("train: images\nnames: [x]").value()->max_objects(), size_t{1} << 20);
  Write("labels/1.txt", text + "0 0 0 1 1\n");
  const Error many = Open("train: images\nnames: [x]").error();
  EXPECT_THAT(many.cause, HasSubstr("line 1048577: the file has more than 1048576 objects"));
  EXPECT_EQ(many.file, folder_.Path("labels/1.txt"));
  Write("labels/1.txt", std::string(size_t{20} << 20, '\n'));
  const Error large = Open("train: images\nnames: [x]").error();
  EXPECT_EQ(large.code, Code::kInvalidArgument);
  EXPECT_THAT(large.cause, HasSubstr("the file has more than 15 MiB"));
  EXPECT_EQ(large.file, folder_.Path("labels/1.txt"));
}

TEST_F(YoloTest, TheFirstWrongFileIsNamedForAnyNumberOfThreads) {
  for (int i = 0; i < 2000; ++i) {
    Write("images/" + std::to_string(10000 + i) + ".jpg", "x");
    const bool wrong = i == 700 || i == 701 || i == 1500;
    Write("labels/" + std::to_string(10000 + i) + ".txt", wrong ? "x" : "0 0 0 1 1");
  }
  for (const int threads : {1, 4}) {
    const Result<Source> made = Open("train: images\nnames: [x]", "train", threads);
    ASSERT_FALSE(made.ok());
    EXPECT_EQ(made.error().file, folder_.Path("labels/10700.txt"));
  }
  for (const int i : {700, 701, 1500}) {
    Write("labels/" + std::to_string(10000 + i) + ".txt", "");
  }
  const Source one = Open("train: images\nnames: [x]", "train", 1).value();
  EXPECT_EQ(one->Fingerprint(),
            Open("train: images\nnames: [x]", "train", 4).value()->Fingerprint());
  EXPECT_THAT(ViewAs<int64_t>(*one, 2, 700), IsEmpty());
  EXPECT_THAT(ViewAs<int64_t>(*one, 2, 1999), ElementsAre(0));
}

TEST_F(YoloTest, WrongYamlIsNamedWithItsLine) {
  struct WrongYaml {
    const char* yaml;
    const char* cause;
  };
  for (const WrongYaml& wrong : std::vector<WrongYaml>{
           {"", "does not have keys and values"},
           {"- a\n", "does not have keys and values"},
           {"train: [a\nnames: x", "this is not YAML"},
           {"a: 1\na: 2\nnames: [x]", "line 2: the key 'a' occurs twice"},
           {"train: a\n", "there is no key 'names'"},
           {"names: x\n", "'names' is neither a list nor a map"},
           {"names: []\n", "'names' is empty"},
           {"names: [[x]]\n", "a name is not a single text"},
           {"names: {1: x}\n", "the classes in 'names' are not 0, 1, …, 0"},
           {"names: {0: x, 0: y}\n", "class 0 occurs twice"},
           {"names: {a: x}\n", "a key in 'names' is not an integer"},
           {"names: &a [*a]\n", "a name is not a single text"},
           {"a: &p x\nnames: [x]\ntrain: *p\n", "line 3: 'train' has an alias"},
           {"a: &p x\nnames: [x]\ntrain: [a,\n  *p]\n", "line 4: 'train' has an alias"},
           {"a: &p x\nnames: *p\n", "line 2: 'names' has an alias"},
           {"path: [a]\nnames: [x]\n", "'path' is not a single text"},
           {"? [a]\n: b\n", "a key is not a single text"},
           {"names: [x]\n---\na: b\n", "the file has a second document"},
           {"names: [x]\ntrain: {a: b}\n", "there are no images for 'train'"},
           {"names: [x]\ntrain: [[a]]\n", "there are no images for 'train'"}}) {
    const Result<Source> made = Open(wrong.yaml);
    ASSERT_FALSE(made.ok()) << wrong.yaml;
    EXPECT_EQ(made.error().code, Code::kInvalidArgument) << wrong.yaml;
    EXPECT_THAT(made.error().cause, HasSubstr(wrong.cause));
    EXPECT_EQ(made.error().file, folder_.Path("data.yaml"));
  }
}

TEST_F(YoloTest, LargeAndDeepYamlIsRefused) {
  EXPECT_THAT(Open("a: " + std::string(2 << 20, 'x')).error().cause, HasSubstr("more than 1 MiB"));
  const std::string deep(500'000, '[');
  EXPECT_THAT(Open("a: " + deep).error().cause, HasSubstr("nested more than 64 levels"));
  EXPECT_THAT(Open("names: " + deep).error().cause, HasSubstr("not a single text"));
}

TEST_F(YoloTest, UrlsAreRefused) {
  EXPECT_EQ(Yolo("https://host/a.yaml", "train").error().code, Code::kUnimplemented);
  EXPECT_EQ(Open("path: s3://b\ntrain: a\nnames: [x]").error().code, Code::kUnimplemented);
}

TEST(YoloLabels, NumbersThatAreTooSmallAre0) {
  YoloLabels labels;
  ASSERT_TRUE(
      ParseYoloLabels("0 1e-400 1E-400 1e-4000 0.5\n", "a.txt", {.classes = 1}, labels).ok());
  EXPECT_THAT(labels.boxes, ElementsAre(0, 0, 0, 0.5));
  for (const char* const large : {"1e400", "1E400", "1E+400", "-1E-400x"}) {
    const std::string line = "0 0 0 0 " + std::string(large);
    EXPECT_FALSE(ParseYoloLabels(line, "a.txt", {.classes = 1}, labels).ok()) << large;
  }
}

TEST(YoloLabels, AreReadAsByAPlainReader) {
  for (int run = 0; run < testing::Effort(500); ++run) {
    testing::Random random(static_cast<uint32_t>(run));
    YoloLabels expected;
    std::string text;
    for (int i = random.Between(0, 20); i > 0; --i) {
      const int number = random.Between(0, 79);
      text += std::to_string(number);
      expected.classes.push_back(number);
      for (int k = 0; k < 4; ++k) {
        const std::string share = std::to_string(random.Between(0, 1'000'000) * 1e-6);
        text += (random.OneIn(3) ? "  " : " ") + share;
        expected.boxes.push_back(static_cast<float>(std::stod(share)));
      }
      text += random.OneIn(4) ? " \r\n" : "\n";
    }
    YoloLabels labels;
    ASSERT_TRUE(ParseYoloLabels(text, "a.txt", {.classes = 80}, labels).ok());
    EXPECT_EQ(labels.boxes, expected.boxes);
    EXPECT_EQ(labels.classes, expected.classes);
  }
}

}  // namespace
}  // namespace stoker
