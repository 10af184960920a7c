// Every source keeps the promises of io/source/source.h. A new source adds its cases at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "io/annotations/coco.h"
#include "io/annotations/voc.h"
#include "io/annotations/yolo.h"
#include "io/arrow/arrow.h"
#include "io/folder/image_folder.h"
#include "io/folder/masks.h"
#include "io/manifest/manifest.h"
#include "io/memory/arrays.h"
#include "io/memory/records.h"
#include "io/memory/string_rows.h"
#include "io/packed/packed.h"
#include "io/ranges/path_source.h"
#include "io/select/clips.h"
#include "io/select/combine.h"
#include "io/select/sized.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "io/source/source.h"
#include "io/tar/tar.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/images/crop_index_of.h"
#include "tests/testing/samples/make_packed.h"
#include "tests/testing/samples/make_tar.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using testing::PhotoFolder;
using Source = std::shared_ptr<const SampleSource>;

// googletest makes all cases several times in each process, so files are written by `open`.
struct Case {
  const char* name;
  std::function<Source()> open;   // the same samples each time
  std::function<Source()> other;  // samples that differ from them
};
void PrintTo(const Case& shown, std::ostream* out) { *out << shown.name; }

// Everything that a source returns for a sample.
struct Said {
  std::string path;
  uint64_t offset = 0, length = 0;
  std::vector<std::string> further;        // the paths of further pieces
  std::vector<std::vector<uint8_t>> rows;  // by field; empty for images
  int64_t label = 0;
  ImageFacts facts;
  std::vector<uint8_t> crop_index;
  friend bool operator==(const Said&, const Said&) = default;
};

std::vector<uint8_t> RowsOf(const SampleSource& source, size_t field,
                            const std::vector<uint64_t>& ids) {
  std::vector<uint8_t> rows(ids.size() * source.fields()[field].row_bytes());
  source.FixedRows(field, ids, rows.data());
  return rows;
}

// The part that equal samples have in common: for a string its bytes, wherever they are.
std::vector<uint8_t> ContentOf(const SampleSource& source, size_t field, uint64_t id) {
  if (!IsString(source.fields()[field].dtype)) return RowsOf(source, field, {id});
  std::string_view text;
  source.FixedRows(field, {&id, 1}, &text);
  return {text.begin(), text.end()};
}

Said AskAbout(const SampleSource& source, uint64_t id) {
  Said said;
  const ByteRange range = source.RangeOf(id);
  source.PathOf(range.file, said.path);
  said.offset = range.offset;
  said.length = range.length;
  for (size_t piece = 1; piece < source.PiecesOf(id); ++piece) {
    source.PathOf(source.RangeOfPiece(id, piece).file, said.further.emplace_back());
  }
  said.rows.resize(source.fields().size());
  for (size_t field = 0; field < source.fields().size(); ++field) {
    if (source.fields()[field].kind == Field::Kind::kFixed) {
      said.rows[field] = ContentOf(source, field, id);
    } else if (source.fields()[field].is_of_objects()) {
      const std::span<const uint8_t> rows = source.View(field, id);
      said.rows[field].assign(rows.begin(), rows.end());
    }
  }
  said.label = source.LabelOf(id);
  said.facts = source.FactsOf(id);
  said.crop_index = testing::CropIndexOf(source, id, 1 << 20);
  return said;
}

// Checks that the range is inside its file.
void CheckRange(const SampleSource& source, const ByteRange& range) {
  std::string path(1000, 'x');
  EXPECT_LT(range.file, source.files());
  source.PathOf(range.file, path);
  ASSERT_TRUE(std::filesystem::is_regular_file(path)) << path;
  const uint64_t bytes = std::filesystem::file_size(path);
  EXPECT_LE(range.offset, bytes);
  if (range.length == kUnknownLength) {
    EXPECT_EQ(range.offset, 0u);
  } else {
    EXPECT_LE(range.length, bytes - range.offset);
  }
}

std::vector<Said> AskAboutAll(const SampleSource& source) {
  std::vector<Said> all;
  for (uint64_t id = 0; id < source.size(); ++id) all.push_back(AskAbout(source, id));
  return all;
}

class SourceContract : public ::testing::TestWithParam<Case> {
 protected:
  const Source source_ = GetParam().open();
};

