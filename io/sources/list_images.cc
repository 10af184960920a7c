#include "io/sources/list_images.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "engine/core/machine.h"
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

// Names the classes without an image; empty when there is none.
std::vector<std::string> ClassesWithoutImages(const std::vector<std::string>& classes,
                                              const std::vector<ListedFolder>& folders) {
  std::vector<bool> has(classes.size());
  for (const ListedFolder& folder : folders) {
    if (folder.files.size() > 0) has[folder.top] = true;
  }
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

// Listing would refuse it: a file whose path the system does not take.
bool HasPathsTooLong(const std::string& directory, const ImageList& list) {
  for (size_t i = 0; i < list.folders.size(); ++i) {
    const uint64_t folder = directory.size() + 1 + list.folders[i].path_bytes;
    if (folder + NAME_MAX < PATH_MAX) continue;
    for (uint64_t file = list.folders[i].first_file; file < list.EndOf(i); ++file) {
      if (folder + list.NameOf(file).size() >= PATH_MAX) return true;
    }
  }
  return false;
}

// Whether the list is of these files and no folder.
bool IsFlat(const ImageList& list, const NameList& files) {
  const auto ends_there = [](const ImageList::File& file, uint32_t end) {
    return file.name_end == end;
  };
  return list.folders.size() == 1 && list.names == files.bytes &&
         std::equal(list.files.begin(), list.files.end(), files.ends.begin(), files.ends.end(),
                    ends_there);
}

bool HasFiles(const ListedFolder& folder) { return folder.files.size() > 0; }

int ThreadsOf(int threads) { return threads == 0 ? AllottedCores() : threads; }

// Stats folders, a few at a time, until one has changed.
class Comparison {
 public:
  Comparison(int root, const ImageList& list) : root_(root), list_(list) {}

  // The body of each thread.
  void Run() {
    std::string path;
    while (same_) {
      const size_t first = next_.fetch_add(kAtATime);
      if (first >= list_.folders.size()) return;
      const size_t end = std::min(first + kAtATime, list_.folders.size());
      for (size_t i = first; i < end; ++i) {
        const ImageList::Folder& folder = list_.folders[i];
        path.assign(list_.PathOf(folder));
        const int64_t then = folder.modified_ns;
        if (then == kUnsettled || ModifiedNs(root_, path.c_str()) != then) same_ = false;
      }
    }
  }

  bool same() const { return same_; }

  static constexpr size_t kAtATime = 16;

 private:
  const int root_;
  const ImageList& list_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> same_{true};
};

}  // namespace

Result<ImageList> ListImages(const std::string& directory, int threads) {
  if (Status status = CheckThreads(threads); !status.ok()) return std::move(status).error();
  Result<FolderLister> lister = FolderLister::Open(directory, IsImageName);
  if (!lister.ok()) return std::move(lister).error();
  Result<ListedRoot> root = lister->ListRoot();
  if (!root.ok()) return std::move(root).error();
  std::vector<ListedFolder> folders;
  if (root->folders.empty()) {  // flat
    if (root->files.size() == 0) return NoImage(directory);
    folders.push_back(
        {.path = "", .top = 0, .files = std::move(root->files), .modified_ns = root->modified_ns});
  } else {
    if (root->files.size() > 0) return ImagesBesideClasses(directory, *root);
    Result<std::vector<ListedFolder>> below = lister->ListBelow(root->folders, ThreadsOf(threads));
    if (!below.ok()) return std::move(below).error();
    folders = *std::move(below);
    if (std::none_of(folders.begin(), folders.end(), HasFiles)) return NoImage(directory);
    const std::vector<std::string> empty = ClassesWithoutImages(root->folders, folders);
    if (!empty.empty()) return EmptyClasses(directory, empty);
  }
  uint64_t files = 0;
  for (const ListedFolder& folder : folders) files += folder.files.size();
  if (files >= kNowhere) {
    return Error{Code::kResourceExhausted, "more than 4,294,967,294 images", directory};
  }
  return ImageList::Of(std::move(root->folders), std::move(folders));
}

bool IsStill(const std::string& directory, const ImageList& list, int threads) {
  Result<FolderLister> lister = FolderLister::Open(directory, IsImageName);
  if (!lister.ok() || HasPathsTooLong(directory, list)) return false;
  const Result<ListedRoot> root = lister->ListRoot();
  if (!root.ok() || root->folders != list.classes) return false;
  if (list.classes.empty()) return IsFlat(list, root->files);
  if (root->files.size() > 0) return false;
  Comparison comparison(lister->descriptor(), list);
  constexpr size_t kWorthAThread = 4 * Comparison::kAtATime;
  const size_t most =
      std::min(list.folders.size() / kWorthAThread, static_cast<size_t>(ThreadsOf(threads)));
  std::vector<std::thread> helpers;
  try {
    for (size_t i = 1; i < most; ++i) helpers.emplace_back([&comparison] { comparison.Run(); });
  } catch (const std::system_error&) {
    // No more threads to be had: those that there are do the work.
  }
  comparison.Run();
  for (std::thread& helper : helpers) helper.join();
  return comparison.same();
}

}  // namespace stoker
