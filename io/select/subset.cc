#include "io/select/subset.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/hash/hash.h"
#include "core/numbers/permutation.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/select/id_list.h"
#include "io/select/sample_order.h"
#include "io/select/selected_source.h"

namespace stoker {

namespace {

// The permutations of a split differ from those of all epochs, which are below 2^32.
constexpr uint64_t kSplitEpoch = ~uint64_t{0};
constexpr uint64_t kTiesEpoch = kSplitEpoch - 1;  // of classes with equal remainders

Error BadChoice(std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

std::string CountSamples(uint64_t samples) {
  return std::to_string(samples) + Plural(samples, " sample", " samples");
}

// Returns the source as a subset, or null if it is not one.
const SelectedSource* AsSubset(const SampleSource& source) {
  const auto* selected = dynamic_cast<const SelectedSource*>(&source);
  return selected != nullptr && selected->ids() != nullptr ? selected : nullptr;
}

// Precondition: `ids` are ids of samples of `source`.
std::shared_ptr<const SampleSource> Collapse(std::shared_ptr<const SampleSource> source,
                                             IdList ids) {
  if (const SelectedSource* const inner = AsSubset(*source)) {
    IdList theirs(inner->first()->size());
    theirs.Reserve(ids.size());
    for (size_t i = 0; i < ids.size(); ++i) theirs.Add((*inner->ids())[ids[i]]);
    return std::make_shared<SelectedSource>(inner->first(), std::move(theirs));
  }
  return std::make_shared<SelectedSource>(std::move(source), std::move(ids));
}

// Returns the number of samples that a fraction chooses, which leaves none of two parts empty.
Result<uint64_t> SamplesOfFraction(double fraction, uint64_t samples) {
  if (!(fraction > 0 && fraction < 1)) {
    return BadChoice("split: the fraction is " + std::to_string(fraction) +
                     "; it must be between 0 and 1");
  }
  const auto chosen = static_cast<uint64_t>(fraction * static_cast<double>(samples));
  if (chosen != 0 && chosen < samples) return chosen;
  return BadChoice("split: " + std::to_string(fraction) + " of " + CountSamples(samples) +
                       " leaves one part empty",
                   "Give a fraction between " + std::to_string(1.0 / static_cast<double>(samples)) +
                       " and 1, and at least two samples");
}

Status CheckSplitClasses(const SampleSource& source, std::span<const int64_t> classes) {
  if (!classes.empty() && classes.size() != source.size()) {
    return BadChoice("split: " + std::to_string(classes.size()) + " classes were given, and " +
                     source.Describe() + " has " + CountSamples(source.size()));
  }
  if (classes.size() <= std::numeric_limits<uint32_t>::max()) return {};
  return BadChoice("split: " + source.Describe() +
                   " has 2^32 samples or more, too many to divide each class");
}

// A permutation's first samples.
std::vector<bool> FirstOfAll(const Permutation& permutation, uint64_t samples, uint64_t chosen) {
  std::vector<bool> first(samples);
  for (uint64_t i = 0; i < chosen; ++i) first[permutation(i)] = true;
  return first;
}

// Numbers classes from 0, in their order.
struct NumberedClasses {
  explicit NumberedClasses(std::span<const int64_t> classes);

  std::vector<uint32_t> numbers;  // by sample
  std::vector<uint64_t> counts;   // by number
};

NumberedClasses::NumberedClasses(std::span<const int64_t> classes) {
  std::vector<int64_t> distinct(classes.begin(), classes.end());
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  counts.resize(distinct.size());
  numbers.reserve(classes.size());
  for (const int64_t of : classes) {
    const auto number = std::ranges::lower_bound(distinct, of) - distinct.begin();
    numbers.push_back(static_cast<uint32_t>(number));
    ++counts[static_cast<size_t>(number)];
  }
}

// Divides `chosen` of `samples` samples among classes with these numbers of samples, by the method
// of largest remainders; `ties` has the classes in the order in which equal ones are rounded up.
// It calculates with integers, so that every machine gives the same numbers.
std::vector<uint64_t> DivideAmong(std::span<const uint64_t> counts, const Permutation& ties,
                                  uint64_t samples, uint64_t chosen) {
  std::vector<uint64_t> shares, remainders, order;
  uint64_t left = chosen;
  for (const uint64_t count : counts) {
    shares.push_back(count * chosen / samples);
    remainders.push_back(count * chosen % samples);
    left -= shares.back();
    order.push_back(ties(order.size()));
  }
  std::ranges::stable_sort(order, std::greater<>(), [&](uint64_t of) { return remainders[of]; });
  for (uint64_t i = 0; i < left; ++i) ++shares[order[i]];
  return shares;
}

// A permutation's first samples of each class, `chosen` in all.
std::vector<bool> FirstOfEachClass(const Permutation& permutation, std::span<const int64_t> classes,
                                   uint64_t seed, uint64_t chosen) {
  const NumberedClasses numbered(classes);
  const Permutation ties(numbered.counts.size(), seed, kTiesEpoch);
  std::vector<uint64_t> left = DivideAmong(numbered.counts, ties, classes.size(), chosen);
  std::vector<bool> first(classes.size());
  for (uint64_t i = 0; chosen != 0; ++i) {
    const uint64_t id = permutation(i);
    uint64_t& of_class = left[numbered.numbers[id]];
    if (of_class == 0) continue;
    --of_class;
    --chosen;
    first[id] = true;
  }
  return first;
}

}  // namespace

Result<std::shared_ptr<const SampleSource>> Subset(std::shared_ptr<const SampleSource> source,
                                                   std::span<const uint64_t> ids) {
  TRY(CheckNoOrder("subset", source.get()));
  if (ids.empty()) return BadChoice("subset: no sample of " + source->Describe() + " was chosen");
  IdList list(source->size());
  list.Reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= source->size()) {
      return BadChoice("subset: indices[" + std::to_string(i) + "] is " + std::to_string(ids[i]) +
                           ", and " + source->Describe() + " has " + CountSamples(source->size()),
                       "Samples are numbered from 0");
    }
    list.Add(ids[i]);
  }
  return Collapse(std::move(source), std::move(list));
}

std::vector<uint64_t> SubsetIds(const SampleSource& source) {
  const SelectedSource* const subset = AsSubset(source);
  if (subset == nullptr) return {};
  std::vector<uint64_t> ids(subset->size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = (*subset->ids())[i];
  return ids;
}

Status CheckSplit(const SampleSource* source, double fraction) {
  TRY(CheckNoOrder("split", source));
  TRY(SamplesOfFraction(fraction, source->size()));
  return {};
}

Result<SourceSplit> Split(const std::shared_ptr<const SampleSource>& source, double fraction,
                          uint64_t seed, std::span<const int64_t> classes) {
  TRY(CheckNoOrder("split", source.get()));
  TRY(CheckSplitClasses(*source, classes));
  const uint64_t samples = source->size();
  ASSIGN_OR_RETURN(const uint64_t chosen, SamplesOfFraction(fraction, samples));
  const Permutation permutation(samples, seed, kSplitEpoch);
  const std::vector<bool> in_validation =
      classes.empty() ? FirstOfAll(permutation, samples, chosen)
                      : FirstOfEachClass(permutation, classes, seed, chosen);
  IdList training(samples), validation(samples);
  training.Reserve(samples - chosen);
  validation.Reserve(chosen);
  for (uint64_t id = 0; id < samples; ++id) (in_validation[id] ? validation : training).Add(id);
  return SourceSplit{.training = Collapse(source, std::move(training)),
                     .validation = Collapse(source, std::move(validation))};
}

}  // namespace stoker
