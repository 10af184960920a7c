#include "io/select/weighted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/numbers/permutation.h"
#include "io/memory/arrays.h"
#include "io/select/sample_order.h"
#include "tests/testing/chi_square.h"
#include "tests/testing/samples/numbered_source.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using testing::NumberedSource;
using Source = std::shared_ptr<const SampleSource>;

Source Samples(uint64_t size) { return std::make_shared<NumberedSource>(size); }

// Makes samples in memory with these labels.
Source Labelled(const std::vector<int32_t>& labels) {
  const auto kept = std::make_shared<std::vector<int32_t>>(labels);
  return Arrays({{"image", DType::kI32, {}, kept->data(), kept->size()},
                 {"label", DType::kI32, {}, kept->data(), kept->size()}},
                kept)
      .value();
}

// Class 3 has 100 samples, class -1 ten, class 7 one; not in order.
std::vector<int32_t> LongTail() {
  std::vector<int32_t> labels(111, 3);
  for (size_t i = 0; i < 10; ++i) labels[11 * i] = -1;
  labels[50] = 7;
  return labels;
}

// Counts how often each sample comes in the epochs from `first` on.
std::vector<uint64_t> CountsOf(const SampleSource& source, uint64_t first, uint64_t epochs) {
  std::vector<uint64_t> counts(source.size());
  for (uint64_t epoch = first; epoch < first + epochs; ++epoch) {
    for (uint64_t i = 0; i < source.order()->positions(); ++i) {
      ++counts.at(source.order()->At(1, epoch, i));
    }
  }
  return counts;
}

TEST(Weighted, AnswersAreThoseOfTheSource) {
  const Source source = Samples(10);
  const Source weighted = Weighted(source, std::vector<double>(10, 1.0)).value();
  EXPECT_EQ(weighted->size(), 10u);
  for (uint64_t id = 0; id < 10; ++id) {
    EXPECT_EQ(weighted->RangeOf(id).offset, id);
    EXPECT_EQ(weighted->LabelOf(id), static_cast<int64_t>(id));
  }
  EXPECT_EQ(weighted->Describe(), "weighted(numbered)");
  EXPECT_EQ(weighted->order()->positions(), 10u);
  EXPECT_EQ(Weighted(source, std::vector<double>(10, 1.0), 25).value()->order()->positions(), 25u);
}

// 300 epochs of 1,000 positions, against the exact probabilities of 49 weights that are not 0. At
// this level (one false alarm in 5,000 seeds) an order whose probabilities are wrong by 1.9 % of
// each, in the root mean square, is found with a probability of 99.9 %: with 48 degrees of freedom
// this needs a noncentrality of 108 = 300,000 · 0.019².
TEST(Weighted, SamplesComeWithTheirProbabilities) {
  std::vector<double> weights(50);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::pow(1.06, i);
  weights[20] = 0;
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::vector<uint64_t> counts =
      CountsOf(*Weighted(Samples(50), weights, 1000).value(), 0, 300);
  std::vector<double> expected = weights;
  for (double& weight : expected) weight *= 300000 / total;
  EXPECT_LT(std::abs(testing::ChiSquareDeviate(counts, expected)), 3.719);
  EXPECT_EQ(counts[20], 0u);
}

// Pairs of neighbouring positions, in each epoch and from one epoch to the next, are independent:
// 10 × 10 pairs of equal weights, 100,000 of them; as above, pairs that are wrong by 3.7 % are
// found.
TEST(Weighted, PositionsAndEpochsAreIndependent) {
  const Source source = Weighted(Samples(10), std::vector<double>(10, 0.3), 1000).value();
  std::vector<uint64_t> neighbours(100), epochs(100);
  const SampleOrder& order = *source->order();
  for (uint64_t epoch = 0; epoch < 100; ++epoch) {
    for (uint64_t i = 0; i < 1000; ++i) {
      const uint64_t sample = order.At(3, epoch, i);
      ++epochs[10 * sample + order.At(3, epoch + 1, i)];
      ++neighbours[10 * sample +
                   (i + 1 < 1000 ? order.At(3, epoch, i + 1) : order.At(3, epoch + 1, 0))];
    }
  }
  const std::vector<double> expected(100, 1000.0);
  EXPECT_LT(std::abs(testing::ChiSquareDeviate(neighbours, expected)), 3.719);
  EXPECT_LT(std::abs(testing::ChiSquareDeviate(epochs, expected)), 3.719);
}

TEST(Weighted, RefusesWeightsThatAreNone) {
  const auto error = [](const std::vector<double>& weights) {
    return Weighted(Samples(3), weights).error().Message();
  };
  EXPECT_THAT(error({1, 2}), HasSubstr("2 weights for 3 samples"));
  EXPECT_THAT(error({1, 2, -1}), HasSubstr("weights[2] is -1"));
  EXPECT_THAT(error({1, HUGE_VAL, 1}), HasSubstr("weights[1] is inf"));
  EXPECT_THAT(error({0, 0, 0}), HasSubstr("all weights are 0"));
  EXPECT_THAT(
      Weighted(Repeated(Samples(3), 2).value(), std::vector<double>(3, 1.0)).error().Message(),
      HasSubstr("has an order"));
  EXPECT_THAT(Weighted(Samples(uint64_t{1} << 32), {}).error().Message(), HasSubstr("2^32"));
  EXPECT_THAT(Weighted(nullptr, {}).error().Message(), HasSubstr("no source"));
}

