#include "io/annotations/coco.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "io/annotations/coco_file.h"
#include "io/annotations/column_of_objects.h"
#include "io/ranges/path_source.h"
#include "io/remote/object_url.h"

namespace stoker {

namespace {

constexpr int64_t kMostNamedIds = 65536;
constexpr uint32_t kLeftOut = UINT32_MAX;  // of an object: it has no sample

Error WrongCoco(const std::string& json, std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = json,
          .advice = std::move(advice)};
}

// The objects, sorted by sample.
struct CocoColumns {
  PathTable paths;                  // by sample
  std::vector<ImageSize> sizes;     // by sample; empty without check_sizes
  std::vector<int64_t> image_ids;   // by sample
  std::vector<int64_t> offsets{0};  // of the samples' objects
  std::vector<float> boxes;         // these and the following by object
  std::vector<int64_t> labels;
  std::vector<float> areas;
  std::vector<uint8_t> crowds;
  std::vector<float> keypoints;
  std::vector<uint32_t> shapes;        // in words; empty if there are no masks
  std::vector<int64_t> shape_offsets;  // of the samples' shapes, likewise
};

// The points that all objects have.
struct CocoPoints {
  uint32_t numbers = 0;  // 3 for each point
  std::vector<uint16_t> flip_pairs;
};

// Returns which points become which in a mirrored image; empty if none becomes another.
std::vector<uint16_t> FlipPairsOf(const std::vector<std::string>& names) {
  std::vector<uint16_t> pairs(names.size());
  std::iota(pairs.begin(), pairs.end(), uint16_t{0});
  std::unordered_map<std::string_view, size_t> index;  // of the first point with a name
  for (size_t i = 0; i < names.size(); ++i) index.emplace(names[i], i);
  bool any = false;
  for (size_t i = 0; i < names.size(); ++i) {
    constexpr std::string_view kLeft = "left_";
    if (!names[i].starts_with(kLeft)) continue;
    const auto right = index.find("right_" + names[i].substr(kLeft.size()));
    if (right == index.end()) continue;
    const size_t other = right->second;
    if (pairs[i] != i || pairs[other] != other) continue;  // a name that occurs twice
    pairs[i] = static_cast<uint16_t>(other);
    pairs[other] = static_cast<uint16_t>(i);
    any = true;
  }
  return any ? pairs : std::vector<uint16_t>();
}

Error WrongPoints(const std::string& json, const CocoObject& object, uint32_t numbers,
                  const CocoCategory& category) {
  return WrongCoco(json,
                   "annotation " + std::to_string(object.id) + " has " +
                       std::to_string(numbers / 3) + " keypoints, but category " +
                       std::to_string(category.id) + " names " +
                       std::to_string(category.keypoints.size()),
                   "Give each of the points as x, y and visibility; 0, 0, 0 if it is unknown");
}

// Returns the points that all objects have; otherwise nullopt, and sets `why`.
Result<std::optional<CocoPoints>> PointsOf(const std::string& json, const CocoFile& file,
                                           std::string& why) {
  constexpr std::optional<CocoPoints> kNone;
  if (file.without_keypoints) {
    why = "annotation " + std::to_string(*file.without_keypoints) + " has no 'keypoints'";
    return kNone;
  }
  if (file.keypoint_numbers.empty()) {
    why = "there are no annotations with keypoints";
    return kNone;
  }
  const CocoCategory* first = nullptr;
  for (size_t i = 0; i < file.objects.size(); ++i) {
    const CocoObject& object = file.objects[i];
    const CocoCategory& category = *file.Find(object.category_id);
    const auto in_category = [&](const std::string& what) {
      return "annotation " + std::to_string(object.id) + " is of category " +
             std::to_string(category.id) + ", " + what;
    };
    if (category.keypoints.empty()) {
      why = in_category("which does not name keypoints");
      return kNone;
    }
    const uint32_t numbers = file.keypoint_numbers[i];
    if (numbers != 3 * category.keypoints.size()) {
      return WrongPoints(json, object, numbers, category);
    }
    if (first == nullptr) first = &category;
    if (first->keypoints != category.keypoints) {
      why = in_category("which names other keypoints than category " + std::to_string(first->id));
      return kNone;
    }
  }
  if (first->keypoints.size() > UINT16_MAX) {
    why = "category " + std::to_string(first->id) + " names more than 65535 keypoints";
    return kNone;
  }
  return std::optional(CocoPoints{.numbers = static_cast<uint32_t>(3 * first->keypoints.size()),
                                  .flip_pairs = FlipPairsOf(first->keypoints)});
}

// Returns the sample of each object; kLeftOut, if it is not kept. `ids`: the images', sorted.
std::vector<uint32_t> SamplesOf(const CocoFile& file, std::span<const int64_t> ids,
                                bool keep_crowd) {
  std::vector<uint32_t> samples;
  samples.reserve(file.objects.size());
  for (const CocoObject& object : file.objects) {
    const auto found = std::ranges::lower_bound(ids, object.image_id);
    const bool kept = keep_crowd || object.is_crowd == 0;
    samples.push_back(kept ? static_cast<uint32_t>(found - ids.begin()) : kLeftOut);
  }
  return samples;
}

// Sets image_ids, sizes, offsets and paths, and returns the sample of each object.
std::vector<uint32_t> OrderSamples(const CocoFile& file, const CocoOptions& options,
                                   CocoColumns& columns) {
  std::vector<size_t> images(file.image_ids.size());
  std::iota(images.begin(), images.end(), size_t{0});
  std::ranges::sort(images, {}, [&](size_t i) { return file.image_ids[i]; });
  std::vector<int64_t> ids;
  ids.reserve(images.size());
  for (const size_t i : images) ids.push_back(file.image_ids[i]);
  std::vector<uint32_t> samples = SamplesOf(file, ids, options.keep_crowd);
  std::vector<int64_t> counts(images.size());
  for (const uint32_t sample : samples) {
    if (sample != kLeftOut) ++counts[sample];
  }
  std::vector<uint32_t> kept(images.size());  // the sample of each image
  for (size_t i = 0; i < images.size(); ++i) {
    if (!options.keep_empty && counts[i] == 0) continue;
    kept[i] = static_cast<uint32_t>(columns.image_ids.size());
    columns.image_ids.push_back(ids[i]);
    columns.offsets.push_back(columns.offsets.back() + counts[i]);
    columns.paths.Add(file.file_names[images[i]]);
    if (options.check_sizes) columns.sizes.push_back(file.image_sizes[images[i]]);
  }
  for (uint32_t& sample : samples) {
    if (sample != kLeftOut) sample = kept[sample];
  }
  return samples;
}

// Converts COCO's pixel indices to coordinates of the pixels' centres.
void CopyPoints(std::span<const float> from, float* to) {
  for (size_t i = 0; i < from.size(); i += 3) {
    const float visibility = from[i + 2];
    const bool known = visibility > 0;
    *to++ = known ? from[i] + 0.5F : 0;
    *to++ = known ? from[i + 1] + 0.5F : 0;
    *to++ = known ? visibility : 0;
  }
}

// Puts the shapes into the order of the samples. `samples`: as SamplesOf returns them.
void OrderShapes(const CocoFile& file, std::span<const uint32_t> samples, CocoColumns& columns) {
  std::vector<int64_t>& offsets = columns.shape_offsets;
  offsets.assign(columns.image_ids.size() + 1, 0);
  const auto words_of = [&](size_t object) { return file.shapes.object(file.shapes_at[object]); };
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] != kLeftOut) {
      offsets[samples[i] + 1] += static_cast<int64_t>(words_of(i).size());
    }
  }
  std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
  columns.shapes.resize(static_cast<size_t>(offsets.back()));
  std::vector<int64_t> next = offsets;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples[i] == kLeftOut) continue;
    const std::span<const uint32_t> words = words_of(i);
    std::ranges::copy(words, columns.shapes.begin() + next[samples[i]]);
    next[samples[i]] += static_cast<int64_t>(words.size());
  }
}

