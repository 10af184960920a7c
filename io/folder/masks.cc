#include "io/folder/masks.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/system/machine.h"
#include "io/folder/list_images.h"
#include "io/ranges/path_source.h"
#include "io/source/path_table.h"

namespace stoker {
namespace {

Error WrongMasks(std::string cause, const std::string& file, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = file,
          .advice = std::move(advice)};
}

// Returns the path without its extension. Precondition: it has one.
std::string_view WithoutExtension(std::string_view path) { return path.substr(0, path.rfind('.')); }

bool IsPng(std::string_view path) {
  const std::string_view extension = path.substr(path.rfind('.'));
  return std::ranges::equal(extension, std::string_view(".png"), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

bool IsMask(std::string_view path, std::string_view suffix) {
  if (!IsPng(path)) return false;
  const std::string_view stem = WithoutExtension(path.substr(path.rfind('/') + 1));
  return stem.ends_with(suffix);
}

// Returns the paths for which `keep` returns true.
template <typename Keep>
PathTable Filter(const PathTable& paths, const Keep& keep) {
  PathTable kept;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (keep(paths[i])) kept.Add(paths[i]);
  }
  return kept;
}

// Files in order that have no partner: their number and the first.
struct Alone {
  uint64_t count = 0;
  std::string first;

  void Add(std::string_view path) {
    if (count++ == 0) first = path;
  }
  std::string Text(const char* one, const char* many) const {
    return std::to_string(count) + " " + Plural(count, one, many) +
           (count == 1 ? " ('" : " (the first is '") + first + "')";
  }
};

// Joins images and masks, which are sorted lists.
class Join {
 public:
  Join(const std::string& images, const std::string& masks, const std::string& suffix)
      : images_(images), masks_(masks), suffix_(suffix) {}

  // `skipped`: in the images' folder.
  Status Run(const PathTable& images, const PathTable& masks, const SkippedFiles& skipped) {
    TRY(Find(masks));
    std::vector<bool> used(masks.size());
    Alone images_alone;
    for (size_t i = 0; i < images.size(); ++i) {
      const auto found = mask_of_.find(WithoutExtension(images[i]));
      if (found == mask_of_.end()) {
        images_alone.Add(images[i]);
        continue;
      }
      if (used[found->second]) return Twice("images", images_, images, i);
      used[found->second] = true;
      joined_images.Add(images[i]);
      joined_masks.Add(masks[found->second]);
    }
    Alone masks_alone;
    for (size_t i = 0; i < masks.size(); ++i) {
      if (!used[i]) masks_alone.Add(masks[i]);
    }
    if (images_alone.count == 0 && masks_alone.count == 0) return {};
    return NotJoined(images_alone, masks_alone, skipped);
  }

  PathTable joined_images, joined_masks;

 private:
  // Fills mask_of_.
  Status Find(const PathTable& masks) {
    mask_of_.reserve(masks.size());
    for (size_t i = 0; i < masks.size(); ++i) {
      std::string_view key = WithoutExtension(masks[i]);
      key.remove_suffix(suffix_.size());
      if (!mask_of_.emplace(key, i).second) return Twice("masks", masks_, masks, i);
    }
    return {};
  }

  // An earlier file of the list differs from file `i` in its extension only.
  static Error Twice(const char* what, const std::string& folder, const PathTable& list, size_t i) {
    size_t first = i - 1;
    while (WithoutExtension(list[first]) != WithoutExtension(list[i])) --first;
    return WrongMasks(std::string("two ") + what + " differ in their extensions only: '" +
                          std::string(list[first]) + "' and '" + std::string(list[i]) + "'",
                      folder, "Rename or remove one of them");
  }

  Error NotJoined(const Alone& images_alone, const Alone& masks_alone,
                  const SkippedFiles& skipped) const {
    const std::string of_images = images_alone.Text("image", "images") + " " +
                                  Plural(images_alone.count, "has", "have") + " no mask in '" +
                                  masks_ + "'";
    const std::string of_masks = masks_alone.Text("mask", "masks") + " " +
                                 Plural(masks_alone.count, "has", "have") + " no image";
    // A skipped image may be that of a mask.
    const bool explains = masks_alone.count > 0 && !skipped.empty();
    const std::string also = explains ? "; " + skipped.Summary() : "";
    const std::string advice =
        (explains ? std::string(kConvertSkipped) + ". " : "") + "The mask of a/b.jpg is a/b" +
        suffix_ +
        ".png. To leave files out, or for other names, list both yourself and give the lists to "
        "files()";
    if (images_alone.count == 0) {
      return WrongMasks(of_masks + " in '" + images_ + "'" + also, masks_, advice);
    }
    return WrongMasks(masks_alone.count == 0 ? of_images : of_images + ", where " + of_masks + also,
                      images_, advice);
  }

  const std::string& images_;
  const std::string& masks_;
  const std::string& suffix_;
  std::unordered_map<std::string_view, size_t> mask_of_;  // by the path without extension
};

Status CheckSuffix(const std::string& suffix) {
  if (suffix.find('/') == std::string::npos && suffix.find('\0') == std::string::npos) return {};
  return WrongMasks("masks: the suffix has a slash or a NUL", "",
                    "It is the end of a file's name, without extension: _mask");
}

Error NoMasks(const std::string& folder, const std::string& suffix) {
  return WrongMasks("no mask in this folder or below it", folder,
                    "Masks are files whose names end with " + suffix +
                        ".png. Other formats would have to be converted to PNG; JPEG is unfit, "
                        "because it changes the values");
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Masks(const std::string& images,
                                                  const std::string& masks,
                                                  const MasksOptions& options) {
  TRY(CheckThreads(options.threads));
  TRY(CheckSuffix(options.suffix));
  ASSIGN_OR_RETURN(ImagesBelow all_images, ListImagesBelow(images, options.threads));
  PathTable& listed = all_images.paths;
  const auto is_mask = [&](std::string_view path) { return IsMask(path, options.suffix); };
  std::error_code failed;
  PathTable found;
  if (std::filesystem::equivalent(images, masks, failed)) {
    if (options.suffix.empty()) {
      return WrongMasks("images and masks are in the same folder, and no suffix tells them apart",
                        images, "Give the suffix of the masks' names, or move them");
    }
    found = Filter(listed, is_mask);
    listed = Filter(listed, std::not_fn(is_mask));
  } else {
    ASSIGN_OR_RETURN(const ImagesBelow all, ListImagesBelow(masks, options.threads));
    found = Filter(all.paths, is_mask);
  }
  if (listed.size() == 0) return NoImage(images, all_images.skipped);
  if (found.size() == 0) return NoMasks(masks, options.suffix);
  Join join(images, masks, options.suffix);
  TRY(join.Run(listed, found, all_images.skipped));
  FilesOptions files{.root = images,
                     .description = "masks(" + images + ", " + masks + ")",
                     .skipped = std::move(all_images.skipped)};
  files.further.push_back({.name = "mask",
                           .kind = Field::Kind::kMask,
                           .dtype = options.dtype,
                           .fill = options.fill,
                           .paths = std::move(join.joined_masks),
                           .root = masks});
  return Files(std::move(join.joined_images), std::move(files));
}

}  // namespace stoker
