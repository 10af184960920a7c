#include "transforms/resize/resampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "transforms/resize/nearest_rows.h"
#include "transforms/resize/plain.h"
#include "transforms/wide/float_resampler.h"

namespace stoker {
namespace {

using testing::OnTarget;
using testing::Random;

// An image that owns its pixels.
struct Image {
  Image(PixelLayout layout, ImageSize size, Random& random) {
    const size_t row = static_cast<size_t>(size.width * BytesPerPixel(layout));
    const size_t plane = row * static_cast<size_t>(size.height);
    bytes.resize(plane * static_cast<size_t>(PlanesOf(layout)));
    const int kind = random.Between(0, 2);  // noise, extremes, or all white
    for (uint8_t& b : bytes) {
      b = static_cast<uint8_t>(kind == 0   ? random.Between(0, 255)
                               : kind == 1 ? 255 * random.OneIn(2)
                                           : 255);
    }
    view.layout = layout;
    view.size = size;
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(layout)); ++p) {
      view.plane[p] = bytes.data() + p * plane;
      view.stride[p] = static_cast<ptrdiff_t>(row);
    }
  }
  std::vector<uint8_t> bytes;
  ImageView view;
};

// Pushes `region` as a decoder does: wider than asked for, in pieces, and writing after the rows.
Status Push(const ImageView& image, const Rect& region, RowSink& sink, Random& random) {
  DecodedRegion decoded;
  decoded.layout = image.layout;
  const int left = random.Between(0, std::min(region.x, 20));
  const int right = random.Between(0, std::min(image.size.width - region.x - region.width, 20));
  decoded.covered = {region.x - left, region.y, region.width + left + right, region.height};
  if (Status begun = sink.Begin(decoded); !begun) return begun;
  const int bytes = BytesPerPixel(image.layout);
  for (int y = 0; y < region.height;) {
    const MutableImageView to = sink.Reserve(random.Between(1, 17));
    EXPECT_EQ(to.size.width, decoded.covered.width);
    EXPECT_GE(to.size.height, 1);
    if (to.size.height < 1) return {};
    const int rows = random.Between(1, std::min(to.size.height, region.height - y));
    for (int r = 0; r < rows; ++r, ++y) {
      for (size_t p = 0; p < static_cast<size_t>(PlanesOf(image.layout)); ++p) {
        const size_t length = static_cast<size_t>(decoded.covered.width * bytes);
        uint8_t* row = to.plane[p] + r * to.stride[p];
        std::memcpy(row,
                    image.plane[p] + (region.y + y) * image.stride[p] + decoded.covered.x * bytes,
                    length);
        std::memset(row + length, 0xa5, kBufferPadding);
      }
    }
    sink.Commit(rows);
  }
  return {};
}

struct Row {  // of a batch: unaligned, with guards around it
  explicit Row(size_t size) : bytes(size + 2 * kGuard, 0x5a) {}
  void* data() { return bytes.data() + kGuard; }
  bool GuardsHold() const {
    const auto untouched = [](uint8_t b) { return b == 0x5a; };
    return std::all_of(bytes.begin(), bytes.begin() + kGuard, untouched) &&
           std::all_of(bytes.end() - kGuard, bytes.end(), untouched);
  }
  static constexpr size_t kGuard = 67;
  std::vector<uint8_t> bytes;
};

constexpr float kScale[3] = {0.017f, 0.0175f, 0.0174f}, kBias[3] = {-2.1f, -2.03f, -1.8f};

Resampling RandomTask(Random& random) {
  Resampling task;
  const int most = random.Between(0, 9) == 0 ? 900 : 120;
  task.image = {random.Between(1, most), random.Between(1, most)};
  const int x0 = random.Between(0, task.image.width - 1),
            y0 = random.Between(0, task.image.height - 1);
  task.box = {x0, y0, random.Between(1, task.image.width - x0),
              random.Between(1, task.image.height - y0)};
  if (random.Between(0, 5) == 0) {  // a crop that reaches outside
    task.box = {-random.Between(0, 40), -random.Between(0, 40),
                task.image.width + random.Between(0, 80),
                task.image.height + random.Between(0, 80)};
  }
  task.resized = {random.Between(1, 90), random.Between(1, 90)};
  if (random.Between(0, 7) == 0) task.resized = task.box.size();
  task.window = {0, 0, task.resized.width, task.resized.height};
  if (random.OneIn(2)) {
    task.window = {random.Between(-20, task.resized.width),
                   random.Between(-20, task.resized.height), random.Between(1, 60),
                   random.Between(1, 60)};
  }
  task.antialias = random.Between(0, 3) != 0;
  task.turn = {random.Between(0, 3) == 0, random.OneIn(2), random.OneIn(2)};
  constexpr Interpolation kInterpolations[] = {Interpolation::kNearest, Interpolation::kBilinear,
                                               Interpolation::kBicubic, Interpolation::kLanczos,
                                               Interpolation::kBox};
  task.interpolation = kInterpolations[random.Between(0, 4)];
  task.resampler = static_cast<ResampledAs>(random.Between(0, 2));
  task.reversed_columns = random.OneIn(2);
  task.reversed_rows = random.OneIn(2);
  return task;
}

