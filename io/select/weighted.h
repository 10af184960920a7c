// Makes sources in whose epochs some samples come more often than others.
//
// Samples, ids, files, rows and class names are those of `source`. Only the order of an epoch
// differs: it is a function of the loader's seed, the epoch and the position, for any number
// of ranks and the `shuffle` of the loader. An epoch has `samples` positions over all ranks; 0
// means as many as `source` has samples. Each occurrence of a sample has its own random transforms.
//
// InvalidArgument, for all functions: `source` has an order already (unless said otherwise); more
// than 2^53 `samples`. To weight some of the samples, choose them first.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

// Each position draws a sample with replacement, with a probability proportional to its weight.
// Takes 8 bytes for each sample; constant time at any position.
//
// Without replacement this is not offered: it would have to sort all samples for each epoch, in
// every process (Efraimidis, Spirakis: "Weighted random sampling with a reservoir", IPL 2006).
// Balanced and Mix (combine.h) have orders without replacement.
//
// InvalidArgument: the number of weights is not that of the samples; a weight is negative or not
// finite; all are 0; 2^32 samples or more.
Result<std::shared_ptr<const SampleSource>> Weighted(std::shared_ptr<const SampleSource> source,
                                                     std::span<const double> weights,
                                                     uint64_t samples = 0);

struct BalancedOptions {
  // True: positions draw a class and then one of its samples, independently of each other. False:
  // all classes come equally often, give or take one, and so do all samples of a class: none is
  // repeated before all others have occurred.
  bool replacement = false;
  uint64_t samples = 0;
};

// Makes all classes equally likely, however many samples they have. `classes`: the class of each
// sample; nullopt means its label, which must be in memory (Field::Kind::kFixed). Takes 8 bytes for
// each sample with replacement; without, 16 for each class, and 4 for each sample if the samples
// are not in the order of their labels, as those of a folder are.
//
// InvalidArgument: labels that are not class numbers (Field::is_class_number), or none; another
// number of classes than samples.
Result<std::shared_ptr<const SampleSource>> Balanced(std::shared_ptr<const SampleSource> source,
                                                     const BalancedOptions& options = {},
                                                     std::span<const int64_t> classes = {});

// Each sample comes `times` times in a row, each time with other draws: "repeated augmentation"
// (Hoffer et al.: "Augment your batch", CVPR 2020). Because a rank's rows are every world-th
// position, the repetitions are spread over the ranks, as by torchvision's RASampler; as there, an
// epoch has as many positions as without repetition, and so 1 / `times` of the samples. Samples
// come in the order of `source`, if it has one, otherwise shuffled.
//
// InvalidArgument: `times` is 0; `samples` is more than `times` times the samples of `source`.
Result<std::shared_ptr<const SampleSource>> Repeated(std::shared_ptr<const SampleSource> source,
                                                     uint32_t times, uint64_t samples = 0);

}  // namespace stoker
