#include "engine/memory/fair_share.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace stoker {

namespace {

uint64_t CapOf(const FairClaim& claim) { return std::max(claim.minimum, claim.need); }

// Returns the share of a claim at water level `level`.
uint64_t ShareAt(double level, const FairClaim& claim) {
  const double share = level * claim.weight;
  if (share >= static_cast<double>(CapOf(claim))) return CapOf(claim);
  return std::max(claim.minimum, static_cast<uint64_t>(share));
}

bool FitsAt(double level, uint64_t total, std::span<const FairClaim> claims) {
  for (const FairClaim& claim : claims) {
    const uint64_t share = ShareAt(level, claim);
    if (share > total) return false;
    total -= share;
  }
  return true;
}

// Returns the highest level that fits, exact to the last bit: positive doubles are ordered like
// their bit patterns.
double Level(uint64_t total, std::span<const FairClaim> claims) {
  uint64_t fits = 0;
  uint64_t beyond = std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity());
  while (beyond - fits > 1) {
    const uint64_t middle = fits + (beyond - fits) / 2;
    (FitsAt(std::bit_cast<double>(middle), total, claims) ? fits : beyond) = middle;
  }
  return std::bit_cast<double>(fits);
}

}  // namespace

std::vector<uint64_t> FairShares(uint64_t total, std::span<const FairClaim> claims) {
  const double level = Level(total, claims);
  std::vector<uint64_t> shares;
  shares.reserve(claims.size());
  for (const FairClaim& claim : claims) {
    shares.push_back(ShareAt(level, claim));
    total -= std::min(total, shares.back());
  }
  for (size_t i = 0; i < claims.size() && total > 0; ++i) {
    if (shares[i] == CapOf(claims[i])) continue;
    ++shares[i];
    --total;
  }
  return shares;
}

std::vector<uint64_t> FairSharesWithRoom(uint64_t total, std::span<const FairClaim> claims) {
  std::vector<uint64_t> shares = FairShares(total, claims);
  uint64_t left = total;
  for (uint64_t share : shares) left -= std::min(left, share);
  std::vector<FairClaim> growing;
  for (const FairClaim& claim : claims) growing.push_back({.weight = claim.weight, .need = left});
  const std::vector<uint64_t> room = FairShares(left, growing);
  for (size_t i = 0; i < shares.size(); ++i) shares[i] += room[i];
  return shares;
}

}  // namespace stoker
