// Cold reads on request, for measuring.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "io/sources/source.h"

namespace stoker {

// Asks the kernel to forget the content of every file of `source` (posix_fadvise, DONTNEED), after
// writing out what is still dirty, for dirty pages stay. Needs no privilege. It is advice for each
// file: names and inodes stay cached, and so do pages that another process has mapped. Fails with
// the first file that cannot be opened.
Status DropFromPageCache(const SampleSource& source);

// Bytes that this process has had fetched from storage so far, as the kernel accounts for them
// (/proc/self/io); what the page cache served is not among them. 0 where the kernel does not say.
uint64_t BytesFromStorage();

}  // namespace stoker
