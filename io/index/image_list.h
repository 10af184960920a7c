// ImageList: the names and labels of a folder's images, compact enough for millions.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "io/index/folder_listing.h"
#include "io/source/source.h"

namespace stoker {

// In the order of torchvision's ImageFolder. `folders`, `files`, `paths` and `names` are sections
// of a file, unchanged (section_format.h).
struct ImageList {
  // A listed folder, with or without images directly in it. Files are grouped by folder, in the
  // folders' order.
  struct Folder {
    int64_t changed_ns = 0;    // as ListedFolder::changed_ns
    uint64_t names_begin = 0;  // offset of its first file's name in `names`
    uint64_t path_begin = 0;   // in `paths`
    uint32_t path_bytes = 0;
    uint32_t first_file = 0;
    uint32_t top = 0;  // the label
    uint32_t unused = 0;
  };
  struct File {
    uint32_t folder = 0;
    uint32_t name_end =
        0;  // relative to its folder's names; it begins where the previous name ends
  };

  std::vector<std::string> classes;  // by label; empty for a flat folder, which has no labels
  std::vector<Folder> folders;
  std::vector<File> files;
  std::string
      paths;  // of folders, relative to the root, with a slash at the end; the root's is empty
  std::string names;  // of files

  // Skipped files below the class folders, and directly in the root. An index stores only the
  // former: the root is read whenever an index is opened.
  SkippedFiles skipped = {}, skipped_in_root = {};

  // Builds the list. `folders` is emptied gradually, so that names are not held twice.
  // Precondition: no more than UINT32_MAX files.
  static ImageList Of(std::vector<std::string> classes, std::vector<ListedFolder> folders);

  std::string_view PathOf(const Folder& folder) const {
    return std::string_view(paths).substr(folder.path_begin, folder.path_bytes);
  }
  std::string_view NameOf(uint64_t file) const {
    const Folder& folder = folders[files[file].folder];
    const uint32_t begin = file == folder.first_file ? 0 : files[file - 1].name_end;
    return std::string_view(names).substr(folder.names_begin + begin, files[file].name_end - begin);
  }
  // Returns the end of a folder's files.
  uint64_t EndOf(size_t folder) const {
    return folder + 1 < folders.size() ? folders[folder + 1].first_file : files.size();
  }
  // Appends the path relative to the root.
  void AppendPath(uint64_t file, std::string& to) const {
    to.append(PathOf(folders[files[file].folder])).append(NameOf(file));
  }
  int64_t LabelOf(uint64_t file) const;

  // The fingerprint of SampleSource::Fingerprint.
  uint64_t Fingerprint() const;
  uint64_t memory_bytes() const;  // on the heap
};

static_assert(sizeof(ImageList::Folder) == 40);
static_assert(sizeof(ImageList::File) == 8);

// Returns for each file of `list` the file of `other` with the same path, or kNowhere. O(n) in both
// if both are sorted; if `other` is not, fewer are found.
inline constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
std::vector<uint32_t> PositionsIn(const ImageList& other, const ImageList& list);

}  // namespace stoker