void ExpectSameAsPlain(Resampler& resampler, const Image& image, const Resampling& task,
                       DType dtype, Random& random) {
  const int channels = random.Between(0, 3) == 0 ? 1 : 3;
  const size_t bytes =
      static_cast<size_t>(task.window.width * task.window.height * channels) * SizeOf(dtype);
  Row plain(bytes), fused(bytes);
  const Layout layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
  PixelOutput output{plain.data(), dtype, kScale, kBias, layout};
  output.channels = channels;
  ResamplePlain(image.view, task, output);
  output.row = fused.data();
  Result<Rect> region = resampler.Start(task, output);
  ASSERT_TRUE(region.ok()) << region.error().ToString();
  if (region->width != 0) {
    ASSERT_TRUE(Push(image.view, *region, resampler, random).ok());
    ASSERT_TRUE(resampler.complete());
  }
  ASSERT_TRUE(fused.GuardsHold() && plain.GuardsHold());
  ASSERT_EQ(std::memcmp(plain.data(), fused.data(), bytes), 0)
      << "layout " << static_cast<int>(image.view.layout) << " image " << task.image.width << "×"
      << task.image.height << " box " << task.box.x << "," << task.box.y << " " << task.box.width
      << "×" << task.box.height << " resized " << task.resized.width << "×" << task.resized.height
      << " window " << task.window.x << "," << task.window.y << " " << task.window.width << "×"
      << task.window.height << " antialias " << task.antialias << " interpolation "
      << static_cast<int>(task.interpolation) << " resampler " << static_cast<int>(task.resampler)
      << " turn " << task.turn.transpose << task.turn.mirror_columns << task.turn.mirror_rows << " "
      << NameOf(dtype) << " " << NameOf(layout);
}

TEST_P(OnTarget, ResamplerMatchesTheReference) {
  Random random(7);
  MemoryBudget budget(64 << 20);
  Resampler resampler(budget);
  for (int n = 0; n < ::stoker::testing::Effort(1500) && !HasFatalFailure(); ++n) {
    const Resampling task = RandomTask(random);
    constexpr PixelLayout kLayouts[] = {PixelLayout::kGray, PixelLayout::kInterleaved,
                                        PixelLayout::kPlanar};
    const Image image(kLayouts[random.Between(0, 2)], task.image, random);
    constexpr DType kDTypes[] = {DType::kU8, DType::kF32, DType::kF16, DType::kBF16};
    ExpectSameAsPlain(resampler, image, task, kDTypes[random.Between(0, 3)], random);
  }
}

// Resampler rounds after each axis, or weights to 14 bits. No value overshoots the range here,
// where it would be clamped after each axis, too.
TEST(FloatResampler, IsCloseToTheReferenceOfResampler) {
  Random random(8);
  MemoryBudget budget(64 << 20);
  FloatResampler resampler(budget);
  for (int n = 0; n < ::stoker::testing::Effort(1500); ++n) {
    const Resampling task = RandomTask(random);
    Image image(PixelLayout::kInterleaved, task.image, random);
    for (uint8_t& value : image.bytes) value = static_cast<uint8_t>(96 + value % 64);
    const ImageSize size =
        task.turn.transpose ? ImageSize{task.window.height, task.window.width} : task.window.size();
    const auto pixels = static_cast<size_t>(size.width * size.height);
    std::vector<uint8_t> want(3 * pixels);
    ResamplePlain(image.view, task, {.row = want.data()});

    const int channels = random.Between(1, 5);
    const Rect region = resampler.Start(task, channels).value();
    std::vector<uint16_t> values;
    for (int y = region.y; y < region.y + region.height; ++y) {
      for (int x = region.x; x < region.x + region.width; ++x) {
        for (int c = 0; c < channels; ++c) {
          values.push_back(image.view.plane[0][y * image.view.stride[0] + 3 * x + c % 3]);
        }
      }
    }
    const Layout layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    Row row(pixels * static_cast<size_t>(channels) * sizeof(uint16_t));
    resampler.Write({values.data(), region.size(), channels, 65535},
                    {.row = row.data(), .dtype = DType::kU16, .layout = layout});
    ASSERT_TRUE(row.GuardsHold());
    const int most = task.interpolation == Interpolation::kNearest ? 0 : 2;
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
        const size_t at =
            layout == Layout::kNhwc ? i * static_cast<size_t>(channels) + c : c * pixels + i;
        uint16_t value;
        std::memcpy(&value, static_cast<uint8_t*>(row.data()) + 2 * at, sizeof(value));
        ASSERT_LE(std::abs(value - want[3 * i + c % 3]), most)
            << "interpolation " << static_cast<int>(task.interpolation) << ", pixel " << i;
      }
    }
  }
}

