#include "bindings/cli/pack/files_to_pack.h"

#include <utility>

#include "core/result/try.h"
#include "io/folder/list_images.h"
#include "io/index/folder_listing.h"
#include "io/packed/packed_shard.h"
#include "io/packed/piece_fields.h"
#include "io/ranges/path_source.h"
#include "io/source/image_numbers.h"

namespace stoker {
namespace {

Error CannotPack(std::string cause, std::string advice) {
  return {.code = Code::kUnimplemented, .cause = std::move(cause), .advice = std::move(advice)};
}

// A set has its samples in the order of their paths.
Status CheckPathsOf(const GivenPaths& given, bool is_first) {
  for (size_t i = 0; i < given.paths.size(); ++i) {
    const std::string path(given.paths[i]);
    if (!IsPackedPath(path) || given.root.empty()) {
      return CannotPack("'" + path + "' is not a file below the folder of the others",
                        "Give paths that are relative to one folder, and not hidden");
    }
    if (!is_first || i == 0 || given.paths[i - 1] < given.paths[i]) continue;
    return CannotPack("'" + path + "' comes after '" + std::string(given.paths[i - 1]) +
                          "', and a packed set of several images is sorted by their paths",
                      "Sort the images, or pack the whole folder");
  }
  return {};
}

}  // namespace

Result<FilesToPack> FilesToPack::OfFolder(const std::string& directory, int threads) {
  FilesToPack files;
  ASSIGN_OR_RETURN(files.list_, ListImages(directory, threads, EmptyClasses::kRefuseToPack));
  files.description_ = "image_folder(" + directory + ")";
  files.folders_ = {directory};
  files.roots_ = {WithSlash(directory)};
  files.skipped_ = files.list_.skipped;
  files.skipped_.Add(files.list_.skipped_in_root);
  return files;
}

Result<FilesToPack> FilesToPack::OfSource(const SampleSource& source) {
  TRY(CheckFixedImages("a packed set", source));
  if (source.pieces() < 2) {
    return CannotPack("samples of " + source.Describe() + " have one image",
                      "Pack its folder, without options of a source");
  }
  FilesToPack files;
  ASSIGN_OR_RETURN(files.fields_, PieceFieldsOf(source.fields()));
  const std::vector<GivenPaths> given = GivenPathsOf(source);
  if (given.empty() || source.objects() != nullptr) {
    return CannotPack(source.Describe() + " does not consist of files on this machine",
                      "Pack folders of images and masks");
  }
  for (const GivenPaths& one : given) {
    TRY(CheckPathsOf(one, &one == &given.front()));
    files.roots_.push_back(one.root);
    files.folders_.push_back(one.root.substr(0, one.root.find_last_not_of('/') + 1));
    files.pieces_.push_back(one.paths);
  }
  files.description_ = source.Describe();
  files.skipped_ = source.Skipped();
  return files;
}

void FilesToPack::AppendPath(uint64_t sample, size_t piece, std::string& to) const {
  if (pieces_.empty()) return list_.AppendPath(sample, to);
  to += pieces_[piece][sample];
}

}  // namespace stoker
