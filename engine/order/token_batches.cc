#include "engine/order/token_batches.h"

#include <algorithm>
#include <array>
#include <optional>

#include "core/hash/hash.h"
#include "core/numbers/permutation.h"
#include "core/numbers/random.h"
#include "engine/options/options.h"
#include "transforms/spec/weights.h"

namespace stoker {
namespace {

constexpr uint64_t kBatchesToJudge = 35;  // then the last one, which is not full, counts little

// The samples that come next in the order, as their classes; one is taken at a time.
class Lookahead {
 public:
  // `tops`: the tokens of each class. Both must outlive this.
  Lookahead(std::span<const uint32_t> order, std::span<const uint32_t> tops)
      : order_(order), tops_(tops), taken_(order.size()) {
    while (keys_.size() < kTokenLookahead && next_ < order_.size()) Add();
  }

  bool empty() const { return keys_.empty(); }

  // Takes the oldest sample if it fits in `room`, otherwise the largest that does, and of equal
  // ones the oldest. Returns its class; nullopt if none fits. Precondition: !empty().
  std::optional<uint32_t> Take(uint32_t room) {
    auto at = std::ranges::lower_bound(keys_, KeyOf(oldest_));
    if (tops_[order_[oldest_]] > room) {
      at = std::ranges::upper_bound(keys_, uint64_t{room} << 32 | ~uint32_t{0});
      if (at == keys_.begin()) return std::nullopt;
      --at;
    }
    const uint32_t index = ~static_cast<uint32_t>(*at);
    keys_.erase(at);
    taken_[index] = true;
    if (next_ < order_.size()) Add();
    while (oldest_ < next_ && taken_[oldest_]) ++oldest_;
    return order_[index];
  }

 private:
  // Sorts by tokens; of equal ones the oldest is last.
  uint64_t KeyOf(uint32_t index) const { return uint64_t{tops_[order_[index]]} << 32 | ~index; }
  void Add() {
    const uint64_t key = KeyOf(next_++);
    keys_.insert(std::ranges::lower_bound(keys_, key), key);
  }

  const std::span<const uint32_t> order_, tops_;
  std::vector<uint64_t> keys_;
  std::vector<bool> taken_;
  uint32_t next_ = 0, oldest_ = 0;  // in order_
};

}  // namespace

TokenBatches::TokenBatches(const TokenBatchOptions& options)
    : seed_(options.seed),
      shuffle_(options.shuffle),
      padded_(options.padded || options.buckets != nullptr),
      run_(options.run) {
  const auto samples = static_cast<uint32_t>(options.tokens.size());
  uint64_t all = 0;
  {
    std::vector<uint64_t> sorted(samples);  // tokens, then id
    for (uint32_t id = 0; id < samples; ++id) {
      sorted[id] = uint64_t{options.tokens[id]} << 32 | id;
      all += options.tokens[id];
    }
    std::ranges::sort(sorted);
    members_.assign(sorted.begin(), sorted.end());  // the lower halves
  }

  std::vector<uint32_t> tops;  // from the largest class on
  for (uint32_t i = samples; i-- > 0;) {
    const uint32_t tokens = options.tokens[members_[i]];
    if (tops.empty() || !IsOfTokenClass(tokens, tops.back(), shuffle_)) {
      tops.push_back(tokens);
      class_begins_.push_back(i + 1);  // the end of this class
    }
  }
  class_begins_.push_back(0);
  std::ranges::reverse(class_begins_);
  std::ranges::reverse(tops);

  slots_.reserve(samples);
  begins_.push_back(0);
  if (options.buckets != nullptr) {
    all = PackInBuckets(options);
  } else {
    const bool full = padded_ ? PackBySize(options, tops) : Pack(options, tops);
    full_ = begins_.size() - (full ? 1 : 2);
  }
  const uint64_t batches = begins_.size() - 1;
  fill_ = static_cast<double>(all) / static_cast<double>(batches) / options.budget;
  const uint64_t four = uint64_t{4} * tops.back();
  const bool rows_limit = most_rows_ == options.most_rows;
  if (!padded_ && fill_ < 0.97 && four > options.budget && four <= kMostTokens && !rows_limit &&
      all >= kBatchesToJudge * four) {
    fuller_ = four;
  }
}

bool TokenBatches::Pack(const TokenBatchOptions& options, std::span<const uint32_t> tops) {
  const auto samples = static_cast<uint32_t>(members_.size());
  std::vector<uint32_t> order(samples);  // the samples, as their classes
  {
    std::vector<uint32_t> class_of(samples);
    for (uint32_t c = 0; c < tops.size(); ++c) {
      for (uint32_t m = class_begins_[c]; m < class_begins_[c + 1]; ++m) class_of[members_[m]] = c;
    }
    const Permutation shuffled(samples, seed_, kTemplateEpoch);
    for (uint32_t i = 0; i < samples; ++i) order[i] = class_of[shuffle_ ? shuffled(i) : i];
  }
  std::vector<uint32_t> used = class_begins_;  // the next member of each class
  uint32_t room = 0, rows = 0;
  for (Lookahead next(order, tops); !next.empty();) {
    room = options.budget;
    rows = 0;
    while (rows < options.most_rows && !next.empty()) {
      const std::optional<uint32_t> taken = next.Take(room);
      if (!taken) break;
      room -= tops[*taken];
      slots_.push_back(used[*taken]++);
      ++rows;
    }
    EndBatch();
  }
  return room < tops.front() || rows == options.most_rows;
}

bool TokenBatches::PackBySize(const TokenBatchOptions& options, std::span<const uint32_t> tops) {
  uint32_t rows = 0, most = 0;
  for (size_t c = tops.size(); c-- > 0;) {
    for (uint32_t member = class_begins_[c]; member < class_begins_[c + 1]; ++member) {
      if (rows == most) {
        if (rows != 0) EndBatch();
        rows = 0;
        most = options.most_rows;
        if (tops[c] != 0) most = std::min(most, options.budget / tops[c]);
      }
      slots_.push_back(member);
      ++rows;
    }
  }
  EndBatch();
  return rows == most;
}

uint64_t TokenBatches::PackInBuckets(const TokenBatchOptions& options) {
  const auto samples = static_cast<uint32_t>(members_.size());
  uint64_t places = 0;
  std::vector<double> weights;
  weights.reserve(options.buckets->all.size());
  for (const Buckets::Bucket& bucket : options.buckets->all) weights.push_back(bucket.weight);
  while (slots_.size() < samples) {
    RandomStream random({seed_, 0, lengths_.size()}, kBucketStream);
    const Buckets::Bucket& bucket =
        options.buckets->all[ChooseIndex(random.Uniform(), weights, weights.size())];
    lengths_.push_back(bucket.length);
    const uint64_t rows = options.buckets->RowsOf(bucket, options.budget, options.most_rows);
    const uint64_t left = std::min(samples - slots_.size(), rows * run_);
    const uint64_t batches = std::min<uint64_t>(run_, left);
    for (uint64_t b = 0; b < batches; ++b) {
      const uint64_t count = left / batches + (b < left % batches ? 1 : 0);
      for (uint64_t i = 0; i < count; ++i) slots_.push_back(static_cast<uint32_t>(slots_.size()));
      EndBatch();
    }
    if (left == rows * run_) full_ += run_;
    places += left * bucket.length;
    most_places_ = std::max(most_places_, (left + batches - 1) / batches * bucket.length);
  }
  return places;
}

void TokenBatches::EndBatch() {
  const auto end = static_cast<uint32_t>(slots_.size());
  most_rows_ = std::max(most_rows_, end - begins_.back());
  begins_.push_back(end);
}

uint64_t TokenBatches::Hash() const {
  const auto add = [](const auto& table, uint64_t hash) {
    const auto bytes = std::as_bytes(std::span(table));
    return Hash64(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()), hash);
  };
  const std::array<uint64_t, 1> full = {full_};
  const uint64_t hash = add(full, add(begins_, add(slots_, add(class_begins_, add(members_, 0)))));
  return has_buckets() ? add(lengths_, hash) : hash;
}

