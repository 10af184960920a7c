// Checks the list of images in a file before its numbers are used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/index/image_list.h"

namespace stoker {

// Checks a list that grows: first all folders, then the paths, and so on. The functions are called
// in this order, those with a `begin` whenever elements from `begin` on have been added. After one
// has returned false, no other may be called.
//
// If all have returned true, every range of the list is inside it; the folders of a class are
// consecutive, and its name is the first part of their paths; no part of a path is empty, hidden,
// "." or "..", and no name contains a slash or a zero byte. Whether names are sorted is not
// checked.
class ListCheck {
 public:
  explicit ListCheck(ImageList& list) : list_(list) {}

  bool Folders(size_t begin);
  uint64_t path_bytes() const { return path_bytes_; }  // according to the folders
  bool Paths(size_t begin) const;                      // their bytes
  bool TakeClasses();                                  // the paths are complete: sets list.classes
  bool Files(size_t begin);
  bool FilesEnd();
  uint64_t name_bytes() const { return name_bytes_; }
  bool Names(size_t begin) const;  // their bytes
  bool NamesEnd() const;

 private:
  bool NextFolder();

  ImageList& list_;
  uint64_t path_bytes_ = 0;
  uint64_t name_bytes_ = 0;
  size_t folder_ = 0;     // of the checked file
  uint32_t name_at_ = 0;  // start of its name among the folder's names
};

}  // namespace stoker