TEST_P(SourceContract, FieldsAreConsistent) {
  ASSERT_GT(source_->size(), 2u) << "the cases must have samples to compare";
  const std::span<const Field> fields = source_->fields();
  ASSERT_FALSE(fields.empty());
  std::set<std::string> names;
  size_t labels = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    EXPECT_FALSE(fields[i].name.empty());
    EXPECT_TRUE(names.insert(fields[i].name).second) << fields[i].name << " occurs twice";
    if (fields[i].is_label) {
      ++labels;
      EXPECT_EQ(source_->label(), i);
    }
    if (fields[i].is_encoded()) {
      EXPECT_LT(i, source_->encoded_fields()) << "encoded fields come first";
      EXPECT_TRUE(i > 0 || fields[i].kind == Field::Kind::kImage);
      EXPECT_FALSE(fields[i].is_label);
    } else {
      EXPECT_NE(fields[i].row_bytes(), 0u);
    }
  }
  EXPECT_EQ(source_->label() ? 1u : 0u, labels);
  EXPECT_EQ(fields[0].kind == Field::Kind::kImage, !source_->in_memory());
  EXPECT_EQ(source_->fields().data(), fields.data()) << "fields do not change";
}

// Returns the field of objects whose values are classes; null if there is none.
const Field* ObjectLabels(const SampleSource& source) {
  const auto found = std::ranges::find_if(source.fields(), [](const Field& field) {
    return field.name == "labels" && field.kind == Field::Kind::kObject;
  });
  return found == source.fields().end() || source.label() ? nullptr : &*found;
}

void CheckObjectLabels(const SampleSource& source, const Field& labels) {
  const auto field = static_cast<size_t>(&labels - source.fields().data());
  for (uint64_t id = 0; id < source.size(); ++id) {
    EXPECT_EQ(source.LabelOf(id), kNoLabel);
    const std::span<const uint8_t> rows = source.View(field, id);
    for (size_t at = 0; at < rows.size(); at += labels.row_bytes()) {
      const int64_t label = labels.ClassNumberIn(rows.data() + at);
      EXPECT_GE(label, 0);
      EXPECT_LT(label, static_cast<int64_t>(source.classes().size()));
    }
  }
}

TEST_P(SourceContract, ObjectsAreTheSameInAllFields) {
  uint32_t most = 0;
  for (uint64_t id = 0; id < source_->size(); ++id) {
    std::optional<size_t> objects;
    for (size_t field = 0; field < source_->fields().size(); ++field) {
      const Field& of = source_->fields()[field];
      if (!of.is_of_objects()) continue;
      const std::span<const uint8_t> rows = source_->View(field, id);
      EXPECT_EQ(rows.size() % of.row_bytes(), 0u);
      const size_t theirs = rows.size() / of.row_bytes();
      EXPECT_EQ(theirs, objects.value_or(theirs));
      objects = theirs;
    }
    most = std::max(most, static_cast<uint32_t>(objects.value_or(0)));
  }
  EXPECT_LE(most, source_->max_objects());
}

TEST_P(SourceContract, LabelsOfClassesAreTheirNumbers) {
  const std::vector<std::string>& classes = source_->classes();
  EXPECT_TRUE(source_->label() || ObjectLabels(*source_) != nullptr || classes.empty());
  if (const Field* const labels = ObjectLabels(*source_); labels != nullptr && !classes.empty()) {
    CheckObjectLabels(*source_, *labels);
    return;
  }
  for (uint64_t id = 0; id < source_->size(); ++id) {
    const int64_t label = source_->LabelOf(id);
    EXPECT_TRUE(source_->label() || label == kNoLabel);
    if (classes.empty()) continue;
    EXPECT_GE(label, 0);
    EXPECT_LT(label, static_cast<int64_t>(classes.size()));
  }
}

TEST_P(SourceContract, FixedRowsAreTheSameOneByOneAndTogether) {
  std::vector<uint64_t> ids;  // backwards, and some twice
  for (uint64_t id = source_->size(); id > 0; --id) ids.push_back(id - 1);
  ids.push_back(0);
  ids.push_back(source_->size() - 1);
  for (size_t field = 0; field < source_->fields().size(); ++field) {
    if (source_->fields()[field].kind != Field::Kind::kFixed) continue;
    const size_t bytes = source_->fields()[field].row_bytes();
    for (const uint8_t before : {0x00, 0xa5}) {
      std::vector<uint8_t> rows((ids.size() + 1) * bytes, before);
      source_->FixedRows(field, ids, rows.data());
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto row = std::span(rows).subspan(i * bytes, bytes);
        EXPECT_THAT(RowsOf(*source_, field, {ids[i]}), ::testing::ElementsAreArray(row))
            << "sample " << ids[i];
      }
      EXPECT_THAT(std::span(rows).last(bytes), ::testing::Each(before)) << "nothing behind them";
      source_->FixedRows(field, {}, rows.data());
    }
  }
}

