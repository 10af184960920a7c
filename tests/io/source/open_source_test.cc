#include "io/open_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "io/annotations/coco.h"
#include "io/annotations/voc.h"
#include "io/annotations/yolo.h"
#include "io/folder/image_folder.h"
#include "io/folder/masks.h"
#include "io/manifest/manifest.h"
#include "io/tar/tar.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

TEST(OpenSource, MatchesImageFolder) {
  const testing::PhotoFolder photos(6, 2);
  const auto opened = OpenSource("image_folder", {{"directory", photos.path()}});
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ((*opened)->size(), 6U);
  EXPECT_EQ((*opened)->Fingerprint(), ImageFolder(photos.path()).value()->Fingerprint());
  const auto without =
      OpenSource("image_folder", {{"directory", photos.path()}, {"crop_index", "/no/such/index"}});
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.error().code, Code::kNotFound);
}

TEST(OpenSource, MatchesMasks) {
  const testing::TempFolder folder;
  folder.Write("i/a.jpg", "x");
  folder.Write("m/a_m.png", "x");
  SourceArguments given{
      {"images", folder.Path("i")}, {"masks", folder.Path("m")}, {"suffix", "_m"}, {"fill", "255"}};
  const auto opened = OpenSource("masks", given);
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ((*opened)->fields()[1].fill, 255);
  EXPECT_EQ((*opened)->Fingerprint(),
            Masks(folder.Path("i"), folder.Path("m"), {.suffix = "_m", .fill = 255})
                .value()
                ->Fingerprint());
  for (const char* const wrong : {"256", "-1", "", "1x", "0.5"}) {
    given["fill"] = wrong;
    const auto refused = OpenSource("masks", given);
    ASSERT_FALSE(refused.ok()) << wrong;
    EXPECT_EQ(refused.error().cause, "fill is not a number from 0 to 255");
  }
  given["dtype"] = "uint16";
  given["fill"] = "65535";
  const auto wide = OpenSource("masks", given);
  ASSERT_TRUE(wide.ok()) << wide.error().ToString();
  EXPECT_EQ((*wide)->fields()[1].dtype, DType::kU16);
  EXPECT_EQ((*wide)->fields()[1].fill, 65535);
  given["fill"] = "65536";
  EXPECT_EQ(OpenSource("masks", given).error().cause, "fill is not a number from 0 to 65535");
  given["dtype"] = "int8";
  EXPECT_EQ(OpenSource("masks", given).error().cause, "dtype is neither uint8 nor uint16");
}

TEST(OpenSource, MatchesCoco) {
  const testing::TempFolder folder;
  folder.Write("a.json", R"({"images": [{"id": 1, "file_name": "a"}, {"id": 2, "file_name": "b",
    "width": 9, "height": 9}], "annotations": [{"id": 1, "image_id": 2, "category_id": 5, "bbox": [1, 2, 3, 4]}],
    "categories": [{"id": 5, "name": "x"}]})");
  SourceArguments given{{"json", folder.Path("a.json")}, {"images", folder.path()}};
  EXPECT_EQ(OpenSource("coco", given).value()->Fingerprint(),
            Coco(folder.Path("a.json"), folder.path()).value()->Fingerprint());
  given["keep_empty"] = "off";
  given["contiguous_labels"] = "on";
  const auto opened = OpenSource("coco", given).value();
  EXPECT_EQ(opened->size(), 1U);
  EXPECT_EQ(opened->classes(), std::vector<std::string>{"x"});
  EXPECT_FALSE(opened->CheckViewed(0, {8, 8}).ok());
  given["keypoints"] = "off";
  given["check_sizes"] = "off";
  EXPECT_TRUE(OpenSource("coco", given).value()->CheckViewed(0, {8, 8}).ok());
  given["keypoints"] = "on";
  EXPECT_EQ(OpenSource("coco", given).error().cause,
            "not all annotations have the same keypoints: annotation 1 has no 'keypoints'");
  given["keypoints"] = "no";
  EXPECT_EQ(OpenSource("coco", given).error().cause, "keypoints is neither auto nor on nor off");
  given["check_sizes"] = "no";
  EXPECT_EQ(OpenSource("coco", given).error().cause, "check_sizes is neither on nor off");
  given["keep_crowd"] = "no";
  EXPECT_EQ(OpenSource("coco", given).error().cause, "keep_crowd is neither on nor off");
  given["keep_empty"] = "no";
  EXPECT_EQ(OpenSource("coco", given).error().cause, "keep_empty is neither on nor off");
}

