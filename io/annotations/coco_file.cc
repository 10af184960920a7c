#include "io/annotations/coco_file.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
#include "io/annotations/coco_runs.h"
#include "io/files/json_reader.h"
#include "io/files/text_file.h"

namespace stoker {

namespace {

// The members of an object in the file that have been read.
class Members {
 public:
  explicit Members(const char* what) : what_(what) {}

  // Adds the member whose value comes next.
  Status Add(const JsonReader& reader, unsigned member) {
    if ((seen_ & 1U << member) == 0) {
      seen_ |= 1U << member;
      return {};
    }
    return reader.Refuse("'" + reader.key() + "' occurs twice in " + what_);
  }
  bool has(unsigned member) const { return (seen_ & 1U << member) != 0; }

 private:
  const char* what_;
  unsigned seen_ = 0;
};

class CocoReader {
 public:
  CocoReader(TextFile file, const CocoParts& parts)
      : reader_(std::move(file)), has_keypoints_(parts.keypoints), reads_shapes_(parts.shapes) {}

  Result<CocoFile> Read() {
    TRY(ReadLists());
    TRY(CheckIds(file_.image_ids, "image"));
    TRY(CheckCategories());
    TRY(CheckObjects());
    TRY(CheckRuns());
    return std::move(file_);
  }

 private:
  Status ReadLists();
  Status ReadImage();
  Result<int> ReadSide();
  Status ReadObject();
  Status ReadCategory();
  Status ReadBox(float (&box)[4]);
  Status ReadKeypoints();
  Result<uint8_t> ReadIsCrowd();
  Result<std::string> ReadSegmentation();
  Result<std::string> ReadPolygon();
  Result<std::string> ReadRuns();
  Status CheckRuns() const;
  Status CheckIds(std::span<const int64_t> ids, const char* what) const;
  Status CheckCategories();
  Status CheckSizes(const CocoObject& object, uint64_t begin) const;
  Status CheckObjects() const;

  Result<float> ReadFloat(const char* what) {
    const uint64_t at = reader_.offset();
    ASSIGN_OR_RETURN(const double number, reader_.Number(what));
    const auto value = static_cast<float>(number);
    if (std::isfinite(value)) return value;
    return At(at, std::string(what) + " has a number that float32 cannot hold");
  }

  Error At(uint64_t offset, std::string cause, std::string advice = "") const {
    return {.code = Code::kInvalidArgument,
            .cause = std::move(cause),
            .file = reader_.path(),
            .offset = offset,
            .advice = std::move(advice)};
  }
  Error InFile(std::string cause, std::string advice = "") const {
    return {.code = Code::kInvalidArgument,
            .cause = std::move(cause),
            .file = reader_.path(),
            .advice = std::move(advice)};
  }
  Error Missing(uint64_t offset, const std::string& what, const char* key,
                const char* advice = "") const {
    return At(offset, what + " has no '" + key + "'", advice);
  }

