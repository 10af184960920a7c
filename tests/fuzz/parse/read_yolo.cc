#include "tests/fuzz/parse/read_yolo.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "io/annotations/yolo_data.h"
#include "io/annotations/yolo_labels.h"
#include "tests/fuzz/decode/fuzzed_rows.h"

namespace stoker::testing {
namespace {

void RequireAGoodError(const Error& error, const std::string& path) {
  Require(error.code == Code::kInvalidArgument, "files cause these errors");
  Require(error.file == path, "errors name the file");
  Require(!error.cause.empty() && error.cause.size() < 1000, "the cause is of moderate length");
  Require(std::ranges::none_of(error.cause,
                               [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
          "the cause is one line");
}

void ReadLabels(std::string_view text) {
  constexpr size_t kClasses = 10;
  YoloLabels labels;
  const Status read =
      ParseYoloLabels(text, "labels", {.classes = kClasses, .shapes = true}, labels);
  if (!read.ok()) return RequireAGoodError(read.error(), "labels");
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
  static const int descriptor = memfd_create("yolo", MFD_CLOEXEC);
  static const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
  Require(ftruncate(descriptor, 0) == 0 && pwrite(descriptor, bytes.data(), bytes.size(), 0) ==
                                               static_cast<ssize_t>(bytes.size()),
          "the input is put into a file");
  const Result<YoloData> data = ReadYoloData(path);
  if (!data.ok()) return RequireAGoodError(data.error(), path);
  Require(!data->names.empty() && data->names.size() <= bytes.size(), "names are in the file");
}

}  // namespace

void ReadFuzzedYolo(std::span<const uint8_t> bytes) {
  const bool is_labels = !bytes.empty() && (std::isdigit(bytes[0]) != 0 || bytes[0] == ' ');
  if (!is_labels) return ReadYaml(bytes);
  ReadLabels({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace stoker::testing
