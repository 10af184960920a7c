// Which pixels of a reduced image stand for which of the stored one, and how far images are
// reduced.
#include "transforms/decode/reduction.h"

#include <gtest/gtest.h>

#include "transforms/decode/image_info.h"
#include "transforms/plan/resampling.h"

namespace stoker {
namespace {

// The columns [begin, end) that [begin, end) of an image of this width become.
struct Columns {
  int begin, end;
  friend bool operator==(const Columns&, const Columns&) = default;
};
Columns Of(Columns stored, int width, Reduction reduction) {
  const Rect reduced =
      Reduced({stored.begin, 0, stored.end - stored.begin, 1}, {width, 1}, reduction);
  return {reduced.x, reduced.x + reduced.width};
}

TEST(Reduction, RoundsSizesUp) {
  EXPECT_EQ(Reduced({417, 300}, 1), (ImageSize{417, 300}));
  EXPECT_EQ(Reduced({417, 300}, 2), (ImageSize{209, 150}));
  EXPECT_EQ(Reduced({417, 300}, 8), (ImageSize{53, 38}));
  EXPECT_EQ(Reduced({1, 65535}, 8), (ImageSize{1, 8192}));
}

TEST(Reduction, RoundsEdgesToTheNearestPixel) {
  EXPECT_EQ(Of({3, 12}, 800, 8), (Columns{0, 2}));
  EXPECT_EQ(Of({4, 11}, 800, 8), (Columns{1, 1}));  // halves upwards
  EXPECT_EQ(Of({10, 90}, 800, 4), (Columns{3, 23}));
  EXPECT_EQ(Of({1, 799}, 800, 2), (Columns{1, 400}));
  EXPECT_EQ(Of({-3, 3}, 800, 8), (Columns{0, 0}));
  EXPECT_EQ(Of({-4, 5}, 800, 8), (Columns{0, 1}));
  EXPECT_EQ(Of({-5, 5}, 800, 8), (Columns{-1, 1}));
  EXPECT_EQ(Of({-8, -4}, 800, 8), (Columns{-1, 0}));
}

TEST(Reduction, KeepsWhatReachesTheEndOfTheImage) {
  EXPECT_EQ(Of({0, 417}, 417, 8), (Columns{0, 53}));
  EXPECT_EQ(Of({0, 416}, 417, 8), (Columns{0, 52}));
  EXPECT_EQ(Of({0, 418}, 417, 8), (Columns{0, 53}));
  EXPECT_EQ(Of({0, 425}, 417, 8), (Columns{0, 54}));
  EXPECT_EQ(Of({417, 433}, 417, 8), (Columns{53, 55}));
  for (int width = 1; width < 40; ++width) {
    for (int edge = -20; edge < 60; ++edge) {
      for (const Reduction reduction : {2, 4, 8}) {
        EXPECT_LE(Of({0, edge}, width, reduction).end, Of({0, edge + 1}, width, reduction).end);
      }
    }
  }
}

ImageInfo Jpeg(ImageSize size, int chroma_columns, int chroma_rows) {
  return {.size = size, .chroma_columns = chroma_columns, .chroma_rows = chroma_rows};
}

TEST(Reduction, IsForJpegsAndDependsOnTheirChroma) {
  EXPECT_EQ(MaxReduction(Jpeg({1, 1}, 1, 1)), 8);
  EXPECT_EQ(MaxReduction(Jpeg({1, 1}, 2, 2)), 8);
  EXPECT_EQ(MaxReduction(Jpeg({4000, 3000}, 2, 1)), 4);
  EXPECT_EQ(MaxReduction(Jpeg({4000, 3000}, 1, 2)), 4);
  EXPECT_EQ(MaxReduction(Jpeg({17, 300}, 2, 1)), 4);  // three columns of chroma
  EXPECT_EQ(MaxReduction(Jpeg({16, 300}, 2, 1)), 2);
  EXPECT_EQ(MaxReduction(Jpeg({9, 300}, 2, 1)), 2);
  EXPECT_EQ(MaxReduction(Jpeg({8, 300}, 2, 1)), 1);
  EXPECT_EQ(MaxReduction(Jpeg({9, 300}, 1, 2)), 4);
  EXPECT_EQ(MaxReduction(Jpeg({8, 300}, 1, 2)), 2);
  ImageInfo other = Jpeg({4000, 3000}, 2, 2);
  other.format = ImageFormat::kPackedJpeg;
  EXPECT_EQ(MaxReduction(other), 8);
  other.format = ImageFormat::kWebp;
  EXPECT_EQ(MaxReduction(other), 1);
}

TEST(Reduction, LeavesABoxNoSmallerThanItsResult) {
  Geometry geometry;
  geometry.resized = {100, 50};
  const auto of = [&](int width, int height, Reduction most = 8) {
    geometry.box = {7, 9, width, height};
    return ReductionOf(geometry, most);
  };
  EXPECT_EQ(of(199, 100), 1);
  EXPECT_EQ(of(200, 99), 1);
  EXPECT_EQ(of(200, 100), 2);
  EXPECT_EQ(of(399, 4000), 2);
  EXPECT_EQ(of(400, 200), 4);
  EXPECT_EQ(of(799, 399), 4);
  EXPECT_EQ(of(800, 400), 8);
  EXPECT_EQ(of(60000, 60000), 8);
  EXPECT_EQ(of(60000, 60000, 4), 4);
  EXPECT_EQ(of(60000, 60000, 1), 1);
  geometry.interpolation = Interpolation::kNearest;
  EXPECT_EQ(of(800, 400), 1);
  geometry.interpolation = Interpolation::kLanczos;
  EXPECT_EQ(of(800, 400), 8);
  for (const ResampledAs resampler : {ResampledAs::kPillowExact, ResampledAs::kTorchvision}) {
    geometry.resampler = resampler;
    EXPECT_EQ(of(800, 400), 1) << NameOf(resampler);
  }
  geometry.resampler = ResampledAs::kPillow;
  geometry.antialias = false;
  EXPECT_EQ(of(800, 400), 1);
}

TEST(Reduction, ResamplesTheReducedBox) {
  Geometry geometry;
  geometry.box = {100, 40, 800, 404};
  geometry.resized = {100, 50};
  geometry.window = {0, 0, 100, 50};
  const Resampling task = ResamplingOf(geometry, {1001, 607}, Orientation::kNormal, 8);
  EXPECT_EQ(task.image, (ImageSize{126, 76}));
  EXPECT_EQ(task.box, (Rect{13, 5, 100, 51}));
  EXPECT_EQ(task.resized, (ImageSize{100, 50}));
}

}  // namespace
}  // namespace stoker