  JsonReader reader_;
  CocoFile file_;
  bool has_keypoints_;  // whether they are read, and all objects have had them
  const bool reads_shapes_;
  std::vector<float> polygon_;  // reused
  std::vector<uint32_t> runs_;  // likewise
};

constexpr char kWhichFile[] =
    "The annotations of objects are in files such as instances_train2017.json and "
    "person_keypoints_train2017.json";

Status CocoReader::ReadLists() {
  enum : unsigned { kImages, kAnnotations, kCategories };
  Members members("the file");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type == JsonReader::Type::kList) {
    return reader_.Refuse("the file is a list, as results of a detector are, not an object",
                          kWhichFile);
  }
  TRY(reader_.ForEachMember([&]() -> Status {
    if (reader_.key() == "images") {
      TRY(members.Add(reader_, kImages));
      return reader_.ForEachValue([this] { return ReadImage(); });
    }
    if (reader_.key() == "annotations") {
      TRY(members.Add(reader_, kAnnotations));
      return reader_.ForEachValue([this] { return ReadObject(); });
    }
    if (reader_.key() == "categories") {
      TRY(members.Add(reader_, kCategories));
      return reader_.ForEachValue([this] { return ReadCategory(); });
    }
    return reader_.Skip();
  }));
  TRY(reader_.End());
  if (!members.has(kImages)) return InFile("there is no list 'images'", kWhichFile);
  if (!members.has(kAnnotations)) return InFile("there is no list 'annotations'", kWhichFile);
  if (!members.has(kCategories)) return InFile("there is no list 'categories'", kWhichFile);
  if (file_.image_ids.empty()) return InFile("the list 'images' is empty");
  return {};
}

Status CocoReader::ReadImage() {
  enum : unsigned { kId, kFileName, kWidth, kHeight };
  Members members("an image");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kObject) return reader_.Refuse("an image is not an object");
  const uint64_t begin = reader_.offset();
  std::string name;
  ImageSize size;
  TRY(reader_.ForEachMember([&]() -> Status {
    const bool is_width = reader_.key() == "width";
    if (is_width || reader_.key() == "height") {
      TRY(members.Add(reader_, is_width ? kWidth : kHeight));
      int& side = is_width ? size.width : size.height;
      ASSIGN_OR_RETURN(side, ReadSide());
      return {};
    }
    if (reader_.key() == "id") {
      TRY(members.Add(reader_, kId));
      ASSIGN_OR_RETURN(const int64_t id, reader_.Integer("'id'"));
      file_.image_ids.push_back(id);
      return {};
    }
    if (reader_.key() == "file_name") {
      TRY(members.Add(reader_, kFileName));
      return reader_.String("'file_name'", name);
    }
    return reader_.Skip();
  }));
  if (!members.has(kId)) return Missing(begin, "an image", "id");
  const std::string described = "image " + std::to_string(file_.image_ids.back());
  if (!members.has(kFileName)) return Missing(begin, described, "file_name");
  if (name.empty() || name.find('\0') != std::string::npos) {
    return At(begin, described + " has a 'file_name' that is empty or has a NUL");
  }
  file_.file_names.Add(name);
  file_.image_sizes.push_back(size.width == 0 || size.height == 0 ? ImageSize() : size);
  return {};
}

// Returns 0 for what is not the number of an image's pixels.
Result<int> CocoReader::ReadSide() {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kNumber) {
    TRY(reader_.Skip());
    return 0;
  }
  ASSIGN_OR_RETURN(const double side, reader_.Number("a side"));
  const bool is_side = side >= 1 && side <= kMaxSidePixels && side == std::floor(side);
  return is_side ? static_cast<int>(side) : 0;
}

Status CocoReader::ReadBox(float (&box)[4]) {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  const uint64_t begin = reader_.offset();
  if (type != JsonReader::Type::kList) return At(begin, "'bbox' is not a list");
  size_t numbers = 0;
  TRY(reader_.ForEachValue([&]() -> Status {
    ASSIGN_OR_RETURN(const float number, ReadFloat("'bbox'"));
    if (numbers < 4) box[numbers] = number;
    ++numbers;
    return {};
  }));
  if (numbers == 4) return {};
  return At(
      begin,
      "'bbox' is a list of " + std::to_string(numbers) + Plural(numbers, " number", " numbers"),
      "A box is [x, y, width, height]");
}

// Appends a list of x, y and visibility to the others.
Status CocoReader::ReadKeypoints() {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  const uint64_t begin = reader_.offset();
  if (type != JsonReader::Type::kList) return At(begin, "'keypoints' is not a list");
  uint32_t numbers = 0;
  TRY(reader_.ForEachValue([&]() -> Status {
    ASSIGN_OR_RETURN(const float number, ReadFloat("'keypoints'"));
    file_.keypoints.push_back(number);
    ++numbers;
    return {};
  }));
  if (numbers % 3 != 0) {
    return At(begin, "'keypoints' is a list of " + std::to_string(numbers) + " numbers",
              "Each point has three: x, y and visibility");
  }
  file_.keypoint_numbers.push_back(numbers);
  return {};
}

Result<uint8_t> CocoReader::ReadIsCrowd() {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  const uint64_t begin = reader_.offset();
  if (type == JsonReader::Type::kBool) {
    ASSIGN_OR_RETURN(const bool value, reader_.Bool("'iscrowd'"));
    return static_cast<uint8_t>(value ? 1 : 0);
  }
  ASSIGN_OR_RETURN(const int64_t value, reader_.Integer("'iscrowd'"));
  if (value == 0 || value == 1) return static_cast<uint8_t>(value);
  return At(begin, "'iscrowd' is " + std::to_string(value) + ", not 0 or 1");
}

