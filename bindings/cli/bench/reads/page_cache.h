// Controls and queries the page cache, for measurements.
#pragma once

#include <cstdint>
#include <optional>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Asks the kernel to drop the content of every file of `source` (posix_fadvise, DONTNEED), after
// writing out dirty pages, which would stay. Needs no privilege, but is only advice: names and
// inodes stay cached, and so do pages that another process has mapped. Fails with the first file
// that cannot be opened.
Status DropFromPageCache(const SampleSource& source);

// Returns the part of the samples' bytes that is in the page cache, from 0 to 1, estimated from up
// to `most` samples at equal distances. Nullopt if the kernel does not tell: it does only for files
// that the process may write to.
std::optional<double> CachedShare(const SampleSource& source, uint64_t most = 1000);

// Returns the bytes that the kernel has fetched from storage for this process so far
// (/proc/self/io), without those from the page cache. Nullopt if the kernel does not tell.
std::optional<uint64_t> BytesFromStorage();

}  // namespace stoker
