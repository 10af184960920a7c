#include "io/folder/list_images.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "core/system/start_thread.h"
#include "io/index/folder_listing.h"
#include "io/packed/open_packed.h"
#include "io/remote/object_url.h"

namespace stoker {
namespace {

// The extensions of torchvision's ImageFolder, Keras' .gif, and those of further formats that are
// decoded.
constexpr std::array<std::string_view, 22> kExtensions = {
    ".jpg",  ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif", ".avif",
    ".heic", ".heif", ".hif", ".jp2", ".j2k", ".j2c", ".jpc", ".dib",  ".pnm",  ".pbm", ".ico"};

// Extensions of other image formats, and rare ones of JPEG. torchvision does not list these either.
constexpr std::array<std::string_view, 27> kSkipped = {
    ".apng", ".jxl", ".jxr",  ".wdp", ".jpf", ".jpx", ".jpe", ".jif", ".jfi",
    ".jfif", ".svg", ".svgz", ".psd", ".exr", ".tga", ".dds", ".pam", ".pfm",
    ".qoi",  ".pcx", ".dng",  ".cr2", ".cr3", ".nef", ".arw", ".rw2", ".raf"};

Error ImagesBesideClasses(const std::string& directory, const ListedRoot& root) {
  return Error{.code = Code::kInvalidArgument,
               .cause = std::to_string(root.files.size()) +
                        Plural(root.files.size(), " image", " images") + " (the first is '" +
                        std::string(root.files[0]) + "') next to " +
                        std::to_string(root.folders.size()) +
                        Plural(root.folders.size(), " folder", " folders") + " (the first is '" +
                        root.folders[0] + "') would belong to no class",
               .file = directory,
               .advice = "Move the images into class folders, or the folders elsewhere"};
}

// Returns the classes without images, by label.
std::vector<uint32_t> ClassesWithoutImages(size_t classes,
                                           const std::vector<ListedFolder>& folders) {
  std::vector<bool> has(classes);
  for (const ListedFolder& folder : folders) {
    if (folder.files.size() > 0) has[folder.top] = true;
  }
  std::vector<uint32_t> without;
  for (size_t i = 0; i < classes; ++i) {
    if (!has[i]) without.push_back(static_cast<uint32_t>(i));
  }
  return without;
}

constexpr const char* kGiveNames =
    "image_folder takes empty ones with allow_empty, and the training set's class_names, which "
    "number the classes as there";
constexpr const char* kReadUnpacked =
    "A packed set has the classes of its photographs, and cannot have empty ones. Read the folder "
    "itself, as image_folder does with allow_empty";

Error RefuseEmpty(const std::string& directory, const std::vector<std::string>& classes,
                  const std::vector<uint32_t>& empty,
                  const std::map<uint32_t, SkippedFiles>& skipped, const char* advice) {
  constexpr size_t kNamed = 5;
  std::string names;
  const bool converted = std::any_of(
      empty.begin(), empty.end(), [&skipped](uint32_t label) { return skipped.contains(label); });
  for (size_t i = 0; i < std::min(empty.size(), kNamed); ++i) {
    names += (i == 0 ? "'" : ", '") + classes[empty[i]] + "'";
    const auto there = skipped.find(empty[i]);
    if (there != skipped.end()) names += " (but " + there->second.Counts() + ")";
  }
  if (empty.size() > kNamed) names += ", …";
  return Error{
      .code = Code::kInvalidArgument,
      .cause = std::to_string(empty.size()) +
               Plural(empty.size(), " class folder has", " class folders have") +
               (converted ? " no file with an extension that stoker lists: " : " no image: ") +
               names,
      .file = directory,
      .advice = (converted ? std::string(kConvertSkipped) + ". " : std::string()) +
                "Every folder here is a class, and removing one renumbers those after it. " +
                advice};
}

// Lists the class folders.
Status ListClasses(FolderLister& lister, const std::string& directory, const ListedRoot& root,
                   int threads, EmptyClasses allowed, std::vector<ListedFolder>& folders,
                   SkippedFiles& skipped) {
  if (root.files.size() > 0) return ImagesBesideClasses(directory, root);
  ASSIGN_OR_RETURN(ListedTree below, lister.ListBelow(root.folders, threads));
  skipped = below.Skipped();
  if (std::none_of(below.folders.begin(), below.folders.end(),
                   [](const ListedFolder& folder) { return folder.files.size() > 0; })) {
    SkippedFiles all = root.skipped;
    all.Add(skipped);
    return NoImage(directory, all);
  }
  const std::vector<uint32_t> empty = ClassesWithoutImages(root.folders.size(), below.folders);
  if (!empty.empty() && allowed != EmptyClasses::kAllow) {
    return RefuseEmpty(directory, root.folders, empty, below.skipped,
                       allowed == EmptyClasses::kRefuse ? kGiveNames : kReadUnpacked);
  }
  folders = std::move(below.folders);
  return {};
}

// Returns whether a file's path is too long for the system; listing would refuse it.
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

// Returns whether the list has exactly these files and no folder.
bool IsFlat(const ImageList& list, const NameList& files) {
  const auto ends_there = [](const ImageList::File& file, uint32_t end) {
    return file.name_end == end;
  };
  return list.folders.size() == 1 && list.names == files.bytes &&
         std::equal(list.files.begin(), list.files.end(), files.ends.begin(), files.ends.end(),
                    ends_there);
}

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
        const int64_t then = folder.changed_ns;
        if (then == kUnknownTime || ChangedNs(root_, path.c_str()) != then) same_ = false;
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

Error NoImage(const std::string& directory, const SkippedFiles& skipped) {
  if (!skipped.empty()) {
    return Error{
        .code = Code::kInvalidArgument,
        .cause = "no file with an extension that stoker lists in this folder or below it, but: " +
                 skipped.Counts() + " (for example " + skipped.example + ")",
        .file = directory,
        .advice = kConvertSkipped};
  }
  if (IsPackedSet(directory)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "this is a packed set, and not a folder of images",
                 .file = directory,
                 .advice =
                     "Open it as a packed set (stoker.packed; in C++, Packed). It needs no crop "
                     "index, and `stoker unpack` restores the folder"};
  }
  std::string extensions;
  for (std::string_view extension : kExtensions) extensions.append(" ").append(extension);
  return Error{.code = Code::kInvalidArgument,
               .cause = "no image in this folder or below it",
               .file = directory,
               .advice = "Images are recognised by their extensions (any case):" + extensions};
}

NameKind KindOfFile(std::string_view name) {
  constexpr size_t kLongest = 5;
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || name.size() - dot > kLongest) return {};
  std::string extension(name.substr(dot));  // short, so that nothing is allocated
  // tolower() depends on the locale.
  for (char& c : extension) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (std::find(kExtensions.begin(), kExtensions.end(), extension) != kExtensions.end()) {
    return {NameKind::kListed};
  }
  const auto* const skipped = std::find(kSkipped.begin(), kSkipped.end(), extension);
  if (skipped != kSkipped.end()) return {NameKind::kSkipped, *skipped};
  return {};
}

