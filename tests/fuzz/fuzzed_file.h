// A file in memory with the input of a fuzzer, and what readers of files promise for their errors.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "core/result/result.h"
#include "tests/fuzz/promise.h"

namespace stoker::testing {

// Meant to be static: one file serves all inputs.
class FuzzedFile {
 public:
  explicit FuzzedFile(const char* name)
      : descriptor_(memfd_create(name, MFD_CLOEXEC)),
        path_("/proc/self/fd/" + std::to_string(descriptor_)) {}

  // Replaces the bytes of the file, and returns its path.
  const std::string& Write(std::span<const uint8_t> bytes) {
    const bool written =
        ftruncate(descriptor_, 0) == 0 &&
        pwrite(descriptor_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    Promise(written, "the input is put into a file");
    return path_;
  }

 private:
  const int descriptor_;
  const std::string path_;
};

// Errors of a file name it, and their cause is one line of moderate length. They are
// InvalidArguments, or have the code `other`.
inline void PromiseGoodError(const Error& error, const std::string& path,
                             Code other = Code::kResourceExhausted) {
  Promise(error.code == Code::kInvalidArgument || error.code == other, "files cause these errors");
  Promise(error.file == path, "errors name the file");
  Promise(!error.cause.empty() && error.cause.size() < 1000, "the cause is of moderate length");
  Promise(std::ranges::none_of(error.cause,
                               [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
          "the cause is one line");
}

}  // namespace stoker::testing
