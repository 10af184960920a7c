// SampleReads: reads samples of a source one at a time, for tools that need no reader threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "io/readers/reader.h"
#include "io/source/source.h"

namespace stoker {

// Used by a single thread at a time. The source must outlive it.
class SampleReads {
 public:
  explicit SampleReads(const SampleSource& source) : source_(source) {}

  // Reads a piece of sample `id` and waits for it: sets the request's path, offset, length, size
  // and status as readers do (io/readers/reader.h). Objects are read by one connection, which is
  // kept.
  void Read(uint64_t id, ReadRequest& request, size_t piece = 0);
  // Does the same with any range of the source's files.
  void Read(const ByteRange& range, ReadRequest& request);

 private:
  Status ReadObject(ReadRequest& request);

  const SampleSource& source_;
  std::unique_ptr<Reader> objects_;  // made for the first object
};

}  // namespace stoker
