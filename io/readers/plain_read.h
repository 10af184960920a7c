// Reads one file with plain system calls. The pread reader consists of this; it is also the
// reference that other readers are tested against, and the ring's fallback for unexpected files.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/memory/buffer.h"
#include "core/result/result.h"
#include "io/readers/reader.h"

namespace stoker {

// The first size of an empty buffer, if the budget allows it: most photographs fit.
inline constexpr size_t kFirstBufferBytes = 256 << 10;

// A longer range is read only after the file's size has been checked: a length from a damaged index
// must not claim the whole budget.
inline constexpr uint64_t kMaxUnseen = 64 << 20;

// The system calls of a read, counted, so that a test can replace them by failing ones. Each
// returns what the call returns, or -errno. Used by a single thread.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int Open(const char* path, int flags) const;
  virtual int Stat(int descriptor, struct stat* info) const;
  virtual int64_t Read(int descriptor, void* data, size_t bytes, uint64_t offset) const;
  virtual int SetBlocking(int descriptor) const;  // clears O_NONBLOCK
  virtual int Close(int descriptor) const;

  const ReaderCounts& counts() const { return counts_; }

 private:
  mutable ReaderCounts counts_;
};

// Sets request.size and request.status as reader.h promises; size is 0 on failure. Reads only
// regular files (or links to them), and never waits for the other end of a FIFO.
void ReadPlainly(ReadRequest& request, const FileCalls& calls = FileCalls());

// The steps of ReadPlainly, for a caller that keeps the descriptor. OpenToRead returns it, or
// -errno. ReadOpened sets request.size and request.status; a negative descriptor is the error of
// opening the file.
int OpenToRead(const std::string& path, const FileCalls& calls);
void ReadOpened(ReadRequest& request, int descriptor, const FileCalls& calls);

// Reads a range with one call fewer from a descriptor that ReadOpened has read before. Returns
// false if the range is too long for that, if there was an error, or if the file ends before the
// range does; then the request must be read again by a function that checks the file and words the
// error.
bool ReadAgain(ReadRequest& request, int descriptor, const FileCalls& calls);

// Grows the buffer to `bytes`, plus up to an eighth (or kFirstBufferBytes) if the budget allows, so
// that a buffer that meets ever larger files grows only a few times. `keep`: see
// GrowingBuffer::Grow.
Status MakeRoom(GrowingBuffer& buffer, uint64_t bytes, size_t keep = 0);

}  // namespace stoker