TEST(OpenSource, MatchesYolo) {
  const testing::TempFolder folder;
  for (const char* const name : {"images", "labels"}) {
    std::filesystem::create_directory(folder.Path(name));
  }
  folder.Write("images/1.jpg", "x");
  folder.Write("labels/1.txt", "0 0.5 0.5 1 1");
  folder.Write("a.yaml", "names: [x]\ntrain: images\nval: [images, images]\n");
  SourceArguments given{{"data", folder.Path("a.yaml")}};
  EXPECT_EQ(OpenSource("yolo", given).value()->Fingerprint(),
            Yolo(folder.Path("a.yaml"), "train").value()->Fingerprint());
  given["split"] = "val";
  EXPECT_EQ(OpenSource("yolo", given).value()->size(), 2U);
}

TEST(OpenSource, MatchesVoc) {
  const testing::TempFolder folder;
  for (const char* const name :
       {"JPEGImages/1.jpg", "SegmentationClass/1.png", "SegmentationObject/1.png",
        "ImageSets/Segmentation/val.txt", "ImageSets/Main/val.txt", "Annotations/1.xml"}) {
    const std::string path = "VOC2007/" + std::string(name);
    std::filesystem::create_directories(std::filesystem::path(folder.Path(path)).parent_path());
    folder.Write(path, "1");
  }
  folder.Write("VOC2007/Annotations/1.xml", R"(<annotation>
    <size><width>9</width><height>9</height></size><object><name>cat</name><difficult>1</difficult>
    <bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object></annotation>)");
  SourceArguments given{{"root", folder.path()}, {"year", "2007"}, {"split", "val"}};
  VocOptions options{.year = "2007", .split = "val"};
  EXPECT_EQ(OpenSource("voc", given).value()->Fingerprint(),
            Voc(folder.path(), options).value()->Fingerprint());
  given["keep_difficult"] = "off";
  EXPECT_EQ(OpenSource("voc", given).value()->max_objects(), 0U);
  given["keep_difficult"] = "on";
  given["class_names"] = "dog\ncat";
  given["one_based"] = "off";
  given["check_sizes"] = "off";
  const auto opened = OpenSource("voc", given).value();
  EXPECT_EQ(opened->classes(), (std::vector<std::string>{"dog", "cat"}));
  EXPECT_TRUE(opened->CheckViewed(0, {8, 8}).ok());
  options.class_names = opened->classes();
  options.one_based = false;
  EXPECT_EQ(opened->Fingerprint(), Voc(folder.path(), options).value()->Fingerprint());
  given["task"] = "segmentation";
  EXPECT_FALSE(OpenSource("voc", given).ok()) << "options of detection";
  given = {{"root", folder.path()},  {"year", "2007"},    {"split", "val"},
           {"task", "segmentation"}, {"instances", "on"}, {"fill", "7"}};
  const auto masks = OpenSource("voc", given).value();
  ASSERT_EQ(masks->fields().size(), 3U);
  EXPECT_EQ(masks->fields()[2].fill, 7);
  given["fill"] = "256";
  EXPECT_EQ(OpenSource("voc", given).error().cause, "fill is not a number from 0 to 255");
  given["task"] = "keypoints";
  EXPECT_EQ(OpenSource("voc", given).error().cause, "task is neither detection nor segmentation");
}

TEST(OpenSource, MatchesRecords) {
  const testing::PhotoFolder folder(1, 1);
  const std::string one = folder.path() + "/one", two = folder.path() + "/two";
  std::ofstream(one) << "-12";
  std::ofstream(two) << "-3456";
  SourceArguments given{{"paths", one + "\n" + two}, {"record", "label uint8, image uint8 1"}};
  given["offset"] = "1";
  const auto opened = OpenSource("records", given);
  ASSERT_TRUE(opened.ok()) << opened.error().ToString();
  EXPECT_EQ((*opened)->size(), 3U);
  EXPECT_EQ((*opened)->LabelOf(2), '5');
  for (const char* offset : {"", "x", "-1", "1 ", "99999999999999999999"}) {
    given["offset"] = offset;
    EXPECT_EQ(OpenSource("records", given).error().code, Code::kInvalidArgument) << offset;
  }
  given["offset"] = "1";
  given["paths"] = one + "\n" + "two";
  EXPECT_EQ(OpenSource("records", given).error().code, Code::kInvalidArgument) << "not absolute";
  given["paths"] = one;
  given["record"] = "label";
  EXPECT_EQ(OpenSource("records", given).error().code, Code::kInvalidArgument);
}

