#include "io/select/share_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::Le;

SampleGroups Runs(const std::vector<uint64_t>& sizes) {
  SampleGroups groups{.begins = {0}};
  for (const uint64_t size : sizes) groups.begins.push_back(groups.begins.back() + size);
  return groups;
}

std::vector<uint64_t> EpochOf(const SampleOrder& order, uint64_t epoch, uint64_t seed = 1) {
  std::vector<uint64_t> samples(order.positions());
  for (uint64_t i = 0; i < samples.size(); ++i) samples[i] = order.At(seed, epoch, i);
  return samples;
}

// Counts how often each sample of each group comes.
std::vector<std::vector<uint64_t>> CountsOf(const SampleGroups& groups,
                                            const std::vector<uint64_t>& samples) {
  std::vector<std::vector<uint64_t>> counts;
  for (size_t i = 0; i < groups.size(); ++i) {
    counts.emplace_back(groups.begins[i + 1] - groups.begins[i]);
  }
  for (const uint64_t sample : samples) {
    const auto end = std::ranges::upper_bound(groups.begins, sample);
    const auto group = static_cast<size_t>(end - groups.begins.begin()) - 1;
    ++counts.at(group).at(sample - groups.begins[group]);
  }
  return counts;
}

uint64_t SumOf(const std::vector<uint64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0});
}

struct Mixture {
  std::vector<uint64_t> sizes;
  std::vector<double> weights;
  uint64_t positions;
};

std::vector<Mixture> Mixtures() {
  return {
      {{10}, {3}, 10},
      {{10}, {3}, 25},
      {{10, 20, 30}, {1, 1, 1}, 60},
      {{10, 20, 30}, {0.2, 0.5, 0.3}, 100},
      {{1, 1000}, {1, 1}, 501},
      {{1, 1, 1, 5, 1}, {1, 0, 1e-9, 1e9, 0}, 77},
      {{0, 7, 0}, {0, 1, 0}, 9},
      {{100, 100}, {1e308, 1e308}, 3},
      {std::vector<uint64_t>(100, 3), std::vector<double>(100, 0.1), 7},
  };
}

// The definition: each group has its share, rounded up or down; within a group the counts of two
// samples differ by at most one.
TEST(ShareOrder, EachEpochHasTheSharesAndEachGroupIsEven) {
  for (const Mixture& mixture : Mixtures()) {
    const SampleGroups groups = Runs(mixture.sizes);
    const ShareOrder order(groups, mixture.weights, mixture.positions);
    double total = 0;
    for (const double weight : mixture.weights) total += weight / 1e9;
    for (uint64_t epoch = 0; epoch < 20; ++epoch) {
      const auto counts = CountsOf(groups, EpochOf(order, epoch));
      for (size_t i = 0; i < counts.size(); ++i) {
        const double share =
            mixture.weights[i] / 1e9 / total * static_cast<double>(mixture.positions);
        const auto count = static_cast<double>(SumOf(counts[i]));
        if (mixture.weights[i] == 0) {
          EXPECT_EQ(count, 0);
        }
        EXPECT_GE(count, std::floor(share - 1e-9));
        EXPECT_LE(count, std::ceil(share + 1e-9));
        if (counts[i].empty()) continue;
        const uint64_t once = SumOf(counts[i]) / counts[i].size();
        EXPECT_THAT(counts[i], Each(AllOf(Ge(once), Le(once + 1))));
      }
    }
  }
}

// The mean number of a group whose share is 0.07 is 0.07: over 20,000 epochs 1,400, with a standard
// deviation of 36.
TEST(ShareOrder, RoundingIsRightInTheMean) {
  const SampleGroups groups = Runs(std::vector<uint64_t>(100, 3));
  const ShareOrder order(groups, std::vector<double>(100, 1.0), 7);
  std::vector<uint64_t> counts(100);
  for (uint64_t epoch = 0; epoch < 20000; ++epoch) {
    for (const uint64_t sample : EpochOf(order, epoch)) ++counts[sample / 3];
  }
  EXPECT_THAT(counts, Each(AllOf(Ge(1400 - 6 * 36), Le(1400 + 6 * 36))));
}

