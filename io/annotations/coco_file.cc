#include "io/annotations/coco_file.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"
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
  CocoReader(TextFile file, bool keypoints) : reader_(std::move(file)), has_keypoints_(keypoints) {}

  Result<CocoFile> Read() {
    TRY(ReadLists());
    TRY(CheckIds(file_.image_ids, "image"));
    TRY(CheckCategories());
    TRY(CheckObjects());
    return std::move(file_);
  }

 private:
  Status ReadLists();
  Status ReadImage();
  Status ReadObject();
  Status ReadCategory();
  Status ReadBox(float (&box)[4]);
  Status ReadKeypoints();
  Result<uint8_t> ReadIsCrowd();
  Status CheckIds(std::span<const int64_t> ids, const char* what) const;
  Status CheckCategories();
  Status CheckSizes(const CocoObject& object, uint64_t begin) const;
  Status CheckObjects() const;

  // Calls `read` for each element of the list that comes next.
  template <typename F>
  Status Each(F read) {
    TRY(reader_.EnterList());
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, reader_.NextValue());
      if (!more) return {};
      TRY(read());
    }
  }

  // Calls `read` for each member of the object that comes next; its key is reader_.key().
  template <typename F>
  Status EachMember(F read) {
    TRY(reader_.EnterObject());
    for (;;) {
      ASSIGN_OR_RETURN(const bool more, reader_.NextKey());
      if (!more) return {};
      TRY(read());
    }
  }

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
  TRY(EachMember([&]() -> Status {
    if (reader_.key() == "images") {
      TRY(members.Add(reader_, kImages));
      return Each([this] { return ReadImage(); });
    }
    if (reader_.key() == "annotations") {
      TRY(members.Add(reader_, kAnnotations));
      return Each([this] { return ReadObject(); });
    }
    if (reader_.key() == "categories") {
      TRY(members.Add(reader_, kCategories));
      return Each([this] { return ReadCategory(); });
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
  enum : unsigned { kId, kFileName };
  Members members("an image");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kObject) return reader_.Refuse("an image is not an object");
  const uint64_t begin = reader_.offset();
  std::string name;
  TRY(EachMember([&]() -> Status {
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
  return {};
}

Status CocoReader::ReadBox(float (&box)[4]) {
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  const uint64_t begin = reader_.offset();
  if (type != JsonReader::Type::kList) return At(begin, "'bbox' is not a list");
  size_t numbers = 0;
  TRY(Each([&]() -> Status {
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
  TRY(Each([&]() -> Status {
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

Status CocoReader::ReadObject() {
  enum : unsigned { kId, kImage, kCategory, kBox, kArea, kCrowd, kKeypoints };
  Members members("an annotation");
  ASSIGN_OR_RETURN(const JsonReader::Type type, reader_.Peek());
  if (type != JsonReader::Type::kObject) return reader_.Refuse("an annotation is not an object");
  const uint64_t begin = reader_.offset();
  CocoObject object;
  const auto integer = [&](unsigned member, const char* what, int64_t& value) -> Status {
    TRY(members.Add(reader_, member));
    ASSIGN_OR_RETURN(value, reader_.Integer(what));
    return {};
  };
  TRY(EachMember([&]() -> Status {
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
    return reader_.Skip();
  }));
  if (!members.has(kId)) return Missing(begin, "an annotation", "id");
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
  TRY(EachMember([&]() -> Status {
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
      return Each([&] {
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

Result<CocoFile> ReadCoco(const std::string& path, bool keypoints) {
  ASSIGN_OR_RETURN(TextFile file, TextFile::Open(path));
  CocoReader reader(std::move(file), keypoints);
  return reader.Read();
}

}  // namespace stoker
