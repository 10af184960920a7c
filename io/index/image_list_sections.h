// Reads and writes an ImageList as sections of a file: a folder's index, or a packed set's.
#pragma once

#include <cstdint>

#include "core/result/result.h"
#include "io/files/section_file.h"
#include "io/index/image_list.h"

namespace stoker {

inline constexpr size_t kImageListSections = 4;

// Replaces all of `list` except `skipped` with the file's content. For any bytes, even with correct
// checksums: the list satisfies ImageList's invariants, there is at least one file, and no path
// leads out of the folder except through links. Memory: at most five times what has been read of
// the file so far, because columns grow while they are checked, and 256 MiB of addresses per
// column. With kPaths, names of files may have slashes, and are not checked for hidden parts.
enum class ListedNames : uint8_t { kNames, kPaths };
Status ReadImageList(const SectionFile& file, ImageList& list,
                     ListedNames names = ListedNames::kNames);

// Adds the sections that ReadImageList reads.
Status AddImageList(const ImageList& list, SectionFileWriter& writer);

}  // namespace stoker