TEST_P(SourceContract, ViewsShowTheFixedRows) {
  for (size_t field = 0; field < source_->fields().size(); ++field) {
    if (source_->fields()[field].kind != Field::Kind::kFixed) continue;
    for (uint64_t id = 0; id < source_->size(); ++id) {
      const std::span<const uint8_t> view = source_->View(field, id);
      if (view.empty()) {
        EXPECT_NE(field, 0u) << "transforms read images where they are";
      } else {
        EXPECT_THAT(view, ::testing::ElementsAreArray(RowsOf(*source_, field, {id})));
      }
    }
  }
}

TEST_P(SourceContract, ImagesAreInFiles) {
  std::string path(1000, 'x');
  for (uint64_t id = 0; id < source_->size(); ++id) {
    const ByteRange range = source_->RangeOf(id);
    if (source_->in_memory()) {
      EXPECT_LT(range.file, source_->files());
      source_->PathOf(range.file, path);
      EXPECT_EQ(path, "");
      continue;
    }
    EXPECT_LE(source_->PiecesOf(id), source_->pieces());
    if (source_->PiecesOf(id) == 0 && !source_->has_records()) {
      EXPECT_LT(range.file, source_->files());
      EXPECT_EQ(range.length, 0u);
      source_->PathOf(range.file, path);
      if (source_->Describe().starts_with("tar(")) {
        EXPECT_TRUE(path.ends_with(".tar") && std::filesystem::is_regular_file(path)) << path;
      } else {
        EXPECT_EQ(path, "");
      }
      EXPECT_EQ(source_->FactsOf(id), ImageFacts());
      continue;
    }
    CheckRange(*source_, range);
    for (size_t piece = 1; piece < source_->PiecesOf(id); ++piece) {
      const ByteRange further = source_->RangeOfPiece(id, piece);
      CheckRange(*source_, further);
      EXPECT_TRUE(further.file != range.file || further.offset != range.offset);
    }
  }
}

TEST_P(SourceContract, SeveralPiecesAreNotCalled) {
  if (source_->pieces() > 1) {
    EXPECT_EQ(source_->calls(), 0);
  }
}

std::vector<uint8_t> BytesOf(const SampleSource& source, const ByteRange& range) {
  std::string path;
  source.PathOf(range.file, path);
  const std::string bytes = testing::BytesOfFile(path).substr(range.offset, range.length);
  return {bytes.begin(), bytes.end()};
}

// Records of further pieces are unpacked as the first one's are: the image is a part of each.
TEST_P(SourceContract, RecordsOfFurtherPiecesAreUnpacked) {
  if (!source_->has_records() || source_->pieces() < 2) return;
  for (uint64_t id = 0; id < source_->size(); ++id) {
    for (size_t piece = 1; piece < source_->PiecesOf(id); ++piece) {
      const std::vector<uint8_t> record = BytesOf(*source_, source_->RangeOfPiece(id, piece));
      const auto image = source_->UnpackPiece(id, piece, record);
      ASSERT_TRUE(image.ok()) << image.error().Message();
      EXPECT_LE(image->size(), record.size());
      EXPECT_GE(image->data(), record.data());
      EXPECT_LE(image->data() + image->size(), record.data() + record.size());
    }
  }
}

TEST_P(SourceContract, PiecesAreNumberedFieldByField) {
  size_t piece = 0;
  for (size_t field = 0; field < source_->encoded_fields(); ++field) {
    for (size_t image = 0; image < source_->fields()[field].images(); ++image, ++piece) {
      EXPECT_EQ(source_->PlaceOf(piece).field, field);
      EXPECT_EQ(source_->PlaceOf(piece).image, image);
    }
  }
  EXPECT_EQ(piece, source_->pieces());
}

TEST_P(SourceContract, ThreadsAreToldTheSame) {
  const std::vector<Said> expected = AskAboutAll(*source_);
  std::array<std::vector<Said>, 4> told;
  {
    std::vector<std::jthread> threads;
    for (std::vector<Said>& mine : told) {
      threads.emplace_back([this, &mine] { mine = AskAboutAll(*source_); });
    }
  }
  for (const std::vector<Said>& theirs : told) EXPECT_TRUE(theirs == expected);
}

TEST_P(SourceContract, AnotherOpeningIsTheSame) {
  const Source again = GetParam().open();
  EXPECT_EQ(again->size(), source_->size());
  EXPECT_EQ(again->classes(), source_->classes());
  EXPECT_EQ(again->Describe(), source_->Describe());
  EXPECT_TRUE(AskAboutAll(*again) == AskAboutAll(*source_));
  EXPECT_NE(source_->Fingerprint(), 0u);
  EXPECT_EQ(again->Fingerprint(), source_->Fingerprint());
  EXPECT_EQ(source_->Fingerprint(), source_->Fingerprint());
  EXPECT_NE(GetParam().other()->Fingerprint(), source_->Fingerprint());
}

