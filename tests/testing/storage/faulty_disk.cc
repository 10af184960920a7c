#include "tests/testing/storage/faulty_disk.h"

#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/hash/hash.h"

namespace stoker::testing {

class FaultyCalls final : public FileCalls {
 public:
  explicit FaultyCalls(FaultyDisk& disk) : disk_(disk) {}

  int Open(const char* path, int flags) const override {
    using Kind = FaultyDisk::Kind;
    const DiskFaults& faults = disk_.faults_;
    if (disk_.Happens(Kind::kInterrupted, faults.interrupted, path, kOpening)) {
      ++disk_.counts_.interrupted;
      return -EINTR;
    }
    if (disk_.Happens(Kind::kNoDescriptor, faults.no_descriptor, path, kOpening)) {
      return ++disk_.counts_.no_descriptor % 2 == 0 ? -EMFILE : -ENFILE;
    }
    const int descriptor = FileCalls::Open(path, flags);
    if (descriptor < 0) return descriptor;
    ++disk_.open_files_;
    files_[descriptor] = {path, (flags & O_NONBLOCK) != 0};
    return descriptor;
  }

  int64_t Read(int descriptor, void* data, size_t bytes, uint64_t offset) const override {
    using Kind = FaultyDisk::Kind;
    const DiskFaults& faults = disk_.faults_;
    const File& file = files_.at(descriptor);
    if (faults.before_read) faults.before_read(file.path, offset);
    if (disk_.Happens(Kind::kInterrupted, faults.interrupted, file.path, offset)) {
      ++disk_.counts_.interrupted;
      return -EINTR;
    }
    if (file.may_not_block &&
        disk_.Happens(Kind::kWouldBlock, faults.would_block, file.path, offset)) {
      ++disk_.counts_.would_block;
      return -EAGAIN;
    }
    if (file.path == faults.bad_file && offset + bytes > faults.bad_from) {
      if (offset >= faults.bad_from) {
        ++disk_.counts_.bad;
        return -faults.error;
      }
      bytes = faults.bad_from - offset;
    }
    if (bytes > 1 && disk_.Happens(Kind::kShorter, faults.shorter, file.path, offset)) {
      ++disk_.counts_.shorter;
      bytes = 1 + offset * 7919 % (bytes - 1);
    }
    return FileCalls::Read(descriptor, data, bytes, offset);
  }

  int SetBlocking(int descriptor) const override {
    files_.at(descriptor).may_not_block = false;
    return FileCalls::SetBlocking(descriptor);
  }

  int Close(int descriptor) const override {
    files_.erase(descriptor);
    --disk_.open_files_;
    return FileCalls::Close(descriptor);
  }

 private:
  static constexpr uint64_t kOpening = ~uint64_t{0};  // used as an offset

  struct File {
    std::string path;
    bool may_not_block = false;
  };

  FaultyDisk& disk_;
  mutable std::map<int, File> files_;  // by descriptor
};

std::shared_ptr<const FileCalls> FaultyDisk::Calls() {
  return std::make_shared<FaultyCalls>(*this);
}

bool FaultyDisk::Happens(Kind kind, double fraction, std::string_view path, uint64_t offset) {
  if (fraction <= 0) return false;
  uint64_t before = 0;
  {
    const std::lock_guard lock(mutex_);
    before = made_[{kind, std::string(path), offset}]++;
  }
  // The folder of a test has another name in each run.
  const std::string call = std::string(path.substr(path.rfind('/') + 1)) + " " +
                           std::to_string(offset) + " " + std::to_string(before);
  const uint64_t bits = Hash64(call, faults_.seed * 4 + static_cast<uint64_t>(kind));
  return static_cast<double>(bits >> 11) * 0x1.0p-53 < fraction;
}

}  // namespace stoker::testing
