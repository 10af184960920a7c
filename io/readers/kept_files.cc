#include "io/readers/kept_files.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace stoker {

KeptFile* KeptFiles::Find(std::string_view path) {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return nullptr;
  files_.splice(files_.begin(), files_, found->second);
  return &*found->second;
}

KeptFile* KeptFiles::Take(std::string_view path) {
  if (files_.size() < slots_) {
    files_.push_back({.path = {}, .slot = static_cast<uint32_t>(files_.size())});
  }
  const auto idle = std::ranges::find(files_.rbegin(), files_.rend(), 0u, &KeptFile::reads);
  if (idle == files_.rend()) return nullptr;
  const auto file = std::prev(idle.base());
  files_.splice(files_.begin(), files_, file);
  // The map's node is reused, so that many files in few slots allocate nothing.
  auto node = file->kept ? by_path_.extract(file->path) : decltype(by_path_)::node_type();
  file->path = path;
  file->open = false;
  file->kept = true;
  if (node.empty()) {
    by_path_.emplace(file->path, file);
  } else {
    node.key() = file->path;
    by_path_.insert(std::move(node));
  }
  return &*file;
}

void KeptFiles::Drop(KeptFile& file) {
  if (file.kept) by_path_.erase(file.path);
  file.kept = false;
}

}  // namespace stoker
