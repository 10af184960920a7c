#include "tests/fuzz/parse/read_yolo.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "io/annotations/yolo_data.h"
#include "io/annotations/yolo_labels.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"

namespace stoker::testing {
namespace {

void ReadLabels(std::string_view text) {
  constexpr size_t kClasses = 10;
  YoloLabels labels;
  const Status read =
      ParseYoloLabels(text, "labels", {.classes = kClasses, .shapes = true}, labels);
  if (!read.ok()) return PromiseGoodError(read.error(), "labels", Code::kInvalidArgument);
  Require(labels.boxes.size() == 4 * labels.classes.size(), "each object has a box");
  Require(std::ranges::all_of(labels.boxes, [](float x) { return x >= 0 && x <= 1.01F; }),
          "boxes are shares");
  const std::span<const uint32_t> words = labels.shapes.words();
  ShapeReader shapes({reinterpret_cast<const uint8_t*>(words.data()), words.size_bytes()});
  size_t objects = 0;
  while (shapes.NextObject()) ++objects;
  Require(objects == labels.classes.size(), "each object has a shape");
  Require(std::ranges::all_of(labels.classes, [](int64_t c) { return c >= 0 && c < 10; }),
          "classes have names");
}

void ReadYaml(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("yolo");
  const std::string& path = fuzzed.Write(bytes);
  const Result<YoloData> data = ReadYoloData(path);
  if (!data.ok()) return PromiseGoodError(data.error(), path, Code::kInvalidArgument);
  Require(!data->names.empty() && data->names.size() <= bytes.size(), "names are in the file");
}

}  // namespace

void ReadFuzzedYolo(std::span<const uint8_t> bytes) {
  const bool is_labels = !bytes.empty() && (std::isdigit(bytes[0]) != 0 || bytes[0] == ' ');
  if (!is_labels) return ReadYaml(bytes);
  ReadLabels({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace stoker::testing