TEST_P(SourceContract, MemoryDoesNotGrowWithUse) {
  const uint64_t before = source_->memory_bytes();
  EXPECT_GT(before, 0u);
  EXPECT_LT(before, 4096 + 200 * source_->size());
  (void)AskAboutAll(*source_);
  (void)source_->Fingerprint();
  EXPECT_EQ(source_->memory_bytes(), before);
}

// ---- The cases

const PhotoFolder& Photos() {
  static const PhotoFolder photos(12, 3);
  return photos;
}

Case NestedFolder() {
  return {"image_folder", [] { return ImageFolder(Photos().path()).value(); },
          [] {
            const PhotoFolder fewer(11, 3);
            return ImageFolder(fewer.path()).value();
          }};
}

Case FlatFolder() {
  const auto open = [](const char* folder) {
    return ImageFolder(Photos().path() + "/" + folder).value();
  };
  return {"flat_image_folder", [open] { return open("class0"); },
          [open] { return open("class1"); }};
}

// Arrays that own their elements.
Source ArraysOf(DType dtype, int64_t stride, bool with_labels, uint8_t first) {
  constexpr uint64_t kSamples = 9;
  constexpr int64_t kImageBytes = 12;
  struct Elements {
    std::vector<uint8_t> images, labels;
  };
  const auto elements = std::make_shared<Elements>();
  elements->images.resize(2 * kSamples * kImageBytes);
  elements->labels.resize(kSamples * SizeOf(dtype));
  for (uint8_t& value : elements->images) value = first++;
  for (size_t i = 0; i < elements->labels.size(); i += SizeOf(dtype)) {
    elements->labels[i] = static_cast<uint8_t>(i * 5 % 7);
  }
  const uint8_t* const row0 =
      elements->images.data() + (stride < 0 ? (kSamples - 1) * kImageBytes : 0);
  std::vector<ArrayColumn> columns{{"image", DType::kU8, {2, 2, 3}, row0, kSamples, stride}};
  if (with_labels) columns.push_back({"label", dtype, {}, elements->labels.data(), kSamples});
  return Arrays(std::move(columns), elements).value();
}

Case ArraysCase(const char* name, DType dtype, int64_t stride, bool with_labels = true) {
  return {name, [=] { return ArraysOf(dtype, stride, with_labels, 0); },
          [=] { return ArraysOf(dtype, stride, with_labels, 1); }};
}

// A folder's files, listed backwards, with labels and another column.
Source FilesOf(uint64_t paths, bool with_columns, uint8_t first) {
  static const Source folder = ImageFolder(Photos().path()).value();
  struct Elements {
    std::vector<uint8_t> labels;
    std::vector<double> places;
    StringRows captions;
  };
  const auto elements = std::make_shared<Elements>();
  PathTable listed;
  std::string path;
  for (uint64_t id = paths; id > 0; --id) {
    folder->PathOf(folder->RangeOf(id - 1).file, path);
    listed.Add(path);
    elements->labels.push_back(static_cast<uint8_t>((id + first) % 5));
    elements->captions.Add("photo " + std::to_string(id + first));
    elements->places.insert(elements->places.end(), {static_cast<double>(id), 0.5});
  }
  FilesOptions options;
  if (with_columns) {
    options.columns = {{"label", DType::kU8, {}, elements->labels.data(), paths},
                       {"place", DType::kF64, {2}, elements->places.data(), paths},
                       elements->captions.Column("caption", DType::kString)};
    options.class_names = {"a", "b", "c", "d", "e"};
    options.owner = elements;
  }
  return Files(std::move(listed), std::move(options)).value();
}

Case FilesWithColumns() {
  return {"files_with_columns", [] { return FilesOf(12, true, 0); },
          [] { return FilesOf(12, true, 1); }};
}

Case FilesAlone() {
  return {"files_alone", [] { return FilesOf(12, false, 0); },
          [] { return FilesOf(11, false, 0); }};
}

// A folder's files in lists of 0 to 3.
Source FilesOfLists(bool moved) {
  const Source folder = ImageFolder(Photos().path()).value();
  PathTable listed;
  std::string path;
  for (uint64_t id = 0; id < folder->size(); ++id) {
    folder->PathOf(folder->RangeOf(id).file, path);
    listed.Add(path);
  }
  return Files(std::move(listed),
               {.images = ImageNumbers({0, moved ? 2u : 3u, 4, 4, 6, 9, 12, 12})})
      .value();
}

Case ListsOfFiles() {
  return {"lists_of_files", [] { return FilesOfLists(false); }, [] { return FilesOfLists(true); }};
}

