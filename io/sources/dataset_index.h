// A dataset's index file: the list of its images, so that the folder need not be listed again, and
// for each image its size, format and a record that makes decoding faster. `stoker index` writes
// it, in the folder or elsewhere.
//
// Opening reads the list and the facts in a few large pieces and checks every byte: 32 bytes an
// image, plus its name. Nothing is mapped, since truncating a mapped file causes a SIGBUS. Records
// are read when they are needed. Changes of the file meanwhile cost time and no more: a file that
// is deleted or replaced by renaming stays readable, and a record that is cut off or overwritten is
// ignored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/output_file.h"
#include "core/result.h"
#include "io/sources/dataset_index_format.h"
#include "io/sources/image_list.h"
#include "io/sources/source.h"

namespace stoker {

// Immutable after Open except for TakeList; thread-safe. Move-only.
class DatasetIndex {
 public:
  // Checks everything but the records, which have their own checksums. Whatever the bytes are, even
  // with correct checksums: the list satisfies ImageList's invariants, and no path leads out of the
  // folder except through links. Memory: at most five times what has been read of the file so far,
  // because columns grow while they are checked, and 256 MiB of addresses per column.
  //
  // NotFound, PermissionDenied; InvalidArgument if it is not an index; DataLoss if the bytes have
  // changed since they were written; Unimplemented for another version; ResourceExhausted.
  static Result<DatasetIndex> Open(const std::string& path);

  DatasetIndex(DatasetIndex&& other) noexcept { *this = std::move(other); }
  DatasetIndex& operator=(DatasetIndex&& other) noexcept;
  ~DatasetIndex();

  // At least one image. An image's file number is the `image` below.
  const ImageList& list() const { return list_; }
  ImageList TakeList() { return std::exchange(list_, {}); }
  uint64_t fingerprint() const { return fingerprint_; }  // of the list
  uint64_t images() const { return facts_.size(); }

  // Preconditions: image < images(). No system call, no allocation.
  ImageFacts FactsOf(uint32_t image) const;
  bool HasRecord(uint32_t image) const { return RecordOf(image).bytes > 0; }

  // Replaces `record` by an image's, reusing its capacity. Empty if there is none, it has more than
  // `most` bytes, or it cannot be read. One system call.
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

// Writes an index, as an OutputFile with Origin kOwn: of two concurrent writers the last one to
// finish wins. Errors name `path`.
class DatasetIndexWriter {
 public:
  static Result<DatasetIndexWriter> Create(const std::string& path);

  // Adds the next image of the list; an empty record means none.
  Status Add(const ImageFacts& facts, std::span<const uint8_t> record);

  // Puts the index in place and returns its size; without it the old file stays. Precondition: Add
  // was called for each file of `list`.
  Result<uint64_t> Commit(const ImageList& list);

 private:
  explicit DatasetIndexWriter(OutputFile file) : file_(std::move(file)) {}
  Status Write(std::span<const uint8_t> bytes);
  Status Flush();
  Status WriteHeader(dataset_index::Header header,
                     std::span<const dataset_index::Section> sections);

  OutputFile file_;
  std::vector<uint8_t> waiting_;
  uint64_t written_ = 0;  // through `waiting_`
  std::vector<dataset_index::Facts> facts_;
};

}  // namespace stoker
