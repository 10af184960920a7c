// Makes sources of some of the samples of a source, chosen by their ids or at random.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Returns the samples `ids` of `source`, in this order; an id that occurs twice is two samples.
// They are renumbered, from 0; files, rows and class names are those of `source`, so labels keep
// their numbers even if a class is left out. Nothing is copied: the list takes 4 bytes for each
// sample, or 8 if `source` has more than 2^32. A subset of a subset refers to the first source.
//
// InvalidArgument: no id, or one that `source` does not have, with its index in `ids`; `source` has
// an order of its own (weighted.h, combine.h).
Result<std::shared_ptr<const SampleSource>> Subset(std::shared_ptr<const SampleSource> source,
                                                   std::span<const uint64_t> ids);

// Returns the ids that the samples of a subset have in the first source; empty if `source` is not a
// subset.
std::vector<uint64_t> SubsetIds(const SampleSource& source);

struct SourceSplit {
  std::shared_ptr<const SampleSource> training;
  std::shared_ptr<const SampleSource> validation;
};

// Divides the samples at random into two disjoint subsets. `validation` gets as many as Keras'
// validation_split gives it: `fraction` of the samples, rounded down. Both are in the order of
// `source`. The same number of samples, fraction and seed give the same division on every machine;
// with the same seed, a larger fraction adds samples to `validation` and takes none away.
//
// `classes`: the class of each sample, such as its label. `validation` then has the same total, and
// each class its share of it, rounded down or up: up where the remainders are largest; ties are
// broken at random. So a small class may fall entirely into one subset. A larger fraction may also
// take samples away. It temporarily takes 12 bytes for each sample.
//
// InvalidArgument: `fraction` is not between 0 and 1, or leaves one subset without a sample;
// `source` has an order of its own; another number of classes than samples; classes of 2^32 samples
// or more.
Result<SourceSplit> Split(const std::shared_ptr<const SampleSource>& source, double fraction,
                          uint64_t seed, std::span<const int64_t> classes = {});

// Returns the errors of Split that do not depend on classes, for callers that read these first.
Status CheckSplit(const SampleSource* source, double fraction);

}  // namespace stoker
