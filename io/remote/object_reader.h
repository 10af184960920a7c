// Makes the reader for sources whose files are remote objects (io/readers/reader.h).
#pragma once

#include <cstdint>
#include <memory>

#include "core/result/result.h"
#include "io/readers/reader.h"
#include "io/remote/object_version.h"

namespace stoker {

// `reads`: limit on requests to servers in flight, and so on connections. `neighbours`: the most
// reads of a sample that one request may fetch, clamped to 1…16; the reader's capacity is `reads`
// times that.
//
// An object that differs from its entry in `versions`, which must outlive the reader, is DataLoss.
// Ranges in the cache of `versions` are announced to the cache inside Submit and read inside Reap;
// other ranges are added to the cache when they have arrived. Neighbouring ranges of a sample
// (ReadRequest::tag) that follow each other in a Submit become one request, as far as they fit into
// the first one's buffer and 256 KiB. Errors of the server or the network are those of this
// request, for all of them; a range that is not in the object fails on its own. Paths that are not
// URLs are read plainly, inside Submit. Errors: those of ObjectFetcher::Make.
Result<std::unique_ptr<Reader>> MakeObjectReader(uint32_t reads, const ObjectVersions& versions,
                                                 size_t neighbours = 1);

}  // namespace stoker
