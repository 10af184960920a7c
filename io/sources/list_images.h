// Which files of a folder are its images, and whether a list of them still holds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "engine/core/result.h"
#include "io/sources/image_list.h"

namespace stoker {

// As ImageFolder (image_folder.h) promises, with its errors. `threads`: 0, the cores allotted, to
// 256.
Result<ImageList> ListImages(const std::string& directory, int threads);

// What a folder's modified_ns may be in an index file, beside a time.
inline constexpr int64_t kUnsettled = std::numeric_limits<int64_t>::min();   // nobody can tell
inline constexpr int64_t kAsTheIndex = std::numeric_limits<int64_t>::max();  // that of the index

// Whether ListImages would give `list`, which is from an index file of which `index_modified_ns` is
// the last modification. Where the folder has classes it is itself read again, for the list of its
// folders; all others are stat'ed, a flat one too: adding, removing or renaming an entry changes a
// folder's time. So what the folders alone do not tell goes unseen:
// - a link to a file, or to nothing, that leads to a folder now, or the other way round;
// - changes that somebody has set the folder's time back after;
// - folders that may no longer be read, though they can still be gone through.
// But for that it is never true by mistake, where the file system keeps times as POSIX wants it.
bool IsStill(const std::string& directory, const ImageList& list, int64_t index_modified_ns,
             int threads);

}  // namespace stoker
