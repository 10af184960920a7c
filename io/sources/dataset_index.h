// A dataset's index file: for each sample a record that says how to decode it faster. `stoker
// index` makes it, beside the photographs or elsewhere.
//
// The file is mapped, not read: what is not used costs nothing, and a million samples cost no
// memory of the process. So it must not be changed in place while it is open (stoker replaces it by
// renaming): reading behind the end of a mapped file that was cut off is a SIGBUS.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/core/result.h"

namespace stoker {

// How samples are named in it, whatever their number: by their path below the dataset's folder, in
// two parts, so that nothing has to be put together. `folder`: empty, or with a slash at its end.
uint64_t SampleKey(std::string_view folder, std::string_view name);

// Immutable after Open; any thread. Move-only.
class DatasetIndex {
 public:
  // Checks everything but the records, which have their own checksums: the time that reading 36
  // bytes a sample takes.
  //
  // NotFound, PermissionDenied; DataLoss where the bytes are not those that were written;
  // Unimplemented for another version's file.
  static Result<DatasetIndex> Open(const std::string& path);

  DatasetIndex(DatasetIndex&& other) noexcept { *this = std::move(other); }
  DatasetIndex& operator=(DatasetIndex&& other) noexcept;
  ~DatasetIndex();

  // The record of a sample; empty where there is none. No system call, no allocation.
  std::span<const uint8_t> Find(uint64_t key) const;

  const std::string& path() const { return path_; }
  uint64_t samples() const { return samples_; }

 private:
  DatasetIndex() = default;
  Status Map();
  Status Check();

  std::string path_;
  std::span<const uint8_t> file_;
  std::span<const uint8_t> slots_;
  std::span<const uint8_t> records_;
  uint64_t samples_ = 0;
};

// Writes one. What it writes to is a file beside `path`, which replaces that at the end.
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
