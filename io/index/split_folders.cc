#include "io/index/split_folders.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace stoker {

namespace {

// Names of splits, the first being the one to suggest.
constexpr std::array<std::string_view, 11> kParts = {"train", "training",   "trainval",  "val",
                                                     "valid", "validation", "dev",       "eval",
                                                     "test",  "testing",    "evaluation"};

// train2017, Val and test_1 are such names, too.
size_t PartOf(const std::string& name) {
  std::string word;
  for (const char letter : name) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  word.resize(word.find_last_not_of("0123456789_-") + 1);
  return static_cast<size_t>(std::ranges::find(kParts, word) - kParts.begin());
}

const std::string& MostLikely(std::span<const std::string> names) {
  return *std::ranges::min_element(names, {}, PartOf);
}

std::string FolderIn(const std::string& directory, const std::string& name) {
  return directory + (directory.ends_with('/') ? "" : "/") + name;
}

// The first names; there may be many: train2007, train2008, …
std::string Shortened(std::span<const std::string> names) {
  constexpr size_t kMax = 5;
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), kMax))) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return names.size() > kMax ? text + ", …" : text;
}

bool AreSplits(std::span<const std::string> classes) {
  return !classes.empty() && std::ranges::all_of(classes, [](const std::string& name) {
    return PartOf(name) < kParts.size();
  });
}

std::string LookLikeSplits(const std::string& directory, std::span<const std::string> classes) {
  return directory + " holds " + Shortened(classes) +
         ", which look like splits of a dataset, not classes. ";
}

}  // namespace

std::string SplitWarning(const std::string& directory, std::span<const std::string> classes) {
  if (!AreSplits(classes)) return {};
  return LookLikeSplits(directory, classes) + "To use one of them, pass " +
         FolderIn(directory, MostLikely(classes));
}

std::string PackedSplitWarning(const std::string& directory, std::span<const std::string> classes) {
  if (!AreSplits(classes)) return {};
  return LookLikeSplits(directory, classes) +
         "To use one of them, pack its folder into a set of its own";
}

PackedSetsInside DescribePackedSets(const std::string& directory,
                                    std::span<const std::string> names) {
  return {.cause = "this folder is not a packed set; it holds packed sets: " + Shortened(names),
          .advice = "To use one of them, pass " + FolderIn(directory, MostLikely(names))};
}

}  // namespace stoker
