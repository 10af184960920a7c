#include "io/index/image_list.h"

#include <unordered_map>
#include <utility>

#include "io/source/source.h"

namespace stoker {

ImageList ImageList::Of(std::vector<std::string> classes, std::vector<ListedFolder> folders) {
  ImageList list;
  list.classes = std::move(classes);
  size_t files = 0, names = 0, paths = 0;
  for (const ListedFolder& folder : folders) {
    files += folder.files.size();
    names += folder.files.bytes.size();
    paths += folder.path.size() + 1;
  }
  list.folders.reserve(folders.size());
  list.files.reserve(files);
  list.names.reserve(names);
  list.paths.reserve(paths);
  for (ListedFolder& folder : folders) {
    const auto index = static_cast<uint32_t>(list.folders.size());
    const uint64_t path_begin = list.paths.size();
    if (!folder.path.empty()) list.paths.append(folder.path).push_back('/');
    list.folders.push_back({.changed_ns = folder.changed_ns,
                            .names_begin = list.names.size(),
                            .path_begin = path_begin,
                            .path_bytes = static_cast<uint32_t>(list.paths.size() - path_begin),
                            .first_file = static_cast<uint32_t>(list.files.size()),
                            .top = folder.top});
    list.names += folder.files.bytes;
    for (const uint32_t end : folder.files.ends) list.files.push_back({index, end});
    folder = {};
  }
  return list;
}

int64_t ImageList::LabelOf(uint64_t file) const {
  return classes.empty() ? kNoLabel : static_cast<int64_t>(folders[files[file].folder].top);
}

// FNV-1a (Fowler, Noll, Vo) over each path below the root, and the label.
uint64_t ImageList::Fingerprint() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  };
  for (uint64_t file = 0; file < files.size(); ++file) {
    add(PathOf(folders[files[file].folder]));
    add(NameOf(file));
    add(std::string_view("\0", 1));
    add(std::to_string(LabelOf(file)));
    add("\n");
  }
  return hash;
}

uint64_t ImageList::memory_bytes() const {
  uint64_t bytes = names.capacity() + paths.capacity() + files.capacity() * sizeof(File) +
                   folders.capacity() * sizeof(Folder) + classes.capacity() * sizeof(std::string) +
                   skipped.memory_bytes() + skipped_in_root.memory_bytes();
  for (const std::string& name : classes) {
    if (name.capacity() >= sizeof(std::string) / 2) bytes += name.capacity() + 1;
  }
  return bytes;
}

std::vector<uint32_t> PositionsIn(const ImageList& other, const ImageList& list) {
  std::unordered_map<std::string_view, size_t> folder_of;
  for (size_t i = 0; i < other.folders.size(); ++i) {
    folder_of.emplace(other.PathOf(other.folders[i]), i);
  }
  std::vector<uint32_t> positions(list.files.size(), kNowhere);
  for (size_t i = 0; i < list.folders.size(); ++i) {
    const auto found = folder_of.find(list.PathOf(list.folders[i]));
    if (found == folder_of.end()) continue;
    uint64_t there = other.folders[found->second].first_file;
    const uint64_t end = other.EndOf(found->second);
    for (uint64_t here = list.folders[i].first_file; here < list.EndOf(i); ++here) {
      const std::string_view name = list.NameOf(here);
      while (there < end && other.NameOf(there) < name) ++there;
      if (there < end && other.NameOf(there) == name)
        positions[here] = static_cast<uint32_t>(there);
    }
  }
  return positions;
}

}  // namespace stoker
