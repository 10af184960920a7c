// Divides a resource among loaders by need, weight and minimum (weighted max-min fairness). The
// MemoryManager uses it for the bytes of batches and for workers.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker {

struct FairClaim {
  double weight = 1;     // > 0
  uint64_t minimum = 0;  // always granted
  uint64_t need = 0;     // more than this is not useful
};

// Divides `total` by water filling: no claim gets more than it needs, and those that get less get
// equal amounts per weight (rounded down; the remainder goes to the first ones).
std::vector<uint64_t> FairShares(uint64_t total, std::span<const FairClaim> claims);

// The same, but the surplus is also divided, by weight, as room to grow.
std::vector<uint64_t> FairSharesWithRoom(uint64_t total, std::span<const FairClaim> claims);

}  // namespace stoker
