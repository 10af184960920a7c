// Makes the list of a packed set from the entries of its shards.
#pragma once

#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/index/image_list.h"
#include "io/packed/packed_format.h"

namespace stoker {

struct MergedSample {
  std::string_view path;  // below the folder; IsPackedPath
  packed_set::Sample sample;
};

struct MergedSet {
  ImageList list;
  std::vector<packed_set::Sample> samples;  // of each file of the list
};

// Puts the samples into the order in which ImageFolder would list files with these paths, with its
// classes. InvalidArgument, without a file, if that would be an error of ImageFolder: images next
// to class folders. Preconditions: there is a sample, and no path occurs twice.
Result<MergedSet> MergeShards(std::vector<MergedSample> samples);

}  // namespace stoker
