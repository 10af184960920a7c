// SampleOrder: says which sample comes at each position of an epoch, for sources whose epochs do
// not have each sample exactly once.
#pragma once

#include <cstdint>
#include <string>

#include "core/result/result.h"

namespace stoker {

// Immutable, so every function is thread-safe. A pure function of seed, epoch and position: each
// process computes only its own positions.
class SampleOrder {
 public:
  virtual ~SampleOrder() = default;

  // The number of positions in an epoch, at most 2^53.
  virtual uint64_t positions() const = 0;

  // Returns the sample at a position, in a time that depends on neither position nor epoch; no
  // allocation, no lock. Preconditions: position < positions(), epoch < 2^32.
  virtual uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const = 0;

  virtual uint64_t Hash() const = 0;          // equal for the same order
  virtual uint64_t memory_bytes() const = 0;  // on the heap
};

class SampleSource;

// InvalidArgument if `source` is null, or has an order of its own, which `what` could not preserve.
Status CheckNoOrder(const std::string& what, const SampleSource* source);

// The largest number of positions: up to it, a double represents each position exactly.
inline constexpr uint64_t kMostPositions = uint64_t{1} << 53;

// The transform number (core/numbers/random.h) of draws that choose samples. No list has this many
// transforms, and MixUp has another number.
inline constexpr uint32_t kOrderStream = 0xfffe;

}  // namespace stoker
