#include "bindings/cli/verify/bad_samples.h"

#include <algorithm>

#include "bindings/cli/outcome.h"

namespace stoker {

void BadSampleList::Add(uint64_t id, SampleFault fault, const Error& error, uint32_t piece) {
  const Text& text = *texts_.emplace(error.cause, error.Advice(cli::FlagOf)).first;
  entries_.push_back({id, error.offset.value_or(kNoOffset), &text, piece, fault});
  ++counts_[static_cast<size_t>(fault)];
}

void BadSampleList::SortById() { std::ranges::sort(entries_, {}, &Entry::id); }

BadSample BadSampleList::operator[](size_t i) const {
  const Entry& entry = entries_[i];
  BadSample sample{.id = entry.id,
                   .piece = entry.piece,
                   .fault = entry.fault,
                   .cause = entry.text->first,
                   .advice = entry.text->second};
  if (entry.offset != kNoOffset) sample.offset = entry.offset;
  return sample;
}

}  // namespace stoker
