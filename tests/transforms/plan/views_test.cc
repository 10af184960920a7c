// A plan with several views makes what a plan of each view alone makes, and decodes once.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/padded_file.h"
#include "tests/transforms/plan/random_options.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"

namespace stoker {
namespace {

using testing::MaybeFill;
using testing::PaddedFile;
using testing::Random;

using Recipe = std::vector<Transform>;

Recipe RandomView(Random& random) {
  const auto side = [&] { return random.Between(1, 60); };
  const auto interpolation = static_cast<Interpolation>(random.Between(0, 4));
  Recipe list;
  switch (random.Between(0, 3)) {
    case 0:
      list.emplace_back(CenterCrop{random.Between(1, 200), random.Between(1, 200)});
      break;
    case 1:
      list.emplace_back(Resize{0, side(), side(), random.OneIn(2), interpolation});
      break;
    case 2:  // may have no pixel of the image
      list.emplace_back(Pad{{random.Between(0, 40), 0, random.Between(0, 40), 0}});
      list.emplace_back(RandomCrop{.height = 3, .width = 4, .pad_if_needed = true});
      break;
    default:
      list.emplace_back(RandomResizedCrop{
          side(), side(), {0.05, 1}, {0.75, 4.0 / 3}, random.OneIn(2), interpolation});
      break;
  }
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(3)) list.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}});
  if (random.OneIn(4)) {
    list.emplace_back(TrivialAugmentWide{31, Interpolation::kBilinear, MaybeFill(random)});
  }
  if (random.OneIn(4)) list.emplace_back(RandomErasing{.p = 0.7, .value = {1, 0, 1}});
  return list;
}

// Some are too large for ViewsSink to keep their region whole.
PaddedFile RandomFile(Random& random, int n) {
  const int most = random.OneIn(12) ? 1100 : 130;
  const int width = random.Between(most == 130 ? 1 : 800, most);
  const int height = random.Between(most == 130 ? 1 : 800, most);
  if (random.OneIn(5)) {
    return PaddedFile(
        testing::MakePng({.width = width, .height = height, .seed = static_cast<uint64_t>(n)}));
  }
  testing::JpegOptions jpeg;
  jpeg.width = width;
  jpeg.height = height;
  jpeg.color = random.OneIn(4) ? testing::JpegColor::kGray : testing::JpegColor::kYCbCr;
  jpeg.sampling = testing::Luma(random.Between(1, 2), random.Between(1, 2));
  if (random.OneIn(5)) jpeg.scans = testing::JpegScans::kProgressive;
  jpeg.orientation = random.Between(1, 8);
  jpeg.seed = static_cast<uint64_t>(n);
  return PaddedFile(testing::MakeJpeg(jpeg));
}

// The rows of a plan's views, with guards around each.
struct Rows {
  explicit Rows(const Plan& plan) {
    for (size_t i = 0; i < plan.views(); ++i) {
      rows.emplace_back(plan.view(i).row_bytes() + 2, 0x5a);
      if (i != 0) others.push_back(rows.back().data() + 1);
    }
  }
  OutputRows output() { return {.row = rows[0].data() + 1, .other_rows = others}; }
  std::vector<std::vector<uint8_t>> rows;
  std::vector<void*> others;
};

DrawKey OfView(DrawKey key, size_t view) {
  key.view = static_cast<uint32_t>(view);
  return key;
}

void ExpectRow(const std::vector<uint8_t>& row, const std::vector<uint8_t>& wanted,
               const std::string& what) {
  ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0) << what;
  ASSERT_TRUE(row.front() == 0x5a && row.back() == 0x5a) << what;
}

