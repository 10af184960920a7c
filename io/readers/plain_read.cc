#include "io/readers/plain_read.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string>
#include <utility>

#include "core/system/file_kind.h"

namespace stoker {

namespace {

int OrErrno(int returned) { return returned < 0 ? -errno : returned; }

Error CannotOpen(const ReadRequest& request, int error_number) {
  Error error = SystemError(error_number, "cannot open", request.path);
  if (error_number == ENOENT && error.advice.empty()) {
    error.advice = "The target of a symbolic link may be missing";
  }
  if (error_number == EACCES) error.advice = "Make the file and the folders above it readable";
  if (error_number == EMFILE) error.advice = "Raise the limit of open files (ulimit -n)";
  if (error_number == ENFILE) {
    error.advice = "Raise the system's limit of open files (sysctl fs.file-max)";
  }
  return error;
}

Error NotAFile(const ReadRequest& request, mode_t mode) {
  return {.code = Code::kInvalidArgument,
          .cause = std::string("this is ") + FileKind(mode) + ", not a file",
          .file = request.path};
}

Error EndsEarly(const ReadRequest& request, uint64_t end) {
  const bool known = request.length != kUnknownLength;
  return {.code = Code::kDataLoss,
          .cause = "the file ends at byte " + std::to_string(end) + ", before " +
                   (known ? "the end of the " + std::to_string(request.length) +
                                " bytes wanted from here"
                          : std::string("the bytes wanted from here")),
          .file = request.path,
          .offset = request.offset,
          .detail = Error::Detail::kTruncated};
}

Error ReadFailed(const ReadRequest& request, int error_number, uint64_t offset) {
  Error error = SystemError(error_number, "cannot read", request.path);
  error.offset = offset;
  return error;
}

// Reads `expected` bytes or, if the length is unknown, to the current end of the file: `expected`
// is then the file's size when it was opened, which is 0 for the files of /proc, too.
Status Fill(ReadRequest& request, int descriptor, uint64_t expected, const FileCalls& calls) {
  const bool known = request.length != kUnknownLength;
  bool may_block = false;
  uint64_t have = 0;
  while (have < expected || (!known && expected == 0)) {
    if (have == request.buffer.capacity()) {
      if (Status s = MakeRoom(request.buffer, have + 1, have); !s.ok()) return s;
    }
    const uint64_t room = request.buffer.capacity() - have;
    const int64_t n =
        calls.Read(descriptor, request.buffer.data() + have,
                   known ? std::min(room, expected - have) : room, request.offset + have);
    if (n == 0) break;
    if (n > 0) {
      have += static_cast<uint64_t>(n);
    } else if (n == -EAGAIN && !may_block) {  // a file system that rejects O_NONBLOCK
      if (const int e = calls.SetBlocking(descriptor); e < 0) {
        return ReadFailed(request, -e, request.offset + have);
      }
      may_block = true;
    } else if (n != -EINTR) {
      return ReadFailed(request, static_cast<int>(-n), request.offset + have);
    }
  }
  if (known && have < expected) return EndsEarly(request, request.offset + have);
  request.size = have;
  return {};
}

Status CheckAndFill(ReadRequest& request, int descriptor, const FileCalls& calls) {
  struct stat info {};
  if (const int e = calls.Stat(descriptor, &info); e < 0) {
    return SystemError(-e, "cannot stat", request.path);
  }
  if (!S_ISREG(info.st_mode)) return NotAFile(request, info.st_mode);
  const auto end = static_cast<uint64_t>(info.st_size);
  const bool known = request.length != kUnknownLength;
  // This is checked before any memory is requested, because offset and length may come from a
  // damaged index.
  if (request.offset > end) return EndsEarly(request, end);
  if (known && request.length > end - request.offset) return EndsEarly(request, end);
  const uint64_t expected = known ? request.length : end - request.offset;
  // The room is at least one byte, so that `size` readable bytes and the padding exist even if size
  // is 0.
  Status room = MakeRoom(request.buffer, std::max<uint64_t>(expected, 1));
  if (!room.ok()) return room;
  return Fill(request, descriptor, expected, calls);
}

}  // namespace

int FileCalls::Open(const char* path, int flags) const {
  ++counts_.calls;
  ++counts_.opens;
  return OrErrno(open(path, flags));
}

int FileCalls::Stat(int descriptor, struct stat* info) const {
  ++counts_.calls;
  return OrErrno(fstat(descriptor, info));
}

int64_t FileCalls::Read(int descriptor, void* data, size_t bytes, uint64_t offset) const {
  ++counts_.calls;
  const ssize_t n = pread(descriptor, data, bytes, static_cast<off_t>(offset));
  return n < 0 ? -errno : n;
}

int FileCalls::SetBlocking(int descriptor) const {
  ++counts_.calls;
  return OrErrno(fcntl(descriptor, F_SETFL, 0));
}

int FileCalls::Close(int descriptor) const {
  ++counts_.calls;
  return OrErrno(close(descriptor));
}

Status MakeRoom(GrowingBuffer& buffer, uint64_t bytes, size_t keep) {
  constexpr uint64_t kMax = uint64_t{1} << 46;  // no budget allows more; sums cannot overflow
  if (bytes <= buffer.capacity()) return {};
  bytes = std::min(bytes, kMax);
  // The size depends on the file alone, not on what the buffer has held before.
  const uint64_t least = std::max<uint64_t>(bytes, kFirstBufferBytes);
  const uint64_t step = std::bit_ceil(least) / 16;
  const uint64_t ample = (least + step - 1) / step * step;
  if (ample > bytes && buffer.Grow(ample, keep).ok()) return {};
  return buffer.Grow(bytes, keep);
}

int OpenToRead(const std::string& path, const FileCalls& calls) {
  int descriptor = 0;
  do {
    // O_NONBLOCK: opening a FIFO would wait for a writer; it has no effect on regular files.
    descriptor = calls.Open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  } while (descriptor == -EINTR);
  return descriptor;
}

void ReadOpened(ReadRequest& request, int descriptor, const FileCalls& calls) {
  request.size = 0;
  request.status =
      descriptor < 0 ? CannotOpen(request, -descriptor) : CheckAndFill(request, descriptor, calls);
  if (!request.status.ok() && request.status.error().file.empty()) {
    request.status = Error(request.status.error()).WithFile(request.path);
  }
}

bool ReadAgain(ReadRequest& request, int descriptor, const FileCalls& calls) {
  request.size = 0;
  request.status = {};
  if (request.length == 0 || request.length > kMaxUnseen) return false;
  return MakeRoom(request.buffer, request.length).ok() &&
         Fill(request, descriptor, request.length, calls).ok();
}

void ReadPlainly(ReadRequest& request, const FileCalls& calls) {
  const int descriptor = OpenToRead(request.path, calls);
  ReadOpened(request, descriptor, calls);
  // After reading, close() has no error that matters.
  if (descriptor >= 0) (void)calls.Close(descriptor);
}

}  // namespace stoker
