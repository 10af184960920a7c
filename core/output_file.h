// A file that is written whole or not at all: whoever reads it meanwhile, and whoever finds it
// after a kill, a full disk or (with Sync::kToDisk) a crash of the machine, has what was there
// before or all of the new one.
//
// A regular file is replaced: what is written goes to a temporary file in its folder, which takes
// its name in Commit, with the mode (and where that is allowed the owner) of what it replaces, else
// 0666 less the umask. The temporary file has no name where the file system can do that
// (O_TMPFILE), so that a kill while it is being written leaves nothing; else a random one that no
// other file has, and the destructor removes it. A symbolic link stays and its target is replaced,
// except that a link which somebody else put into a folder like /tmp is refused, as by proc(5)'s
// protected_symlinks.
//
// Devices, FIFOs and what /dev/stdout and /dev/fd/N name cannot be replaced: they are written to
// directly, as a shell's `>` does.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"

namespace stoker {

// Errors name the file as it was given to Open. One thread at a time. Move-only.
class OutputFile {
 public:
  // Who chose the path: the user, or stoker (then anything but a regular file is refused, and no
  // link is followed).
  enum class Place { kGiven, kOwn };
  // Unnamed, where the file system can do that. For tests: others leave the choice to Open.
  enum class Temporary { kUnnamed, kNamed };

  // What cannot be replaced in the end, such as a mount point, is refused here already. May wait
  // for the other end of a FIFO.
  static Result<OutputFile> Open(const std::string& path, Place place = Place::kGiven,
                                 Temporary temporary = Temporary::kUnnamed);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // without Commit the file is as it was

  // Behind what was written before.
  Status Write(std::span<const uint8_t> bytes);

  // Over what was written before, from `offset` on. For regular files.
  Status Overwrite(uint64_t offset, std::span<const uint8_t> bytes);

  // Puts it in place; once, and nothing is written afterwards. With kNone it is whole after a crash
  // of the process; only kToDisk, where the bytes are on the disk before they have the name,
  // survives one of the machine, and takes the time of writing to the disk.
  enum class Sync { kNone, kToDisk };
  Status Commit(Sync sync = Sync::kNone);

  // Whether that is what a temporary file is named, where it has a name: after a kill one may be
  // left.
  static bool IsTemporaryName(std::string_view name);

  // For writing by other means, between Open and Commit.
  int descriptor() const { return descriptor_; }

 private:
  OutputFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)) {}
  int MakeTemporary(mode_t mode, Temporary temporary);
  Status GiveName();

  std::string path_;       // as it was given
  std::string target_;     // what is replaced; empty: written to directly
  std::string temporary_;  // its name; empty: it has none
  int descriptor_ = -1;
};

// Why `path` cannot be written, in the words and with the advice of OutputFile's own errors.
Error CannotWrite(int error_number, const std::string& path);

// The file's new content, by an OutputFile, and on the disk.
Status WriteFile(const std::string& path, std::string_view text);

// Fails where WriteFile would, but for a disk that is full; changes nothing. For what is to be
// written at the end of something long.
Status CheckCanWrite(const std::string& path);

}  // namespace stoker