// Puts the images and objects of a file into the order of the samples.
CocoColumns ColumnsOf(const CocoFile& file, const CocoOptions& options,
                      const std::optional<CocoPoints>& points) {
  CocoColumns columns;
  const std::vector<uint32_t> samples = OrderSamples(file, options, columns);
  const auto objects = static_cast<size_t>(columns.offsets.back());
  const size_t numbers = points ? points->numbers : 0;
  columns.boxes.resize(4 * objects);
  columns.labels.resize(objects);
  columns.areas.resize(objects);
  columns.crowds.resize(objects);
  columns.keypoints.resize(numbers * objects);
  std::vector<int64_t> next = columns.offsets;
  for (size_t i = 0; i < file.objects.size(); ++i) {
    if (samples[i] == kLeftOut) continue;
    const CocoObject& object = file.objects[i];
    const auto to = static_cast<size_t>(next[samples[i]]++);
    std::ranges::copy(object.box, columns.boxes.begin() + static_cast<ptrdiff_t>(4 * to));
    columns.labels[to] = options.contiguous_labels
                             ? file.Find(object.category_id) - file.categories.data()
                             : object.category_id;
    columns.areas[to] = object.area;
    columns.crowds[to] = object.is_crowd;
    if (numbers == 0) continue;
    CopyPoints(std::span(file.keypoints).subspan(numbers * i, numbers),
               columns.keypoints.data() + numbers * to);
  }
  if (options.masks.kind != DrawnMasks::Kind::kNone) OrderShapes(file, samples, columns);
  return columns;
}

