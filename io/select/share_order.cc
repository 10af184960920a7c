#include "io/select/share_order.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/hash/hash.h"
#include "core/numbers/permutation.h"
#include "core/numbers/random.h"

namespace stoker {

namespace {

template <typename T>
uint64_t HashOf(const std::vector<T>& numbers, uint64_t seed) {
  return Hash64(
      std::span(reinterpret_cast<const uint8_t*>(numbers.data()), numbers.size() * sizeof(T)),
      seed);
}

// Returns the seed of a group's own order.
uint64_t SeedOfGroup(uint64_t seed, size_t group) {
  return seed + (group + 1) * 0x9E3779B97F4A7C15;  // 2^64 / φ
}

}  // namespace

ShareOrder::ShareOrder(SampleGroups groups, std::span<const double> weights, uint64_t positions)
    : groups_(std::move(groups)), positions_(positions) {
  const double heaviest = std::ranges::max(weights);  // their sum might be too large for a double
  double total = 0;
  for (const double weight : weights) total += weight / heaviest;
  double sum = 0;
  for (const double weight : weights) {
    sum += weight / heaviest;
    ends_.push_back(sum / total * static_cast<double>(positions));  // the last end: all positions
  }
}

// Returns the most samples that a group can have in an epoch. A share that is whole except for its
// rounding error is rounded to that number.
uint64_t ShareOrder::MostOf(double share) const {
  const double error = static_cast<double>(positions_) * 0x1p-50;
  return std::max<uint64_t>(1, static_cast<uint64_t>(std::ceil(share - error)));
}

// The positions in random order are divided among the groups. Each group's ends, all moved by the
// same fraction, are rounded, which gives each group its share, up or down (systematic sampling).
uint64_t ShareOrder::At(uint64_t seed, uint64_t epoch, uint64_t position) const {
  const uint64_t place = Permutation(positions_, seed, epoch)(position);
  const double fraction = RandomStream({seed, epoch, 0}, kOrderStream).Uniform();
  const auto rounded = [fraction](double end) { return static_cast<uint64_t>(end + fraction); };
  const auto end =
      std::ranges::partition_point(ends_, [&](double other) { return rounded(other) <= place; });
  const auto group = static_cast<size_t>(end - ends_.begin());
  const double begin = group == 0 ? 0 : ends_[group - 1];

  // The sample is the n-th one of the group in this epoch. Epochs of one pass through the group use
  // different parts of one permutation.
  const uint64_t first = groups_.begins[group], size = groups_.begins[group + 1] - first;
  const uint64_t most = MostOf(*end - begin);
  const uint64_t epochs = std::max<uint64_t>(1, size / most);
  const uint64_t n = epoch % epochs * most + place - rounded(begin);
  const Permutation permutation(size, SeedOfGroup(seed, group),
                                (epoch / epochs) | (n / size) << 32);
  const uint64_t member = first + permutation(n % size);
  return groups_.ids.size() == 0 ? member : groups_.ids[member];
}

uint64_t ShareOrder::Hash() const {
  return HashOf(groups_.begins, HashOf(ends_, groups_.ids.Hash() + positions_));
}

uint64_t ShareOrder::memory_bytes() const {
  return sizeof(*this) + groups_.begins.capacity() * sizeof(uint64_t) +
         ends_.capacity() * sizeof(double) + groups_.ids.memory_bytes();
}

}  // namespace stoker
