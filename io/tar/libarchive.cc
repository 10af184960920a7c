#include "io/tar/libarchive.h"

#include <archive.h>
#include <archive_entry.h>

#include <utility>

#include "core/system/shared_library.h"

namespace stoker {

namespace {

// `Declared` is the function's type in the library's header; the type in the table must agree.
template <typename Declared>
void Find(SharedLibrary& library, const char* name, Declared*& function) {
  library.Find(name, function);
}

Result<Libarchive> LoadLibarchive() {
  constexpr const char* kFiles[] = {"libarchive.so.13"};
  SharedLibrary library(kFiles, "tar archives are indexed by libarchive",
                        "apt-get install libarchive13 (Debian, Ubuntu), dnf install libarchive "
                        "(Fedora) or conda install -c conda-forge libarchive");
  Libarchive all;
  Find<decltype(archive_version_string)>(library, "archive_version_string", all.version_string);
  Find<decltype(archive_read_new)>(library, "archive_read_new", all.read_new);
  Find<decltype(archive_read_free)>(library, "archive_read_free", all.read_free);
  Find<decltype(archive_read_support_format_tar)>(library, "archive_read_support_format_tar",
                                                  all.support_format_tar);
  Find<decltype(archive_read_open2)>(library, "archive_read_open2", all.open2);
  Find<decltype(archive_read_next_header)>(library, "archive_read_next_header", all.next_header);
  Find<decltype(archive_read_data)>(library, "archive_read_data", all.data);
  Find<decltype(archive_read_header_position)>(library, "archive_read_header_position",
                                               all.header_position);
  Find<decltype(archive_filter_bytes)>(library, "archive_filter_bytes", all.filter_bytes);
  Find<decltype(archive_error_string)>(library, "archive_error_string", all.error_string);
  Find<decltype(archive_entry_pathname)>(library, "archive_entry_pathname", all.entry_pathname);
  Find<decltype(archive_entry_hardlink)>(library, "archive_entry_hardlink", all.entry_hardlink);
  Find<decltype(archive_entry_filetype)>(library, "archive_entry_filetype", all.entry_filetype);
  Find<decltype(archive_entry_size)>(library, "archive_entry_size", all.entry_size);
  Find<decltype(archive_entry_sparse_count)>(library, "archive_entry_sparse_count",
                                             all.entry_sparse_count);
  if (Status status = library.status(); !status.ok()) {
    Error error = std::move(status).error();
    error.code = Code::kUnavailable;
    error.offset.reset();
    return error;
  }
  return all;
}

}  // namespace

Result<const Libarchive*> Libarchive::Load() { return LoadOnce<Libarchive, LoadLibarchive>(); }

}  // namespace stoker