// A group of 100 samples with a share of 20 goes through all of them in five epochs; one of 20.5
// leaves room for four.
TEST(ShareOrder, ALargeGroupGoesOnInTheNextEpoch) {
  for (const auto& [positions, epochs] : std::map<uint64_t, uint64_t>{{40, 5}, {41, 4}}) {
    const ShareOrder order(Runs({100, 1}), std::vector<double>{1, 1}, positions);
    for (uint64_t pass = 0; pass < 3; ++pass) {
      std::vector<uint64_t> counts(101);
      for (uint64_t epoch = pass * epochs; epoch < (pass + 1) * epochs; ++epoch) {
        for (const uint64_t sample : EpochOf(order, epoch)) ++counts[sample];
      }
      counts.pop_back();
      EXPECT_THAT(counts, Each(Le(1u))) << positions;
      EXPECT_GE(SumOf(counts), 20 * epochs);
    }
  }
}

TEST(ShareOrder, GroupsAreMixedEvenly) {
  const ShareOrder order(Runs({500, 500}), std::vector<double>{1, 1}, 1000);
  const std::vector<uint64_t> samples = EpochOf(order, 3);
  // The first group has 50 ± 4.7 of 100 positions.
  for (size_t begin = 0; begin < samples.size(); begin += 100) {
    const auto firsts = std::count_if(samples.begin() + static_cast<std::ptrdiff_t>(begin),
                                      samples.begin() + static_cast<std::ptrdiff_t>(begin) + 100,
                                      [](uint64_t sample) { return sample < 500; });
    EXPECT_GT(firsts, 50 - 6 * 4.7);
    EXPECT_LT(firsts, 50 + 6 * 4.7);
  }
}

TEST(ShareOrder, EpochsSeedsAndGroupsAreUnrelated) {
  const ShareOrder order(Runs({500, 500}), std::vector<double>{1, 1}, 1000);
  EXPECT_NE(EpochOf(order, 0), EpochOf(order, 1));
  EXPECT_NE(EpochOf(order, 0, 1), EpochOf(order, 0, 2));
  std::vector<uint64_t> first, second;  // the order within each group
  for (const uint64_t sample : EpochOf(order, 0)) {
    (sample < 500 ? first : second).push_back(sample % 500);
  }
  int same = 0;
  for (size_t i = 0; i < 500; ++i) same += first[i] == second[i];
  EXPECT_LE(same, 8);  // one is expected; P(more than 8) is about 1e-6
}

TEST(ShareOrder, GroupsMayBeLists) {
  SampleGroups lists = Runs({2, 3});
  lists.ids = IdList(100);
  for (const uint64_t id : {7, 93, 1, 50, 4}) lists.ids.Add(id);
  const std::vector<double> weights{2, 3};
  const ShareOrder order(lists, weights, 5), runs(Runs({2, 3}), weights, 5);
  const std::vector<uint64_t> ids{7, 93, 1, 50, 4};
  for (uint64_t i = 0; i < 5; ++i) EXPECT_EQ(order.At(9, 2, i), ids[runs.At(9, 2, i)]);
  EXPECT_NE(order.Hash(), runs.Hash());
}

TEST(ShareOrder, IsTheSameOnEveryMachine) {
  // Written down once from this code: changing them changes what users' runs reproduce.
  const ShareOrder order(Runs({4, 6}), std::vector<double>{0.7, 0.3}, 10);
  EXPECT_THAT(EpochOf(order, 0), ::testing::ElementsAre(2, 0, 8, 0, 1, 1, 3, 7, 6, 2));
}

TEST(ShareOrder, HugeEpochsAndGroupsDoNotOverflow) {
  const ShareOrder order(Runs({1, uint64_t{1} << 61}), std::vector<double>{1, 1}, kMostPositions);
  for (const uint64_t epoch : {uint64_t{0}, (uint64_t{1} << 32) - 1}) {
    std::set<uint64_t> seen;
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t position = i % 2 == 0 ? i : kMostPositions - i;
      const uint64_t sample = order.At(5, epoch, position);
      ASSERT_LE(sample, uint64_t{1} << 61);
      EXPECT_TRUE(sample == 0 || seen.insert(sample).second);
    }
    EXPECT_GT(seen.size(), 400u);
    EXPECT_LT(seen.size(), 600u);
  }
}

}  // namespace
}  // namespace stoker
