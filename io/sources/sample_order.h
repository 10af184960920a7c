// SampleOrder: which sample comes at each position of an epoch, for sources whose epochs do not
// have each sample once.
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"

namespace stoker {

// Immutable, so every function is thread-safe. A pure function of seed, epoch and position: any
// process finds out about its own positions alone.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;

  // The number of positions in an epoch, at most 2^53.
  virtual uint64_t positions() const = 0;

  // The sample at a position. Its time depends on neither position nor epoch; no allocation, no
  // lock. Preconditions: position < positions(), epoch < 2^32.
  virtual uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const = 0;

  virtual uint64_t Hash() const = 0;          // equal for the same order
  virtual uint64_t memory_bytes() const = 0;  // on the heap
};

class SampleSource;

// InvalidArgument if `source` is null, or has an order of its own, which `what` could not keep.
Status CheckNoOrder(const std::string& what, const SampleSource* source);

// The most positions, so that a double has every number of them.
inline constexpr uint64_t kMostPositions = uint64_t{1} << 53;

// The transform number (core/random.h) of draws that choose samples. No list has as many
// transforms, and MixUp has another one.
inline constexpr uint32_t kOrderStream = 0xfffe;

}  // namespace stoker