std::string NameOf(const CocoObject& object) { return "annotation " + std::to_string(object.id); }

Status CocoReader::CheckSizes(const CocoObject& object, uint64_t begin) const {
  if (object.box[2] < 0 || object.box[3] < 0) {
    return At(begin, NameOf(object) + " has a box of negative width or height",
              "A box is [x, y, width, height]: correct or remove the annotation");
  }
  if (object.area < 0) return At(begin, NameOf(object) + " has a negative area");
  if (std::isfinite(object.area)) return {};
  return At(begin, NameOf(object) + " has a box whose area overflows float32");
}

// Returns the float32 next to a coordinate that is in the same fifth of a pixel.
float InSameFifth(double value) {
  const auto fifth = [](double position) { return std::trunc(5 * position + 0.5); };
  const auto near = static_cast<float>(value);
  if (!std::isfinite(near) || fifth(near) == fifth(value)) return near;
  return std::nextafter(near, near < value ? HUGE_VALF : -HUGE_VALF);
}

// Appends a list of polygons, or runs, to the shapes. It and the two below return what is wrong
// with them, because the annotation's id may come later; empty if nothing is.
Result<std::string> CocoReader::ReadSegmentation() {
  file_.shapes_at.push_back(file_.shapes.words().size());
  file_.shapes.BeginObject();
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type == JsonReader::Type::kObject) return ReadRuns();
  std::string fault;
  if (type != JsonReader::Type::kList) {
    TRY(reader_.Skip());
    return std::string("a 'segmentation' that is neither a list of polygons nor runs (RLE)");
  }
  TRY(reader_.ForEachValue([&]() -> Status {
    ASSIGN_OR_RETURN(std::string of_polygon, ReadPolygon());
    if (fault.empty()) fault = std::move(of_polygon);
    return {};
  }));
  return fault;
}

Result<std::string> CocoReader::ReadPolygon() {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kList) {
    TRY(reader_.Skip());
    return std::string("a 'segmentation' whose polygons are not lists");
  }
  polygon_.clear();
  bool fits = true;
  TRY(reader_.ForEachValue([&]() -> Status {
    ASSIGN_OR_RETURN(const double number, reader_.Number("'segmentation'"));
    polygon_.push_back(InSameFifth(number));
    fits = fits && std::isfinite(polygon_.back());
    return {};
  }));
  const std::string numbers = std::to_string(polygon_.size()) + " coordinates";
  if (!fits) return std::string("a polygon with a coordinate that float32 cannot hold");
  if (polygon_.size() % 2 != 0)
    return "a polygon of " + numbers + ", which are not pairs of x and y";
  if (polygon_.size() < 6) return "a polygon of " + numbers + ", which are fewer than three points";
  const size_t words = file_.shapes.words().size() - file_.shapes_at.back() + polygon_.size();
  if (words >= ObjectShapes::kMostWords) return std::string("more than 2^29 points");
  file_.shapes.AddPolygon(polygon_);
  return std::string();
}

// Reads {"size": [height, width], "counts": …}.
Result<std::string> CocoReader::ReadRuns() {
  enum : unsigned { kSize, kCounts };
  Members members("runs (RLE)");
  std::vector<int64_t> size;
  std::string packed, fault;
  runs_.clear();
  TRY(reader_.ForEachMember([&]() -> Status {
    const bool is_size = reader_.key() == "size";
    if (!is_size && reader_.key() != "counts") return reader_.Skip();
    TRY(members.Add(reader_, is_size ? kSize : kCounts));
    ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
    if (!is_size && type == JsonReader::Type::kString) {
      TRY(reader_.String("'counts'", packed));
      if (!UnpackRuns(packed, runs_)) fault = "runs (RLE) whose text is damaged";
      return {};
    }
    if (type != JsonReader::Type::kList) return reader_.Refuse("'size' and 'counts' are lists");
    return reader_.ForEachValue([&]() -> Status {
      ASSIGN_OR_RETURN(const int64_t number, reader_.Integer(is_size ? "'size'" : "'counts'"));
      if (is_size && size.size() < 3) size.push_back(number);
      if (is_size) return {};
      if (number < 0 || number > UINT32_MAX)
        fault = "a run (RLE) of " + std::to_string(number) + " pixels";
      runs_.push_back(static_cast<uint32_t>(number));
      return {};
    });
  }));
  if (!fault.empty()) return fault;
  if (!members.has(kCounts) || size.size() != 2)
    return std::string("runs (RLE) without 'size' or 'counts'");
  const auto is_side = [](int64_t side) { return side >= 1 && side <= kMaxSidePixels; };
  if (!is_side(size[0]) || !is_side(size[1]))
    return std::string("runs (RLE) of an impossible 'size'");
  uint64_t pixels = 0;
  for (const uint32_t run : runs_) pixels += run;
  const auto height = static_cast<uint32_t>(size[0]), width = static_cast<uint32_t>(size[1]);
  if (pixels > uint64_t{height} * width) {
    return "runs (RLE) of " + std::to_string(pixels) + " pixels for an image of " +
           HeightByWidth({static_cast<int>(width), static_cast<int>(height)});
  }
  if (runs_.size() + 2 >= ObjectShapes::kMostWords) return std::string("more than 2^30 runs (RLE)");
  file_.shapes.AddRuns(height, width, runs_);
  return std::string();
}

