#include "tests/fuzz/open/open_index.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "io/files/section_format.h"
#include "io/index/dataset_index.h"
#include "io/source/source.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/fuzz/fuzzed_file.h"
#include "tests/fuzz/open/sign_sections.h"

namespace stoker::testing {
namespace {

void RequireAPathBelow(const std::string& path) {
  Require(!path.empty() && path.front() != '/' && path.front() != '.',
          "paths are below the folder");
  Require(path.find("/.") == std::string::npos && path.find("//") == std::string::npos,
          "no part of a path is empty or hidden");
  Require(path.back() != '/' && path.find('\0') == std::string::npos, "paths are those of files");
}

void Visit(const DatasetIndex& index, size_t input) {
  const ImageList& list = index.list();
  Require(!list.files.empty() && index.images() == list.files.size(), "facts of each image");
  Require(index.memory_bytes() + list.memory_bytes() <= 4 * input + 8192, "memory is bounded");
  std::string path;
  MemoryBudget budget(MemoryBudget::kNoLimit);
  GrowingBuffer memory(budget);
  for (uint32_t i = 0; i < index.images(); ++i) {
    path.clear();
    list.AppendPath(i, path);
    RequireAPathBelow(path);
    const int64_t label = list.LabelOf(i);
    if (list.classes.empty()) {
      Require(label == kNoLabel, "flat folders have no labels");
    } else {
      Require(path.starts_with(list.classes.at(static_cast<size_t>(label)) + "/"),
              "labels are those of the paths");
    }
    (void)index.FactsOf(i);
    const bool found = !index.Read(i, input, memory).empty();
    Require(found == index.HasRecord(i), "records lie in the file");
  }
  (void)list.Fingerprint();
  for (const uint32_t position : PositionsIn(list, list)) {
    Require(position == kNowhere || position < index.images(), "places are in the list");
  }
}

// Returns the fingerprint and the number of facts that a file says it has.
std::pair<uint64_t, uint64_t> WhatItIsFor(std::span<const uint8_t> file) {
  sections::Header header;
  if (file.size() < sizeof(header)) return {};
  std::memcpy(&header, file.data(), sizeof(header));
  file = file.subspan(sizeof(header));
  sections::Section section;
  for (uint32_t i = 0; i < header.sections && file.size() >= sizeof(section); ++i) {
    std::memcpy(&section, file.data(), sizeof(section));
    if (section.kind == sections::kFacts) break;
    file = file.subspan(sizeof(section));
  }
  return {header.fingerprint, section.bytes / sizeof(dataset_index::Facts)};
}

}  // namespace

bool IsIndexFile(std::span<const uint8_t> bytes) {
  return bytes.size() >= dataset_index::kMagic.size() &&
         std::equal(dataset_index::kMagic.begin(), dataset_index::kMagic.end(), bytes.begin());
}

void OpenFuzzedIndex(std::span<const uint8_t> bytes) {
  static FuzzedFile fuzzed("index");
  std::vector<uint8_t> file(bytes.begin(), bytes.end());
  SignSections(file, dataset_index::kVersion);
  const std::string& path = fuzzed.Write(file);
  const Result<DatasetIndex> index = DatasetIndex::Open(path);
  if (index.ok()) {
    Visit(*index, file.size());
  } else {
    Require(index.error().file == path, "errors name the file");
  }
  const auto [fingerprint, images] = WhatItIsFor(file);
  const auto facts = DatasetIndex::ReadFacts(path, fingerprint, images);
  if (!facts.ok()) {
    Require(facts.error().file == path, "errors name the file");
    return;
  }
  Require(facts->facts.size() == images, "facts of each image");
  Require(!index.ok() || !facts->alone, "an index of a folder has more");
  for (const ImageFacts& each : facts->facts) {
    const auto [least, most] = std::minmax(each.width, each.height);
    Require(most == 0 || (least >= 1 && most <= kMaxSidePixels), "sides are in range");
  }
}

}  // namespace stoker::testing