// ---- Balanced

TEST(Balanced, WithoutReplacementClassesAndSamplesAreEven) {
  const std::vector<int32_t> labels = LongTail();
  for (const uint64_t samples : {3, 30, 111, 1000}) {
    const Source source = Balanced(Labelled(labels), {.samples = samples}).value();
    for (uint64_t epoch = 0; epoch < 10; ++epoch) {
      const std::vector<uint64_t> counts = CountsOf(*source, epoch, 1);
      for (const int32_t label : {3, -1, 7}) {
        std::vector<uint64_t> of_class;
        for (size_t i = 0; i < counts.size(); ++i) {
          if (labels[i] == label) of_class.push_back(counts[i]);
        }
        const uint64_t sum = std::accumulate(of_class.begin(), of_class.end(), uint64_t{0});
        EXPECT_THAT(sum, AllOf(Ge(samples / 3), Le((samples + 2) / 3)));
        const uint64_t once = sum / of_class.size();
        EXPECT_THAT(of_class, Each(AllOf(Ge(once), Le(once + 1))));
      }
    }
  }
}

// 300,000 positions against the exact probabilities: a third for each class. As above, with 110
// degrees of freedom, 2.2 % of each are found.
TEST(Balanced, WithReplacementClassesAreEquallyLikely) {
  const std::vector<int32_t> labels = LongTail();
  const Source source = Balanced(Labelled(labels), {.replacement = true, .samples = 1000}).value();
  std::vector<double> expected;
  for (const int32_t label : labels) {
    expected.push_back(100000.0 / (label == 3 ? 100 : label == -1 ? 10 : 1));
  }
  EXPECT_LT(std::abs(testing::ChiSquareDeviate(CountsOf(*source, 0, 300), expected)), 3.719);
}

TEST(Balanced, SamplesInTheOrderOfTheirLabelsNeedNoList) {
  std::vector<int32_t> sorted = LongTail(), mixed = sorted;
  std::ranges::sort(sorted);
  const auto bytes = [](const std::vector<int32_t>& labels) {
    return Balanced(Labelled(labels)).value()->order()->memory_bytes();
  };
  EXPECT_LT(bytes(sorted), 400u);
  EXPECT_EQ(bytes(mixed) - bytes(sorted), 4 * mixed.size());
}

// As for sources whose labels are not in memory.
TEST(Balanced, ClassesAreAsGoodAsLabels) {
  const std::vector<int32_t> labels = LongTail();
  const std::vector<int64_t> classes(labels.begin(), labels.end());
  for (const bool replacement : {false, true}) {
    const BalancedOptions options{.replacement = replacement, .samples = 100};
    const Source by_label = Balanced(Labelled(labels), options).value();
    const Source by_class = Balanced(Samples(labels.size()), options, classes).value();
    EXPECT_EQ(CountsOf(*by_class, 0, 3), CountsOf(*by_label, 0, 3));
    EXPECT_EQ(by_class->order()->Hash(), by_label->order()->Hash());
  }
  EXPECT_THAT(Balanced(Samples(3), {}, classes).error().Message(),
              HasSubstr("111 classes were given"));
}

TEST(Balanced, NeedsClassNumbers) {
  const std::vector<float> numbers(4);
  const auto with = [&](const char* second) {
    std::vector<ArrayColumn> columns{{"image", DType::kF32, {}, numbers.data(), 4}};
    if (second != nullptr) columns.push_back({second, DType::kF32, {}, numbers.data(), 4});
    return Balanced(Arrays(std::move(columns), nullptr).value()).error().Message();
  };
  EXPECT_THAT(with(nullptr), HasSubstr("has no labels"));
  EXPECT_THAT(with("label"), HasSubstr("labels of float32"));
  EXPECT_THAT(Balanced(nullptr).error().Message(), HasSubstr("no source"));
}

// ---- Repeated

TEST(Repeated, EachSampleComesInARow) {
  const Source source = Repeated(Samples(10), 3).value();
  EXPECT_EQ(source->order()->positions(), 10u);  // as without repetition
  for (const uint64_t epoch : {0, 5}) {
    const Permutation shuffled(10, 4, epoch);
    for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(source->order()->At(4, epoch, i), shuffled(i / 3));
  }
  EXPECT_THAT(CountsOf(*Repeated(Samples(10), 3, 30).value(), 2, 1), Each(3u));
}

TEST(Repeated, KeepsTheOrderOfItsSource) {
  const Source balanced = Balanced(Labelled(LongTail()), {.samples = 12}).value();
  const Source twice = Repeated(balanced, 2, 24).value();
  for (uint64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(twice->order()->At(4, 1, i), balanced->order()->At(4, 1, i / 2));
  }
}

TEST(Repeated, RefusesMoreThanAll) {
  EXPECT_THAT(Repeated(Samples(10), 0).error().Message(), HasSubstr("times is 0"));
  EXPECT_TRUE(Repeated(Samples(10), 3, 30).ok());
  EXPECT_THAT(Repeated(Samples(10), 3, 31).error().Message(), HasSubstr("31 samples"));
  EXPECT_THAT(Repeated(nullptr, 3).error().Message(), HasSubstr("no source"));
}

}  // namespace
}  // namespace stoker
