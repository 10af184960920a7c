// FileStamp: tells whether a file, or a remote object, is still as it was when an index or a
// cache was made from it. Data that is derived from a file is stored with the file's stamp.
//
// A file's size and modification time do not identify its content: archives have round sizes, and
// `cp -p`, `rsync -t`, container layers and reproducible builds set times. The time of its last
// change (ctime) comes from the clock of the machine that has the file, and no call sets it. So two
// equal stamps mean equal content, provided that
// - the file system keeps such times. Otherwise parts of the content are compared as well
//   (HashOfParts), and a change in the rest of a file goes unnoticed if its size and times are
//   equal;
// - a further change could no longer get the same time when the stamp was taken (IsAtRest).
//
// Some changes go unnoticed: a change after which somebody sets the machine's clock back; writes
// through a shared mapping (mmap), until the kernel writes them back; and, if an NFS server's clock
// lags this machine's, a second change within the same tick.
//
// A copy of a file has a different stamp, and so has a file whose permissions alone have changed:
// data derived from the original is then made again, at its first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/result/result.h"

struct stat;  // NOLINT(readability-identifier-naming): the system's

namespace stoker {

// Times are nanoseconds since 1970.
struct FileStamp {
  uint64_t bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  uint64_t inode = 0;  // 0 if the file system is not known to keep `changed_ns`. For an object, a
                       // hash of its version, and there are no times

  // Whether an equal stamp is enough; otherwise HashOfParts must be equal, too.
  bool is_proof() const { return inode != 0; }

  // Whether a file was written to until it had the stamp `after`. Changes of permissions or
  // links do not count.
  bool is_written(const FileStamp& after) const {
    return bytes != after.bytes || modified_ns != after.modified_ns;
  }

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// Returns the stamp of an open file, as it is now. Errors name `path`.
Result<FileStamp> StampOf(int descriptor, const std::string& path);

// Does the same for the result of stat(). `has_time_of_change`: KeepsTimesOfChange of its file
// system.
FileStamp StampFrom(const struct stat& info, bool has_time_of_change);

// Returns whether the file system of `path` is known to update the time of a file's last change
// itself. SquashFS, FAT and many file systems in user space do not, and layers of containers may
// lie on any of them. Nor is it known where a local file system is mounted read-only: its image may
// have been made elsewhere, by a program that sets all times, and replaced by another one.
bool KeepsTimesOfChange(const char* path);

// Returns the later of the times of modification and of change: the former can be set back, and
// some file systems keep only that.
int64_t LastChangeNs(const struct stat& info);

int64_t NowNs();

// Returns whether a time is farther ahead of `now_ns` than any tick: it comes from another
// machine's clock, and it is unknown when a further change can no longer have the same time.
bool IsAhead(int64_t changed_ns, int64_t now_ns);

// Returns how many nanoseconds after `now_ns` a further change can no longer get the time of the
// last one: the file system's clock ticks every 10 ms or less, but with times in whole seconds
// every 1 or 2 s.
int64_t RestNs(int64_t changed_ns, int64_t now_ns);

// Returns whether any change from `now_ns` on will change the stamp.
bool IsAtRest(const FileStamp& stamp, int64_t now_ns);

// Hashes the size and five parts of 16 KiB of the content, among them the first and the last bytes;
// of a file of up to five such parts, the whole content.
// `read(offset, to)` returns how many bytes it has read.
Result<uint64_t> HashOfParts(
    uint64_t bytes, const std::function<Result<size_t>(uint64_t, std::span<uint8_t>)>& read);

}  // namespace stoker
