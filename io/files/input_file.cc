#include "io/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "core/result/try.h"
#include "core/system/file_kind.h"
#include "io/remote/object_file.h"
#include "io/remote/object_url.h"

namespace stoker {

InputFile::InputFile(std::string path, int descriptor, std::unique_ptr<ObjectFile> object)
    : path_(std::move(path)), descriptor_(descriptor), object_(std::move(object)) {}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      object_(std::move(other.object_)) {}

Result<InputFile> InputFile::Open(const std::string& path, Links links) {
  if (IsObjectUrl(path)) {
    ASSIGN_OR_RETURN(std::unique_ptr<ObjectFile> object, ObjectFile::Open(path));
    return InputFile(path, -1, std::move(object));
  }
  // O_NONBLOCK: opening a FIFO would wait for a writer.
  const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  const int descriptor = open(path.c_str(), links == Links::kRefused ? flags | O_NOFOLLOW : flags);
  if (descriptor < 0) return SystemError(errno, "cannot open", path);
  InputFile file(path, descriptor, nullptr);
  struct stat info {};
  if (fstat(descriptor, &info) != 0) return SystemError(errno, "cannot stat", path);
  if (!S_ISREG(info.st_mode)) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = std::string("this is ") + FileKind(info.st_mode) + ", not a file",
                 .file = path};
  }
  return file;
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

Result<FileStamp> InputFile::Stamp() const {
  if (object_ != nullptr) {
    const ObjectVersion& version = object_->version();
    return FileStamp{.bytes = version.bytes, .inode = version.Hash() | 1};
  }
  return StampOf(descriptor_, path_);
}

Status InputFile::Identify() { return object_ == nullptr ? Status() : object_->Identify(); }

Result<uint64_t> InputFile::ContentHash(const FileStamp& stamp) const {
  if (stamp.is_proof()) return uint64_t{0};
  return HashOfParts(stamp.bytes,
                     [this](uint64_t offset, std::span<uint8_t> to) { return ReadAt(offset, to); });
}

Result<FileRights> InputFile::Rights() const {
  if (object_ != nullptr) return FileRights{.user = geteuid(), .group = getegid(), .mode = 0600};
  struct stat info {};
  if (fstat(descriptor_, &info) != 0) return SystemError(errno, "cannot stat", path_);
  return FileRights{.user = info.st_uid, .group = info.st_gid, .mode = info.st_mode & 07777U};
}

const ObjectVersion* InputFile::version() const {
  return object_ == nullptr ? nullptr : &object_->version();
}

Result<size_t> InputFile::ReadAt(uint64_t offset, std::span<uint8_t> to) const {
  if (object_ != nullptr) return object_->ReadAt(offset, to);
  size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        pread(descriptor_, to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      Error error = SystemError(errno, "cannot read", path_);
      error.offset = offset + done;
      return error;
    }
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

Error InputFile::OfUnknownKind(Error error) const {
  std::array<uint8_t, 64> first{};
  const Result<size_t> got = ReadAt(0, first);
  std::optional<Error> pointer;
  if (got.ok()) pointer = LfsPointer(std::span(first).first(*got));
  if (pointer) return std::move(*pointer).WithFile(path_);
  return error;
}

}  // namespace stoker
