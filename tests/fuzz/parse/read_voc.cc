#include "tests/fuzz/parse/read_voc.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "io/annotations/voc_annotation.h"
#include "tests/fuzz/decode/fuzzed_rows.h"

namespace stoker::testing {

void ReadFuzzedVoc(std::span<const uint8_t> bytes) {
  const std::string path = "a.xml";
  const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  const Result<VocAnnotation> read = ParseVocAnnotation(text, path);
  if (!read.ok()) {
    const Error& error = read.error();
    Require(error.code == Code::kInvalidArgument, "files cause these errors");
    Require(error.file == path && error.offset <= bytes.size(), "errors name the file and a place");
    Require(error.cause.starts_with("line ") && error.cause.size() < 1000,
            "the cause has a line, and is of moderate length");
    Require(std::ranges::none_of(error.cause,
                                 [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
            "the cause is one line");
    return;
  }
  Require(read->objects.size() <= bytes.size(), "objects are in the file");
  for (const VocObject& object : read->objects) {
    const double* const box = object.box;
    Require(!object.name.empty(), "classes have names");
    Require(std::ranges::all_of(object.box, [](double side) { return std::isfinite(side); }),
            "boxes are finite");
    Require(box[0] <= box[2] && box[1] <= box[3], "boxes are not reversed");
    Require(object.difficult <= 1 && object.truncated <= 1 && object.occluded <= 1, "flags");
    Require(object.position.offset <= bytes.size(), "objects are in the file");
  }
}

}  // namespace stoker::testing
