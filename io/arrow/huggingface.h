// Reads the metadata that Hugging Face's datasets writes.
#pragma once

#include <string>
#include <vector>

#include "core/result/result.h"

namespace stoker {

// Returns the class names of a column of type ClassLabel. `metadata`: "huggingface" of an Arrow
// schema. Empty if the column has another type, or the metadata is not understood.
std::vector<std::string> ClassLabelNames(const std::string& metadata, const std::string& column);

// Returns whether save_to_disk() wrote this folder, for a dataset or for several splits. A
// state.json alone, which other programs write as well, counts only if it has a list of data files.
bool IsSavedDataset(const std::string& folder);

// Returns the Arrow files of a dataset in the folder that save_to_disk() wrote, in its order.
// InvalidArgument names the folder, or the file in it: several splits, one of which must be chosen;
// no such folder; a list of files that cannot be parsed, or has more than kMaxShards.
Result<std::vector<std::string>> SavedDatasetFiles(const std::string& folder);

}  // namespace stoker
