// Which files of a folder are its images, and whether a list of them still holds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/result.h"
#include "io/sources/image_list.h"

namespace stoker {

// As ImageFolder (image_folder.h) promises, with its errors. `threads`: 0, the cores allotted, to
// 256.
Result<ImageList> ListImages(const std::string& directory, int threads);

// What a folder's modified_ns may be in an index file, beside a time: nobody can tell.
inline constexpr int64_t kUnsettled = std::numeric_limits<int64_t>::min();

// Whether ListImages would give `list`, which is from an index file. The folder itself is read
// again and compared by name: its images where it is flat, its folders where those are classes. So
// the index may lie in it, which changes its time. The folders below are stat'ed: adding, removing
// or renaming an entry changes a folder's time. There it is true by mistake
// - where a link to a file, or to nothing, leads to a folder now, or the other way round;
// - where somebody has set a folder's time back after a change, as `cp -a` and `rsync -a` do that
//   copy a class into a folder with more files in it;
// - where a folder may no longer be read, though it can still be gone through;
// - where the clock that the file system takes times from was set back, or lags behind that of the
//   machine that made the index, so that two changes have got one time.
//
// `skipped_in_root`: as ListImages would give it, where it is true.
bool IsStill(const std::string& directory, const ImageList& list, int threads,
             SkippedFiles& skipped_in_root);

}  // namespace stoker
