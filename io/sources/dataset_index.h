// A dataset's index file: the list of its images, so that nobody has to list the folder again, and
// what is known of each, up to a record that says how to decode it faster. `stoker index` makes it,
// beside the photographs or elsewhere.
//
// Opening reads the list and the facts, in a few large pieces, and checks every byte of them: 32
// bytes an image and its name. Nothing is mapped: a file that is cut off meanwhile would be a
// SIGBUS. Records are read when they are asked for; what becomes of the file meanwhile costs time
// and no more: one that is deleted or replaced by renaming stays readable, and a record that is cut
// off or overwritten is none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/output_file.h"
#include "core/result.h"
#include "io/sources/dataset_index_format.h"
#include "io/sources/image_facts.h"
#include "io/sources/image_list.h"

namespace stoker {

// Immutable after Open but for TakeList; any thread. Move-only.
class DatasetIndex {
 public:
  // Checks everything but the records, which have their own checksums. Whatever the bytes, also
  // with the right checksums: the list is one that an ImageList may be, and no path of it leads out
  // of the folder but by links. Memory: at most five times what has been read of the file so far,
  // for columns grow while they are checked; and, of each column, 256 MiB of addresses.
  //
  // NotFound, PermissionDenied; InvalidArgument for what is no index at all; DataLoss where the
  // bytes are not those that were written; Unimplemented for another version's file;
  // ResourceExhausted.
  static Result<DatasetIndex> Open(const std::string& path);

  DatasetIndex(DatasetIndex&& other) noexcept { *this = std::move(other); }
  DatasetIndex& operator=(DatasetIndex&& other) noexcept;
  ~DatasetIndex();

  // At least one image. Its file number is the `image` below.
  const ImageList& list() const { return list_; }
  ImageList TakeList() { return std::exchange(list_, {}); }
  uint64_t fingerprint() const { return fingerprint_; }  // of the list
  uint64_t images() const { return facts_.size(); }

  // Preconditions: image < images(). No system call, no allocation.
  ImageFacts FactsOf(uint32_t image) const;
  bool HasRecord(uint32_t image) const { return RecordOf(image).bytes > 0; }

  // Replaces `record` by that of an image, reusing its capacity. Empty where there is none, it has
  // more than `most` bytes, or it cannot be read. One system call.
  void Read(uint32_t image, uint64_t most, std::vector<uint8_t>& record) const;

  const std::string& path() const { return path_; }
  uint64_t memory_bytes() const {  // on the heap, without the list
    return path_.capacity() + facts_.capacity() * sizeof(dataset_index::Facts);
  }

 private:
  friend class DatasetIndexReader;
  struct Record {
    uint64_t begin = 0, bytes = 0;
  };

  DatasetIndex() = default;
  Record RecordOf(uint32_t image) const;

  std::string path_;
  int descriptor_ = -1;
  uint64_t fingerprint_ = 0;
  ImageList list_;
  std::vector<dataset_index::Facts> facts_;
  dataset_index::Section records_;
};

// Writes one, as an OutputFile in a place of its own: of two that write the same one the last to
// finish wins. Errors name `path`.
class DatasetIndexWriter {
 public:
  static Result<DatasetIndexWriter> Create(const std::string& path);

  // The next image of the list; an empty record is none.
  Status Add(const ImageFacts& facts, std::span<const uint8_t> record);

  // The file's size; without it the file is as it was. Precondition: Add was called for each file
  // of `list`.
  Result<uint64_t> Finish(const ImageList& list);

 private:
  explicit DatasetIndexWriter(OutputFile file) : file_(std::move(file)) {}
  Status Write(std::span<const uint8_t> bytes);
  Status Flush();
  Status WriteHeader(dataset_index::Header header,
                     std::span<const dataset_index::Section> sections);

  OutputFile file_;
  std::vector<uint8_t> waiting_;
  uint64_t written_ = 0;  // to `waiting_` and from there
  std::vector<dataset_index::Facts> facts_;
};

}  // namespace stoker
