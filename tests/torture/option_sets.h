// Random options for a loader, or for two that share a Runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/loader/producer.h"
#include "tests/torture/photographs.h"

namespace stoker::testing {

struct OptionSet {
  LoaderOptions loader;    // but the Runtime
  RuntimeOptions runtime;  // but the budget
  bool second = false;     // loader, of the same Runtime
  bool all_ordinary = true;
  bool huge = false;  // one of 50 megapixels or more among them
  double budget = 1;  // of the smallest that opens
};

// A function of `seed` and `number`.
OptionSet DrawSet(uint64_t seed, uint64_t number, const std::vector<Photograph>& photographs);

// The same batches by other means: executor, reader, reads in flight.
RuntimeOptions OtherMeans(const RuntimeOptions& runtime, uint64_t number);

}  // namespace stoker::testing
