// The fused path matches its reference for whole lists of transforms.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/plan/naive_image.h"
#include "tests/transforms/plan/random_recipe.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"
#include "transforms/spec/transform_table.h"

namespace stoker {
namespace {

using testing::Random;
using testing::RandomRecipe;

void AddNames(const std::vector<Transform>& list, std::set<std::string>& names) {
  for (const Transform& transform : list) {
    names.insert(NameOf(transform));
    const auto add_held = [&names](const auto& t) {
      if constexpr (requires { t.transforms; }) AddNames(t.transforms, names);
    };
    std::visit(add_held, transform);
  }
}

// A transform that is in no recipe is compared with no reference.
TEST(Recipe, HasEveryTransform) {
  Random random(4);
  // mosaic_test.cc and copy_paste_test.cc compare lists with these.
  std::set<std::string> names{"Mosaic", "CopyPaste"};
  for (int n = 0; n < 2000; ++n) AddNames(RandomRecipe(random, DType::kF32), names);
  const auto expect = [&names](const Transform& transform) {
    EXPECT_TRUE(names.contains(NameOf(transform)))
        << NameOf(transform) << " is not in RandomRecipe";
  };
  [&expect]<size_t... places>(std::index_sequence<places...>) {
    (expect(std::variant_alternative_t<places, AnyTransform>()), ...);
  }
  (std::make_index_sequence<std::variant_size_v<AnyTransform>>());
}

// Draws and applies a plan to a JPEG of up to 90 pixels a side.
void ExpectAsTheReference(const Plan& plan, Random& random, int n, MemoryBudget& budget) {
  testing::JpegOptions jpeg;
  jpeg.width = random.Between(1, 90);
  jpeg.height = random.Between(1, 90);
  jpeg.orientation = random.Between(1, 8);
  jpeg.seed = static_cast<uint64_t>(n);
  std::vector<uint8_t> bytes = testing::MakeJpeg(jpeg);
  const size_t size = bytes.size();
  bytes.resize(size + kBufferPadding);
  const std::span<const uint8_t> file(bytes.data(), size);
  const DrawKey key{1, 2, static_cast<uint64_t>(n)};
  std::vector<uint8_t> wanted(plan.row_bytes(), 0xa5), row(plan.row_bytes() + 3, 0x5a);
  StageTimes times;
  auto workspace = plan.MakeWorkspace(budget);
  ASSERT_TRUE(ApplyReference(plan, file, key, wanted.data()).ok());
  const Status status = plan.Apply(file, key, *workspace, row.data() + 1, times);
  ASSERT_TRUE(status.ok()) << status.error().ToString();
  ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0)
      << n << ": " << plan.Describe() << " of " << jpeg.width << " × " << jpeg.height;
  ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
}

void AppliesAsTheReference() {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  Random random(5);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(150); ++n) {
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.read_later = random.OneIn(2);
    const std::vector<Transform> list = RandomRecipe(random, options.dtype);
    options.objects = testing::FieldsFor(list);
    const auto differs = [](const Transform& t) { return CheckForGray(t).has_value(); };
    if (n % 2 == 1 && std::ranges::none_of(list, differs)) options.channels = Channels::kGray;
    const Result<Plan> plan = Plan::Compile(list, options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    ASSERT_NO_FATAL_FAILURE(ExpectAsTheReference(*plan, random, n, budget));
  }
}

// A plan that compiles draws images of the size that it has said, whichever padding is drawn.
TEST(Recipe, PaddingsLeaveTheSizeOfTheOutput) {
  Random random(8);
  MemoryBudget budget(256 << 20);
  int compared = 0;
  for (int n = 0; n < testing::Effort(20000); ++n) {
    const Result<Plan> plan = Plan::Compile(testing::RandomPaddings(random));
    if (!plan.ok()) continue;
    const ImageSize most = plan->output_size();
    bool fits = true;
    for (uint64_t sample = 0; sample < 20; ++sample) {
      const ImageSize image{random.Between(1, 90), random.Between(1, 90)};
      DrawnSample drawn;
      const Status status = plan->Draw({1, 0, sample}, image, drawn);
      if (!status.ok()) {
        EXPECT_TRUE(plan->pads()) << plan->Describe() << status.error().ToString();
        fits = false;
        continue;
      }
      const bool within = drawn.size.width <= most.width && drawn.size.height <= most.height;
      ASSERT_TRUE(plan->pads() ? within : drawn.size == most) << plan->Describe();
    }
    if (!fits || !random.OneIn(8)) continue;
    ++compared;
    ASSERT_NO_FATAL_FAILURE(ExpectAsTheReference(*plan, random, n, budget));
  }
  EXPECT_GT(compared, testing::Effort(20000) / 200);
}

// Returns the most that a workspace holds while it makes many rows of an image.
uint64_t PeakOf(const Plan& plan, const ImageView& image, const ObjectRows* objects = nullptr) {
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  OutputRows output{.row = row.data()};
  output.objects = objects;
  StageTimes times;
  for (int n = 0; n < std::max(10, testing::Effort(200)); ++n) {
    const Status status =
        plan.Apply(image, {1, 0, static_cast<uint64_t>(n)}, *workspace, output, times);
    EXPECT_TRUE(status.ok()) << plan.Describe();
  }
  return budget.peak();
}

// Compares what a workspace holds after many images with what it holds without a tile.
TEST(Recipe, TileMemoryStaysWithinThePlan) {
  Random random(6);
  const testing::Naive image = testing::NoisyImage(random, {300, 280});
  const RandomResizedCrop crop{256, 200};
  const RandAugment moves{2, 9, 31, Interpolation::kBilinear};
  const GaussianBlur blur{23, 23};
  const ColorJitter colours{{0.5, 2}, {0.5, 2}, {0.5, 2}, {-0.5, 0.5}};
  const PadTo far{700, 600};
  struct Case {
    std::vector<Transform> plain, with;
  };
  for (const auto& [plain_list, with_list] : std::vector<Case>{
           {{crop}, {crop, moves}},
           {{crop}, {crop, blur}},
           {{crop}, {crop, colours}},
           {{crop}, {crop, moves, CenterCrop{20, 20}}},  // the tile is larger than the output
           {{crop}, {crop, blur, Pad{{30, 20, 10, 0}}, CenterCrop{20, 20}}},
           {{crop}, {crop, moves, far}},  // and smaller
           {{far}, {moves, far}},         // of any size
       }) {
    const Plan plain = Plan::Compile(plain_list).value(), with = Plan::Compile(with_list).value();
    const uint64_t plain_peak = PeakOf(plain, ViewOf(image)), peak = PeakOf(with, ViewOf(image));
    EXPECT_GT(peak, plain_peak) << with.Describe();
    EXPECT_LE(peak - plain_peak, with.extra_bytes() / 2) << with.Describe();  // one image at a time
    EXPECT_EQ(plain.extra_bytes(), 0u);
  }
}

TEST(Recipe, MemoryOfMovedObjectsStaysWithinThePlan) {
  Random random(6);
  const testing::Naive image = testing::NoisyImage(random, {300, 280});
  const std::array<float, 4> box{0, 0, 300, 280};
  std::array<float, 4> moved;
  const std::array<std::span<const uint8_t>, 1> from{
      {{reinterpret_cast<const uint8_t*>(box.data()), sizeof(box)}}};
  const std::array<void*, 1> to{moved.data()};
  int64_t kept = 0;
  const ObjectRows rows{from, to, &kept, 1};
  const PlanOptions options{.objects = {{.kind = ObjectField::Kind::kBoxes, .bytes = sizeof(box)}},
                            .max_objects = 1};
  const RandomResizedCrop crop{256, 200};
  const Plan plain = Plan::Compile({crop}, options).value();
  const uint64_t plain_peak = PeakOf(plain, ViewOf(image), &rows);
  for (const double sigma : {0.0, 3.0}) {
    const ElasticTransform elastic{50, sigma}, other{20, sigma / 2};
    for (const std::vector<Transform>& list :
         {std::vector<Transform>{crop, elastic},
          {crop, RandomApply{{elastic}, 0.5}},
          {crop, elastic, AugMix{}},
          {crop, RandomApply{{AugMix{}, elastic}, 0.5}, GaussianBlur{3, 3}}}) {
      const Plan plan = Plan::Compile(list, options).value();
      const uint64_t peak = PeakOf(plan, ViewOf(image), &rows);
      EXPECT_GT(peak, plain_peak + 28 * 256 * 200) << plan.Describe();  // with two displacements
      // Half of it is that of one image at a time, but the last two displacements are kept.
      const size_t displacement = DisplacementBytes({.sigma = sigma}, {200, 256});
      EXPECT_LE(peak - plain_peak, (plan.extra_bytes() - plain.extra_bytes()) / 2 + displacement);
    }
    const Plan one = Plan::Compile({crop, elastic}, options).value();
    const Plan both = Plan::Compile({crop, other, elastic}, options).value();
    EXPECT_EQ(both.extra_bytes(), one.extra_bytes());
    EXPECT_LE(PeakOf(both, ViewOf(image), &rows), PeakOf(one, ViewOf(image), &rows));
  }
}

TEST(Recipe, ApplyMatchesTheReference) { testing::ForEachTarget(AppliesAsTheReference); }

}  // namespace
}  // namespace stoker
