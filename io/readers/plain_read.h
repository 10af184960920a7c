// One file read by plain system calls: what the pread reader does, what every other reader is
// tested against, and what the ring falls back on when a file is not as simple as it guessed.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>

#include "core/buffer.h"
#include "core/result.h"
#include "io/readers/reader.h"

namespace stoker {

// What an empty buffer grows to first, where the budget has the room: most photographs fit.
inline constexpr size_t kFirstBufferBytes = 256 << 10;

// The system calls that a read makes, so that a test can put a failing system in their place. Each
// returns what the call does, or -errno.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int Open(const char* path, int flags) const;
  virtual int Stat(int descriptor, struct stat* info) const;
  virtual int64_t Read(int descriptor, void* data, size_t bytes, uint64_t offset) const;
  virtual int SetBlocking(int descriptor) const;  // takes O_NONBLOCK off
  virtual int Close(int descriptor) const;
};

// Sets request.size and request.status as reader.h promises; size is 0 on failure. Only regular
// files (or links to them) are read; nothing waits for the other end of a FIFO.
void ReadPlainly(ReadRequest& request, const FileCalls& calls = FileCalls());

// Room for `bytes`, and for an eighth more at most (or kFirstBufferBytes) where the budget allows,
// so that a buffer that meets ever larger files grows a few times only. `keep`: see
// GrowingBuffer::Grow.
Status MakeRoom(GrowingBuffer& buffer, uint64_t bytes, size_t keep = 0);

}  // namespace stoker
