#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "tests/transforms/plan/padded_file.h"
#include "transforms/jpeg/reference_decoder.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"
#include "transforms/plan/resampling.h"
#include "transforms/resize/plain.h"
#include "transforms/spec/transform_table.h"

namespace stoker {
namespace {

using testing::OnTarget;
using testing::PaddedFile;
using testing::Random;

using testing::GeometryOf;
using testing::JpegColor;
using testing::JpegOptions;
using testing::JpegScans;
using testing::MakeJpeg;

JpegOptions RandomJpeg(Random& random) {
  JpegOptions options;
  const int most = random.OneIn(8) ? 700 : random.OneIn(4) ? 12 : 150;
  options.width = random.Between(1, most);
  options.height = random.Between(1, most);
  constexpr JpegColor kColors[] = {JpegColor::kGray, JpegColor::kYCbCr, JpegColor::kYCbCr,
                                   JpegColor::kRgb, JpegColor::kCmyk};
  options.color = kColors[random.Between(0, 4)];
  if (options.color == JpegColor::kYCbCr) {
    options.sampling = testing::Luma(random.Between(1, 2), random.Between(1, 2));
  }
  if (random.OneIn(5)) options.scans = JpegScans::kProgressive;
  if (random.OneIn(2)) options.orientation = random.Between(1, 8);
  options.seed = static_cast<uint64_t>(random.Between(1, 1000));
  return options;
}

DType RandomDType(Random& random) {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  return kDTypes[random.Between(0, 3)];
}

// Returns a list that Compile accepts.
std::vector<Transform> RandomTransforms(Random& random, DType dtype) {
  std::vector<Transform> list;
  const auto size = [&] { return random.OneIn(4) ? random.Between(1, 8) : random.Between(1, 100); };
  const RandomHorizontalFlip flip{random.Between(0, 4) / 4.0};
  if (random.OneIn(4)) list.push_back(flip);
  if (random.OneIn(4)) list.push_back(CenterCrop{size() + 20, size() + 20});
  const bool antialias = !random.OneIn(4);
  const Interpolation how =
      random.OneIn(2) ? Interpolation::kBilinear : static_cast<Interpolation>(random.Between(0, 4));
  switch (random.Between(0, 3)) {
    case 0:
      list.push_back(Resize{size(), 0, 0, antialias, how});
      list.push_back(CenterCrop{size(), size()});
      break;
    case 1:
      list.push_back(Resize{0, size(), size(), antialias, how});
      break;
    case 2:
      list.push_back(RandomResizedCrop{size(), size(), {0.08, 1}, {0.75, 4.0 / 3}, antialias, how});
      break;
    default:  // no resampling
      if (list.empty() || !std::holds_alternative<CenterCrop>(list.back())) {
        list.push_back(CenterCrop{size(), size()});
      }
      break;
  }
  if (random.OneIn(2)) list.push_back(flip);
  if (dtype != DType::kU8 && random.OneIn(2)) {
    list.push_back(Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}});
  }
  return list;
}

TEST_P(OnTarget, ApplyMatchesTheReference) {
  Random random(3);
  MemoryBudget budget(256 << 20);
  auto workspace =
      Plan::Compile({CenterCrop{1, 1}}).value().MakeWorkspace(budget);  // any plan's will do
  const int most = std::max(60, testing::Effort(300));  // fewer have none that is reduced
  for (int n = 0; n < most; ++n) {
    PlanOptions options;
    options.dtype = RandomDType(random);
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.exif_orientation = !random.OneIn(4);
    options.read_later = random.OneIn(2);
    options.decode = random.OneIn(2) ? DecodeSize::kFull : DecodeSize::kScaled;
    std::vector<Transform> list = RandomTransforms(random, options.dtype);
    if (n % 3 == 2) {
      options.channels = Channels::kGray;
      std::erase_if(list, [](const Transform& t) { return CheckForGray(t).has_value(); });
    }
    const Result<Plan> plan = Plan::Compile(list, options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    const JpegOptions jpeg = RandomJpeg(random);
    const PaddedFile file(MakeJpeg(jpeg));
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    std::vector<float> wanted(plan->row_bytes() / sizeof(float) + 1);
    std::vector<uint8_t> row(plan->row_bytes() + 3, 0x5a);  // unaligned, with guards
    StageTimes times;
    ASSERT_TRUE(ApplyReference(*plan, file.span(), key, wanted.data()).ok());
    const Status status = plan->Apply(file.span(), key, *workspace, row.data() + 1, times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, plan->row_bytes()), 0)
        << n << ": " << plan->Describe() << " of " << jpeg.width << " × " << jpeg.height
        << " orientation " << jpeg.orientation;
    ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
    ASSERT_GT(times.decode_ns, 0u);
  }
  EXPECT_GT(PathsOf(*workspace).scaled, 0u);
  EXPECT_GT(PathsOf(*workspace).scalable, 0u);
}