// A folder's files with two others in each sample, and with labels.
Source FilesWithFurther(bool turned) {
  const Source folder = ImageFolder(Photos().path()).value();
  static const std::array<uint8_t, 12> labels{3, 1, 2};
  PathTable listed, masks, right;
  std::string path;
  for (uint64_t id = 0; id < folder->size(); ++id) {
    const auto add = [&](uint64_t of, PathTable& to) {
      folder->PathOf(folder->RangeOf(of % folder->size()).file, path);
      to.Add(path);
    };
    add(id, listed);
    add(id + 1, turned ? right : masks);
    add(id + 2, turned ? masks : right);
  }
  FilesOptions options{.columns = {{"label", DType::kU8, {}, labels.data(), folder->size()}}};
  options.further.push_back({.name = "mask", .fill = 255, .paths = std::move(masks)});
  options.further.push_back(
      {.name = "right", .kind = Field::Kind::kImage, .paths = std::move(right)});
  return Files(std::move(listed), std::move(options)).value();
}

Case FilesWithFurtherImages() {
  return {"files_with_further_images", [] { return FilesWithFurther(false); },
          [] { return FilesWithFurther(true); }};
}

// Images and masks in one tree.
Case MasksCase() {
  const auto open = [](uint8_t fill) {
    static const testing::TempFolder folder;
    for (const char* const name : {"a", "b/c", "b/d", "e"}) {
      std::filesystem::create_directories(folder.path() + "/b");
      folder.Write(std::string(name) + ".jpg", "image");
      folder.Write(std::string(name) + "_mask.png", "mask");
    }
    return Masks(folder.path(), folder.path(), {.suffix = "_mask", .fill = fill}).value();
  };
  return {"masks", [open] { return open(0); }, [open] { return open(255); }};
}

// Boxes of images in one folder.
Case CocoCase() {
  const auto open = [](int category) {
    static const testing::TempFolder folder;
    std::string images, objects;
    for (int i = 1; i < 6; ++i) {
      const std::string id = std::to_string(i);
      folder.Write(id + ".jpg", "image");
      images += (i == 1 ? "" : ",") + (R"({"id": )" + id + R"(, "file_name": ")" + id + ".jpg\"}");
      objects += (i == 1 ? "" : ",") + (R"({"id": )" + id + R"(, "image_id": )") +
                 std::to_string(i / 2 + 1) + R"(, "bbox": [1, 2, 3, 4], "category_id": )" +
                 std::to_string(category) + "}";
    }
    folder.Write("a.json", R"({"images": [)" + images + R"(], "annotations": [)" + objects +
                               R"(], "categories": [{"id": 1, "name": "cat"},
                                                    {"id": 3, "name": "dog"}]})");
    return Coco(folder.Path("a.json"), folder.path()).value();
  };
  return {"coco", [open] { return open(1); }, [open] { return open(3); }};
}

Case YoloCase() {
  const auto open = [](const std::string& category) {
    static const testing::TempFolder folder;
    for (const char* const name : {"images", "labels"}) {
      std::filesystem::create_directories(folder.Path(name));
    }
    for (const char* const name : {"a", "b", "c"}) {
      folder.Write("images/" + std::string(name) + ".jpg", "image");
    }
    folder.Write("labels/b.txt", "1 0.5 0.5 1 1\n" + category + " 0 0 0.25 0.25\n");
    folder.Write("data.yaml", "train: images\nnames: [cat, dog]\n");
    return Yolo(folder.Path("data.yaml"), "train").value();
  };
  return {"yolo", [open] { return open("0"); }, [open] { return open("1"); }};
}

Case VocCase() {
  const auto open = [](const std::string& category) {
    static const testing::TempFolder folder;
    for (const char* const name : {"JPEGImages", "Annotations", "ImageSets/Main"}) {
      std::filesystem::create_directories(folder.Path(name));
    }
    std::string list;
    for (int i = 0; i < 4; ++i) {
      const std::string name = std::to_string(i);
      list += name + "\n";
      folder.Write("JPEGImages/" + name + ".jpg", "image");
      std::string objects;
      for (int k = 0; k < i; ++k) {
        objects += "<object><name>" + category +
                   "</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax>"
                   "</bndbox></object>";
      }
      folder.Write("Annotations/" + name + ".xml",
                   "<annotation><size><width>9</width><height>9</height></size>" + objects +
                       "</annotation>");
    }
    folder.Write("ImageSets/Main/train.txt", list);
    return Voc(folder.path()).value();
  };
  return {"voc", [open] { return open("cat"); }, [open] { return open("dog"); }};
}

