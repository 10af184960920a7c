// Cold reads, for measuring.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "io/sources/source.h"

namespace stoker {

// Asks the kernel to drop the content of every file of `source` (posix_fadvise, DONTNEED), after
// writing out dirty pages, which would stay. Needs no privilege, but is only advice: names and
// inodes stay cached, and so do pages that another process has mapped. Fails with the first file
// that cannot be opened.
Status DropFromPageCache(const SampleSource& source);

// Bytes that the kernel has fetched from storage for this process so far (/proc/self/io), without
// those from the page cache. 0 if the kernel does not say.
uint64_t BytesFromStorage();

}  // namespace stoker
