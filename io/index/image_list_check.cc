#include "io/index/image_list_check.h"

#include <string>

namespace stoker {
namespace {

// "a/b/"
bool IsFolderPath(std::string_view path) {
  if (!path.ends_with('/')) return false;
  while (!path.empty()) {
    if (path.front() == '/' || path.front() == '.') return false;
    path.remove_prefix(path.find('/') + 1);
  }
  return true;
}

}  // namespace

bool ListCheck::Folders(size_t begin) {
  for (size_t i = begin; i < list_.folders.size(); ++i) {
    const ImageList::Folder& folder = list_.folders[i];
    if (folder.unused != 0 || folder.path_begin != path_bytes_) return false;
    path_bytes_ += folder.path_bytes;
    if (i == 0) {
      if (folder.top != 0 || folder.first_file != 0 || folder.names_begin != 0) return false;
      continue;
    }
    const ImageList::Folder& before = list_.folders[i - 1];
    if (folder.path_bytes == 0 || before.path_bytes == 0)
      return false;  // a flat folder must be the only one
    if (folder.top != before.top && folder.top != before.top + 1) return false;
    if (folder.first_file < before.first_file || folder.names_begin < before.names_begin) {
      return false;
    }
  }
  return true;
}

bool ListCheck::Paths(size_t begin) const {
  return list_.paths.find('\0', begin) == std::string::npos;
}

bool ListCheck::TakeClasses() {
  if (list_.folders.empty()) return false;
  if (list_.folders[0].path_bytes == 0) return true;  // flat
  for (const ImageList::Folder& folder : list_.folders) {
    const std::string_view path = list_.PathOf(folder);
    if (!IsFolderPath(path)) return false;
    const std::string_view top = path.substr(0, path.find('/'));
    if (folder.top == list_.classes.size()) {
      if (top.size() + 1 != path.size()) return false;
      if (!list_.classes.empty() && list_.classes.back() >= top) return false;
      list_.classes.emplace_back(top);
    } else if (top != list_.classes.back()) {
      return false;
    }
  }
  return true;
}

// Moves to the next folder. Returns whether this one's names end where the next one's begin.
bool ListCheck::NextFolder() {
  const uint64_t end = list_.folders[folder_].names_begin + name_at_;
  ++folder_;
  name_at_ = 0;
  return list_.folders[folder_].names_begin == end;
}

bool ListCheck::Files(size_t begin) {
  for (size_t i = begin; i < list_.files.size(); ++i) {
    while (folder_ + 1 < list_.folders.size() && list_.folders[folder_ + 1].first_file <= i) {
      if (!NextFolder()) return false;
    }
    const ImageList::File& file = list_.files[i];
    if (file.folder != folder_ || file.name_end <= name_at_) return false;
    name_at_ = file.name_end;
  }
  return true;
}

bool ListCheck::FilesEnd() {
  if (list_.files.empty() || list_.files.size() >= kNowhere) return false;
  while (folder_ + 1 < list_.folders.size()) {
    if (list_.folders[folder_ + 1].first_file != list_.files.size() || !NextFolder()) return false;
  }
  name_bytes_ = list_.folders.back().names_begin + name_at_;
  return true;
}

bool ListCheck::Names(size_t begin) const {
  return list_.names.find('\0', begin) == std::string::npos &&
         list_.names.find('/', begin) == std::string::npos;
}

bool ListCheck::NamesEnd() const {
  for (size_t i = 0; i < list_.folders.size(); ++i) {
    const ImageList::Folder& folder = list_.folders[i];
    uint64_t begin = folder.names_begin;
    for (uint64_t file = folder.first_file; file < list_.EndOf(i); ++file) {
      if (list_.names[begin] == '.') return false;
      begin = folder.names_begin + list_.files[file].name_end;
    }
  }
  return true;
}

}  // namespace stoker
