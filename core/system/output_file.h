// A file that is written completely or not at all: a reader during the write, or after a kill, a
// full disk or (with Sync::kToDisk) a crash of the machine, sees the old content or all of the new
// one.
//
// A regular file is replaced: the content goes to a temporary file in its folder, which takes its
// name in Commit, with the mode (and, if allowed, the owner) of the replaced file, otherwise 0666
// less the umask. The temporary file has no name where the file system supports that (O_TMPFILE),
// so that a kill leaves nothing; otherwise it has a random name, and the destructor removes
// it. A symbolic link stays and its target is replaced, except that another user's link in a folder
// like /tmp is refused, as by proc(5)'s protected_symlinks.
//
// Devices, FIFOs and the targets of /dev/stdout and /dev/fd/N cannot be replaced: they are written
// to directly, as by a shell's `>`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/result/result.h"

namespace stoker {

// Errors name the file as it was given to Open. Used by one thread at a time. Move-only.
class OutputFile {
 public:
  // The path was given by the user, or chosen by stoker itself (kOwn): then only a regular file is
  // accepted, and no link is followed.
  enum class Origin { kGiven, kOwn };
  // Whether the temporary file has a name; kUnnamed needs the file system's support. For tests;
  // other callers use the default.
  enum class Temporary { kUnnamed, kNamed };

  // Refuses early a path that cannot be replaced at the end, such as a mount point. May wait for
  // the other end of a FIFO.
  static Result<OutputFile> Open(const std::string& path, Origin origin = Origin::kGiven,
                                 Temporary temporary = Temporary::kUnnamed);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // discards the new content unless it was committed

  // Appends the bytes.
  Status Write(std::span<const uint8_t> bytes);

  // Replaces bytes written before, from `offset` on. Regular files only.
  Status Overwrite(uint64_t offset, std::span<const uint8_t> bytes);

  // Puts the file in place; called once, after the last write. With kNone the file is complete
  // after a crash of the process; only kToDisk, which waits for the disk before renaming, survives
  // a crash of the machine.
  enum class Sync { kNone, kToDisk };
  Status Commit(Sync sync = Sync::kNone);

  // Whether `name` has the form of a temporary file's name; a kill may leave one.
  static bool IsTemporaryName(std::string_view name);

  // For writing by other means between Open and Commit.
  int descriptor() const { return descriptor_; }

 private:
  OutputFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)) {}
  int MakeTemporary(mode_t mode, Temporary temporary);
  Status GiveName();

  std::string path_;       // as given
  std::string target_;     // the file to replace; empty if it is written to directly
  std::string temporary_;  // empty if it has no name
  int descriptor_ = -1;
};

// The error for a path that cannot be written, with OutputFile's messages and advice.
Error CannotWrite(int error_number, const std::string& path);

// Replaces a file's content through an OutputFile, with Sync::kToDisk.
Status WriteFile(const std::string& path, std::string_view text);

// Returns the error that WriteFile would return, except on a full disk; changes nothing. For
// outputs that are written at the end of a long run.
Status CheckCanWrite(const std::string& path);

}  // namespace stoker