ImageView ViewOf(const WholeImage& image) {
  return {image.layout,
          image.size,
          {image.pixels.data()},
          {ptrdiff_t{image.size.width} * BytesPerPixel(image.layout)}};
}

// Returns the same pixels in another layout, with gaps between the rows. From gray: three equal
// channels.
struct Relaid {
  Relaid(const WholeImage& image, PixelLayout layout, int gap) {
    const int step = layout == PixelLayout::kInterleaved ? 3 : 1;
    const ptrdiff_t stride = ptrdiff_t{image.size.width} * step + gap;
    const ptrdiff_t plane = stride * image.size.height;
    pixels.assign(static_cast<size_t>(plane * PlanesOf(layout)), 0xcd);
    view.layout = layout;
    view.size = image.size;
    for (int p = 0; p < PlanesOf(layout); ++p) {
      view.plane[static_cast<size_t>(p)] = pixels.data() + p * plane;
      view.stride[static_cast<size_t>(p)] = stride;
    }
    const int channels = BytesPerPixel(image.layout);
    for (int64_t n = 0; n < int64_t{image.size.width} * image.size.height; ++n) {
      for (int c = 0; c < 3; ++c) {
        const ptrdiff_t at = n / image.size.width * stride + n % image.size.width * step +
                             (layout == PixelLayout::kPlanar ? c * plane : c);
        pixels[static_cast<size_t>(at)] =
            image.pixels[static_cast<size_t>(n * channels + (channels == 3 ? c : 0))];
      }
    }
  }
  Relaid(const Relaid&) = delete;
  Relaid& operator=(const Relaid&) = delete;

  std::vector<uint8_t> pixels;
  ImageView view;
};

// A decoded image gives the row that its file gives, in every layout.
TEST_P(OnTarget, PixelsMatchTheirFileAndTheReference) {
  Random random(4);
  MemoryBudget budget(256 << 20);
  auto workspace = Plan::Compile({CenterCrop{1, 1}}).value().MakeWorkspace(budget);
  for (int n = 0; n < testing::Effort(200); ++n) {
    PlanOptions options;
    options.dtype = RandomDType(random);
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.exif_orientation = false;
    const Plan plan = Plan::Compile(RandomTransforms(random, options.dtype), options).value();
    const PaddedFile file(MakeJpeg(RandomJpeg(random)));
    const WholeImage image = DecodeWhole(file.span()).value();
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    std::vector<float> wanted(plan.row_bytes() / sizeof(float) + 1), plain(wanted.size());
    StageTimes times;
    ASSERT_TRUE(plan.Apply(file.span(), key, *workspace, wanted.data(), times).ok());
    const Relaid interleaved(image, PixelLayout::kInterleaved, random.Between(0, 70));
    const Relaid planar(image, PixelLayout::kPlanar, random.Between(0, 70));
    for (const ImageView& view : {ViewOf(image), interleaved.view, planar.view}) {
      std::vector<uint8_t> row(plan.row_bytes() + 3, 0x5a);  // unaligned, with guards
      times = {};
      const Status status = plan.Apply(view, key, *workspace, {.row = row.data() + 1}, times);
      ASSERT_TRUE(status.ok()) << status.error().ToString();
      ASSERT_TRUE(ApplyReference(plan, view, key, plain.data()).ok());
      ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, plan.row_bytes()), 0)
          << n << ": " << plan.Describe() << " layout " << static_cast<int>(view.layout);
      ASSERT_EQ(std::memcmp(plain.data(), row.data() + 1, plan.row_bytes()), 0) << n;
      ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a);
      ASSERT_GT(times.decode_ns, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, OnTarget, testing::EachTarget(), testing::NameOfTarget);

WholeImage Turned(const WholeImage& stored, Orientation orientation) {
  const Turn turn = TurnOf(orientation);
  WholeImage viewed{Viewed(stored.size, orientation), stored.layout, {}};
  for (int y = 0; y < viewed.size.height; ++y) {
    for (int x = 0; x < viewed.size.width; ++x) {
      int from_x = turn.mirror_columns ? viewed.size.width - 1 - x : x;
      int from_y = turn.mirror_rows ? viewed.size.height - 1 - y : y;
      if (turn.transpose) std::swap(from_x, from_y);
      const auto at = static_cast<ptrdiff_t>(from_y * stored.size.width + from_x) * 3;
      const auto from = stored.pixels.begin() + at;
      viewed.pixels.insert(viewed.pixels.end(), from, from + 3);
    }
  }
  return viewed;
}

