// InputFile: reads a regular file, or a remote object, at offsets, and tells whether it has
// changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "core/result/result.h"
#include "core/system/file_stamp.h"

namespace stoker {

class ObjectFile;
struct ObjectVersion;

// A file's owner and permissions, which say who may write to it.
struct FileRights {
  uint32_t user = 0, group = 0;
  uint32_t mode = 0;  // the permissions alone: 0644
};

// Thread-safe. Move-only. Errors name the file.
class InputFile {
 public:
  enum class Links { kFollowed, kRefused };  // for a symbolic link at the path's end

  // InvalidArgument if it is not a regular file, NotFound, PermissionDenied, …. If
  // IsObjectUrl(path), the object is read from its server, with read-ahead
  // (io/remote/object_file.h).
  static Result<InputFile> Open(const std::string& path, Links links = Links::kFollowed);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  Result<FileStamp> Stamp() const;  // as the file is now
  // Makes the version and stamp of an object depend on its content: reads parts of it if its ETag
  // does not identify the content. For callers that store data derived from it.
  Status Identify();
  // Returns a hash that must be equal in addition to `stamp` for the content to be the same:
  // HashOfParts, or 0 if the stamp is proof.
  Result<uint64_t> ContentHash(const FileStamp& stamp) const;
  Result<FileRights> Rights() const;     // for an object: this process' own
  const ObjectVersion* version() const;  // null if it is not an object

  // Fills `to` from the file, and returns the number of bytes, which is smaller if the file is
  // shorter.
  Result<size_t> ReadAt(uint64_t offset, std::span<uint8_t> to) const;

  // Returns the error of a file of an unknown kind: `error`, or that of LfsPointer.
  Error OfUnknownKind(Error error) const;

 private:
  InputFile(std::string path, int descriptor, std::unique_ptr<ObjectFile> object);

  std::string path_;
  int descriptor_ = -1;
  std::unique_ptr<ObjectFile> object_;  // null if it is a file
};

}  // namespace stoker
