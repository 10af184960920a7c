// Makes a dataset's index, for `stoker index`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct IndexOptions {
  std::string out = {};       // the file to write; empty means kIndexName in the folder
  int threads = 0;            // 0 means the cores allotted
  size_t list_skipped = 100;  // the number of files without entry points to list in the report
};

struct IndexReport {
  std::string source;  // "image_folder(photos/train)"
  std::string out;
  uint64_t samples = 0;
  uint64_t sized = 0;             // with known width and height
  uint64_t indexed = 0;           // with entry points
  uint64_t photograph_bytes = 0;  // of the indexed photographs
  uint64_t index_bytes = 0;       // of the written file
  std::map<std::string, uint64_t>
      skipped;  // by reason: "progressive or arithmetic", "not a JPEG", …
  struct Skipped {
    std::string file;
    std::string reason;
  };
  std::vector<Skipped> skipped_files;  // the first of them, in the source's order
  double seconds = 0;
};

// Returns the path of the folder's own index, which is written if `out` is empty.
std::string IndexFileOf(const std::string& directory);

// Called regularly, from one thread at a time; `false` ends the work with Cancelled.
using IndexProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Lists the folder (repeatedly for up to a few seconds, if something in it has just changed), reads
// every photograph of image_folder(directory) once, and replaces the index. Before a photograph is
// read, it checks that the file can be written, that an existing one is an index, and that it is
// not in a class folder, where it would be stale at once. A file that cannot be read or indexed is
// not an error: it is decoded without entry points. The index does not depend on the number of
// threads.
//
// InvalidArgument, Cancelled, ResourceExhausted, ImageFolder's errors, and the system's errors on
// writing; the old index then stays.
Result<IndexReport> IndexDataset(const std::string& directory, const IndexOptions& options = {},
                                 const IndexProgress& progress = {});

}  // namespace stoker