// Two files of records, with a header.
Source RecordsFrom(char first) {
  std::vector<std::string> paths;
  for (const char* name : {"a", "b"}) {
    paths.push_back(Photos().path() + "/" + name + first);
    std::ofstream(paths.back(), std::ios::binary) << "header" << first << "1234"
                                                  << "b5678";
  }
  return Records(paths,
                 {{.name = "label", .dtype = DType::kU8},
                  {.name = "image", .dtype = DType::kI16, .row_shape = {2}}},
                 6)
      .value();
}

Case RecordFiles() {
  return {"records", [] { return RecordsFrom('a'); }, [] { return RecordsFrom('c'); }};
}

// Three archives of four samples each.
Source TarsOf(const char* name, bool with_labels, int first) {
  static const testing::TempFolder folder;
  for (int shard = 0; shard < 3; ++shard) {
    std::string archive;
    for (int i = 0; i < 4; ++i) {
      const std::string key = "train/" + std::to_string(4 * shard + i);
      archive += testing::TarFile(key + ".jpg", std::string(static_cast<size_t>(100 * i), 'x'));
      if (with_labels) archive += testing::TarFile(key + ".cls", std::to_string(first + i));
    }
    folder.Write(name + std::to_string(shard) + ".tar", archive + testing::TarEnd());
  }
  return Tar(folder.path() + "/" + name + "{0..2}.tar").value();
}

Case TarsWithLabels() {
  return {"tars_with_labels", [] { return TarsOf("labelled", true, -1); },
          [] { return TarsOf("others", true, 0); }};
}

Case TarsAlone() {
  return {"tars_alone", [] { return TarsOf("alone", false, 0); },
          [] { return TarsOf("other", true, 0); }};
}

// Three archives, the first without samples. Samples have 3, 0 and 1 images, whose members are not
// in the order of their numbers.
Case TarsOfImages() {
  const auto open = [](const char* name, const char* moved) {
    static const testing::TempFolder folder;
    folder.Write(std::string(name) + "0.tar", testing::TarEnd());
    for (const char* shard : {"1", "2"}) {
      std::string archive;
      for (const char* member :
           {"a.2.png", "a.0.jpg", "a.txt", "a.1.jpg", "b.txt", moved, "c.txt"}) {
        archive += testing::TarFile(member, std::string(shard) + member);
      }
      folder.Write(name + std::string(shard) + ".tar", archive + testing::TarEnd());
    }
    return Tar(folder.path() + "/" + name + "{0..2}.tar",
               {.image = "*.jpg;*.png", .label = "", .columns = {{"text", ".txt"}}})
        .value();
  };
  return {"tars_of_images", [open] { return open("images", "c.0.jpg"); },
          [open] { return open("others", "c.00.png"); }};
}

// A manifest in a folder, which has classes, numbers and text, and differs in its last value.
Case ManifestCase() {
  const auto open = [](const char* name, const char* last) {
    const std::string path = Photos().path() + "/" + name;
    std::ofstream file(path);
    file << "path,label,age,words\n";
    const Source folder = ImageFolder(Photos().path()).value();
    std::string image;
    for (uint64_t id = 0; id < folder->size(); ++id) {
      folder->PathOf(folder->RangeOf(id).file, image);
      const std::string below = image.substr(Photos().path().size() + 1);
      file << below << "," << below.substr(0, below.find('/')) << "," << 2 * id << ",\"" << id
           << ", " << (id + 1 == folder->size() ? last : "other") << "\"\n";
    }
    file.close();
    return Manifest(path).value();
  };
  return {"manifest", [open] { return open("a.csv", "last"); },
          [open] { return open("b.csv", "very last"); }};
}

// JSON lines with vectors.
Case JsonManifestCase() {
  const auto open = [](const char* name, const char* last) {
    const std::string path = Photos().path() + "/" + name;
    std::ofstream file(path);
    const Source folder = ImageFolder(Photos().path()).value();
    std::string image;
    for (uint64_t id = 0; id < folder->size(); ++id) {
      folder->PathOf(folder->RangeOf(id).file, image);
      file << R"({"path": ")" << image << R"(", "place": [)" << id << ", "
           << (id + 1 == folder->size() ? last : "0.25") << "]}\n";
    }
    file.close();
    return Manifest(path).value();
  };
  return {"json_manifest", [open] { return open("a.jsonl", "0.5"); },
          [open] { return open("b.jsonl", "0.75"); }};
}

// Files of four, no and one record.
Source RecordsOf(const char* name, const std::string& label, int first) {
  static const testing::TempFolder folder;
  for (const int count : {4, 0, 1}) {
    std::string records;
    for (int i = 0; i < count; ++i) {
      records += testing::ImageRecord(std::string(static_cast<size_t>(100 * i), 'x'), first + i);
    }
    folder.Write(name + std::to_string(count), records);
  }
  return TfRecord(folder.path() + "/" + name + "?", {.label = label}).value();
}

