// Compares the loader of a checkpoint with the one that it is restored into: `name=value` lines, as
// stoker/_identity.py writes them. Options with default values have none.
//
// Part of dataset_op.cc, which is compiled where TensorFlow is installed.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>

namespace stoker_tf {

inline std::map<std::string, std::string> OptionsOf(const std::string& lines) {
  std::map<std::string, std::string> options;
  for (absl::string_view line : absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    options.insert(
        std::pair<std::string, std::string>(absl::StrSplit(line, absl::MaxSplits('=', 1))));
  }
  return options;
}

// "batch_size was 8 and is 4; …"; empty if both are equal.
inline std::string Differences(const std::string& saved, const std::string& here) {
  if (!saved.empty() && !absl::StrContains(saved, '=')) return "an older stoker saved it";
  const std::map<std::string, std::string> was = OptionsOf(saved), is = OptionsOf(here);
  std::map<std::string, std::string> all = was;
  all.insert(is.begin(), is.end());
  const auto value_of = [](const std::map<std::string, std::string>& options,
                           const std::string& name) -> std::string {
    if (const auto found = options.find(name); found != options.end()) return found->second;
    return absl::EndsWith(name, "]") ? "none" : "its default";  // transforms[2], or an option
  };
  std::vector<std::string> found;
  std::string transform;  // the last differing transform: its parameters are not compared
  for (const auto& [name, unused] : all) {
    const std::string before = value_of(was, name), now = value_of(is, name);
    if (before == now || (!transform.empty() && absl::StartsWith(name, transform))) continue;
    if (absl::EndsWith(name, "]")) transform = name + ".";
    found.push_back(absl::StrCat(name, " was ", before, " and is ", now));
  }
  return absl::StrJoin(found, "; ");
}

}  // namespace stoker_tf
