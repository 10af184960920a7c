// ViewsSink gives each resampler the pixels that it would get alone, on both of its paths.
#include "transforms/plan/views_sink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "transforms/decode/push_region.h"

namespace stoker {
namespace {

using testing::Random;

// Pixels of an image in a layout.
struct Pixels {
  Pixels(Random& random, PixelLayout layout, ImageSize size) {
    view.layout = layout;
    view.size = size;
    const ptrdiff_t stride = ptrdiff_t{size.width} * BytesPerPixel(layout);
    const ptrdiff_t plane = stride * size.height;
    bytes.resize(static_cast<size_t>(plane * PlanesOf(layout)));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Between(0, 255));
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(layout)); ++p) {
      view.plane[p] = bytes.data() + static_cast<ptrdiff_t>(p) * plane;
      view.stride[p] = stride;
    }
  }
  std::vector<uint8_t> bytes;
  ImageView view;
};

Resampling RandomTask(Random& random, ImageSize image) {
  Resampling task;
  task.image = image;
  task.box = {random.Between(-3, image.width - 1), random.Between(-3, image.height - 1),
              random.Between(1, image.width + 3), random.Between(1, image.height + 3)};
  task.resized = {random.Between(1, 40), random.Between(1, 40)};
  task.window = {random.Between(-2, 3), random.Between(-2, 3), random.Between(1, 40),
                 random.Between(1, 40)};
  task.antialias = !random.OneIn(4);
  task.interpolation = static_cast<Interpolation>(random.Between(0, 4));
  task.turn = {random.OneIn(2), random.OneIn(2), random.OneIn(2)};
  return task;
}

// Delivers the region as a decoder does: more columns than were asked for, and any number of rows
// at a time.
void Decode(Random& random, const ImageView& image, const Rect& region, RowSink& sink) {
  Rect covered = region;
  covered.x = std::max(0, region.x - random.Between(0, 9));
  covered.width =
      std::min(image.size.width, region.x + region.width + random.Between(0, 9)) - covered.x;
  ASSERT_TRUE(sink.Begin({image.layout, covered}).ok());
  const ImageView part = PartOf(image, covered);
  for (int done = 0; done < covered.height;) {
    const MutableImageView room =
        sink.Reserve(std::min(random.Between(1, 20), covered.height - done));
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(image.layout)); ++p) {
      for (int y = 0; y < room.size.height; ++y) {
        std::memcpy(room.plane[p] + y * room.stride[p], part.plane[p] + (done + y) * part.stride[p],
                    static_cast<size_t>(covered.width * BytesPerPixel(image.layout)));
      }
    }
    sink.Commit(room.size.height);
    done += room.size.height;
  }
}

void GivesEachViewItsPixels() {
  constexpr PixelLayout kLayouts[] = {PixelLayout::kGray, PixelLayout::kInterleaved,
                                      PixelLayout::kPlanar};
  Random random(31);
  MemoryBudget budget(64 << 20);
  for (int n = 0; n < testing::Effort(200); ++n) {
    const Pixels image(random, kLayouts[random.Between(0, 2)],
                       {random.Between(1, 90), random.Between(1, 90)});
    const auto views = static_cast<size_t>(random.Between(1, 4));
    ViewsSink sink(budget, random.OneIn(2) ? 0 : ViewsSink::kWhole);
    std::vector<Resampler> resamplers;
    for (size_t i = 0; i < views; ++i) resamplers.emplace_back(budget);
    std::vector<std::vector<uint8_t>> rows, wanted;
    for (size_t i = 0; i < views; ++i) {
      const Resampling task = RandomTask(random, image.view.size);
      const size_t bytes = 3 * static_cast<size_t>(task.window.width * task.window.height);
      wanted.emplace_back(bytes, 1);
      Resampler alone(budget);
      const Rect region = alone.Start(task, {.row = wanted.back().data()}).value();
      if (region.width != 0) {
        ASSERT_TRUE(PushRegion(PartOf(image.view, region), region, alone).ok());
      }
      rows.emplace_back(bytes, 2);
      ASSERT_EQ(resamplers[i].Start(task, {.row = rows.back().data()}).value(), region);
      if (region.width != 0) sink.Add(region, resamplers[i]);
    }
    const Rect all = sink.region();
    if (all.width != 0) Decode(random, image.view, all, sink);
    sink.Finish();
    for (size_t i = 0; i < views; ++i) ASSERT_EQ(rows[i], wanted[i]) << n << ", view " << i;
  }
}

TEST(ViewsSink, GivesEachViewItsPixels) { testing::ForEachTarget(GivesEachViewItsPixels); }

void ARefusalAsksForTheMemoryOfAllViews() {
  constexpr uint64_t kBudget = 64 << 20;
  Resampling task;
  task.image = {600, 500};
  task.box = {0, 0, 600, 500};
  task.resized = {50, 50};
  task.window = {0, 0, 50, 50};
  for (const size_t whole : {size_t{0}, ViewsSink::kWhole}) {
    MemoryBudget budget(kBudget);
    ViewsSink sink(budget, whole);
    std::vector<uint8_t> row(3 * 50 * 50);
    std::vector<Resampler> resamplers;
    for (int i = 0; i < 5; ++i) resamplers.emplace_back(budget);
    for (Resampler& resampler : resamplers) {
      sink.Add(resampler.Start(task, {.row = row.data()}).value(), resampler);
    }
    Reservation rest(budget);
    ASSERT_TRUE(rest.Resize(kBudget - budget.used()));
    const Status refused = sink.Begin({PixelLayout::kPlanar, sink.region()});
    ASSERT_FALSE(refused.ok());
    ASSERT_TRUE(rest.Resize(rest.bytes() - refused.error().wanted_bytes));
    EXPECT_TRUE(sink.Begin({PixelLayout::kPlanar, sink.region()}).ok()) << whole;
  }
}

TEST(ViewsSink, ARefusalAsksForTheMemoryOfAllViews) {
  testing::ForEachTarget(ARefusalAsksForTheMemoryOfAllViews);
}

}  // namespace
}  // namespace stoker
