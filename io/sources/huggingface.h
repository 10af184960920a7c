// What Hugging Face's datasets says about its files.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace stoker {

// The class names of a column of type ClassLabel. `metadata`: "huggingface" of an Arrow schema.
// Empty if the column has another type, or the metadata is not understood.
std::vector<std::string> ClassLabelNames(const std::string& metadata, const std::string& column);

// Whether this is a folder that save_to_disk() wrote, of a dataset or of several splits: a
// state.json alone, which other programs write as well, is none unless it has a list of data files.
bool IsSavedDataset(const std::string& folder);

// The Arrow files of a dataset in the folder that save_to_disk() wrote, in its order.
// InvalidArgument names the folder, or the file in it: several splits, of which one has to be
// chosen; no such folder; a list of files that is not understood, or has more than kMaxShards.
Result<std::vector<std::string>> SavedDatasetFiles(const std::string& folder);

}  // namespace stoker