TEST(Views, EachIsWhatItsPlanMakesAlone) {
  Random random(21);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(300); ++n) {
    PlanOptions options;
    options.dtype = random.OneIn(2) ? DType::kU8 : DType::kF32;
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.read_later = random.OneIn(2);
    std::vector<Recipe> views(static_cast<size_t>(random.Between(1, 5)));
    for (Recipe& view : views) view = RandomView(random);
    const Result<Plan> plan = Plan::CompileViews(views, options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    ASSERT_EQ(plan->views(), views.size());
    const PaddedFile file = RandomFile(random, n);
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    const auto workspace = plan->MakeWorkspace(budget);
    Rows rows(*plan);
    StageTimes times;
    const Status status =
        plan->Apply({.bytes = file.span(), .key = key, .to = rows.output()}, *workspace, times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    for (size_t i = 0; i < views.size(); ++i) {
      const Plan alone = Plan::Compile(views[i], options).value();
      std::vector<uint8_t> wanted(alone.row_bytes());
      ASSERT_TRUE(ApplyReference(alone, file.span(), OfView(key, i), wanted.data()).ok());
      ExpectRow(rows.rows[i], wanted, plan->Describe() + ", view " + std::to_string(i));
    }
  }
}

TEST(Views, OfDecodedImages) {
  Random random(22);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(100); ++n) {
    std::vector<Recipe> views(static_cast<size_t>(random.Between(2, 5)));
    for (Recipe& view : views) view = RandomView(random);
    const Plan plan = Plan::CompileViews(views).value();
    const testing::Naive image =
        testing::NoisyImage(random, {random.Between(1, 90), random.Between(1, 90)});
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    const auto workspace = plan.MakeWorkspace(budget);
    Rows rows(plan);
    StageTimes times;
    const Status status = plan.Apply(testing::ViewOf(image), key, *workspace, rows.output(), times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    for (size_t i = 0; i < views.size(); ++i) {
      std::vector<uint8_t> wanted(plan.view(i).row_bytes());
      ASSERT_TRUE(
          ApplyReference(plan.view(i), testing::ViewOf(image), OfView(key, i), wanted.data()).ok());
      ExpectRow(rows.rows[i], wanted, plan.Describe() + ", view " + std::to_string(i));
    }
  }
}

TEST(Views, AnImageIsDecodedOnceAndScaledOnlyWhereAllViewsAllowIt) {
  testing::JpegOptions jpeg;
  jpeg.width = jpeg.height = 400;
  const PaddedFile file(testing::MakeJpeg(jpeg));
  MemoryBudget budget(256 << 20);
  const auto paths_of = [&](std::vector<Recipe> views) {
    const Plan plan = Plan::CompileViews(std::move(views), {.decode = DecodeSize::kScaled}).value();
    const auto workspace = plan.MakeWorkspace(budget);
    Rows rows(plan);
    StageTimes times;
    EXPECT_TRUE(plan.Apply({.bytes = file.span(), .to = rows.output()}, *workspace, times).ok());
    const DecodePaths paths = PathsOf(*workspace);
    EXPECT_EQ(paths.fast, 1u);
    return paths;
  };
  const Recipe small{Resize{0, 50, 50}}, large{Resize{0, 300, 300}};
  EXPECT_EQ(paths_of({small, small}).scaled, 1u);
  EXPECT_EQ(paths_of({small, large}).scaled, 0u);
  EXPECT_EQ(paths_of({large, small}).scaled, 0u);
}

TEST(Views, ScaledPixelsAreThoseOfEachAlone) {
  Random random(24);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(20); ++n) {
    testing::JpegOptions jpeg;
    jpeg.width = jpeg.height = 400;
    jpeg.seed = static_cast<uint64_t>(n);
    const PaddedFile file(testing::MakeJpeg(jpeg));
    const std::vector<Recipe> views = {{Resize{0, 60, 70}, RandomHorizontalFlip{}},
                                       {Resize{0, 90, 51}, CenterCrop{40, 40}}};  // both by 4
    const PlanOptions options{.decode = DecodeSize::kScaled};
    const Plan plan = Plan::CompileViews(views, options).value();
    const auto workspace = plan.MakeWorkspace(budget);
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    Rows rows(plan);
    StageTimes times;
    ASSERT_TRUE(
        plan.Apply({.bytes = file.span(), .key = key, .to = rows.output()}, *workspace, times)
            .ok());
    ASSERT_EQ(PathsOf(*workspace).scaled, 1u);
    for (size_t i = 0; i < views.size(); ++i) {
      std::vector<uint8_t> wanted(plan.view(i).row_bytes());
      ASSERT_TRUE(ApplyReference(plan.view(i), file.span(), OfView(key, i), wanted.data()).ok());
      ExpectRow(rows.rows[i], wanted, "view " + std::to_string(i));
    }
  }
}

