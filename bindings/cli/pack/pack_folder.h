// Packs a folder of photographs, for `stoker pack`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "bindings/cli/pack/files_to_pack.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct PackOptions {
  int threads = 0;                           // 0 means the cores allotted
  bool append = false;                       // add to a set that is complete
  bool exact = false;                        // store PNGs, too, that are not restored to the byte
  uint64_t shard_bytes = uint64_t{1} << 30;  // where the next shard begins
};

struct PackReport {
  std::string source;  // "image_folder(photos/train)"
  std::string out;
  uint64_t added = 0;        // photographs, by this run
  uint64_t added_bytes = 0;  // of their files
  uint64_t samples = 0;      // of the set, as all below
  uint64_t images = 0;       // of all samples
  uint64_t packed = 0;       // images, as packed JPEGs, PNGs and masks
  uint64_t file_bytes = 0;   // of the images' files
  uint64_t set_bytes = 0;    // of shards and index
  uint64_t equal = 0;        // of `packed`: PNGs that are not restored to the byte
  uint64_t shards = 0;
  std::map<std::string, uint64_t> as_they_are;  // of those that were added, by reason
  SkippedFiles skipped;                         // of the folder
  std::vector<std::string> classes;             // of the folder
  double seconds = 0;
};

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using PackProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Adds the photographs of image_folder(directory) to the packed set in `out`, which is made if need
// be, in the folder's order. Each is packed, and restored for comparison; a JPEG that is not
// restored to the byte, and a file that cannot be packed, is stored unchanged. Shards are complete
// or absent, and are never changed; the index is written last. So a run that was interrupted, or
// failed, is continued by running it again: only its last shard is packed again.
//
// Photographs that the set has already, by path, are not read if size and time are the same.
// Without `append` the set must end up with exactly the folder's photographs: it is refused if it
// is complete but lacks some, or has others. With `append` it ends up as if the photographs of both
// had been in one folder, in ImageFolder's order, with its classes. With `exact` it is refused if
// it has PNGs that were packed without, and are not restored to the byte.
//
// The result does not depend on the number of threads. Memory: some copies of a photograph for each
// thread, and 150 bytes plus the path for each photograph in the set.
//
// InvalidArgument, Cancelled, FailedPrecondition (another process packs into it), the errors of
// ImageFolder, of a photograph that cannot be read, and the system's on writing.
Result<PackReport> PackFolder(const std::string& directory, const std::string& out,
                              const PackOptions& options = {}, const PackProgress& progress = {});

// The same for files that are listed already: samples may have several images. Masks are packed,
// too, and compared by their values.
Result<PackReport> PackFiles(const FilesToPack& files, const std::string& out,
                             const PackOptions& options = {}, const PackProgress& progress = {});

}  // namespace stoker
