// Random options for a loader, or for two that share a Runtime.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/production/producer.h"
#include "tests/torture/photographs.h"

namespace stoker::testing {

struct OptionSet {
  LoaderOptions loader;    // except the Runtime
  RuntimeOptions runtime;  // except the budget
  bool second = false;     // a second loader of the same Runtime
  bool all_ordinary = true;
  bool huge = false;  // includes a photograph of 50 megapixels or more
  // Makes crops for a device that decodes, where that is possible.
  bool for_device = false;
  double budget = 1;  // relative to the smallest budget that opens
};

// A function of `seed` and `number`.
OptionSet DrawSet(uint64_t seed, uint64_t number, const std::vector<Photograph>& photographs);

// Returns options that give the same batches with another executor, reader, and reads in flight.
RuntimeOptions OtherMeans(const RuntimeOptions& runtime, uint64_t number);

}  // namespace stoker::testing
