// ObjectFile: reads an object at offsets, like a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/remote/object_fetcher.h"
#include "io/remote/object_version.h"

namespace stoker {

// Reads ahead: the first bytes come with the object's size, in one request, and reads that continue
// where the last one ended fetch ever larger blocks, up to 4 MiB. Long reads are split into several
// concurrent requests. Thread-safe: one thread reads, others wait. Errors name the URL.
class ObjectFile {
 public:
  static Result<std::unique_ptr<ObjectFile>> Open(const std::string& url);

  const ObjectVersion& version() const { return version_; }

  // Adds a hash of parts of the content to the version, unless the ETag names the content. For
  // callers that store data derived from the object. Precondition: nobody reads.
  Status Identify();

  // Fills `to`, and returns the number of bytes, which is smaller if the object is shorter.
  // DataLoss: the object is no longer the one that was opened.
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> to);

 private:
  ObjectFile(std::string url, std::unique_ptr<ObjectFetcher> fetcher);
  ObjectFetch FetchOf(uint64_t offset, std::span<uint8_t> to) const;
  Status ReadWindow(uint64_t offset, size_t bytes);
  Status ReadLong(uint64_t offset, std::span<uint8_t> to);

  const std::string url_;
  ObjectVersion version_;
  std::mutex mutex_;
  const std::unique_ptr<ObjectFetcher> fetcher_;
  std::vector<uint8_t> window_;  // the bytes read last
  uint64_t window_at_ = 0;       // their position in the object
  size_t block_ = 0;             // size of the last read-ahead
};

}  // namespace stoker
