// A dataset's index file: the list of its images, so that the folder need not be listed again, and
// for each image its size, format and a record that makes decoding faster. `stoker index` writes
// it, in the folder or elsewhere.
//
// Opening reads the list and the facts in a few large pieces and checks every byte: 32 bytes an
// image, plus its name. Records are read when they are needed. Later changes of the file only cost
// time: a record that is cut off or overwritten is ignored.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "io/files/section_file.h"
#include "io/index/dataset_index_format.h"
#include "io/index/image_list.h"
#include "io/source/source.h"

namespace stoker {

class GrowingBuffer;

// Immutable after Open except for TakeList; thread-safe. Move-only.
class DatasetIndex {
 public:
  // Checks everything but the records, which have their own checksums. Promises the same of the
  // list and of memory as ReadImageList (image_list_sections.h).
  //
  // NotFound, PermissionDenied; InvalidArgument if it is not an index; DataLoss if the bytes have
  // changed since they were written; Unimplemented for another version; ResourceExhausted.
  static Result<DatasetIndex> Open(const std::string& path);

  // Reads the facts alone, of an index of any source: of a folder's too. `fingerprint`, `images`:
  // the source's. FailedPrecondition if it is the index of another source; otherwise as Open.
  struct AllFacts {
    std::vector<ImageFacts> facts;  // sides are 1 to kMaxSidePixels; or both 0, which means unknown
    bool alone = false;             // the file has nothing else
  };
  static Result<AllFacts> ReadFacts(const std::string& path, uint64_t fingerprint, uint64_t images);
  // Writes an index that has facts alone. `file`: created for one section.
  static Status WriteFacts(SectionFileWriter file, uint64_t fingerprint,
                           std::span<const ImageFacts> facts);

  // At least one image. An image's file number is the `image` below.
  const ImageList& list() const { return list_; }
  ImageList TakeList() { return std::exchange(list_, {}); }
  uint64_t fingerprint() const { return file_->fingerprint(); }  // of the list
  uint64_t images() const { return facts_.size(); }

  // Preconditions: image < images(). No system call, no allocation.
  ImageFacts FactsOf(uint32_t image) const;
  bool HasRecord(uint32_t image) const { return RecordOf(image).bytes > 0; }

  // Reads an image's record into `memory` and returns it. Empty if there is none, it has more than
  // `most` bytes, `memory` cannot grow to its size, or it cannot be read. One system call.
  std::span<const uint8_t> Read(uint32_t image, uint64_t most, GrowingBuffer& memory) const;

  const std::string& path() const { return file_->path(); }
  uint64_t memory_bytes() const {  // on the heap, without the list
    return path().capacity() + facts_.capacity() * sizeof(dataset_index::Facts);
  }

 private:
  struct Record {
    uint64_t begin = 0, bytes = 0;
  };

  explicit DatasetIndex(SectionFile file)
      : file_(std::make_unique<const SectionFile>(std::move(file))) {}
  Status ReadSections();
  Status ReadSkipped();
  Record RecordOf(uint32_t image) const;

  std::unique_ptr<const SectionFile> file_;
  ImageList list_;
  std::vector<dataset_index::Facts> facts_;
};

// Writes an index through a SectionFileWriter. Errors name `path`.
class DatasetIndexWriter {
 public:
  static Result<DatasetIndexWriter> Create(const std::string& path);

  // Adds the next image of the list; an empty record means none.
  Status Add(const ImageFacts& facts, std::span<const uint8_t> record);

  // Puts the index in place and returns its size; without Commit the old file stays. Precondition:
  // Add was called for each file of `list`.
  Result<uint64_t> Commit(const ImageList& list);

 private:
  explicit DatasetIndexWriter(SectionFileWriter file) : file_(std::move(file)) {}

  SectionFileWriter file_;
  uint64_t record_bytes_ = 0;
  std::vector<dataset_index::Facts> facts_;
};

}  // namespace stoker