uint64_t TokenBatches::MostOf(std::span<const uint32_t> of) const {
  if (has_buckets()) return most_places_;
  std::vector<uint64_t> largest(class_begins_.size() - 1);  // of each class
  for (size_t c = 0; c < largest.size(); ++c) {
    for (uint32_t m = class_begins_[c]; m < class_begins_[c + 1]; ++m) {
      largest[c] = std::max<uint64_t>(largest[c], of[members_[m]]);
    }
  }
  uint64_t most = 0;
  for (size_t batch = 0; batch + 1 < begins_.size(); ++batch) {
    uint64_t sum = 0, longest = 0;
    for (uint32_t i = begins_[batch]; i < begins_[batch + 1]; ++i) {
      const uint64_t one = largest[ClassOf(slots_[i])];
      sum += one;
      longest = std::max(longest, one);
    }
    most = std::max(most, padded_ ? longest * (begins_[batch + 1] - begins_[batch]) : sum);
  }
  return most;
}

size_t TokenBatches::ClassOf(uint32_t member) const {
  return static_cast<size_t>(std::ranges::upper_bound(class_begins_, member) -
                             class_begins_.begin() - 1);
}

TokenBatches::Rows TokenBatches::RowsOf(uint64_t epoch, uint64_t number, uint64_t batches) const {
  uint64_t batch = number % batches;
  if (shuffle_ && batch < full_) {
    const Permutation runs(full_ / run_, TokenSeed(seed_, 0), epoch);
    batch = runs(batch / run_) * run_ + batch % run_;
  }
  Rows rows{.position = number / batches * slots_.size() + begins_[batch],
            .count = begins_[batch + 1] - begins_[batch]};
  if (!has_buckets()) return rows;
  // Batches beyond the last one complete its run, whose batches then have one row each.
  if (number >= batches) rows.count = 1;
  rows.length = number < batches ? lengths_[batch / run_] : lengths_.back();
  return rows;
}

uint64_t TokenBatches::MemberAt(uint64_t epoch, uint64_t position) const {
  const uint32_t member = slots_[position % slots_.size()];
  if (!shuffle_) return member;
  const size_t of = ClassOf(member);
  const uint32_t begin = class_begins_[of], size = class_begins_[of + 1] - begin;
  if (size == 1) return member;
  return begin + Permutation(size, TokenSeed(seed_, of + 1), epoch)(member - begin);
}

uint64_t TokenBatches::SubstitutesFor(uint64_t position) const {
  return class_begins_[ClassOf(slots_[position % slots_.size()]) + 1] - 1;
}

uint64_t TokenBatches::Substitute(uint64_t epoch, uint64_t position, uint64_t index) const {
  return members_[index + (index < MemberAt(epoch, position) ? 0 : 1)];
}

}  // namespace stoker
