// Makes the reader for sources whose files are remote objects (io/readers/reader.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/result/result.h"
#include "io/readers/reader.h"
#include "io/remote/object_version.h"

namespace stoker {

// `reads`: limit on reads in flight, and so on connections. An object that differs from its entry
// in `versions`, which must outlive the reader, is DataLoss. Ranges in the cache of `versions` are
// announced to the cache inside Submit and read inside Reap; other ranges are added to the cache
// when they have arrived. Paths that are not URLs are read plainly, inside Submit. Errors: those of
// ObjectFetcher::Make.
Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions);

}  // namespace stoker
