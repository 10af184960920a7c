// KeptFiles: the files that a reader keeps open, by path, in a bounded number of slots. The least
// recently used one is evicted. It makes no system call: the reader opens and closes the files that
// belong to the slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stoker {

// A file in a slot.
struct KeptFile {
  std::string path;
  uint32_t slot = 0;
  uint32_t reads = 0;  // in flight; while there are any, the slot is not given to another file
  bool open = false;   // set by the reader; false after Take
  bool kept = false;   // Find returns it
};

// Used by a single thread. Taking the slot of a file that is still kept allocates nothing, unless
// the new path is longer.
class KeptFiles {
 public:
  explicit KeptFiles(uint32_t slots) : slots_(slots) {}

  // Returns the file, which is then the most recently used one; null if it is not kept.
  KeptFile* Find(std::string_view path);

  // Gives the file a slot: an unused one or that of the least recently used file without reads in
  // flight, which is no longer kept; the reader replaces the file that belongs to the slot. Returns
  // null if all files have reads in flight. Precondition: Find(path) is null.
  KeptFile* Take(std::string_view path);

  // Stops keeping the file: Find no longer returns it, but its reads in flight may end. Harmless if
  // it was dropped before.
  void Drop(KeptFile& file);
  // Drops every file; calls `close` for each that has no reads in flight.
  template <typename Close>
  void DropAll(Close close) {
    for (KeptFile& file : files_) {
      Drop(file);
      if (file.reads == 0) close(file);
    }
  }

 private:
  using Files = std::list<KeptFile>;  // a std::list, so that a file stays where it is in memory

  const uint32_t slots_;
  Files files_;  // one for each slot used so far, the most recently used first
  std::unordered_map<std::string_view, Files::iterator> by_path_;  // the files that are kept
};

}  // namespace stoker
