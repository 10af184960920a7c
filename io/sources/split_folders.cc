#include "io/sources/split_folders.h"

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

}  // namespace

std::string SplitWarning(const std::string& directory, std::span<const std::string> classes) {
  const bool all = std::ranges::all_of(
      classes, [](const std::string& name) { return PartOf(name) < kParts.size(); });
  if (classes.empty() || !all) return {};
  const std::string& meant = *std::ranges::min_element(classes, {}, PartOf);
  constexpr size_t kMax = 5;  // there may be many: train2007, train2008, …
  std::string names;
  for (const std::string& name : classes.first(std::min(classes.size(), kMax))) {
    names += (names.empty() ? "" : ", ") + name;
  }
  if (classes.size() > kMax) names += ", …";
  return directory + " holds " + names +
         ", which look like splits of a dataset, not classes. To use one of them, pass " +
         directory + (directory.ends_with('/') ? "" : "/") + meant;
}

}  // namespace stoker
