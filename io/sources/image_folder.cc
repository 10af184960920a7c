#include "io/sources/image_folder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/core/machine.h"
#include "io/sources/dataset_index.h"
#include "io/sources/folder_listing.h"

namespace stoker {
namespace {

constexpr std::array<std::string_view, 9> kExtensions = {".jpg", ".jpeg", ".png",  ".ppm", ".bmp",
                                                         ".pgm", ".tif",  ".tiff", ".webp"};

// Not tolower(): that depends on the locale.
bool EndsWithIgnoringCase(std::string_view name, std::string_view extension) {
  if (name.size() < extension.size()) return false;
  name.remove_prefix(name.size() - extension.size());
  return std::equal(name.begin(), name.end(), extension.begin(), [](char c, char lower) {
    return (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) == lower;
  });
}

bool IsImageName(std::string_view name) {
  return std::any_of(kExtensions.begin(), kExtensions.end(), [name](std::string_view extension) {
    return EndsWithIgnoringCase(name, extension);
  });
}

struct FoundIndex {
  std::optional<DatasetIndex> index;
  std::string warning;  // why an index that is there is not used, or is of little use
};

Result<FoundIndex> FindIndex(const std::string& directory, const ImageFolderOptions& options) {
  FoundIndex found;
  if (options.crop_index == ImageFolderOptions::CropIndex::kOff) return found;
  const bool chosen = options.crop_index == ImageFolderOptions::CropIndex::kFile;
  if (chosen && options.crop_index_file.empty()) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "image_folder: crop_index_file is empty",
                 .advice = "Give the file that `stoker index` wrote"};
  }
  Result<DatasetIndex> index =
      DatasetIndex::Open(chosen ? options.crop_index_file : directory + "/" + kIndexName);
  if (index.ok()) {
    found.index = *std::move(index);
  } else if (chosen) {
    return std::move(index).error();
  } else if (index.error().code != Code::kNotFound) {
    Error error = std::move(index).error();
    if (error.code == Code::kInvalidArgument) error.advice = "Make it anew with `stoker index`";
    found.warning = "photographs are decoded without the index: " + error.Message();
  }
  return found;
}

// All names of all files in one string; for each file 8 bytes beside its name.
class FolderSource final : public SampleSource {
 public:
  // `folders` is emptied bit by bit, so that names are not held twice.
  FolderSource(std::string directory, std::vector<std::string> classes,
               std::vector<ListedFolder> folders, FoundIndex index)
      : directory_(std::move(directory)), index_(std::move(index)), classes_(std::move(classes)) {
    prefix_ = directory_;
    while (prefix_.ends_with('/')) prefix_.pop_back();
    prefix_ += '/';
    Reserve(folders);
    for (ListedFolder& folder : folders) {
      Add(folder);
      folder = {};
    }
    if (index_.index) WarnOfFew();
  }

  uint64_t size() const override { return files_.size(); }

  SampleRef At(uint64_t id) const override {
    SampleRef ref;
    ref.id = id;
    ref.file = static_cast<uint32_t>(id);
    if (!classes_.empty()) ref.label = folders_[files_[id].folder].top;
    return ref;
  }

  void PathOf(uint32_t file, std::string& path) const override {
    const Folder& folder = folders_[files_[file].folder];
    const uint32_t begin = file == folder.first_file ? 0 : files_[file - 1].name_end;
    path.assign(prefix_);
    path.append(folder_paths_, folder.path_begin, folder.path_size);
    path.append(names_, folder.names_begin + begin, files_[file].name_end - begin);
  }

  uint64_t KeyOf(uint64_t id) const override {
    const File& file = files_[id];
    const Folder& folder = folders_[file.folder];
    const uint32_t begin = id == folder.first_file ? 0 : files_[id - 1].name_end;
    return SampleKey(
        std::string_view(folder_paths_).substr(folder.path_begin, folder.path_size),
        std::string_view(names_).substr(folder.names_begin + begin, file.name_end - begin));
  }

  void ReadCropIndex(uint64_t id, uint64_t most, std::vector<uint8_t>& record) const override {
    record.clear();
    if (index_.index) index_.index->Read(KeyOf(id), most, record);
  }

  std::string Warning() const override { return index_.warning; }

  const std::vector<std::string>& classes() const override { return classes_; }

  uint64_t memory_bytes() const override {
    uint64_t bytes = sizeof(*this) + directory_.capacity() + prefix_.capacity() +
                     names_.capacity() + folder_paths_.capacity() +
                     files_.capacity() * sizeof(File) + folders_.capacity() * sizeof(Folder) +
                     classes_.capacity() * sizeof(std::string);
    if (index_.index) bytes += index_.index->memory_bytes();
    for (const std::string& name : classes_) {
      if (name.capacity() >= sizeof(std::string) / 2) bytes += name.capacity() + 1;
    }
    return bytes;
  }

  // FNV-1a (Fowler, Noll, Vo) over each path below the directory, and the label.
  uint64_t Fingerprint() const override {
    uint64_t hash = 0xcbf29ce484222325;
    const auto add = [&hash](std::string_view text) {
      for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    };
    std::string path;
    for (uint32_t file = 0; file < files_.size(); ++file) {
      PathOf(file, path);
      add(std::string_view(path).substr(prefix_.size()));
      add(std::string_view("\0", 1));
      add(std::to_string(At(file).label));
      add("\n");
    }
    return hash;
  }

  std::string Describe() const override { return "image_folder(" + directory_ + ")"; }

 private:
  struct File {
    uint32_t folder;
    uint32_t name_end;  // in the names of its folder
  };
  struct Folder {
    uint64_t names_begin;  // in names_
    uint64_t path_begin;   // in folder_paths_
    uint32_t path_size;    // with a slash at its end, or 0
    uint32_t first_file;
    uint32_t top;  // the label
  };

