#include "core/batch/crop_region.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

namespace stoker {
namespace {

using decode::kCropAlignment;

TEST(CropRegion, WithoutMemoryHasNoRoom) {
  CropRegion region;
  EXPECT_FALSE(region.Take(kCropAlignment, 1));
  EXPECT_EQ(region.bytes(), 0u);
  EXPECT_EQ(region.bytes_left(), 0u);
}

TEST(CropRegion, GivesPlacesUntilEitherRoomEnds) {
  std::array<uint8_t, 10 * kCropAlignment> memory;
  CropRegion region;
  region.Use(memory.data(), {.bytes = memory.size(), .samples = 7});
  const auto first = region.Take(3 * kCropAlignment, 4), second = region.Take(kCropAlignment, 3);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->at, 0u);
  EXPECT_EQ(second->at, 3 * kCropAlignment);
  EXPECT_EQ(second->samples, 4u);
  EXPECT_FALSE(region.Take(kCropAlignment, 1)) << "no samples are left";
  EXPECT_FALSE(region.Take(7 * kCropAlignment, 0)) << "six units are left";
  EXPECT_EQ(region.bytes(), 4 * kCropAlignment) << "a refusal takes nothing";
  EXPECT_EQ(region.bytes_left(), 6 * kCropAlignment);
  EXPECT_TRUE(region.Take(6 * kCropAlignment, 0));
  EXPECT_EQ(region.bytes(), memory.size());
  EXPECT_EQ(region.bytes_left(), 0u);
  region.Clear();
  EXPECT_EQ(region.bytes(), 0u);
  EXPECT_EQ(region.bytes_left(), memory.size());
  EXPECT_TRUE(region.Take(memory.size(), 7));
}

TEST(CropRegion, PlacesCountFromTheFirstRegion) {
  std::array<uint8_t, 8 * kCropAlignment> memory;
  constexpr uint64_t kBegin = 4 * kCropAlignment;
  CropRegion region;
  region.Use(memory.data(), {.bytes = memory.size() - kBegin, .samples = 9, .regions = 2}, kBegin);
  EXPECT_EQ(region.memory(), memory.data());
  EXPECT_EQ(region.Take(kCropAlignment, 3)->at, kBegin);
  const auto second = region.Take(kCropAlignment, 3);
  EXPECT_EQ(second->at, kBegin + kCropAlignment);
  EXPECT_EQ(second->samples, 3u) << "each device has memory of its own for samples";
  EXPECT_FALSE(region.Take(3 * kCropAlignment, 3));
}

TEST(CropRegion, HugeCropsAndRoomsDoNotOverflow) {
  uint8_t byte = 0;
  CropRegion region;
  region.Use(&byte, {.bytes = ~uint64_t{0}, .samples = ~uint64_t{0}});
  EXPECT_FALSE(region.Take(kCropAlignment << 32, 0));
  EXPECT_FALSE(region.Take(0, uint64_t{1} << 32));
  ASSERT_TRUE(region.Take(kCropAlignment * 0xffff'ffff, 0xffff'ffff));
  EXPECT_FALSE(region.Take(kCropAlignment, 0));
  EXPECT_FALSE(region.Take(0, 1));
}

TEST(CropRegion, PlacesOfThreadsAreDisjoint) {
  constexpr size_t kThreads = 4, kEach = 500;
  std::vector<uint8_t> memory(kThreads * kEach * kCropAlignment);
  CropRegion region;
  region.Use(memory.data(), {.bytes = memory.size(), .samples = memory.size()});
  std::array<std::vector<uint64_t>, kThreads> places;
  std::vector<std::thread> threads;
  for (std::vector<uint64_t>& of_thread : places) {
    threads.emplace_back([&] {
      while (const auto place = region.Take(2 * kCropAlignment, 1)) {
        of_thread.push_back(place->at);
        if (place->samples != place->at / (2 * kCropAlignment)) of_thread.push_back(place->at);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<uint64_t> all;
  for (const std::vector<uint64_t>& of_thread : places) {
    all.insert(all.end(), of_thread.begin(), of_thread.end());
  }
  std::ranges::sort(all);
  ASSERT_EQ(all.size(), kThreads * kEach / 2);
  for (size_t i = 0; i < all.size(); ++i) ASSERT_EQ(all[i], i * 2 * kCropAlignment);
}

}  // namespace
}  // namespace stoker
