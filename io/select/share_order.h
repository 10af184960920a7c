// ShareOrder: an order in which each of several groups of samples has a given share of an epoch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/select/id_list.h"
#include "io/select/sample_order.h"

namespace stoker {

// Groups of samples. A group is a run of neighbouring samples, or of neighbours in a list of ids.
struct SampleGroups {
  std::vector<uint64_t> begins;  // of each group, and the end of the last one
  IdList ids{0};  // the samples of the groups; empty means the groups are runs of ids

  size_t size() const { return begins.size() - 1; }
};

// In each epoch every group has its weight's share of the positions, rounded up or down at random,
// so that the mean over epochs is exact. The groups are mixed evenly. Within a group all samples
// occur equally often, give or take one: none is repeated before all have occurred. A group that
// has more samples than its share continues with others in the next epoch, as long as its share
// there can consist of new samples.
//
// It costs two permutations and a search among the groups for each position. The memory is 16 bytes
// for each group, and the list of ids.
class ShareOrder final : public SampleOrder {
 public:
  // Preconditions: `weights` has one weight for each group; all are finite and not negative, not
  // all are 0, and a group without samples has the weight 0; 1 ≤ positions ≤ kMostPositions.
  ShareOrder(SampleGroups groups, std::span<const double> weights, uint64_t positions);

  uint64_t positions() const override { return positions_; }
  uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const override;
  uint64_t Hash() const override;
  uint64_t memory_bytes() const override;

 private:
  uint64_t MostOf(double share) const;

  const SampleGroups groups_;
  const uint64_t positions_;
  std::vector<double> ends_;  // the end of each group's share of the positions, cumulative
};

}  // namespace stoker
