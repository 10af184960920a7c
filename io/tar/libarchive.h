// libarchive's functions, for reading tar archives.
//
// The library is loaded when a tar is indexed for the first time: it loads a dozen others (XML,
// Unicode tables, compressors), and programs that read folders should not pay for them.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "core/result/result.h"

struct archive;        // the library's own names
struct archive_entry;  // NOLINT(readability-identifier-naming)

namespace stoker {

// Functions of archive.h and archive_entry.h, without the prefixes archive_ and archive_read_.
struct Libarchive {
  // Returns the process-wide table; loads the library on the first call. Thread-safe. Unavailable,
  // with the package's name, if this machine does not have it.
  static Result<const Libarchive*> Load();

  const char* (*version_string)() = nullptr;  // "libarchive 3.6.2"

  archive* (*read_new)() = nullptr;
  int (*read_free)(archive*) = nullptr;
  int (*support_format_tar)(archive*) = nullptr;
  int (*open2)(archive*, void*, int (*)(archive*, void*),
               ssize_t (*)(archive*, void*, const void**), int64_t (*)(archive*, void*, int64_t),
               int (*)(archive*, void*)) = nullptr;
  int (*next_header)(archive*, archive_entry**) = nullptr;
  ssize_t (*data)(archive*, void*, size_t) = nullptr;
  int64_t (*header_position)(archive*) = nullptr;
  int64_t (*filter_bytes)(archive*, int) = nullptr;
  const char* (*error_string)(archive*) = nullptr;

  const char* (*entry_pathname)(archive_entry*) = nullptr;
  const char* (*entry_hardlink)(archive_entry*) = nullptr;
  mode_t (*entry_filetype)(archive_entry*) = nullptr;
  int64_t (*entry_size)(archive_entry*) = nullptr;
  int (*entry_sparse_count)(archive_entry*) = nullptr;
};

}  // namespace stoker