  void Reserve(const std::vector<ListedFolder>& folders) {
    size_t files = 0, names = 0, paths = 0;
    for (const ListedFolder& folder : folders) {
      files += folder.files.size();
      names += folder.files.bytes.size();
      paths += folder.path.size() + 1;
    }
    files_.reserve(files);
    names_.reserve(names);
    folder_paths_.reserve(paths);
    folders_.reserve(folders.size());
  }

  // An index of another folder, or one that has not been made anew for long.
  void WarnOfFew() {
    uint64_t indexed = 0;
    for (uint64_t id = 0; id < size() && 2 * indexed < size(); ++id) {
      indexed += index_.index->Has(KeyOf(id)) ? 1 : 0;
    }
    if (2 * indexed >= size()) return;
    index_.warning =
        Error{
            .cause = "the index has places for " + std::to_string(indexed) + " of " +
                     std::to_string(size()) + " photographs; the others are decoded without it",
            .file = index_.index->path(),
            .advice = "Where files were added, moved or renamed, make it anew with `stoker index`"}
            .Message();
  }

  void Add(const ListedFolder& folder) {
    const auto index = static_cast<uint32_t>(folders_.size());
    const uint64_t path_begin = folder_paths_.size();
    if (!folder.path.empty()) folder_paths_.append(folder.path).push_back('/');
    folders_.push_back({.names_begin = names_.size(),
                        .path_begin = path_begin,
                        .path_size = static_cast<uint32_t>(folder_paths_.size() - path_begin),
                        .first_file = static_cast<uint32_t>(files_.size()),
                        .top = folder.top});
    names_ += folder.files.bytes;
    for (uint32_t end : folder.files.ends) files_.push_back({index, end});
  }

  std::string directory_;  // as given
  FoundIndex index_;
  std::string prefix_;  // of every path
  std::vector<std::string> classes_;
  std::vector<Folder> folders_;
  std::vector<File> files_;
  std::string folder_paths_;
  std::string names_;
};

Error NoImage(const std::string& directory) {
  std::string extensions;
  for (std::string_view extension : kExtensions) extensions.append(" ").append(extension);
  return Error{.code = Code::kInvalidArgument,
               .cause = "no image in this folder or below it",
               .file = directory,
               .advice = "Images are told by their extensions (any case):" + extensions};
}

Error ImagesBesideClasses(const std::string& directory, const ListedRoot& root) {
  return Error{.code = Code::kInvalidArgument,
               .cause = std::to_string(root.files.size()) + " images (the first is '" +
                        std::string(root.files[0]) + "') lie beside " +
                        std::to_string(root.folders.size()) + " folders (the first is '" +
                        root.folders[0] + "'), so they belong to no class",
               .file = directory,
               .advice = "Move the images into class folders, or the folders elsewhere"};
}

// Names the classes that no listed folder belongs to; empty when there is none.
std::vector<std::string> ClassesWithoutImages(const std::vector<std::string>& classes,
                                              const std::vector<ListedFolder>& folders) {
  std::vector<bool> has(classes.size());
  for (const ListedFolder& folder : folders) has[folder.top] = true;
  std::vector<std::string> without;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!has[i]) without.push_back(classes[i]);
  }
  return without;
}

Error EmptyClasses(const std::string& directory, const std::vector<std::string>& empty) {
  constexpr size_t kNamed = 5;
  std::string names;
  for (size_t i = 0; i < std::min(empty.size(), kNamed); ++i) {
    names += (i == 0 ? "'" : ", '") + empty[i] + "'";
  }
  if (empty.size() > kNamed) names += ", …";
  return Error{.code = Code::kInvalidArgument,
               .cause = std::to_string(empty.size()) + " class folders have no image: " + names,
               .file = directory,
               .advice = "Every folder here is a class. Remove the empty ones"};
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> ImageFolder(const std::string& directory,
                                                        const ImageFolderOptions& options) {
  if (Status status = CheckThreads(options.threads); !status.ok()) {
    return std::move(status).error();
  }
  Result<FolderLister> lister = FolderLister::Open(directory, IsImageName);
  if (!lister.ok()) return std::move(lister).error();
  Result<ListedRoot> root = lister->ListRoot();
  if (!root.ok()) return std::move(root).error();
  std::vector<ListedFolder> folders;
  if (root->folders.empty()) {  // flat
    if (root->files.size() == 0) return NoImage(directory);
    folders.push_back({.path = "", .top = 0, .files = std::move(root->files)});
  } else {
    if (root->files.size() > 0) return ImagesBesideClasses(directory, *root);
    const int threads = options.threads == 0 ? AllottedCores() : options.threads;
    Result<std::vector<ListedFolder>> below = lister->ListBelow(root->folders, threads);
    if (!below.ok()) return std::move(below).error();
    folders = *std::move(below);
    if (folders.empty()) return NoImage(directory);
    const std::vector<std::string> empty = ClassesWithoutImages(root->folders, folders);
    if (!empty.empty()) return EmptyClasses(directory, empty);
  }
  uint64_t files = 0;
  for (const ListedFolder& folder : folders) files += folder.files.size();
  if (files > UINT32_MAX) {
    return Error{Code::kResourceExhausted, "more than 4,294,967,295 images", directory};
  }
  Result<FoundIndex> index = FindIndex(directory, options);
  if (!index.ok()) return std::move(index).error();
  return std::shared_ptr<const SampleSource>(std::make_shared<FolderSource>(
      directory, std::move(root->folders), std::move(folders), *std::move(index)));
}

}  // namespace stoker
