#include "io/select/weighted.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/hash/hash.h"
#include "core/numbers/permutation.h"
#include "core/result/plural.h"
#include "core/result/try.h"
#include "io/select/alias_table.h"
#include "io/select/check_weights.h"
#include "io/select/selected_source.h"
#include "io/select/share_order.h"

namespace stoker {

namespace {

using SourcePtr = std::shared_ptr<const SampleSource>;

class WeightedOrder final : public SampleOrder {
 public:
  WeightedOrder(std::span<const double> weights, uint64_t positions)
      : table_(weights), positions_(positions) {}

  uint64_t positions() const override { return positions_; }
  uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const override {
    RandomStream random({seed, epoch, position}, kOrderStream);
    return table_.Draw(random);
  }
  uint64_t Hash() const override { return table_.Hash() + positions_; }
  uint64_t memory_bytes() const override { return sizeof(*this) + table_.memory_bytes(); }

 private:
  const AliasTable table_;
  const uint64_t positions_;
};

class RepeatedOrder final : public SampleOrder {
 public:
  RepeatedOrder(SourcePtr source, uint32_t times, uint64_t positions)
      : source_(std::move(source)), times_(times), positions_(positions) {}

  uint64_t positions() const override { return positions_; }
  uint64_t At(uint64_t seed, uint64_t epoch, uint64_t position) const override {
    const SampleOrder* order = source_->order();
    if (order != nullptr) return order->At(seed, epoch, position / times_);
    return Permutation(source_->size(), seed, epoch)(position / times_);
  }
  uint64_t Hash() const override { return Hash64(std::to_string(times_), positions_); }
  uint64_t memory_bytes() const override { return sizeof(*this); }

 private:
  const SourcePtr source_;
  const uint32_t times_;
  const uint64_t positions_;
};

SourcePtr WithOrder(const char* name, SourcePtr source, std::shared_ptr<const SampleOrder> order) {
  std::vector<SourcePtr> one{std::move(source)};
  return std::make_shared<SelectedSource>(name, std::move(one), std::move(order));
}

// Checks that a table has room for as many samples.
Status CheckForTable(const char* what, const SampleSource& source) {
  if (source.size() <= std::numeric_limits<uint32_t>::max()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = std::string(what) + ": " + source.Describe() +
                        " has 2^32 samples or more, too many for drawing with replacement"};
}

Status CheckLabels(const SampleSource& source) {
  const std::optional<size_t> label = source.label();
  const bool known = label && source.fields()[*label].kind == Field::Kind::kFixed;
  if (known && source.fields()[*label].is_class_number()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "balanced: " + source.Describe() + " has " +
                        (known   ? "labels of " + DescribeRow(source.fields()[*label])
                         : label ? "labels that are not known before samples are loaded"
                                 : std::string("no labels")),
               .advice = label && !known ? "Read them first, and give them as classes"
                                         : "Classes are labels that are single integers or bool; "
                                           "weighted takes any weights"};
}

Status CheckClasses(const SampleSource& source, std::span<const int64_t> classes) {
  if (classes.empty()) return CheckLabels(source);
  if (classes.size() == source.size()) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = "balanced: " + std::to_string(classes.size()) +
                        " classes were given, and " + source.Describe() + " has " +
                        std::to_string(source.size()) +
                        Plural(source.size(), " sample", " samples")};
}

// The class of each sample: its label, unless classes were given.
class ClassOf {
 public:
  ClassOf(const SampleSource& source, std::span<const int64_t> classes)
      : source_(source), classes_(classes) {}

  uint64_t samples() const { return source_.size(); }
  int64_t operator()(uint64_t id) const {
    return classes_.empty() ? source_.LabelOf(id) : classes_[id];
  }

