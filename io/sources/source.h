// SampleSource: what exists. A numbered, immutable list of samples; opening them is the reader's,
// where they are not in memory already.
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

// Immutable after construction, so any thread may call anything.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual uint64_t size() const = 0;  // samples

  // Precondition: id < size(). No I/O, no allocation.
  virtual SampleRef At(uint64_t id) const = 0;

  // Replaces `path` by the file's path, reusing its capacity. Precondition: `file` came from At.
  virtual void PathOf(uint32_t file, std::string& path) const = 0;

  // The samples themselves, where they are in memory: each column's row `id` is sample `id`, and
  // At's file and label mean nothing. Empty where samples lie in files. As Arrays()
  // (arrays.h) checks them; does not change.
  virtual std::span<const ArrayColumn> arrays() const { return {}; }

  // Replaces `record` by what is known of where to begin decoding sample `id`
  // (transforms/jpeg/fast/crop_index.h), reusing its capacity: it may be wrong, or of another file
  // by now. Empty where nothing is known, or more than `most` bytes. One short read of a file.
  virtual void ReadCropIndex(uint64_t /*id*/, uint64_t /*most*/,
                             std::vector<uint8_t>& record) const {
    record.clear();
  }

  // What is known of sample `id` without looking at its file: as it was when an index was made. No
  // I/O, no allocation.
  virtual ImageFacts FactsOf(uint64_t /*id*/) const { return {}; }

  // What whoever uses the source should be told, once; empty where there is nothing to tell.
  virtual std::string Warning() const { return {}; }

  // Files that look like images and are no samples; users should be told of them (Warning()).
  virtual SkippedFiles Skipped() const { return {}; }

  // Class names by label; empty when samples have no labels.
  virtual const std::vector<std::string>& classes() const = 0;

  // What this list costs in memory, in bytes.
  virtual uint64_t memory_bytes() const = 0;

  // The same for the same samples, so that another process can see whether it has them: of files
  // names and labels in order, O(n); of arrays types, shapes, some contents. 0: it cannot tell.
  virtual uint64_t Fingerprint() const { return 0; }

  // For messages and reports: "image_folder(photos/train)".
  virtual std::string Describe() const = 0;
};

}  // namespace stoker
