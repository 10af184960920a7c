// InputFile: a regular file that is read at offsets, with what tells whether it has changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "core/result.h"

namespace stoker {

// The size and the time of a file's content. Equal for a file that has not been written to.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;  // since 1970

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A file's owner and permissions, which say who may write to it.
struct FileRights {
  uint32_t user = 0, group = 0;
  uint32_t mode = 0;  // the permissions alone: 0644
};

// Thread-safe. Move-only. Errors name the file.
class InputFile {
 public:
  enum class Links { kFollowed, kRefused };  // what a symbolic link at the path's end is

  // InvalidArgument if it is no regular file, NotFound, PermissionDenied, ….
  static Result<InputFile> Open(const std::string& path, Links links = Links::kFollowed);
  InputFile(InputFile&& other) noexcept
      : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  Result<FileStamp> Stamp() const;  // as the file is now
  Result<FileRights> Rights() const;

  // Fills `to` from the file, and returns the bytes: fewer if the file ends before.
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> to) const;

 private:
  InputFile(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}

  std::string path_;
  int descriptor_ = -1;
};

}  // namespace stoker
