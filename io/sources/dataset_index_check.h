// What an index file's list of images has to be before anybody follows its numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "io/sources/image_list.h"

namespace stoker {

// Looks at a list that grows: first all folders, then the paths, and so on; each function is called
// in this order, those with a `begin` whenever elements from there on have been added. Once one has
// said false nothing else is to be called.
//
// When all have said true, every range of the list is inside it; the folders of a class follow each
// other, and its name is their paths' first part; no part of a path is empty, hidden, "." or "..",
// and no name has a slash or a zero byte in it. That names are sorted is not looked at.
class ListCheck {
 public:
  explicit ListCheck(ImageList& list) : list_(list) {}

  bool Folders(size_t begin);
  uint64_t path_bytes() const { return path_bytes_; }  // that the folders want
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
  size_t folder_ = 0;     // of the file looked at
  uint32_t name_at_ = 0;  // where its name begins, in those of the folder
};

}  // namespace stoker