TEST(OpenSource, MatchesTar) {
  const testing::TempFolder folder;
  const std::string archive =
      folder.Write("a.tar", testing::TarFile("1.jpg", "x") + testing::TarFile("1.png", "yz") +
                                testing::TarEnd());
  const auto opened = OpenSource("tar", {{"shards", archive}});
  EXPECT_EQ(opened.value()->Fingerprint(), Tar(archive).value()->Fingerprint());
  EXPECT_EQ(OpenSource("tar", {{"shards", archive}, {"image", "png"}}).value()->RangeOf(0).length,
            2u);
  const Error error = OpenSource("tar", {{"shards", archive + "::b.tar"}}).error();
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.file, "b.tar");
  const SourceArguments in_root = {{"shards", "{a.tar," + archive + "}"}, {"root", folder.path()}};
  EXPECT_EQ(OpenSource("tar", in_root).value()->size(), 2u);
}

TEST(OpenSource, MatchesManifest) {
  const testing::TempFolder folder;
  const std::string text = "a,\"b,\"\"c\",label,path\n1,2,3,x\n4,5,6,y\n";
  const std::string path = folder.Write("a.csv", text);
  const auto print = [&](SourceArguments arguments) {
    arguments.emplace("path", path);
    return OpenSource("manifest", arguments).value()->Fingerprint();
  };
  const auto expected = [&](const ManifestOptions& options) {
    return Manifest(path, options).value()->Fingerprint();
  };
  EXPECT_EQ(print({}), expected({}));
  EXPECT_EQ(print({{"path_column", "a"}}), expected({.path_column = "a"}));
  EXPECT_EQ(print({{"label_column", ""}}), expected({.label_column = ""}));
  EXPECT_EQ(print({{"label_column", "a"}, {"columns", ""}}),
            expected({.label_column = "a", .columns = {{}}}));
  EXPECT_EQ(print({{"columns", "a"}}), expected({.columns = {{"a"}}}));
  EXPECT_EQ(print({{"columns", "\"b,\"\"c\",a"}}), expected({.columns = {{"b,\"c", "a"}}}));
  EXPECT_NE(print({{"columns", "\"b,\"\"c\",a"}}), expected({.columns = {{"a", "b,\"c"}}}));
  constexpr char kKeyed[] = "m,mask,a,uint16,300\nv,value,path";
  const std::vector<KeyedColumn> keyed = ParseKeyedColumns(kKeyed).value();
  EXPECT_EQ(print({{"keyed_columns", kKeyed}}), expected({.columns = {{}}, .keyed = keyed}));
  EXPECT_NE(print({{"keyed_columns", kKeyed}}), expected({.columns = {{}}}));
  const auto rooted = OpenSource("manifest", {{"path", path}, {"root", "/photos"}}).value();
  std::string image;
  rooted->PathOf(rooted->RangeOf(1).file, image);
  EXPECT_EQ(image, "/photos/y");
  EXPECT_EQ(rooted->Describe(), "manifest(" + path + ")");
  EXPECT_EQ(OpenSource("manifest", {{"path", path}, {"columns", "\"a"}}).error().code,
            Code::kInvalidArgument);
}

TEST(OpenSource, RefusesWhatIsInMemory) {
  EXPECT_EQ(OpenSource("arrays", {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(OpenSource("files", {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(OpenSource("dataset", {}).error().code, Code::kFailedPrecondition);
  EXPECT_EQ(OpenSource("derived", {}).error().code, Code::kFailedPrecondition);
}

TEST(OpenSource, KindsAndArgumentsHaveUniqueNames) {
  std::set<std::string> kinds;
  for (const SourceRow& row : AllSources()) {
    EXPECT_TRUE(kinds.insert(row.kind).second) << row.kind << " occurs twice";
    std::set<std::string> names{"kind", "samples", "fingerprint"};  // the loader spec's own
    for (const SourceArgument& argument : row.arguments) {
      EXPECT_TRUE(names.insert(argument.name).second) << row.kind << "." << argument.name;
    }
  }
}

}  // namespace
}  // namespace stoker
