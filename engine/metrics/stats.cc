#include "engine/metrics/stats.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/metrics/counters.h"

namespace stoker {

namespace {

// Returns the last decisions of both, ordered by time.
std::vector<TunerDecision> MergeDecisions(const std::vector<TunerDecision>& a,
                                          const std::vector<TunerDecision>& b) {
  std::vector<TunerDecision> both(a.size() + b.size());
  std::ranges::merge(a, b, both.begin(), {}, &TunerDecision::at_ns, &TunerDecision::at_ns);
  const size_t most = std::max(a.size(), b.size());
  both.erase(both.begin(), both.end() - static_cast<ptrdiff_t>(most));
  return both;
}

// Adds a counter of `other` to that of `sum`.
struct Adder {
  const CounterValue& other;

  void operator()(uint64_t* sum) const { *sum += *ValueOfOther<uint64_t>(); }
  void operator()(int* sum) const { *sum += *ValueOfOther<int>(); }
  void operator()(CoreTime* sum) const { *sum += *ValueOfOther<CoreTime>(); }
  void operator()(std::vector<uint64_t>* sum) const {
    const std::vector<uint64_t>& one = *ValueOfOther<std::vector<uint64_t>>();
    sum->resize(std::max(sum->size(), one.size()));
    for (size_t i = 0; i < one.size(); ++i) (*sum)[i] += one[i];
  }
  void operator()(std::vector<TunerDecision>* sum) const {
    *sum = MergeDecisions(*ValueOfOther<std::vector<TunerDecision>>(), *sum);
  }
  void operator()(const NamedCounts& sum) const {
    const NamedCounts& one = std::get<NamedCounts>(other);
    for (size_t i = 0; i < sum.size(); ++i) *sum[i].second += *one[i].second;
  }
  void operator()(const auto&) const {}  // a text has no sum

 private:
  template <typename Value>
  const Value* ValueOfOther() const {
    return std::get<Value*>(other);
  }
};

void KeepStated(std::string& latest, const std::string& before) {
  if (latest.empty()) latest = before;
}

}  // namespace

void AddStats(LoaderStats& all, const LoaderStats& one) {
  LoaderStats sum = one;
  for (const CounterRow& row : AllCounters()) {
    if (row.adds == CounterAdds::kSum) {
      std::visit(Adder{row.in(all)}, row.in(sum));
    } else if (row.adds == CounterAdds::kLatestStated) {
      KeepStated(*std::get<std::string*>(row.in(sum)), *std::get<std::string*>(row.in(all)));
    }
  }
  all = std::move(sum);
}

}  // namespace stoker