Case RecordsWithLabels() {
  return {"tfrecords", [] { return RecordsOf("labelled", kTfRecordLabel, -1); },
          [] { return RecordsOf("others", kTfRecordLabel, 0); }};
}

Case RecordsAlone() {
  return {"tfrecords_alone", [] { return RecordsOf("alone", "", 0); },
          [] { return RecordsOf("labelled", kTfRecordLabel, 0); }};
}

Source ArrowFile(const char* name, const ArrowOptions& options = {}) {
  return Arrow(std::string(STOKER_ARROW_FILES) + "/" + name, options).value();
}

Source PackedSetOf(const char* name, const testing::NamedFiles& files,
                   const std::vector<packed_set::PieceField>& fields = {}) {
  static const testing::TempFolder folder;
  if (std::filesystem::create_directory(folder.Path(name))) {
    testing::MakePackedSet(folder.Path(name), files, 2, fields);
  }
  return Packed(folder.Path(name)).value();
}

Case PackedSets() {
  const testing::NamedFiles one = {
      {"a/1.jpg", "1"}, {"a/2.jpg", "22"}, {"b/1.jpg", "333"}, {"c/d/1.jpg", ""}};
  const testing::NamedFiles other = {{"a/1.jpg", "1"}, {"a/2.jpg", "22"}, {"b/2.jpg", "333"}};
  return {"packed", [one] { return PackedSetOf("one", one); },
          [other] { return PackedSetOf("other", other); }};
}

Case PackedPairs() {
  const testing::NamedFiles one = {{"a/1.jpg", "1"}, {"a/1.png", "mask"}, {"2.jpg", "22"},
                                   {"2.png", ""},    {"b/c/1.jpg", ""},   {"3.png", "3"}};
  testing::NamedFiles other = one;
  other.back().first = "4.png";
  const auto open = [](const char* name, const testing::NamedFiles& files) {
    return PackedSetOf(name, files, testing::ImageAndMask());
  };
  return {"packed_pairs", [=] { return open("pairs", one); },
          [=] { return open("other_pairs", other); }};
}

Case ArrowWithLabels() {
  return {"arrow", [] { return ArrowFile("labelled"); }, [] { return ArrowFile("others"); }};
}

Case ArrowWithColumns() {
  const auto open = [](const char* last) {
    return ArrowFile("columns", {.columns = {"flags", "matrix", last}});
  };
  return {"arrow_columns", [open] { return open("flag"); }, [open] { return open("half"); }};
}

Case ArrowWithLists() {
  return {"arrow_lists", [] { return ArrowFile("lists", {.columns = {"text"}}); },
          [] { return ArrowFile("lists_null"); }};
}

INSTANTIATE_TEST_SUITE_P(Sources, SourceContract,
                         ::testing::Values(NestedFolder(), FlatFolder(), FilesWithColumns(),
                                           FilesAlone(), ListsOfFiles(), FilesWithFurtherImages(),
                                           MasksCase(), CocoCase(), YoloCase(), RecordFiles(),
                                           ManifestCase(), JsonManifestCase(), TarsWithLabels(),
                                           TarsAlone(), TarsOfImages(), RecordsWithLabels(),
                                           RecordsAlone(), PackedSets(), PackedPairs(),
                                           ArrowWithLabels(), ArrowWithColumns(), ArrowWithLists(),
                                           ArraysCase("arrays_i64", DType::kI64, 12),
                                           ArraysCase("arrays_u8_apart", DType::kU8, 24),
                                           ArraysCase("arrays_i16_backwards", DType::kI16, -12),
                                           ArraysCase("arrays_f32_labels", DType::kF32, 12),
                                           ArraysCase("arrays_repeated", DType::kI64, 0),
                                           ArraysCase("arrays_alone", DType::kI64, 12, false)),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Sources made from others

Case SizedCase(const char* name, const Case& of) {
  const auto sized = [](const Source& source) {
    const uint64_t images = NumberImages(*source).Begin(source->size());
    return Sized(source, std::vector<ImageSize>(images, ImageSize{640, 480})).value();
  };
  return {name, [=] { return sized(of.open()); }, [=] { return sized(of.other()); }};
}

// Samples of another case, some of them twice.
Case SubsetOf(const char* name, const Case& of) {
  const auto choose = [](const Source& source) {
    const uint64_t last = source->size() - 1;
    return Subset(source, std::vector<uint64_t>{last, 0, 1, last}).value();
  };
  return {name, [=] { return choose(of.open()); }, [=] { return choose(of.other()); }};
}

// Samples of several cases.
Case CombinationOf(const char* name, const std::vector<Case>& of) {
  const auto combine = [of](bool other) {
    std::vector<Source> sources;
    for (const Case& one : of) sources.push_back(other ? one.other() : one.open());
    return Combine(std::move(sources)).value();
  };
  return {name, [=] { return combine(false); }, [=] { return combine(true); }};
}

// Returns `of` in an order of its own; the others are in another order.
Case BalancedCase(const char* name, const Case& of) {
  return {name, [=] { return Balanced(of.open()).value(); },
          [=] { return Balanced(of.open(), {.samples = 5}).value(); }};
}

Case WeightedCase(const char* name, const Case& of) {
  const auto weigh = [of](double first) {
    const Source source = of.open();
    std::vector<double> weights(source->size(), 1.0);
    weights[0] = first;
    return Weighted(source, weights).value();
  };
  return {name, [=] { return weigh(2); }, [=] { return weigh(3); }};
}

Case RepeatedCase(const char* name, const Case& of) {
  return {name, [=] { return Repeated(of.open(), 3).value(); },
          [=] { return Repeated(of.open(), 2).value(); }};
}

// Clips of a few frames; the others differ in their stride.
Case ClipsCase(const char* name, const std::vector<Case>& of) {
  const auto cut = [of](uint32_t stride) {
    std::vector<Camera> cameras;
    for (const Case& one : of) cameras.push_back({one.name, one.open()});
    return Clips(std::move(cameras), {.frames = 2, .stride = stride}).value();
  };
  return {name, [=] { return cut(1); }, [=] { return cut(2); }};
}

// A source of two pieces that forgets to unpack the second one.
class PairOfRecords final : public SampleSource {
 public:
  explicit PairOfRecords(bool has_records) : has_records_(has_records) {}
  uint64_t size() const override { return 1; }
  std::span<const Field> fields() const override { return fields_; }
  bool has_records() const override { return has_records_; }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t /*file*/, std::string& path) const override { path = "a"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "pair"; }

 private:
  const bool has_records_;
  const std::vector<Field> fields_{{.name = "image", .kind = Field::Kind::kImage, .count = 2}};
  const std::vector<std::string> classes_;
};