TEST(Views, HaveDrawsOfTheirOwn) {
  const Recipe crop{RandomResizedCrop{8, 8}};
  const Plan plan = Plan::CompileViews({crop, crop, crop}).value();
  DrawnSample drawn[3];
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(plan.view(i).Draw(OfView({1, 2, 3}, i), {500, 400}, drawn[i]).ok());
  }
  EXPECT_FALSE(drawn[0].geometry == drawn[1].geometry);
  EXPECT_FALSE(drawn[0].geometry == drawn[2].geometry);
  EXPECT_FALSE(drawn[1].geometry == drawn[2].geometry);
}

TEST(Views, AWorkspaceWithoutMemoryRefusesTheSampleAndMakesTheNext) {
  testing::JpegOptions jpeg;
  jpeg.width = jpeg.height = 300;
  const PaddedFile file(testing::MakeJpeg(jpeg));
  const Plan plan = Plan::CompileViews({{Resize{0, 64, 64}}, {Resize{0, 32, 32}}}).value();
  MemoryBudget budget(16 << 20);
  const auto workspace = plan.MakeWorkspace(budget);
  Rows rows(plan);
  StageTimes times;
  const EncodedImage image{.bytes = file.span(), .to = rows.output()};
  Reservation all(budget);
  ASSERT_TRUE(all.Resize((16 << 20) - (100 << 10)));
  const Status refused = plan.Apply(image, *workspace, times);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted);
  const uint64_t wanted = refused.error().wanted_bytes;
  EXPECT_GT(wanted, 0u);
  ASSERT_TRUE(all.Resize(0));
  MemoryBudget enough(MemoryOf(*workspace) + wanted);
  EXPECT_TRUE(plan.Apply(image, *plan.MakeWorkspace(enough), times).ok())
      << "one refusal asks for all that is missing";
  ASSERT_TRUE(plan.Apply(image, *workspace, times).ok());
  for (size_t i = 0; i < plan.views(); ++i) {
    std::vector<uint8_t> wanted(plan.view(i).row_bytes());
    ASSERT_TRUE(ApplyReference(plan.view(i), file.span(), OfView({}, i), wanted.data()).ok());
    ExpectRow(rows.rows[i], wanted, "view " + std::to_string(i));
  }
}

TEST(Views, MemoryStaysWithinThePlan) {
  Random random(23);
  const testing::Naive image = testing::NoisyImage(random, {500, 375});
  const Recipe global{RandomResizedCrop{224, 224, {0.4, 1}}, ColorJitter{{0.5, 2}}};
  const Recipe local{RandomResizedCrop{96, 96, {0.05, 0.4}}};
  const Plan one = Plan::Compile(global).value();
  const Plan all =
      Plan::CompileViews({global, global, local, local, local, local, local, local}).value();
  const auto peak_of = [&](const Plan& plan) {
    MemoryBudget budget(64 << 20);
    const auto workspace = plan.MakeWorkspace(budget);
    Rows rows(plan);
    StageTimes times;
    for (uint64_t n = 0; n < 30; ++n) {
      EXPECT_TRUE(
          plan.Apply(testing::ViewOf(image), {1, 0, n}, *workspace, rows.output(), times).ok());
    }
    return budget.peak();
  };
  // One image at a time: half of a workspace.
  EXPECT_LE(peak_of(all) - peak_of(one), (all.extra_bytes() - one.extra_bytes()) / 2);
}

TEST(Views, ErrorsNameTheView) {
  const auto error_of = [](std::vector<Recipe> views, PlanOptions options = {}) {
    return Plan::CompileViews(std::move(views), options).error().ToString();
  };
  const Recipe good{CenterCrop{4, 4}};
  EXPECT_NE(error_of({good, {Resize{8}}}).find("views[1]: "), std::string::npos);
  EXPECT_NE(error_of({good, {PadTo{300, 300}}}).find("views[1]: PadTo"), std::string::npos);
  EXPECT_NE(error_of({good, good}, {.defer_to_device = true}).find("device"), std::string::npos);
  EXPECT_TRUE(Plan::CompileViews({{PadTo{300, 300}}}).ok()) << "one view is a plan as any other";
}

}  // namespace
}  // namespace stoker
