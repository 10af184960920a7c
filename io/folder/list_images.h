// Lists the images of a folder, and checks whether such a list still holds.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "core/result/result.h"
#include "io/index/folder_listing.h"
#include "io/index/image_list.h"
#include "io/source/path_table.h"

namespace stoker {

// How classes without images are treated. kRefuseToPack has advice for packing.
enum class EmptyClasses { kRefuse, kRefuseToPack, kAllow };

// The kind of a file in a folder of images, by its extension; all listed ones have one.
NameKind KindOfFile(std::string_view name);

// The error of a folder without images.
Error NoImage(const std::string& directory, const SkippedFiles& skipped);

// Lists the images as ImageFolder (image_folder.h) promises, with its errors. `threads`: 0 (the
// cores allotted) to 256.
Result<ImageList> ListImages(const std::string& directory, int threads,
                             EmptyClasses empty = EmptyClasses::kRefuse);

// The image files below a folder, whose subfolders are not classes.
struct ImagesBelow {
  PathTable paths;  // relative to the folder, sorted bytewise
  SkippedFiles skipped;
};

// Lists them: images may be next to subfolders, and a folder may be empty. `threads`: as above.
// Unimplemented for folders of objects; other errors as above.
Result<ImagesBelow> ListImagesBelow(const std::string& directory, int threads);

// The value of a folder's changed_ns in an index file if the time is unknown.
inline constexpr int64_t kUnknownTime = std::numeric_limits<int64_t>::min();

// Returns whether ListImages would return `list`, which comes from an index file. The folder itself
// is read again and compared by name: its images if it is flat, otherwise its class folders. So the
// index may be in it, although that changes its time. The folders below are stat'ed: adding,
// removing or renaming an entry changes a folder's time. The result is wrongly true
// - if a link to a file, or to nothing, now leads to a folder, or the other way round;
// - if a folder may no longer be read, but can still be traversed;
// - if the file system's clock was set back, or lags that of the machine that made the
//   index, so that two changes have the same time;
// - if the file system keeps no times of changes (core/system/file_stamp.h), and a folder's time
// was set
//   back.
//
// It is wrongly false for a copy of the folder, and if a folder's permissions have changed.
//
// `skipped_in_root` is set as ListImages would set it, if the result is true.
bool IsStill(const std::string& directory, const ImageList& list, int threads,
             SkippedFiles& skipped_in_root);

}  // namespace stoker
