// How something that several loaders want is divided among them: by need, weight and minimum
// (weighted max-min fairness). The MemoryManager divides batches' bytes and the workers by it.
//
// Pure arithmetic.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct FairClaim {
  double weight = 1;     // > 0
  uint64_t minimum = 0;  // is granted in any case
  uint64_t need = 0;     // more than this is of no use
};

// Who gets how much of `total`, by water filling: nobody more than it needs, and of those who get
// less, each the same for its weight (rounded down; what is left over goes to the first ones).
std::vector<uint64_t> FairShares(uint64_t total, std::span<const FairClaim> claims);

// The same, and what nobody needs is divided by weight on top of it, as room to grow into.
std::vector<uint64_t> FairSharesWithRoom(uint64_t total, std::span<const FairClaim> claims);

}  // namespace stoker