// Checks that runs are those of images of the same size.
Status CocoReader::CheckRuns() const {
  if (!reads_shapes_) return {};
  std::vector<size_t> images(file_.image_ids.size());
  std::iota(images.begin(), images.end(), size_t{0});
  const auto id_of = [&](size_t i) { return file_.image_ids[i]; };
  std::ranges::sort(images, {}, id_of);
  for (size_t i = 0; i < file_.objects.size(); ++i) {
    const std::span<const uint32_t> words = file_.shapes.object(file_.shapes_at[i]);
    ShapeReader reader({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
    reader.NextObject();
    const std::optional<ShapePart> part = reader.NextPart();
    if (!part || !part->has_runs) continue;
    const ImageSize runs{static_cast<int>(part->Word(1)), static_cast<int>(part->Word(0))};
    const CocoObject& object = file_.objects[i];
    const ImageSize image =
        file_.image_sizes[*std::ranges::lower_bound(images, object.image_id, {}, id_of)];
    if (image == ImageSize() || image == runs) continue;
    return InFile(RunsOfOtherSize(NameOf(object), runs, image),
                  "The 'size' of runs is [height, width]");
  }
  return {};
}

Status CocoReader::ReadObject() {
  enum : unsigned { kId, kImage, kCategory, kBox, kArea, kCrowd, kKeypoints, kSegmentation };
  Members members("an annotation");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kObject) return reader_.Refuse("an annotation is not an object");
  const uint64_t begin = reader_.offset();
  CocoObject object;
  std::string fault;  // of the segmentation
  const auto integer = [&](unsigned member, const char* what, int64_t& value) -> Status {
    TRY(members.Add(reader_, member));
    ASSIGN_OR_RETURN(value, reader_.Integer(what));
    return {};
  };
  TRY(reader_.ForEachMember([&]() -> Status {
    const std::string& key = reader_.key();
    if (key == "id") return integer(kId, "'id'", object.id);
    if (key == "image_id") return integer(kImage, "'image_id'", object.image_id);
    if (key == "category_id") return integer(kCategory, "'category_id'", object.category_id);
    if (key == "bbox") {
      TRY(members.Add(reader_, kBox));
      return ReadBox(object.box);
    }
    if (key == "area") {
      TRY(members.Add(reader_, kArea));
      ASSIGN_OR_RETURN(object.area, ReadFloat("'area'"));
      return {};
    }
    if (key == "iscrowd") {
      TRY(members.Add(reader_, kCrowd));
      ASSIGN_OR_RETURN(object.is_crowd, ReadIsCrowd());
      return {};
    }
    if (key == "keypoints" && has_keypoints_) {
      TRY(members.Add(reader_, kKeypoints));
      return ReadKeypoints();
    }
    if (key == "segmentation" && reads_shapes_) {
      TRY(members.Add(reader_, kSegmentation));
      ASSIGN_OR_RETURN(fault, ReadSegmentation());
      return {};
    }
    return reader_.Skip();
  }));
  if (!members.has(kId)) return Missing(begin, "an annotation", "id");
  if (!fault.empty()) {
    return At(begin, NameOf(object) + " has " + fault,
              "Correct or remove the annotation, or read the boxes without masks");
  }
  if (reads_shapes_ && !members.has(kSegmentation)) {
    return Missing(begin, NameOf(object), "segmentation", "Read the boxes without masks");
  }
  if (const char* missing = !members.has(kImage)      ? "image_id"
                            : !members.has(kBox)      ? "bbox"
                            : !members.has(kCategory) ? "category_id"
                                                      : nullptr) {
    return Missing(begin, NameOf(object), missing, kWhichFile);
  }
  if (!members.has(kArea)) object.area = object.box[2] * object.box[3];
  TRY(CheckSizes(object, begin));
  if (has_keypoints_ && !members.has(kKeypoints)) {
    has_keypoints_ = false;
    file_.without_keypoints = object.id;
    file_.keypoints = {};
    file_.keypoint_numbers = {};
  }
  file_.objects.push_back(object);
  return {};
}

Status CocoReader::ReadCategory() {
  enum : unsigned { kId, kName, kKeypoints };
  Members members("a category");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kObject) return reader_.Refuse("a category is not an object");
  const uint64_t begin = reader_.offset();
  CocoCategory category;
  TRY(reader_.ForEachMember([&]() -> Status {
    if (reader_.key() == "id") {
      TRY(members.Add(reader_, kId));
      ASSIGN_OR_RETURN(category.id, reader_.Integer("'id'"));
      return {};
    }
    if (reader_.key() == "name") {
      TRY(members.Add(reader_, kName));
      return reader_.String("'name'", category.name);
    }
    if (reader_.key() == "keypoints") {
      TRY(members.Add(reader_, kKeypoints));
      return reader_.ForEachValue([&] {
        return reader_.String("a name in 'keypoints'", category.keypoints.emplace_back());
      });
    }
    return reader_.Skip();
  }));
  if (!members.has(kId)) return Missing(begin, "a category", "id");
  if (!members.has(kName)) {
    return Missing(begin, "category " + std::to_string(category.id), "name");
  }
  file_.categories.push_back(std::move(category));
  return {};
}

