// SampleSource: a numbered, immutable list of the samples that exist. The reader opens them, unless
// they are in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/sample.h"
#include "io/sources/array_column.h"
#include "io/sources/image_facts.h"
#include "io/sources/skipped_files.h"

namespace stoker {

// Immutable after construction, so every function is thread-safe.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual uint64_t size() const = 0;  // samples

  // Precondition: id < size(). No I/O, no allocation.
  virtual SampleRef At(uint64_t id) const = 0;

  // Replaces `path` by the file's path, reusing its capacity. Precondition: `file` came from At.
  virtual void PathOf(uint32_t file, std::string& path) const = 0;

  // The samples themselves, if they are in memory: each column's row `id` is sample `id`, and At's
  // file and label have no meaning. Empty if samples are in files. Satisfies the checks of Arrays()
  // (arrays.h) and does not change.
  virtual std::span<const ArrayColumn> arrays() const { return {}; }

  // Replaces `record` by the entry points of sample `id` (transforms/jpeg/fast/crop_index.h),
  // reusing its capacity: it may be wrong or out of date. Empty if there are none, or more than
  // `most` bytes. One short read of a file.
  virtual void ReadCropIndex(uint64_t /*id*/, uint64_t /*most*/,
                             std::vector<uint8_t>& record) const {
    record.clear();
  }

  // What is known about sample `id` without opening its file, as of when an index was made. No I/O,
  // no allocation.
  virtual ImageFacts FactsOf(uint64_t /*id*/) const { return {}; }

  // A warning for the users of this source, to be shown once; empty if there is none.
  virtual std::string Warning() const { return {}; }

  // Image files that are not samples because of their extensions; Warning() mentions them.
  virtual SkippedFiles Skipped() const { return {}; }

  // Class names by label; empty when samples have no labels.
  virtual const std::vector<std::string>& classes() const = 0;

  // The memory of this list, in bytes.
  virtual uint64_t memory_bytes() const = 0;

  // Equal for the same samples, so that another process can check that it has them: for files a
  // hash of names and labels in order, O(n); for arrays a hash of types, shapes and some of the
  // content. 0: unknown.
  virtual uint64_t Fingerprint() const { return 0; }

  // For messages and reports: "image_folder(photos/train)".
  virtual std::string Describe() const = 0;
};

}  // namespace stoker
