#include <algorithm>
#include <map>
#include <utility>

#include "core/numbers/permutation.h"
#include "core/numbers/random.h"
#include "engine/order/token_batches.h"

namespace stoker {

PlainTokenBatches::PlainTokenBatches(const TokenBatchOptions& options, uint64_t epoch) {
  const std::span<const uint32_t> tokens = options.tokens;
  std::map<uint32_t, std::vector<uint64_t>> ids;  // by number of tokens
  for (uint64_t id = 0; id < tokens.size(); ++id) ids[tokens[id]].push_back(id);
  std::map<uint32_t, uint32_t> largest_of;  // in the class of a number
  std::map<uint32_t, std::vector<uint64_t>> members;
  for (auto at = ids.rbegin(); at != ids.rend(); ++at) {
    const bool joins =
        !members.empty() && IsOfTokenClass(at->first, members.begin()->first, options.shuffle);
    const uint32_t largest = joins ? members.begin()->first : at->first;
    largest_of[at->first] = largest;
    members[largest].insert(members[largest].begin(), at->second.begin(), at->second.end());
  }

  std::vector<std::vector<uint32_t>> rows;  // the class of each, by batch
  std::vector<uint32_t> ahead;              // the oldest first
  uint64_t room = 0;
  for (auto at = members.rbegin(); options.padded && at != members.rend(); ++at) {
    for (size_t i = 0; i < at->second.size(); ++i) {
      const bool fits = !rows.empty() && rows.back().size() < options.most_rows &&
                        (rows.back().size() + 1) * rows.back()[0] <= options.budget;
      if (!fits) rows.emplace_back();
      rows.back().push_back(at->first);
    }
  }
  for (uint64_t next = 0; !options.padded && (next < tokens.size() || !ahead.empty());) {
    while (next < tokens.size() && ahead.size() < kTokenLookahead) {
      const Permutation order(tokens.size(), options.seed, kTemplateEpoch);
      ahead.push_back(largest_of[tokens[options.shuffle ? order(next) : next]]);
      ++next;
    }
    auto best = ahead.begin();
    if (*best > room) {
      best = ahead.end();
      for (auto at = ahead.begin(); at != ahead.end(); ++at) {
        if (*at <= room && (best == ahead.end() || *at > *best)) best = at;
      }
    }
    if (rows.empty() || best == ahead.end() || rows.back().size() == options.most_rows) {
      rows.emplace_back();
      room = options.budget;
      best = ahead.begin();
    }
    room -= *best;
    rows.back().push_back(*best);
    ahead.erase(best);
  }
  if (options.padded) room = options.budget - rows.back().size() * rows.back()[0];
  const uint64_t one_more = options.padded ? rows.back()[0] : members.begin()->first;
  const bool last_is_full = room < one_more || rows.back().size() == options.most_rows;

  std::vector<std::vector<uint64_t>> samples;
  std::map<uint32_t, uint64_t> used;
  for (const std::vector<uint32_t>& batch : rows) {
    samples.emplace_back();
    for (const uint32_t largest : batch) {
      const std::vector<uint64_t>& of = members[largest];
      const auto number =
          static_cast<uint64_t>(std::distance(members.begin(), members.find(largest)));
      const Permutation order(of.size(), TokenSeed(options.seed, number + 1), epoch);
      const uint64_t i = used[largest]++;
      samples.back().push_back(of[options.shuffle ? order(i) : i]);
    }
  }
  batches = samples;
  full = samples.size() - (last_is_full ? 0 : 1);
  if (!options.shuffle || full == 0) return;
  const Permutation order(full, TokenSeed(options.seed, 0), epoch);
  for (uint64_t i = 0; i < full; ++i) batches[i] = samples[order(i)];
}

PlainBucketBatches::PlainBucketBatches(const TokenBatchOptions& options, uint64_t epoch) {
  const uint64_t samples = options.tokens.size();
  std::vector<double> ends;  // of the weights, added up
  ends.reserve(options.buckets->all.size());
  for (const auto& [length, weight] : options.buckets->all) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + weight);
  }
  struct Run {
    uint32_t length;
    std::vector<uint64_t> rows;  // of its batches
  };
  std::vector<Run> runs;
  uint64_t whole = 0;  // runs
  for (uint64_t left = samples; left != 0;) {
    RandomStream random({options.seed, 0, runs.size()}, kBucketStream);
    const auto drawn = std::ranges::upper_bound(ends, random.Uniform() * ends.back());
    const auto bucket =
        std::min(static_cast<size_t>(drawn - ends.begin()), options.buckets->all.size() - 1);
    Run& run = runs.emplace_back();
    run.length = options.buckets->all[bucket].length;
    run.rows.resize(options.run);
    uint64_t most = std::min(options.budget / run.length, options.most_rows);
    while (most % options.buckets->multiple != 0) --most;
    for (uint64_t i = 0; i < most * options.run && left != 0; ++i, --left) {
      ++run.rows[i % options.run];
    }
    if (run.rows.back() == most) ++whole;
  }
  const Permutation order(samples, TokenSeed(options.seed, 1), epoch);
  uint64_t next = 0;
  std::vector<std::vector<std::vector<uint64_t>>> filled;  // runs
  for (const Run& run : runs) {
    filled.emplace_back();
    for (const uint64_t count : run.rows) {
      std::vector<uint64_t> batch;
      for (uint64_t i = 0; i < count; ++i, ++next) {
        batch.push_back(options.shuffle ? order(next) : next);
      }
      if (count != 0) filled.back().push_back(batch);
    }
  }
  for (uint64_t i = 0; i < runs.size(); ++i) {
    const bool moves = options.shuffle && i < whole;
    const uint64_t at = moves ? Permutation(whole, TokenSeed(options.seed, 0), epoch)(i) : i;
    batches.insert(batches.end(), filled[at].begin(), filled[at].end());
    lengths.insert(lengths.end(), filled[at].size(), runs[at].length);
  }
  full = whole * options.run;
}

}  // namespace stoker
