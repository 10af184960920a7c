// ShareOrder: an epoch in which each of several groups of samples has a given share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/sources/id_list.h"
#include "io/sources/sample_order.h"

namespace stoker {

// A group is a run of neighbouring samples, or of a list of them.
struct SampleGroups {
  std::vector<uint64_t> begins;  // of each group, and the end of the last one
  IdList ids{0};                 // where they are; empty: the samples themselves

  size_t size() const { return begins.size() - 1; }
};

// In each epoch every group has its weight's share of the positions, rounded up or down: by chance,
// so that the mean over epochs is exact. The groups are mixed evenly. Within a group all samples
// come equally often, give or take one: none comes twice before all have come. A group that has
// more samples than its share goes on in the next epoch with others, as long as all of its share
// there are new.
//
// It costs two permutations and a search among the groups for each position. The memory is 16 bytes
// for each group, and the list of ids.
class ShareOrder final : public SampleOrder {
 public:
  // Preconditions: `weights` are one for each group, finite, not negative and not all 0; a group
  // without samples has none; 1 ≤ positions ≤ kMostPositions.
  ShareOrder(SampleGroups groups, std::span<const double> weights, uint64_t positions);

  uint64_t positions() const override { return positions_; }
  uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const override;
  uint64_t Hash() const override;
  uint64_t memory_bytes() const override;

 private:
  uint64_t MostOf(double share) const;

  const SampleGroups groups_;
  const uint64_t positions_;
  std::vector<double> ends_;  // of each group's share of the positions, behind those before it
};

}  // namespace stoker