// Resampling the stored image and rotating the result is within one grey level of rotating first.
class RotatesByTheOrientation : public ::testing::TestWithParam<Interpolation> {};

TEST_P(RotatesByTheOrientation, LikeTheTurnedImage) {
  const Plan plan = Plan::Compile({Resize{.size = 40, .interpolation = GetParam()},
                                   CenterCrop{33, 51}, RandomHorizontalFlip{}})
                        .value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    JpegOptions options{.width = 131, .height = 97};
    options.orientation = orientation;
    const PaddedFile file(MakeJpeg(options));
    const DrawKey key{1, 1, static_cast<uint64_t>(orientation)};
    std::vector<uint8_t> row(plan.row_bytes()), wanted(plan.row_bytes());
    StageTimes times;
    ASSERT_TRUE(plan.Apply(file.span(), key, *workspace, row.data(), times).ok());
    const WholeImage image =
        Turned(DecodeWhole(file.span()).value(), static_cast<Orientation>(orientation));
    const ImageView view{PixelLayout::kInterleaved,
                         image.size,
                         {image.pixels.data()},
                         {ptrdiff_t{3} * image.size.width}};
    ResamplePlain(view,
                  ResamplingOf(GeometryOf(plan, key, image.size), image.size, Orientation::kNormal),
                  {wanted.data(), DType::kU8, nullptr, nullptr});
    for (size_t i = 0; i < row.size(); ++i) {
      ASSERT_LE(std::abs(row[i] - wanted[i]), 1) << "orientation " << orientation << " byte " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Apply, RotatesByTheOrientation,
                         ::testing::Values(Interpolation::kNearest, Interpolation::kBilinear,
                                           Interpolation::kBicubic, Interpolation::kLanczos,
                                           Interpolation::kBox),
                         [](const auto& info) { return NameOf(info.param); });

// Without resampling the pixels are the decoder's, and padding is zero.
TEST(Apply, CropsExactly) {
  JpegOptions options{.width = 90, .height = 61};
  const PaddedFile file(MakeJpeg(options));
  const WholeImage image = DecodeWhole(file.span()).value();
  MemoryBudget budget(64 << 20);
  for (const CenterCrop crop : {CenterCrop{40, 33}, CenterCrop{61, 90}, CenterCrop{71, 30},
                                CenterCrop{20, 121}, CenterCrop{100, 100}}) {
    const Plan plan = Plan::Compile({crop}).value();
    auto workspace = plan.MakeWorkspace(budget);
    std::vector<uint8_t> row(plan.row_bytes());
    StageTimes times;
    ASSERT_TRUE(plan.Apply(file.span(), {}, *workspace, row.data(), times).ok());
    const Rect box = GeometryOf(plan, {}, image.size).box;
    for (int y = 0; y < crop.height; ++y) {
      for (int x = 0; x < crop.width; ++x) {
        const int from_x = box.x + x, from_y = box.y + y;
        const bool inside = from_x >= 0 && from_x < 90 && from_y >= 0 && from_y < 61;
        for (int c = 0; c < 3; ++c) {
          const int wanted =
              inside ? image.pixels[static_cast<size_t>((from_y * 90 + from_x) * 3 + c)] : 0;
          ASSERT_EQ(row[static_cast<size_t>((y * crop.width + x) * 3 + c)], wanted)
              << x << "," << y;
        }
      }
    }
  }
}

TEST(Apply, PropagatesDecodeErrors) {
  const Plan plan = Plan::Compile({RandomResizedCrop{32, 32}}).value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes()), wanted(plan.row_bytes());
  const std::vector<uint8_t> whole = MakeJpeg({.width = 300, .height = 200});
  for (size_t length = 0; length < whole.size(); length += 1 + whole.size() / 23) {
    const PaddedFile file({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)});
    StageTimes times;
    const Status status = plan.Apply(file.span(), {}, *workspace, row.data(), times);
    ASSERT_FALSE(status.ok()) << length;
    EXPECT_EQ(status.error().code, Code::kDataLoss);
    EXPECT_EQ(ApplyReference(plan, file.span(), {}, wanted.data()).error().code, Code::kDataLoss);
  }
  const PaddedFile file(whole);  // the workspace is as good as new
  StageTimes times;
  ASSERT_TRUE(plan.Apply(file.span(), {}, *workspace, row.data(), times).ok());
  ASSERT_TRUE(ApplyReference(plan, file.span(), {}, wanted.data()).ok());
  EXPECT_EQ(row, wanted);
}