// The colours of an opaque image are as without alpha, and of transparent pixels none is seen.
TEST(FloatResampler, BlendsColoursInProportionToAlpha) {
  MemoryBudget budget(1 << 20);
  FloatResampler resampler(budget);
  const std::vector<uint16_t> two = {60000, 0, 0, 65535, 0, 60000, 0, 0};  // red; invisible green
  const auto resample = [&](ImageSize size) {
    Resampling task;
    task.image = {2, 1};
    task.box = {0, 0, 2, 1};
    task.resized = size;
    task.window = {0, 0, size.width, 1};
    EXPECT_EQ(resampler.Start(task, 4).value(), (Rect{0, 0, 2, 1}));
    std::vector<uint16_t> row(4 * static_cast<size_t>(size.width));
    resampler.Write({two.data(), {2, 1}, 4, 65535, 3}, {.row = row.data(), .dtype = DType::kU16});
    return row;
  };
  EXPECT_EQ(resample({1, 1}), (std::vector<uint16_t>{60000, 0, 0, 32768}));
  EXPECT_EQ(resample({2, 1}), two);
}

// Returns the first channel of the reference's pixels, with `fill` where it has none.
std::vector<uint8_t> NearestPlain(const Image& image, const Resampling& task, uint8_t fill) {
  const auto resample = [&task](const ImageView& view) {
    std::vector<uint8_t> planes(static_cast<size_t>(task.window.width * task.window.height * 3));
    ResamplePlain(view, task, {.row = planes.data(), .layout = Layout::kNchw});
    planes.resize(planes.size() / 3);
    return planes;
  };
  Image whole = image;
  std::fill(whole.bytes.begin(), whole.bytes.end(), uint8_t{1});
  whole.view.plane[0] = whole.bytes.data();
  const std::vector<uint8_t> inside = resample(whole.view);
  std::vector<uint8_t> pixels = resample(image.view);
  for (size_t i = 0; i < pixels.size(); ++i) {
    if (inside[i] == 0) pixels[i] = fill;
  }
  return pixels;
}

TEST(NearestRows, MatchTheReference) {
  Random random(8);
  MemoryBudget budget(64 << 20);
  NearestRows rows(budget);
  int partly_outside = 0;
  for (int n = 0; n < ::stoker::testing::Effort(1500); ++n) {
    Resampling task = RandomTask(random);
    task.interpolation = Interpolation::kNearest;
    const Image image(PixelLayout::kGray, task.image, random);
    const uint8_t fill = random.OneIn(2) ? 255 : 17;
    const std::vector<uint8_t> wanted = NearestPlain(image, task, fill);
    const ptrdiff_t width = task.turn.transpose ? task.window.height : task.window.width;
    const ptrdiff_t height = task.turn.transpose ? task.window.width : task.window.height;
    const ptrdiff_t stride = width + random.Between(0, 3);
    Row row(static_cast<size_t>(stride * height));
    auto* const out = static_cast<uint8_t*>(row.data());
    const Result<Rect> region = rows.Start(task, {out, stride, fill});
    ASSERT_TRUE(region.ok());
    ASSERT_TRUE(region->width == 0 || Push(image.view, *region, rows, random).ok());
    for (ptrdiff_t y = 0; y < height; ++y) {
      for (ptrdiff_t x = 0; x < stride; ++x) {
        const int want = x < width ? wanted[static_cast<size_t>(y * width + x)] : 0x5a;
        ASSERT_EQ(out[y * stride + x], want) << n << ": " << x << ", " << y;
      }
    }
    ASSERT_TRUE(row.GuardsHold());
    partly_outside += std::count(wanted.begin(), wanted.end(), 17) != 0 && region->width != 0;
  }
  EXPECT_GT(partly_outside, 0);
}

INSTANTIATE_TEST_SUITE_P(Cpu, OnTarget, testing::EachTarget(), testing::NameOfTarget);

}  // namespace
}  // namespace stoker