 private:
  const SampleSource& source_;
  const std::span<const int64_t> classes_;
};

// Returns the number of samples by class.
std::map<int64_t, uint64_t> CountClasses(const ClassOf& of) {
  std::map<int64_t, uint64_t> counts;
  for (uint64_t id = 0; id < of.samples(); ++id) ++counts[of(id)];
  return counts;
}

// Groups the samples by class.
SampleGroups GroupByClass(const ClassOf& of) {
  SampleGroups groups{.begins = {0}};
  std::map<int64_t, uint64_t> next;  // the next place in `ids`, by class
  for (const auto& [number, count] : CountClasses(of)) {
    next[number] = groups.begins.back();
    groups.begins.push_back(groups.begins.back() + count);
  }
  bool in_order = true;
  std::vector<uint64_t> ids(of.samples());
  for (uint64_t id = 0; id < ids.size(); ++id) {
    const uint64_t place = next[of(id)]++;
    ids[place] = id;
    in_order = in_order && place == id;
  }
  if (in_order) return groups;
  groups.ids = IdList(of.samples());
  groups.ids.Reserve(ids.size());
  for (const uint64_t id : ids) groups.ids.Add(id);
  return groups;
}

// Returns weights that make all classes equally heavy.
std::vector<double> WeightsByClass(const ClassOf& of) {
  const std::map<int64_t, uint64_t> counts = CountClasses(of);
  std::vector<double> weights(of.samples());
  for (uint64_t id = 0; id < weights.size(); ++id) {
    weights[id] = 1 / static_cast<double>(counts.at(of(id)));
  }
  return weights;
}

}  // namespace

Result<SourcePtr> Weighted(SourcePtr source, std::span<const double> weights, uint64_t samples) {
  TRY(CheckNoOrder("weighted", source.get()));
  TRY(CheckForTable("weighted", *source));
  TRY(CheckWeights("weighted", weights, source->size(), "samples"));
  ASSIGN_OR_RETURN(const uint64_t positions, PositionsOfEpoch("weighted", samples, source->size()));
  return WithOrder("weighted", std::move(source),
                   std::make_shared<WeightedOrder>(weights, positions));
}

Result<SourcePtr> Balanced(SourcePtr source, const BalancedOptions& options,
                           std::span<const int64_t> classes) {
  TRY(CheckNoOrder("balanced", source.get()));
  TRY(CheckClasses(*source, classes));
  ASSIGN_OR_RETURN(const uint64_t positions,
                   PositionsOfEpoch("balanced", options.samples, source->size()));
  const ClassOf of(*source, classes);
  std::shared_ptr<const SampleOrder> order;
  if (options.replacement) {
    TRY(CheckForTable("balanced", *source));
    order = std::make_shared<WeightedOrder>(WeightsByClass(of), positions);
  } else {
    SampleGroups groups = GroupByClass(of);
    const std::vector<double> same(groups.size(), 1.0);
    order = std::make_shared<ShareOrder>(std::move(groups), same, positions);
  }
  return WithOrder("balanced", std::move(source), std::move(order));
}

Result<SourcePtr> Repeated(SourcePtr source, uint32_t times, uint64_t samples) {
  if (source == nullptr) return Error{Code::kInvalidArgument, "repeated: no source was given"};
  if (times == 0)
    return Error{Code::kInvalidArgument, "repeated: times is 0; it must be at least 1"};
  const SampleOrder* order = source->order();
  const uint64_t once = order == nullptr ? source->size() : order->positions();
  ASSIGN_OR_RETURN(const uint64_t positions, PositionsOfEpoch("repeated", samples, once));
  if ((positions - 1) / times >= once) {
    return Error{.code = Code::kInvalidArgument,
                 .cause = "repeated: an epoch of " + std::to_string(positions) +
                          " samples was asked for; there are " + std::to_string(once) + ", " +
                          std::to_string(times) + Plural(times, " time", " times") + " each"};
  }
  auto repeated = std::make_shared<RepeatedOrder>(source, times, positions);
  return WithOrder("repeated", std::move(source), std::move(repeated));
}

}  // namespace stoker
