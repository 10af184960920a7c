// Counts allocations through operator new, which libstoker.so then uses, too.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <span>
#include <vector>

#include "core/batch/crop_region.h"
#include "core/memory/buffer.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"
#include "transforms/plan/plan.h"

namespace {
size_t allocations = 0;  // of this program's one thread
}

void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace stoker {
namespace {

class Filters : public ::testing::TestWithParam<Interpolation> {};

TEST_P(Filters, AllocateNothingAfterTheLargestImage) {
  RandomResizedCrop crop{224, 224};
  crop.interpolation = GetParam();
  const Plan plan = Plan::Compile({crop, RandomHorizontalFlip{}}).value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<std::vector<uint8_t>> files;
  for (int orientation : {1, 3, 6}) {
    testing::JpegOptions options{.width = 500, .height = 375};
    options.orientation = orientation;
    files.push_back(testing::MakeJpeg(options));
  }
  std::vector<uint8_t> row(plan.row_bytes());
  const auto epoch = [&] {
    StageTimes times;
    for (uint64_t n = 0; n < 60; ++n) {
      const std::vector<uint8_t>& file = files[n % files.size()];
      const std::span<const uint8_t> bytes(file.data(), file.size() - kBufferPadding);
      ASSERT_TRUE(plan.Apply(bytes, {1, 0, n}, *workspace, row.data(), times).ok());
    }
  };
  for (auto& file : files) file.resize(file.size() + kBufferPadding);
  epoch();
  const uint64_t charged = budget.used();
  const size_t before = allocations;
  ASSERT_GT(before, 0u);  // the count works
  epoch();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(budget.used(), charged);
}

INSTANTIATE_TEST_SUITE_P(Apply, Filters,
                         ::testing::Values(Interpolation::kBilinear, Interpolation::kLanczos),
                         [](const auto& info) { return NameOf(info.param); });

TEST(Objects, AllocateNothingAfterTheMost) {
  const Plan plan =
      Plan::Compile({RandomResizedCrop{32, 32}, RandomHorizontalFlip{}},
                    {.objects = {{.kind = ObjectField::Kind::kBoxes, .bytes = 16},
                                 {.kind = ObjectField::Kind::kKeypoints, .bytes = 120},
                                 {.kind = ObjectField::Kind::kValue, .bytes = 8}}})
          .value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  constexpr uint32_t kMost = 3000;
  const std::vector<uint8_t> boxes(kMost * 16), points(kMost * 120), values(kMost * 8);
  std::vector<uint8_t> moved[] = {boxes, points, values};
  std::vector<uint8_t> row(plan.row_bytes()), pixels(64 * 64);
  const auto apply = [&](uint32_t count) {
    const std::span<const uint8_t> from[] = {boxes, points, values};
    void* const to[] = {moved[0].data(), moved[1].data(), moved[2].data()};
    int64_t kept = -1;
    const ObjectRows objects{from, to, &kept, count};
    const ImageView image{PixelLayout::kGray, {64, 64}, {pixels.data()}, {64}};
    StageTimes times;
    OutputRows rows{.row = row.data()};
    rows.objects = &objects;
    // The same draw each time: a larger crop would need longer tables of weights.
    ASSERT_TRUE(plan.Apply(image, {1, 0, 0}, *workspace, rows, times).ok());
    ASSERT_EQ(kept, count);
  };
  apply(kMost);
  const uint64_t charged = budget.used();
  const size_t before = allocations;
  for (const uint32_t count : {0u, 1u, 100u, kMost}) apply(count);
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(budget.used(), charged);
}

TEST(Crops, AllocateNothingAfterTheLargest) {
  const Plan plan = Plan::Compile({RandomResizedCrop{224, 224}},
                                  {.defer_to_device = true, .decode_on_device = true})
                        .value();
  std::vector<uint8_t> photo = testing::MakeJpeg({.width = 500, .height = 375});
  photo.resize(photo.size() + kBufferPadding);
  const std::span<const uint8_t> plain(photo.data(), photo.size() - kBufferPadding);
  std::vector<uint8_t> index, packed = PackJpeg(plain).value();
  ASSERT_EQ(jpeg::CropIndexMaker().Make(plain, index), Fallback::kNone);
  packed.resize(packed.size() + kBufferPadding);
  std::vector<uint8_t> row(plan.row_bytes()), work(plan.work_bytes());
  std::vector<decode::DeviceCrop> memory(1000);
  CropRegion region;
  region.Use(reinterpret_cast<uint8_t*>(memory.data()),
             {.bytes = memory.size() * sizeof(memory[0]), .samples = 1 << 20});
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  const auto epoch = [&] {
    StageTimes times;
    for (uint64_t n = 0; n < 60; ++n) {
      EncodedImage image{
          .bytes = plain, .key = {1, 0, n}, .to = {.row = row.data()}, .crop_index = index};
      if (n % 2 == 0) image.bytes = std::span(packed).first(packed.size() - kBufferPadding);
      uint64_t crop_at = decode::kNoCrop;
      image.to.work = work.data();
      image.to.crops = &region;
      image.to.crop_at = &crop_at;
      region.Clear();
      ASSERT_TRUE(plan.Apply(image, *workspace, times).ok());
      ASSERT_EQ(crop_at, 0u);
    }
  };
  epoch();
  const uint64_t charged = budget.used();
  const size_t before = allocations;
  epoch();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(budget.used(), charged);
}

TEST(Masks, AllocateNothingAfterTheLargest) {
  constexpr uint64_t kSamples = 60;
  const RandomRotation rotation{.degrees = {-30, 30}, .interpolation = Interpolation::kBilinear};
  const Plan plan = Plan::Compile({RandomResizedCrop{224, 224}, RandomApply{{rotation}, 0.5}},
                                  {.pieces = {{}, {Piece::Kind::kMask, 255}}})
                        .value();
  std::vector<uint8_t> photo = testing::MakeJpeg({.width = 500, .height = 375});
  std::vector<uint8_t> mask = testing::MakePng({.width = 500, .height = 375, .color = 3});
  for (auto* file : {&photo, &mask}) file->resize(file->size() + kBufferPadding);
  std::vector<uint8_t> row(plan.row_bytes());
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  const auto epoch = [&] {
    StageTimes times;
    for (uint64_t n = 0; n < kSamples; ++n) {
      const auto piece = static_cast<uint32_t>(n % 2);
      const std::vector<uint8_t>& file = piece == 0 ? photo : mask;
      const EncodedImage image{.piece = piece,
                               .bytes = {file.data(), file.size() - kBufferPadding},
                               .key = {1, 0, n},
                               .to = {.row = row.data()}};
      ASSERT_TRUE(plan.Apply(image, *workspace, times).ok());
    }
  };
  epoch();
  const uint64_t charged = budget.used();
  const size_t before = allocations;
  epoch();
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(budget.used(), charged);
}

}  // namespace
}  // namespace stoker
