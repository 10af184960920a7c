// The reader of sources whose files are objects behind URLs (io/readers/reader.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/result.h"
#include "io/objects/object_version.h"
#include "io/readers/reader.h"

namespace stoker {

// `reads`: limit on reads in flight, as many connections at most. An object that is not the one in
// `versions`, which must outlive the reader, is DataLoss. Ranges that the cache of
// `versions` has are announced to it inside Submit and read inside Reap; others are kept there when
// they have come. Paths that are no URLs are read plainly, inside Submit. Errors of
// ObjectFetcher::Make.
Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions);

}  // namespace stoker
