// Makes the list of a packed set from the entries of its shards.
#pragma once

#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/index/image_list.h"
#include "io/packed/packed_format.h"
#include "io/packed/packed_index.h"

namespace stoker {

struct MergedSample {
  std::string_view path;  // below the folder; IsPackedPath
  packed_set::Sample sample;
};

struct MergedSet {
  ImageList list;
  std::vector<packed_set::Sample> samples;  // of each file of the list
  PackedPieces further;                     // of MergePieces
};

// Puts the samples into the order in which ImageFolder would list files with these paths, with its
// classes. InvalidArgument, without a file, if that would be an error of ImageFolder: images next
// to class folders. Preconditions: there is a sample, and no path occurs twice.
Result<MergedSet> MergeShards(std::vector<MergedSample> samples);

// The same for samples of several images: sorts them bytewise by the paths of their first ones.
// `pieces`: all of each sample, one after another. Preconditions: as above, and AreSound(fields).
Result<MergedSet> MergePieces(const std::vector<packed_set::PieceField>& fields,
                              const std::vector<MergedSample>& pieces);

}  // namespace stoker