// Returns the names of the categories by label.
std::vector<std::string> ClassNamesOf(const CocoFile& file, bool contiguous_labels) {
  std::vector<std::string> names;
  if (file.categories.empty()) return names;
  if (!contiguous_labels) {
    const int64_t last = file.categories.back().id;
    if (file.categories.front().id < 0 || last >= kMostNamedIds) return names;
    names.resize(static_cast<size_t>(last) + 1);
  }
  for (const CocoCategory& category : file.categories) {
    if (contiguous_labels) {
      names.push_back(category.name);
    } else {
      names[static_cast<size_t>(category.id)] = category.name;
    }
  }
  return names;
}

Status CheckImagesFolder(const std::string& images) {
  std::error_code failed;
  if (IsObjectUrl(images) || std::filesystem::is_directory(images, failed)) return {};
  return Error{.code = Code::kNotFound,
               .cause = "there is no such folder of images",
               .file = images,
               .advice = "Give the folder that the names of the images (file_name) are in"};
}

// Returns the columns of `from`, which must live as long as they are used.
std::vector<ArrayColumn> ColumnsOfCoco(const CocoColumns& from,
                                       const std::optional<CocoPoints>& points,
                                       const DrawnMasks& masks) {
  const auto of_objects = [&](const char* name, DType dtype, const void* data,
                              Field::Kind kind = Field::Kind::kObject) {
    ArrayColumn column = ColumnOfObjects(name, dtype, data, from.offsets, kind);
    column.box_format = BoxFormat::kXywh;
    return column;
  };
  std::vector<ArrayColumn> columns{
      of_objects("boxes", DType::kF32, from.boxes.data(), Field::Kind::kBoxes),
      of_objects("labels", DType::kI64, from.labels.data()),
      of_objects("area", DType::kF32, from.areas.data()),
      of_objects("iscrowd", DType::kU8, from.crowds.data()),
      {.name = "image_id",
       .dtype = DType::kI64,
       .row_shape = {},
       .data = from.image_ids.data(),
       .samples = from.image_ids.size()}};
  if (points) {
    columns.push_back(
        of_objects("keypoints", DType::kF32, from.keypoints.data(), Field::Kind::kKeypoints));
    columns.back().row_shape = {points->numbers / 3, 3};
    columns.back().flip_pairs = points->flip_pairs;
  }
  if (masks.kind != DrawnMasks::Kind::kNone) {
    columns.push_back(ColumnOf(masks, from.shapes, from.shape_offsets));
  }
  return columns;
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Coco(const std::string& json, const std::string& images,
                                                 const CocoOptions& options) {
  TRY(CheckImagesFolder(images));
  using Keypoints = CocoOptions::Keypoints;
  const CocoParts parts{.keypoints = options.keypoints != Keypoints::kOff,
                        .shapes = options.masks.kind != DrawnMasks::Kind::kNone};
  ASSIGN_OR_RETURN(const CocoFile file, ReadCoco(json, parts));
  std::string why;
  ASSIGN_OR_RETURN(const std::optional<CocoPoints> points, PointsOf(json, file, why));
  if (!points && options.keypoints == Keypoints::kOn) {
    return WrongCoco(json, "not all annotations have the same keypoints: " + why,
                     "Correct or remove the annotation, or read the boxes without keypoints");
  }
  const auto columns = std::make_shared<CocoColumns>(ColumnsOf(file, options, points));
  if (columns->image_ids.empty()) {
    return WrongCoco(json,
                     options.keep_crowd ? "no image has annotations"
                                        : "no image has annotations other than crowds",
                     "Keep images without annotations");
  }
  const DrawnObjects drawn{columns->labels, columns->crowds, columns->shapes};
  if (const Status checked = CheckClasses(options.masks, drawn); !checked.ok()) {
    return Error(checked.error()).WithFile(json);
  }
  FilesOptions files{.root = images,
                     .columns = ColumnsOfCoco(*columns, points, options.masks),
                     .owner = columns,
                     .class_names = ClassNamesOf(file, options.contiguous_labels),
                     .annotated_sizes = std::move(columns->sizes),
                     .annotation_of = [json](std::string_view) { return json; },
                     .description = "coco(" + json + ", " + images + ")"};
  Result<std::shared_ptr<const SampleSource>> source =
      Files(std::move(columns->paths), std::move(files));
  if (!source.ok()) return Error(source.error()).WithFile(json);
  return source;
}

}  // namespace stoker
