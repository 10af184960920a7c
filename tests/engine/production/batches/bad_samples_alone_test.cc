// BadSamples judges samples by the policy, and counts batches when they are delivered.
#include "engine/production/batches/bad_samples.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>

namespace stoker {
namespace {

class BadSamplesAloneTest : public ::testing::Test {
 protected:
  BadSamples Make(BadSamples::Counts counts) const {
    return {BadPolicy::Parse("undecodable=substitute,truncated=drop").value(), log_, order_,
            counts};
  }

  static Error Undecodable() { return {.code = Code::kDataLoss, .cause = "no image"}; }

  std::vector<BadRow> Bad(const BadSamples& samples) const {
    Error error = Undecodable();
    return {*samples.Judge(/*sample=*/7, /*row=*/1, /*substitutes=*/0, error)};
  }

  uint64_t counted() const { return log_->counts().substituted; }

  const Sampler order_ = Sampler::Make({.samples = 20, .batch_size = 4}).value();
  const std::shared_ptr<BadSampleLog> log_ = BadSampleLog::Open("", 1).value();
};

TEST_F(BadSamplesAloneTest, ThePolicySaysWhatIsDone) {
  const BadSamples samples = Make(BadSamples::Counts::kWhenTaken);
  Error error = Undecodable();
  const std::optional<BadRow> bad = samples.Judge(7, 1, 0, error);
  ASSERT_TRUE(bad);
  EXPECT_EQ(bad->sample, 7u);
  EXPECT_EQ(bad->row, 1u);
  EXPECT_EQ(bad->action, OnBad::kSubstitute);
  Error no_memory{Code::kResourceExhausted, "full"};
  EXPECT_FALSE(samples.Judge(7, 1, 0, no_memory)) << "the sample is not to blame";
}

TEST_F(BadSamplesAloneTest, SubstitutesOfSubstitutesEnd) {
  const BadSamples samples = Make(BadSamples::Counts::kWhenTaken);
  Error error = Undecodable();
  EXPECT_EQ(samples.Judge(7, 1, Sampler::kMostSubstitutes, error)->action, OnBad::kFail);
  EXPECT_NE(error.cause.find("substitute"), std::string::npos);
}

TEST_F(BadSamplesAloneTest, ABatchCountsOnceAndWhenItIsDelivered) {
  BadSamples at_once = Make(BadSamples::Counts::kWhenTaken);
  at_once.RecordTaken({0, 0}, Bad(at_once), /*failed=*/false);
  EXPECT_EQ(counted(), 1u);

  BadSamples later = Make(BadSamples::Counts::kWhenDelivered);
  later.RecordTaken({0, 1}, Bad(later), false);
  later.RecordTaken({0, 2}, {}, false);
  later.RecordTaken({0, 3}, Bad(later), false);
  EXPECT_EQ(counted(), 1u) << "on its way";
  later.RecordDelivered();
  EXPECT_EQ(counted(), 2u);
  later.RecordDelivered();
  EXPECT_EQ(counted(), 2u) << "that batch has none";
  later.DropUndelivered();
  later.RecordTaken({1, 0}, {}, false);
  later.RecordDelivered();
  EXPECT_EQ(counted(), 2u) << "a dropped batch never counts";
}

}  // namespace
}  // namespace stoker
