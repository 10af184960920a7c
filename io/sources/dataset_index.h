// A dataset's index file: for each sample a record that says how to decode it faster. `stoker
// index` makes it, beside the photographs or elsewhere.
//
// The list of samples is in memory, 36 bytes each. Records are read when they are asked for; what
// becomes of the file meanwhile costs time and no more: one that is deleted or replaced by renaming
// stays readable, and a record that is cut off or overwritten is none.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/result.h"
#include "io/sources/dataset_index_format.h"

namespace stoker {

// How samples are named in it, whatever their number: by their path below the dataset's folder, in
// two parts, so that nothing has to be put together. `folder`: empty, or with a slash at its end.
uint64_t SampleKey(std::string_view folder, std::string_view name);

// Immutable after Open; any thread. Move-only.
class DatasetIndex {
 public:
  // Checks everything but the records, which have their own checksums. Its memory is at most some
  // 64 times what the file takes of the disk, whatever its bytes.
  //
  // NotFound, PermissionDenied; InvalidArgument for what is no index at all; DataLoss where the
  // bytes are not those that were written; Unimplemented for another version's file;
  // ResourceExhausted.
  static Result<DatasetIndex> Open(const std::string& path);

  DatasetIndex(DatasetIndex&& other) noexcept { *this = std::move(other); }
  DatasetIndex& operator=(DatasetIndex&& other) noexcept;
  ~DatasetIndex();

  // No system call, no allocation.
  bool Has(uint64_t key) const { return Find(key) != nullptr; }

  // Replaces `record` by that of a sample, reusing its capacity. Empty where there is none, it has
  // more than `most` bytes, or it cannot be read. One system call.
  void Read(uint64_t key, uint64_t most, std::vector<uint8_t>& record) const;

  const std::string& path() const { return path_; }
  uint64_t samples() const { return samples_; }
  uint64_t memory_bytes() const {  // on the heap
    return path_.capacity() + slots_.capacity() * sizeof(dataset_index::Slot);
  }

 private:
  DatasetIndex() = default;
  Status Load();
  Status ReadSlots(const dataset_index::Section& section);
  Status CheckSlots() const;
  const dataset_index::Slot* Find(uint64_t key) const;

  std::string path_;
  int descriptor_ = -1;
  std::vector<dataset_index::Slot> slots_;
  dataset_index::Section records_;
  uint64_t samples_ = 0;
};

// Writes one. What it writes to is a file of its own beside `path`, which replaces that at the end:
// of two that write the same one the last to finish wins. Errors name `path`.
class DatasetIndexWriter {
 public:
  static Result<DatasetIndexWriter> Create(const std::string& path);
  DatasetIndexWriter(DatasetIndexWriter&& other) noexcept;
  DatasetIndexWriter& operator=(DatasetIndexWriter&&) = delete;
  ~DatasetIndexWriter();  // without Finish nothing is left

  // Of two samples with one key (which no two paths have, in practice) the first one is kept.
  Status Add(uint64_t key, std::span<const uint8_t> record);

  // The file's size.
  Result<uint64_t> Finish();

 private:
  struct Sample {
    uint64_t key = 0;
    uint64_t offset = 0;
    uint64_t bytes = 0;
  };

  DatasetIndexWriter(std::string path, std::string part, int descriptor)
      : path_(std::move(path)), part_(std::move(part)), descriptor_(descriptor) {}
  Status Write(std::span<const uint8_t> bytes);
  Status Flush();
  Status Replace();

  std::string path_, part_;
  int descriptor_ = -1;
  std::vector<uint8_t> waiting_;
  std::vector<Sample> samples_;
  uint64_t record_bytes_ = 0;
};

}  // namespace stoker
