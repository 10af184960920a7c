// Reads one file with plain system calls: this is the pread reader, the reference that other
// readers are tested against, and the ring's fallback for files that are not as expected.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "core/buffer.h"
#include "core/result.h"
#include "io/readers/reader.h"

namespace stoker {

// The first size of an empty buffer, if the budget allows it: most photographs fit.
inline constexpr size_t kFirstBufferBytes = 256 << 10;

// The system calls of a read, so that a test can replace them by failing ones. Each returns what
// the call returns, or -errno.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int Open(const char* path, int flags) const;
  virtual int Stat(int descriptor, struct stat* info) const;
  virtual int64_t Read(int descriptor, void* data, size_t bytes, uint64_t offset) const;
  virtual int SetBlocking(int descriptor) const;  // clears O_NONBLOCK
  virtual int Close(int descriptor) const;
};

// Sets request.size and request.status as reader.h promises; size is 0 on failure. Reads only
// regular files (or links to them), and never waits for the other end of a FIFO.
void ReadPlainly(ReadRequest& request, const FileCalls& calls = FileCalls());

// Grows the buffer to `bytes`, plus up to an eighth (or kFirstBufferBytes) if the budget allows, so
// that a buffer that meets ever larger files grows only a few times. `keep`: see
// GrowingBuffer::Grow.
Status MakeRoom(GrowingBuffer& buffer, uint64_t bytes, size_t keep = 0);

}  // namespace stoker