Result<ImageList> ListImages(const std::string& directory, int threads, EmptyClasses empty) {
  TRY(CheckThreads(threads));
  ASSIGN_OR_RETURN(FolderLister lister, FolderLister::Open(directory, &KindOfFile));
  ASSIGN_OR_RETURN(ListedRoot root, lister.ListRoot());
  std::vector<ListedFolder> folders;
  SkippedFiles skipped;
  if (root.folders.empty()) {  // flat
    if (root.files.size() == 0) return NoImage(directory, root.skipped);
    folders.push_back(
        {.path = "", .top = 0, .files = std::move(root.files), .changed_ns = root.changed_ns});
  } else {
    TRY(ListClasses(lister, directory, root, ThreadsOf(threads), empty, folders, skipped));
  }
  uint64_t files = 0;
  for (const ListedFolder& folder : folders) files += folder.files.size();
  if (files >= kNowhere) {
    return Error{Code::kResourceExhausted, "more than 4,294,967,294 images", directory};
  }
  ImageList list = ImageList::Of(std::move(root.folders), std::move(folders));
  list.skipped = std::move(skipped);
  list.skipped_in_root = std::move(root.skipped);
  return list;
}

Result<ImagesBelow> ListImagesBelow(const std::string& directory, int threads) {
  TRY(CheckThreads(threads));
  if (IsObjectUrl(directory)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "folders of objects are not listed",
                 .file = directory,
                 .advice = "List the objects yourself, and give the lists to files()"};
  }
  ASSIGN_OR_RETURN(FolderLister lister, FolderLister::Open(directory, &KindOfFile));
  ASSIGN_OR_RETURN(ListedRoot root, lister.ListRoot());
  ASSIGN_OR_RETURN(const ListedTree tree, lister.ListBelow(root.folders, ThreadsOf(threads)));
  PathTable listed;
  std::string path;
  const auto add = [&](std::string_view folder, const NameList& files) {
    for (size_t i = 0; i < files.size(); ++i) {
      path.assign(folder).append(folder.empty() ? "" : "/").append(files[i]);
      listed.Add(path);
    }
  };
  add("", root.files);
  for (const ListedFolder& folder : tree.folders) add(folder.path, folder.files);
  std::vector<size_t> order(listed.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, {}, [&](size_t i) { return listed[i]; });
  ImagesBelow sorted{.paths = {}, .skipped = std::move(root.skipped)};
  sorted.paths.Reserve(order.size());
  for (const size_t i : order) sorted.paths.Add(listed[i]);
  sorted.skipped.Add(tree.Skipped());
  return sorted;
}

bool IsStill(const std::string& directory, const ImageList& list, int threads,
             SkippedFiles& skipped_in_root) {
  Result<FolderLister> lister = FolderLister::Open(directory, &KindOfFile);
  if (!lister.ok() || HasPathsTooLong(directory, list)) return false;
  const Result<ListedRoot> root = lister->ListRoot();
  if (!root.ok() || root->folders != list.classes) return false;
  skipped_in_root = root->skipped;
  if (list.classes.empty()) return IsFlat(list, root->files);
  if (root->files.size() > 0) return false;
  Comparison comparison(lister->descriptor(), list);
  constexpr size_t kWorthAThread = 4 * Comparison::kAtATime;
  const size_t most =
      std::min(list.folders.size() / kWorthAThread, static_cast<size_t>(ThreadsOf(threads)));
  InParallel(std::max(static_cast<int>(most), 1), [&comparison] { comparison.Run(); });
  return comparison.same();
}

}  // namespace stoker
