// Combines several sources into one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Returns a source of the samples of `sources`, one source after another: ids of the second one
// follow those of the first. All sources must have the same fields: names, kinds, types, shapes,
// and the label. A source may lack class names; if only some have them, the result has none.
// Nothing is copied.
//
// InvalidArgument names the difference (fields, class names) and the source. Also: no source; a
// source that has an order of its own (weighted, balanced, repeated, mixed); more than 2^32 files.
Result<std::shared_ptr<const SampleSource>> Combine(
    std::vector<std::shared_ptr<const SampleSource>> sources);

// Does the same, but an epoch is a mixture: `samples` of them (over all ranks; 0 means as many as
// there are), each source has its weight's share of them, rounded up or down at random, so that the
// mean over epochs is exact. Samples of one source occur equally often, give or take one: none is
// repeated before all have occurred. A source that is larger than its share continues with other
// samples in the next epoch. A loader's `shuffle` has no effect.
//
// InvalidArgument, also: the number of weights is not that of the sources; a weight is negative or
// not finite; all are 0; more than 2^53 samples.
Result<std::shared_ptr<const SampleSource>> Combine(
    std::vector<std::shared_ptr<const SampleSource>> sources, std::span<const double> weights,
    uint64_t samples = 0);

}  // namespace stoker
