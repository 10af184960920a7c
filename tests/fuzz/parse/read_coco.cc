#include "tests/fuzz/parse/read_coco.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "io/annotations/coco.h"
#include "io/annotations/coco_file.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

void RequireAGoodFile(const CocoFile& file, size_t input) {
  Require(!file.image_ids.empty() && file.image_ids.size() == file.file_names.size() &&
              file.image_ids.size() <= input,
          "each image is in the file");
  for (const CocoObject& object : file.objects) {
    Require(std::ranges::find(file.image_ids, object.image_id) != file.image_ids.end(),
            "objects are of images");
    const CocoCategory* const category = file.Find(object.category_id);
    Require(category != nullptr && category->id == object.category_id, "objects have a category");
    Require(std::ranges::all_of(object.box, [](float number) { return std::isfinite(number); }) &&
                std::isfinite(object.area),
            "numbers are finite");
    Require(object.box[2] >= 0 && object.box[3] >= 0 && object.area >= 0 && object.is_crowd <= 1,
            "sizes are not negative");
  }
  Require(file.keypoint_numbers.empty() || file.keypoint_numbers.size() == file.objects.size(),
          "all objects have keypoints, or none of them is kept");
}

void RequireAGoodSource(const SampleSource& source, const CocoFile& file) {
  uint64_t bytes = 0;
  for (uint64_t id = 0; id < source.size(); ++id) bytes += source.View(1, id).size();
  Require(source.size() == file.image_ids.size(), "each image is a sample");
  Require(bytes == file.objects.size() * 16, "each object has a box");
}

// Runs do not overrun their image, and polygons have pairs of finite numbers.
void RequireGoodShapes(const CocoFile& file) {
  Require(file.shapes_at.size() == file.objects.size(), "each object has a shape");
  const std::span<const uint32_t> words = file.shapes.words();
  ShapeReader shapes({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
  for (size_t i = 0; i < file.objects.size(); ++i) {
    Require(shapes.NextObject(), "each object has a shape");
    while (const std::optional<ShapePart> part = shapes.NextPart()) {
      uint64_t pixels = 0;
      for (size_t word = 0; word < part->words(); ++word) {
        Require(part->has_runs || std::isfinite(part->Number(word)), "numbers are finite");
        if (word > 1) pixels += part->Word(word);
      }
      const size_t words_of = part->words();
      if (!part->has_runs) Require(words_of >= 6 && words_of % 2 == 0, "polygons have points");
      if (!part->has_runs) continue;
      Require(words_of >= 2 && pixels <= uint64_t{part->Word(0)} * part->Word(1),
              "runs are within their image");
    }
  }
  Require(!shapes.NextObject(), "nothing else has a shape");
}

void ReadShapes(const std::string& path) {
  const Result<CocoFile> file = ReadCoco(path, {.shapes = true});
  if (!file.ok()) return PromiseGoodError(file.error(), path);
  RequireGoodShapes(*file);
  const auto source = Coco(path, "/", {.masks = {.kind = DrawnMasks::Kind::kInstances}});
  if (!source.ok()) return PromiseGoodError(source.error(), path);
  RequireAGoodSource(**source, *file);
}

}  // namespace

void ReadFuzzedCoco(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("coco");
  const std::string& path = fuzzed.Write(bytes);
  const Result<CocoFile> file = ReadCoco(path);
  if (!file.ok()) return PromiseGoodError(file.error(), path);
  RequireAGoodFile(*file, bytes.size());
  ReadShapes(path);
  const auto source = Coco(path, "/");
  if (!source.ok()) return PromiseGoodError(source.error(), path);
  RequireAGoodSource(**source, *file);
}

}  // namespace stoker::testing
