// The fused path matches its reference for whole lists of transforms.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
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
#include "tests/transforms/plan/random_options.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"

namespace stoker {
namespace {

using testing::MaybeFill;
using testing::NextFill;
using testing::NextMargins;
using testing::NextPadding;
using testing::NextPaddingOfAffine;
using testing::Random;

std::vector<Transform> RandomRecipe(Random& random, DType dtype) {
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(4, 60); };
  if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(3)) list.emplace_back(Pad{NextMargins(random, 5)});
  const bool pads = random.OneIn(3);  // images keep their sizes
  if (!pads) {
    list.emplace_back(RandomResizedCrop{side(), side(), {0.08, 1}, {0.75, 4.0 / 3}});
  } else if (random.OneIn(2)) {
    const int size = random.OneIn(3) ? 0 : side();
    list.emplace_back(Resize{.size = size,
                             .antialias = random.OneIn(2),
                             .interpolation = kInterpolations[random.Between(0, 4)],
                             .max_size = size + random.Between(1, 30)});
  }
  for (int n = random.Between(0, 4); n > 0; --n) {
    const auto interpolation = random.OneIn(2) ? Interpolation::kNearest : Interpolation::kBilinear;
    switch (random.Between(0, 15)) {
      case 0:
        list.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}, 0.8});
        break;
      case 8:
        list.emplace_back(RandomSolarize{1.0 * random.Between(0, 255), 0.7});
        break;
      case 9: {
        RandomApply apply{{RandomSolarize{128, 1}, RandomGrayscale{0.5}}, 0.7};
        if (!pads) apply.transforms.emplace_back(GaussianBlur{5, 3, {0.1, 2}, 0.5});
        apply.transforms.emplace_back(TrivialAugmentWide{31, interpolation, MaybeFill(random)});
        list.emplace_back(std::move(apply));
        break;
      }
      case 10:
        list.emplace_back(RandomAffine{{-180, 180},
                                       0.3,
                                       0.2,
                                       {0.5, 2},
                                       {-30, 30},
                                       {-20, 0},
                                       interpolation,
                                       MaybeFill(random),
                                       random.OneIn(2) ? std::optional<double>(7.5) : std::nullopt,
                                       {},
                                       NextPaddingOfAffine(random)});
        break;
      case 11: {
        const RandomRotation rotation{.degrees = {-30, 30}, .interpolation = interpolation};
        list.emplace_back(RandomApply{{rotation}, 0.7});
        break;
      }
      case 12: {
        RandomZoom zoom{{-0.9, 1}, {}, NextPaddingOfAffine(random), interpolation};
        if (random.OneIn(2)) zoom.width_factor = {-0.2, 0.2};
        list.emplace_back(zoom);
        list.emplace_back(RandomTranslation{
            {-1, 1}, {-0.2, 0.3}, NextPaddingOfAffine(random), interpolation, NextFill(random)});
        list.emplace_back(
            RandomShear{{0, 0.5}, {-0.2, 0}, interpolation, NextPaddingOfAffine(random)});
        break;
      }
      case 14: {
        const RandomChoice flips{{RandomHorizontalFlip{1}, RandomVerticalFlip{1}}, {1, 3}};
        list.emplace_back(RandomOrder{{flips, RandomApply{{RandomSolarize{99, 1}, flips}, 0.5},
                                       RandomRotation{.degrees = {-9, 9}}}});
        list.emplace_back(RandomChoice{{RandAugment{2, 9, 31, interpolation}, flips,
                                        RandomOrder{{RandomGrayscale{1}, RandomShear{{0, 0.5}}}}},
                                       {}});
        break;
      }
      case 15:
        list.emplace_back(RandomChoice{{RandomVerticalFlip{1}, RandomHorizontalFlip{0.5}}, {}});
        break;
      case 1:
        list.emplace_back(RandomGrayscale{0.5});
        break;
      case 2:
        if (pads) break;  // some images are too small
        list.emplace_back(GaussianBlur{3, random.OneIn(2) ? 5 : 1});
        break;
      case 3:
        list.emplace_back(TrivialAugmentWide{31, interpolation, MaybeFill(random)});
        break;
      case 4:
        list.emplace_back(RandAugment{2, 9, 31, interpolation, MaybeFill(random)});
        break;
      case 5:
        list.emplace_back(AutoAugment{static_cast<AutoAugment::Policy>(random.Between(0, 2)),
                                      interpolation, MaybeFill(random)});
        break;
      case 6:
        if (pads) break;  // the images before it are not bounded
        if (random.OneIn(3)) {
          list.emplace_back(CenterCrop{4, 4});
          break;
        }
        list.emplace_back(RandomCrop{.height = 4 + random.Between(0, 20),
                                     .width = 4 + random.Between(0, 20),
                                     .padding = NextMargins(random, 4),
                                     .pad_if_needed = true,
                                     .fill = NextFill(random),
                                     .padding_mode = NextPadding(random)});
        break;
      case 7:
        list.emplace_back(RandomHorizontalFlip{});
        break;
      default:
        list.emplace_back(RandomVerticalFlip{});
        break;
    }
  }
  const bool fractions = dtype != DType::kU8, normalizes = fractions && random.OneIn(2);
  const bool normalizes_last = pads && random.OneIn(2);
  const Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  if (normalizes && !normalizes_last) list.emplace_back(normalize);
  if (random.OneIn(2)) {
    const bool noise = fractions && !normalizes_last && random.OneIn(2);
    list.emplace_back(RandomErasing{.p = 0.7, .value = {1, 0, 1}, .noise = noise});
  }
  if (pads) {
    PadTo pad_to{100 + random.Between(0, 300), 100 + random.Between(0, 300)};
    if (!normalizes || normalizes_last) pad_to.fill = NextFill(random);
    list.emplace_back(pad_to);
  }
  if (normalizes && normalizes_last) list.emplace_back(normalize);
  return list;
}

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
  std::set<std::string> names;
  for (int n = 0; n < 2000; ++n) AddNames(RandomRecipe(random, DType::kF32), names);
  EXPECT_EQ(names.size(), std::variant_size_v<AnyTransform>);
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
    const Result<Plan> plan = Plan::Compile(RandomRecipe(random, options.dtype), options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
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
    std::vector<uint8_t> wanted(plan->row_bytes(), 0xa5), row(plan->row_bytes() + 3, 0x5a);
    StageTimes times;
    auto workspace = plan->MakeWorkspace(budget);
    ASSERT_TRUE(ApplyReference(*plan, file, key, wanted.data()).ok());
    const Status status = plan->Apply(file, key, *workspace, row.data() + 1, times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0)
        << n << ": " << plan->Describe() << " of " << jpeg.width << " × " << jpeg.height;
    ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
  }
}

// Returns the most that a workspace holds while it makes many rows of an image.
uint64_t PeakOf(const Plan& plan, const ImageView& image) {
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  for (int n = 0; n < testing::Effort(200); ++n) {
    const Status status =
        plan.Apply(image, {1, 0, static_cast<uint64_t>(n)}, *workspace, {.row = row.data()}, times);
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

TEST(Recipe, ApplyMatchesTheReference) { testing::ForEachTarget(AppliesAsTheReference); }

}  // namespace
}  // namespace stoker
