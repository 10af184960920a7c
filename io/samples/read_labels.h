// Reads labels, which may be in the samples' records.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Copies the rows that these samples have in the field of the label to `rows`, dense and in this
// order. Labels in memory are copied on the calling thread. Labels in records
// (SampleSource::Unpack) need a read of each record, on one thread per allotted core, or on 16 or
// more if there are URLs. Precondition: there are labels.
//
// Returns the error of one of the samples that cannot be read, with its file and name; no read
// begins after it. Unimplemented: labels of a source with calls. Cancelled: `interrupt`, which is
// called on the calling thread, ended the reads.
Status ReadLabels(const SampleSource& source, std::span<const uint64_t> ids, uint8_t* rows,
                  const Interrupt& interrupt = {});

}  // namespace stoker