TEST(Apply, RefusesSidesOutOfRange) {
  const Plan plan = Plan::Compile({Resize{0, 8, 8}}).value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  const std::vector<uint8_t> pixels(3 * 65536, 200);
  std::vector<uint8_t> row(plan.row_bytes());
  const auto apply = [&](int width, int height) {
    StageTimes times;
    return plan.Apply(ImageView{PixelLayout::kInterleaved, {width, height}, {pixels.data()}, {0}},
                      {}, *workspace, {.row = row.data()}, times);
  };
  for (const auto& [width, height] : {std::pair{0, 1}, {1, 0}, {65536, 1}, {1, 65536}, {-1, 3}}) {
    const Status status = apply(width, height);
    ASSERT_FALSE(status.ok()) << width << " × " << height;
    EXPECT_EQ(status.error().code, Code::kInvalidArgument);
    EXPECT_NE(status.error().cause.find(std::to_string(width)), std::string::npos);
  }
  ASSERT_TRUE(apply(65535, 1).ok());
  ASSERT_TRUE(apply(1, 65535).ok()) << "one row, again and again: its stride is 0";
  EXPECT_EQ(row, std::vector<uint8_t>(plan.row_bytes(), 200));
}

TEST(Apply, StaysInsideTheBudget) {
  const Plan plan = Plan::Compile({Resize{256}, CenterCrop{224, 224}}).value();
  MemoryBudget budget(100 << 10);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  const PaddedFile file(MakeJpeg({.width = 1500, .height = 1200}));
  const Status status = plan.Apply(file.span(), {}, *workspace, row.data(), times);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  workspace.reset();
  EXPECT_EQ(budget.used(), 0u);
}

// The resampler is refused memory while libjpeg-turbo holds its own, so the budget must count both.
TEST(Apply, NamesTheMemoryThatAProgressiveJpegNeeds) {
  const Plan plan = Plan::Compile({RandomResizedCrop{64, 48}}).value();
  const PaddedFile file(
      MakeJpeg({.width = 750, .height = 1000, .scans = testing::JpegScans::kProgressive}));
  std::vector<uint8_t> row(plan.row_bytes());
  for (uint64_t n = 0; n < 8; ++n) {
    SCOPED_TRACE(n);
    uint64_t limit = 100 << 10;
    while (true) {
      MemoryBudget budget(limit);
      const auto workspace = plan.MakeWorkspace(budget);
      StageTimes times;
      const Status status = plan.Apply(file.span(), {1, 0, n}, *workspace, row.data(), times);
      if (status.ok()) break;
      const uint64_t needed = MemoryOf(*workspace) + status.error().wanted_bytes;
      ASSERT_GT(needed, limit) << status.error().ToString();
      limit = needed;
    }
  }
}

TEST(Apply, ChargesItsScratchAndNoMore) {
  const Plan plan = Plan::Compile({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}}).value();
  MemoryBudget budget(64 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  const PaddedFile file(MakeJpeg({.width = 500, .height = 375}));
  for (uint64_t n = 0; n < 50; ++n) {
    ASSERT_TRUE(plan.Apply(file.span(), {1, 1, n}, *workspace, row.data(), times).ok());
  }
  EXPECT_GT(budget.used(), 0u);
  EXPECT_LT(budget.used(), 512u << 10);  // not the image's 562,500 bytes
}

TEST(Photos, ApplyMatchesTheReference) {
  const auto paths = testing::Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  const Plan plan = Plan::Compile({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}}).value();
  MemoryBudget budget(256 << 20);
  auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes()), wanted(plan.row_bytes());
  uint64_t n = 0;
  for (const auto& path : paths) {
    if (n++ % 8 != 0) continue;
    const PaddedFile file(testing::ReadFile(path));
    StageTimes times;
    ASSERT_TRUE(plan.Apply(file.span(), {1, 1, n}, *workspace, row.data(), times).ok());
    ASSERT_TRUE(ApplyReference(plan, file.span(), {1, 1, n}, wanted.data()).ok());
    ASSERT_EQ(row, wanted) << path;
  }
  EXPECT_GT(n, 0u);
}

}  // namespace
}  // namespace stoker
