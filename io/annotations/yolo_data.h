// YoloData: Ultralytics' description of a data set, in a YAML file.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct YoloData {
  std::string path;  // the root of the other paths; empty if the file has none
  // The texts of all other keys: of a list its items, of a single value this one.
  std::map<std::string, std::vector<std::string>> lists;
  std::vector<std::string> names;  // by class
};

// Reads a file of at most 1 MiB with path, names (a list, or a map from 0, 1, …), and a text or a
// list of texts for each split. Other keys, such as nc and download, may have any value except
// an alias (*a). Anchors (&a) have no effect.
//
// InvalidArgument with the file and the line: the file is not YAML or a mapping; a key occurs
// twice; there are no names, or their numbers are not 0, 1, …; a value is of another kind, or
// an alias.
Result<YoloData> ReadYoloData(const std::string& path);

}  // namespace stoker