TEST(SampleSource, ARecordIsNotTakenForTheImageOfAFurtherPiece) {
  const std::vector<uint8_t> bytes(9);
  EXPECT_EQ(PairOfRecords(false).UnpackPiece(0, 1, bytes).value().data(), bytes.data());
  const Error error = PairOfRecords(true).UnpackPiece(0, 1, bytes).error();
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "pair has several records a sample, and unpacks the first alone");
}

INSTANTIATE_TEST_SUITE_P(
    Derived, SourceContract,
    ::testing::Values(
        SizedCase("sized_folder", NestedFolder()), SizedCase("sized_files", FilesWithColumns()),
        SizedCase("sized_lists", ListsOfFiles()), SubsetOf("subset_of_lists", ListsOfFiles()),
        CombinationOf("combined_lists", {ListsOfFiles(), ListsOfFiles()}),
        SubsetOf("subset_of_folder", NestedFolder()),
        SubsetOf("subset_of_files", FilesWithColumns()), SubsetOf("subset_of_masks", MasksCase()),
        CombinationOf("combined_masks", {MasksCase(), MasksCase()}),
        SubsetOf("subset_of_coco", CocoCase()), SubsetOf("subset_of_yolo", YoloCase()),
        SubsetOf("subset_of_voc", VocCase()),
        CombinationOf("combined_coco", {CocoCase(), CocoCase()}),
        RepeatedCase("repeated_files", FilesWithFurtherImages()),
        SubsetOf("subset_of_arrays", ArraysCase("", DType::kU8, 24)),
        CombinationOf("combined_folders", {NestedFolder(), NestedFolder()}),
        CombinationOf("combined_files", {FilesWithColumns(), FilesWithColumns()}),
        CombinationOf("combined_arrays",
                      {ArraysCase("", DType::kU8, 24), ArraysCase("", DType::kU8, -12)}),
        SubsetOf("subset_of_packed", PackedSets()),
        SubsetOf("subset_of_packed_pairs", PackedPairs()),
        CombinationOf("combined_packed", {PackedSets(), PackedSets()}),
        ClipsCase("clips_of_packed", {PackedSets()}),
        ClipsCase("clips_of_cameras", {FilesWithColumns(), NestedFolder()}),
        SubsetOf("subset_of_clips", ClipsCase("", {NestedFolder()})),
        CombinationOf("combined_clips",
                      {ClipsCase("", {NestedFolder()}), ClipsCase("", {NestedFolder()})}),
        WeightedCase("weighted_folder", NestedFolder()),
        BalancedCase("balanced_files", FilesWithColumns()),
        RepeatedCase("repeated_arrays", ArraysCase("", DType::kI64, 12))),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace stoker
