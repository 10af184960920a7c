#include "engine/loader/loader_state.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"
#include "io/select/combine.h"
#include "io/select/weighted.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/numbered_source.h"
#include "transforms/spec/transform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stoker {
namespace {

using ::testing::HasSubstr;

LoaderOptions Numbers(uint64_t samples = 101) {
  LoaderOptions options;
  options.source = std::make_shared<testing::NumberedSource>(samples);
  options.batch_size = 4;
  options.shuffle = true;
  options.seed = 7;
  return options;
}

Sampler OrderOf(const LoaderOptions& options) {
  return Sampler::Make(SamplerOptionsOf(options)).value();
}

std::string Saved(const LoaderOptions& options, BatchName next) {
  return StateText(IdentityOf(options), next);
}

Result<BatchName> Read(const std::string& state, const LoaderOptions& options,
                       bool same_ranks = false) {
  return ReadState(state, IdentityOf(options), OrderOf(options), same_ranks);
}

std::string Refused(const std::string& state, const LoaderOptions& options) {
  const Result<BatchName> place = Read(state, options);
  return place.ok() ? "" : place.error().Message();
}

TEST(LoaderState, IsTextThatGivesItsPlace) {
  const LoaderOptions options = Numbers();
  const std::string text = Saved(options, {1, 3});
  EXPECT_THAT(
      text,
      ::testing::MatchesRegex(
          R"(\{"version":3,"epoch":1,"batch":3,"start":0,"options":\{"samples":"101",)"
          R"("fingerprint":"[0-9a-f]{16}","batch_size":"4","shuffle":"true","seed":"7"\}\})"));
  EXPECT_EQ(Read(text, options).value(), (BatchName{1, 3}));
  EXPECT_EQ(Read(Saved(options, {1, 2, 5}), options).value(), (BatchName{1, 2, 5}));
}

TEST(LoaderState, ExplainsWhatIsDifferent) {
  const LoaderOptions saved = Numbers(1281167);
  const std::string state = Saved(saved, {0, 3});
  const std::string samples = Refused(state, Numbers(1281166));
  EXPECT_THAT(samples,
              HasSubstr("other options or samples: the data set has 1,281,166 samples, the "
                        "state was saved on 1,281,167. Give this loader the same source"));
  LoaderOptions other = Numbers(1281167);
  other.seed = 8;
  other.shuffle = false;
  other.remainder = Remainder::kPad;
  EXPECT_THAT(Refused(state, other),
              HasSubstr(": seed was 7 and is 8; remainder was uneven and is pad; shuffle was true "
                        "and is false. "));
  other = Numbers(1281167);
  other.source = std::make_shared<testing::NumberedSource>(1281167, 1);
  EXPECT_THAT(Refused(state, other),
              HasSubstr("samples are different: the data set's fingerprint was "));
}

TEST(LoaderState, NamesEqualViewsOnce) {
  const std::vector<Transform> large = {RandomResizedCrop{.height = 64, .width = 64}};
  const std::vector<Transform> small = {RandomResizedCrop{.height = 32, .width = 32}};
  LoaderOptions saved = Numbers();
  saved.views = {large, small, large, small};
  const std::string state = Saved(saved, {});
  EXPECT_THAT(state, HasSubstr(R"("views[2]":"views[0]","views[3]":"views[1]")"));
  EXPECT_TRUE(Read(state, saved).ok());
  LoaderOptions here = saved;
  here.views[3] = {RandomResizedCrop{.height = 33, .width = 32}};
  EXPECT_THAT(Refused(state, here), HasSubstr("views[3]"));
  here.views = {large, {RandomResizedCrop{.height = 32, .width = 31}}, large, small};
  EXPECT_THAT(Refused(state, here), HasSubstr("views[1][0].width was 32 and is 31"));
}

TEST(LoaderState, OfTheMostViewsCanBeRead) {
  LoaderOptions options = Numbers();
  for (int i = 0; i < 64; ++i) {  // all parameters differ from the defaults
    const ColorJitter jitter{{0.123456789, 1.23456789 + i}, {0.5, 1.5}, {0.25, 1.75}, {-0.1, 0.2}};
    options.views.push_back({RandomResizedCrop{20 + i, 21, {0.123456789, 0.9}, {0.7654321, 1.2}},
                             jitter, jitter, jitter});
  }
  EXPECT_TRUE(Read(Saved(options, {3, 1}), options).ok());
}

TEST(LoaderState, NamesTransformsAndTheirParameters) {
  LoaderOptions saved = Numbers();
  saved.transforms = {RandomResizedCrop{.height = 64, .width = 64}, RandomHorizontalFlip{}};
  LoaderOptions here = saved;
  here.transforms = {RandomResizedCrop{.height = 32, .width = 64}, RandomHorizontalFlip{.p = 0.25}};
  EXPECT_THAT(
      Refused(Saved(saved, {}), here),
      HasSubstr(": transforms[0].height was 64 and is 32; transforms[1].p was 0.5 and is 0.25. "));
  EXPECT_THAT(Refused(Saved(here, {}), saved), HasSubstr("transforms[1].p was 0.25 and is 0.5"));
  here.transforms = {RandomResizedCrop{.height = 64, .width = 64}};
  EXPECT_THAT(Refused(Saved(saved, {}), here),
              HasSubstr(": transforms[1] was RandomHorizontalFlip and is none. "));
  here.mix = BatchMix{.choices = {MixUp{0.5}}};
  EXPECT_THAT(Refused(Saved(saved, {}), here), HasSubstr("mix was none and is MixUp(alpha 0.5)"));
}

TEST(LoaderState, NamesTheTransformsOfRandomApply) {
  LoaderOptions saved = Numbers();
  saved.transforms = {CenterCrop{9, 9}, RandomApply{{RandomGrayscale{}, RandomSolarize{5}}}};
  LoaderOptions here = saved;
  here.transforms[1] = RandomApply{{RandomGrayscale{}, RandomSolarize{6}}, 0.25};
  EXPECT_THAT(Refused(Saved(saved, {}), here),
              HasSubstr(": transforms[1].p was 0.5 and is 0.25; "
                        "transforms[1].transforms[1].threshold was 5 and is 6. "));
  here.transforms[1] = RandomGrayscale{};
  EXPECT_THAT(Refused(Saved(saved, {}), here),
              HasSubstr(": transforms[1] was RandomApply and is RandomGrayscale. "));
}

TEST(LoaderState, NamesTransformsInTrees) {
  const auto with = [](const Transform& held, std::vector<double> p) {
    LoaderOptions options = Numbers();
    options.transforms = {
        CenterCrop{9, 9},
        RandomOrder{{RandomGrayscale{}, RandomChoice{{held, RandomSolarize{5}}, std::move(p)}}}};
    return options;
  };
  const LoaderOptions saved = with(RandomVerticalFlip{}, {});
  EXPECT_TRUE(Read(Saved(saved, {}), saved).ok());
  EXPECT_THAT(Refused(Saved(saved, {}), with(RandomVerticalFlip{0.25}, {1, 2})),
              HasSubstr(": transforms[1].transforms[1].p was none and is (1, 2); "
                        "transforms[1].transforms[1].transforms[0].p was 0.5 and is 0.25. "));
  EXPECT_THAT(Refused(Saved(saved, {}), with(RandomApply{{RandomGrayscale{}}}, {})),
              HasSubstr(": transforms[1].transforms[1].transforms[0] was RandomVerticalFlip and is "
                        "RandomApply"));
}

TEST(LoaderState, NamesLimitsWhereBadSamplesAreHandled) {
  LoaderOptions saved = Numbers();
  saved.on_bad = BadPolicy::Parse("over_limits=drop").value();
  LoaderOptions here = saved;
  here.limits.max_pixels = 1000;
  here.limits.max_scans = 10;
  const std::string is_less =
      ": max_pixels was 268435456 and is 1000; max_scans was 200 and is 10. ";
  EXPECT_THAT(Refused(Saved(saved, {}), here), HasSubstr(is_less));
  EXPECT_THAT(Refused(Saved(here, {}), saved), HasSubstr("max_pixels was 1000 and is 268435456"));
  here = saved;
  here.limits.accept_truncated = true;  // is for another class
  EXPECT_EQ(Refused(Saved(saved, {}), here), "");
  saved.on_bad = here.on_bad = BadPolicy::Parse("truncated=substitute").value();
  EXPECT_THAT(Refused(Saved(saved, {}), here),
              HasSubstr(": accept_truncated was false and is true. "));
  EXPECT_EQ(Refused(Saved(here, {}), here), "");
}

// A run that ended with an error goes on with other limits.
TEST(LoaderState, OfOtherLimitsIsTakenWhereBadSamplesAreErrors) {
  LoaderOptions here = Numbers();
  here.limits = {.max_pixels = 1000, .max_scans = 10, .accept_truncated = true};
  EXPECT_EQ(Refused(Saved(Numbers(), {}), here), "");
  EXPECT_EQ(Refused(Saved(here, {}), Numbers()), "");
  here.on_bad = BadPolicy::Parse("drop").value();
  EXPECT_THAT(Refused(Saved(Numbers(), {}), here),
              HasSubstr("other options or samples: on_bad was fail and is drop. "));
}

TEST(LoaderState, OfAnEarlierStokerHasNoLimits) {
  LoaderOptions options = Numbers();
  options.on_bad = BadPolicy::Parse("drop").value();
  options.limits = {.max_pixels = 1000, .max_scans = 10, .accept_truncated = true};
  std::string state = Saved(options, {1, 3});
  for (const char* of :
       {R"(,"max_pixels":"1000")", R"(,"max_scans":"10")", R"(,"accept_truncated":"true")"}) {
    ASSERT_NE(state.find(of), std::string::npos) << of << " in " << state;
    state.erase(state.find(of), std::string(of).size());
  }
  EXPECT_EQ(Read(state, options).value(), (BatchName{1, 3}));
}

// It wrote a number for each of three channels, and left out 0 and 1, the defaults.
TEST(LoaderState, OfAnEarlierStokerHasThreeNumbersOfNormalize) {
  const auto options = [](std::vector<float> mean, std::vector<float> std) {
    LoaderOptions with = Numbers();
    with.transforms = {Normalize{std::move(mean), std::move(std)}};
    return with;
  };
  const LoaderOptions photographs = options({0.485F, 0.456F, 0.406F}, {1, 1, 1});
  std::string state = Saved(Numbers(), {1, 3});
  state.erase(state.size() - 2);
  state += R"(,"transforms[0]":"Normalize")";
  const std::string mean = R"-(,"transforms[0].mean":"(0.485, 0.456, 0.406)")-", end = "}}";
  EXPECT_EQ(Read(state + mean + end, photographs).value(), (BatchName{1, 3}));
  EXPECT_EQ(Read(state + mean + end, options({0.485F, 0.456F, 0.406F}, {1})).value(),
            (BatchName{1, 3}));
  EXPECT_EQ(Read(state + end, options({0, 0, 0}, {1, 1, 1})).value(), (BatchName{1, 3}));
  EXPECT_EQ(Read(state + end, options({0}, {1})).value(), (BatchName{1, 3}));
  const std::string half = R"-(,"transforms[0].mean":"(0.5, 0.5, 0.5)")-";
  EXPECT_EQ(Read(state + half + end, options({0.5F}, {1})).value(), (BatchName{1, 3}));
  EXPECT_THAT(Refused(state + half + end, photographs),
              HasSubstr("transforms[0].mean was (0.5, 0.5, 0.5) and is (0.485, 0.456, 0.406)"));
}

TEST(LoaderState, OfAnotherWorldIsRefusedWhereTheRanksMustBeTheSame) {
  LoaderOptions here = Numbers();
  here.world = 3;
  here.batch_size = 8;
  const Result<BatchName> place = Read(Saved(Numbers(), {0, 1}), here, /*same_ranks=*/true);
  ASSERT_FALSE(place.ok());
  EXPECT_THAT(place.error().Message(),
              HasSubstr(": batch_size was 4 and is 8; world was 1 and is 3. "));
}

// A text that is wrong in one place, and the error expected for it.
TEST(LoaderState, HostileTextIsAnError) {
  const LoaderOptions options = Numbers();
  const std::string good = Saved(options, {1, 3});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  const std::string no_object = "the state is not a JSON object";
  const std::string no_epoch = "the state's epoch is not a whole number from 0 to 4294967296";
  const std::string no_batch =
      "the state's batch is not a whole number from 0 to 4611686018427387904";
  const std::string no_size = "the state's option batch_size is not a number from 1 to 1048576";
  for (const auto& [bad, said] : std::vector<std::pair<std::string, std::string>>{
           {"", no_object},
           {"{", no_object},
           {"[]", no_object},
           {good + "}", no_object},
           {std::string(60000, '['), no_object},
           {std::string(262145, ' '), "the state is longer than 262144 bytes"},
           {"{}", "the state has no 'version'"},
           {with("\"version\":3", "\"version\":2"), "is of version 2; this stoker reads 3"},
           {with("\"start\":0,", ""), "the state has no 'start'"},
           {with("\"epoch\":1", "\"epoch\":-1"), no_epoch},
           {with("\"epoch\":1", "\"epoch\":1.5"), no_epoch},
           {with("\"epoch\":1", "\"epoch\":4294967297"), no_epoch},
           {with("\"batch\":3", "\"batch\":27"), "batch 27 is of an epoch that has 26"},
           {with("\"batch\":3", "\"batch\":18446744073709551615"), no_batch},
           {with("\"batch\":3", "\"batch\":1e99"), no_batch},
           {with("\"batch\":3,\"start\":0", "\"batch\":0,\"start\":102"), "an epoch that has 0"},
           {with("\"batch\":3,\"start\":0", "\"batch\":3,\"start\":93"), "an epoch that has 2"},
           {with("\"start\":0", "\"start\":\"0\""), "the state's start is not a whole number"},
           {with("\"batch_size\":\"4\"", "\"batch_size\":4"), "options are not an object of texts"},
           {with("\"batch_size\":\"4\"", "\"batch_size\":\"0\""), no_size},
           {with("\"batch_size\":\"4\"", "\"batch_size\":\"4x\""), no_size},
           {with("\"batch_size\":\"4\"", "\"world\":\"1048577\""), "option world is not a number"},
           {good.substr(0, good.find("{\"samples")) + "[]}",
            "options are not an object of texts"}}) {
    const Result<BatchName> place = Read(bad, options);
    ASSERT_FALSE(place.ok()) << bad.substr(0, 200);
    EXPECT_EQ(place.error().code, Code::kInvalidArgument) << bad.substr(0, 200);
    EXPECT_THAT(place.error().Message(), HasSubstr(said)) << bad.substr(0, 200);
  }
}

// Options that no loader has; their names and values could fill memory and the terminal.
TEST(LoaderState, ManyHostileOptionsAreAShortError) {
  const LoaderOptions options = Numbers();
  const auto with = [&](int count, const std::string& value) {
    Identity identity = IdentityOf(options);
    for (int i = 0; i < count; ++i) identity.emplace_back("\x1b[31m" + std::to_string(i), value);
    return StateText(identity, {});
  };
  EXPECT_THAT(Refused(with(5000, "1"), options), HasSubstr("the state has more than 4000 options"));
  const std::string longest(270000, 'x');
  EXPECT_THAT(Refused(with(1, longest), options), HasSubstr("longer than 262144 bytes"));
  const std::string many = Refused(with(900, "a\nb"), options);
  EXPECT_THAT(many, HasSubstr(R"(: \x1b[31m0 was a\nb and is none; )"));
  EXPECT_THAT(many, HasSubstr("; and 880 more. Give this loader"));
  EXPECT_LT(many.size(), 2000u);
  const std::string one = Refused(with(1, std::string(50000, 'x')), options);
  EXPECT_THAT(one, HasSubstr("xxx… and is none. "));
  EXPECT_LT(one.size(), 1000u);
}

TEST(LoaderState, TheLastEpochsEndIsAState) {
  const LoaderOptions options = Numbers();
  const BatchName end{uint64_t{1} << 32, 0};
  EXPECT_EQ(Read(Saved(options, end), options).value(), end);
}

// Returns how many rows a rank gets of `left` positions, by the definition of the options.
uint64_t ShareOf(uint64_t left, const LoaderOptions& options, uint32_t rank) {
  while (options.remainder == Remainder::kDrop && left % options.world != 0) --left;
  while (options.remainder == Remainder::kPad && left % options.world != 0) ++left;
  uint64_t share = left / options.world;
  if (!options.drop_remainder) return share + (rank < left % options.world ? 1 : 0);
  while (share % options.batch_size != 0) --share;
  return share;
}

constexpr uint64_t kEpoch = 3;
using Delivered = std::map<uint64_t, uint64_t>;  // the sample at each position

// Takes `steps` steps of all ranks from a state, "" for the start of the epoch. Expects that they
// deliver the positions from `done` on, dealt out row by row. Returns rank 0's state.
std::string Walk(LoaderOptions options, const std::string& from, uint64_t done, uint64_t steps,
                 Delivered& delivered) {
  std::string state;
  for (options.rank = 0; options.rank < options.world; ++options.rank) {
    const Sampler order = OrderOf(options);
    BatchName next = from.empty() ? BatchName{kEpoch, 0} : Read(from, options).value();
    const uint64_t end = std::min(order.batches_from(next.start), next.index + steps);
    uint64_t rows = 0;
    for (; next.index < end; ++next.index) {
      for (uint32_t row = 0; row < order.RowsIn(next); ++row, ++rows) {
        const SamplerEntry entry = order.At(next, row);
        EXPECT_EQ(entry.position, done + rows * options.world + options.rank);
        EXPECT_TRUE(delivered.emplace(entry.position, entry.sample).second) << entry.position;
      }
    }
    const uint64_t share = ShareOf(order.options().samples - done, options, options.rank);
    EXPECT_EQ(rows, std::min(share, steps * options.batch_size)) << "rank " << options.rank;
    if (options.rank == 0) state = Saved(options, next);
  }
  return state;
}

// Runs with random worlds and batch sizes, each of which continues from the last one's state,
// deliver the samples of one uninterrupted run.
void ExpectAWholeEpoch(LoaderOptions options, testing::Random& random) {
  const Sampler alone = OrderOf(options);
  const uint64_t samples = alone.options().samples;
  Delivered delivered;
  std::string state;
  uint64_t done = 0, last = 0;
  for (bool ended = false; !ended;) {
    options.world = static_cast<uint32_t>(random.Between(1, 9));
    options.batch_size = static_cast<uint32_t>(random.Between(1, 5));
    const uint64_t share = ShareOf(samples - done, options, 0);
    const uint64_t all = (share + options.batch_size - 1) / options.batch_size;
    const auto steps = static_cast<uint64_t>(random.Between(0, static_cast<int>(all)));
    state = Walk(options, state, done, steps, delivered);
    ended = steps == all;
    for (uint32_t rank = 0; rank < options.world && ended; ++rank) {
      last += ShareOf(samples - done, options, rank);
    }
    if (!ended) done += steps * options.world * options.batch_size;
  }
  ASSERT_EQ(delivered.size(), done + last);
  if (options.remainder == Remainder::kUneven && !options.drop_remainder) {
    ASSERT_EQ(delivered.size(), samples);
  }
  uint64_t position = 0;
  for (const auto& [at, sample] : delivered) {
    ASSERT_EQ(at, position++);
    ASSERT_EQ(sample, alone.At({kEpoch, at % samples}, 0).sample);
  }
}

TEST(LoaderState, EachRemainingSampleComesOnceInAChainOfWorlds) {
  testing::Random random(1);
  const auto numbers = std::make_shared<testing::NumberedSource>(211);
  const std::vector<double> weights(211, 1.0);
  const std::shared_ptr<const SampleSource> sources[] = {
      numbers, Weighted(numbers, weights, 173).value(), Repeated(numbers, 3).value(),
      Combine({numbers, numbers}).value()};
  for (int i = 0; i < testing::Effort(500) && !::testing::Test::HasFailure(); ++i) {
    LoaderOptions options = Numbers();
    options.world = options.batch_size = 1;
    options.source = sources[random.Between(0, 3)];
    options.shuffle = random.OneIn(2);
    options.drop_remainder = random.OneIn(2);
    options.remainder = static_cast<Remainder>(random.Between(0, 2));
    SCOPED_TRACE("chain " + std::to_string(i));
    ExpectAWholeEpoch(options, random);
  }
}

TEST(LoaderState, ABatchOfAllRanksThatStaysTheSameKeepsItsNumber) {
  LoaderOptions before = Numbers();
  before.world = 8;
  LoaderOptions after = Numbers();
  after.world = 2;
  after.batch_size = 16;
  EXPECT_EQ(Read(Saved(before, {0, 2}), after).value(), (BatchName{0, 2}));
  EXPECT_EQ(Read(Saved(before, {0, 1, 7}), after).value(), (BatchName{0, 1, 7}));
  after.batch_size = 4;
  EXPECT_EQ(Read(Saved(before, {0, 2}), after).value(), (BatchName{0, 8}));
  after.world = 3;
  EXPECT_EQ(Read(Saved(before, {0, 2}), after).value(), (BatchName{0, 0, 64}));
}

// The last step of an uneven epoch is not every rank's: rank 0's state serves all, and the others
// have nothing left.
TEST(LoaderState, OfTheFirstRankServesAll) {
  LoaderOptions options = Numbers(9);
  options.world = 8;
  options.batch_size = 1;
  const std::string state = Saved(options, {0, 1});
  EXPECT_EQ(Read(state, options).value(), (BatchName{0, 1}));
  options.rank = 3;
  EXPECT_EQ(OrderOf(options).batches_per_epoch(), 1u);
  EXPECT_EQ(Read(state, options).value(), (BatchName{0, 1}));
  options.world = 5;
  EXPECT_EQ(Read(state, options).value(), (BatchName{0, 0, 8}));
  EXPECT_EQ(OrderOf(options).batches_from(8), 0u);
}

// Samples that drop and drop_remainder leave out of an ended epoch do not come back in another
// world.
TEST(LoaderState, AnEndedEpochStaysEnded) {
  for (const bool drop : {false, true}) {
    LoaderOptions options = Numbers(101);
    options.world = 8;
    options.remainder = drop ? Remainder::kDrop : Remainder::kUneven;
    options.drop_remainder = !drop;
    const std::string state = Saved(options, {0, OrderOf(options).batches_per_epoch()});
    options.world = 1;
    EXPECT_EQ(Read(state, options).value(), (BatchName{0, OrderOf(options).batches_per_epoch()}));
  }
}

}  // namespace
}  // namespace stoker