// Checks that no id occurs twice.
Status CocoReader::CheckIds(std::span<const int64_t> ids, const char* what) const {
  std::vector<int64_t> sorted(ids.begin(), ids.end());
  if (!std::ranges::is_sorted(sorted)) std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice == sorted.end()) return {};
  return InFile("two " + std::string(what) + "s have the id " + std::to_string(*twice),
                "Ids must be unique: number them again, or remove one of the two");
}

Status CocoReader::CheckCategories() {
  std::ranges::sort(file_.categories, {}, &CocoCategory::id);
  const auto twice = std::ranges::adjacent_find(file_.categories, {}, &CocoCategory::id);
  if (twice == file_.categories.end()) return {};
  return InFile("two categories have the id " + std::to_string(twice->id),
                "Ids must be unique: number them again, or remove one of the two");
}

Status CocoReader::CheckObjects() const {
  std::vector<int64_t> ids;
  ids.reserve(file_.objects.size());
  for (const CocoObject& object : file_.objects) ids.push_back(object.id);
  TRY(CheckIds(ids, "annotation"));
  std::vector<int64_t> images = file_.image_ids;
  std::ranges::sort(images);
  for (const CocoObject& object : file_.objects) {
    if (!std::ranges::binary_search(images, object.image_id)) {
      return InFile(NameOf(object) + " has image_id " + std::to_string(object.image_id) +
                        ", and no image has this id",
                    "Remove the annotations of images that were removed, or add the images");
    }
    if (file_.Find(object.category_id) == nullptr) {
      return InFile(NameOf(object) + " has category_id " + std::to_string(object.category_id) +
                        ", and no category has this id",
                    "Add the category, with its name, to the list 'categories'");
    }
  }
  return {};
}

}  // namespace

const CocoCategory* CocoFile::Find(int64_t category_id) const {
  const auto found = std::ranges::lower_bound(categories, category_id, {}, &CocoCategory::id);
  return found != categories.end() && found->id == category_id ? &*found : nullptr;
}

Result<CocoFile> ReadCoco(const std::string& path, const CocoParts& parts) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  CocoReader reader(std::move(file), parts);
  return reader.Read();
}

}  // namespace stoker
