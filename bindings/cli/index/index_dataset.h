// Makes a dataset's index: the work behind `stoker index`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/result.h"

namespace stoker {

struct IndexOptions {
  std::string out = {};       // the file to make; empty: kIndexName in the folder
  int threads = 0;            // 0: the cores allotted
  size_t list_skipped = 100;  // how many files without an index the report names
};

struct IndexReport {
  std::string source;  // "image_folder(photos/train)"
  std::string out;
  uint64_t samples = 0;
  uint64_t sized = 0;             // whose width and height are known
  uint64_t indexed = 0;           // that have a crop index
  uint64_t photograph_bytes = 0;  // of those that are indexed
  uint64_t index_bytes = 0;       // of the file made
  std::map<std::string, uint64_t>
      skipped;  // by reason: "progressive or arithmetic", "not a JPEG", …
  struct Skipped {
    std::string file;
    std::string reason;
  };
  std::vector<Skipped> skipped_files;  // the first of them, in the source's order
  double seconds = 0;
};

// The folder's own index: what is made where `out` is empty.
std::string IndexFileOf(const std::string& directory);

// Called now and then, from one thread at a time; `false` ends the work with Cancelled.
using IndexProgress = std::function<bool(uint64_t done, uint64_t total)>;

// Lists the folder, again where something in it has changed just before (for a few seconds at most,
// until it is at rest), reads every photograph of image_folder(directory) once, and replaces the
// index, or what was one: where anything else lies, or the file cannot be made, or would lie in a
// class folder and so be out of date at once, is said before a photograph is read. A file that
// cannot be read, or of which there can be no index, is no error: it is decoded as ever. The index
// does not depend on the number of threads.
//
// InvalidArgument, Cancelled, ResourceExhausted, what ImageFolder returns, and the system's refusal
// to write; the index is then as it was.
Result<IndexReport> IndexDataset(const std::string& directory, const IndexOptions& options = {},
                                 const IndexProgress& progress = {});

}  // namespace stoker
