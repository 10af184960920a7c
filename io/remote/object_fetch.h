// ObjectFetch: one object, or a range of it, on its way into memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/memory/buffer.h"
#include "core/result/result.h"
#include "io/remote/object_version.h"
#include "io/source/source.h"

namespace stoker {

// Owned by the caller. From ObjectFetcher::Start until Finish returns it, the fetch and everything
// it points to belong to the fetcher alone.
struct ObjectFetch {
  // Set by the caller.
  std::string url;
  uint64_t offset = 0;
  uint64_t length = kUnknownLength;         // if unknown, to the end of the object
  bool may_be_shorter = false;              // the object may end before offset + length
  const ObjectVersion* expected = nullptr;  // other content is DataLoss; null means any
  GrowingBuffer* buffer = nullptr;          // grown as needed; null means `to` is used
  std::span<uint8_t> to{};                  // has room for `length` bytes
  const void* owner = nullptr;              // for ObjectFetcher::GiveUp
  void* caller = nullptr;                   // the fetcher ignores it

  // Set by the fetcher.
  uint64_t size = 0;      // bytes that were read; 0 if it failed
  ObjectVersion version;  // of the object that was read
  Status status;          // failure names the URL and the offset
};

}  // namespace stoker
