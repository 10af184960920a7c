// FilesToPack: the files that `stoker pack` makes a packed set from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/index/image_list.h"
#include "io/packed/packed_format.h"
#include "io/source/path_table.h"
#include "io/source/source.h"

namespace stoker {

// Immutable; thread-safe.
class FilesToPack {
 public:
  // The images of image_folder(directory), with its errors and advice for packing.
  static Result<FilesToPack> OfFolder(const std::string& directory, int threads);

  // All images of a source that Files() or Masks() made. Unimplemented for other sources, for
  // fields that a packed set does not store, paths that are not below a folder, and samples that
  // are not sorted bytewise by their paths.
  static Result<FilesToPack> OfSource(const SampleSource& source);

  uint64_t samples() const {
    return list_.files.size() + (pieces_.empty() ? 0 : pieces_[0].size());
  }
  size_t pieces() const { return roots_.size(); }  // of a sample
  // The fields, if samples have several images; otherwise empty.
  const std::vector<packed_set::PieceField>& fields() const { return fields_; }
  bool is_mask(size_t piece) const { return !fields_.empty() && fields_[piece].mask_bits != 0; }

  // The folder of all files of a piece: as given, and with a slash at its end.
  const std::string& folder(size_t piece) const { return folders_[piece]; }
  const std::string& root(size_t piece) const { return roots_[piece]; }
  // Appends the path of a file below its root.
  void AppendPath(uint64_t sample, size_t piece, std::string& to) const;

  const std::string& description() const { return description_; }  // as Describe()
  const std::vector<std::string>& classes() const { return list_.classes; }
  const SkippedFiles& skipped() const { return skipped_; }

 private:
  FilesToPack() = default;

  std::string description_;
  std::vector<std::string> folders_, roots_;  // by piece
  SkippedFiles skipped_;
  ImageList list_;  // of a folder
  std::vector<packed_set::PieceField> fields_;
  std::vector<PathTable> pieces_;  // of a source
};

}  // namespace stoker
