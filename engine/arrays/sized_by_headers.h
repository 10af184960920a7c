// Makes a source that knows the sizes of its images, from their headers.
#pragma once

#include <memory>
#include <string>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

class Runtime;

// Returns `source` with the sizes and orientations of all images (io/select/sized.h). Where
// `source` does not know them, the header of each image is read: on the workers of `runtime`, or on
// 16 threads from objects, or on calls() threads from a source with calls. That takes the first 64
// KiB of most images, and all bytes of others and of records. An image whose header cannot be read
// has an unknown size, which Warning() tells. Thread-safe.
//
// `index`: a file that keeps the sizes (io/index/dataset_index.h); empty means none. If it does not
// exist, it is written. If it does, the headers of up to 8 images are compared with it, and those
// of unknown sizes are read again; if they are found, a file with facts alone is written again, and
// a failure of that is ignored.
//
// Errors: those of CheckSized and the Runtime; Cancelled by `interrupt`; of `index`, those of
// DatasetIndex::ReadFacts, but NotFound, and of writing it; FailedPrecondition if a header differs;
// InvalidArgument if the fingerprint of `source` is 0.
Result<std::shared_ptr<const SampleSource>> SizedByHeaders(
    std::shared_ptr<const SampleSource> source, Runtime& runtime, const std::string& index = "",
    const Interrupt& interrupt = {});

}  // namespace stoker
