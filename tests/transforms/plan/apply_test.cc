#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "tests/transforms/plan/geometry_of.h"
#include "tests/transforms/plan/padded_file.h"
#include "transforms/array/array_decoder.h"
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

// Returns the row that a plan makes of an image.
template <typename Image>
std::vector<uint8_t> RowOf(const Plan& plan, const Image& image) {
  MemoryBudget budget(64 << 20);
  const auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  Status status;
  if constexpr (std::is_same_v<Image, ImageView>) {
    status = plan.Apply(image, {}, *workspace, {.row = row.data()}, times);
  } else {
    status = plan.Apply(image.span(), {}, *workspace, row.data(), times);
  }
  EXPECT_TRUE(status.ok()) << status.error().ToString();
  return row;
}

// Returns the values of the image in `file`, decoded by itself.
std::vector<uint8_t> ValuesOf(const PaddedFile& file, Channels channels) {
  MemoryBudget budget(64 << 20);
  ArrayDecoder decoder({}, budget);
  const Result<ArrayShape> shape = decoder.Open(file.span(), {.channels = channels});
  EXPECT_TRUE(shape.ok()) << shape.error().ToString();
  std::vector<uint8_t> values(shape->bytes());
  EXPECT_TRUE(decoder.Decode(values.data()).ok());
  return values;
}

// Alpha is that of the file, or 255; a crop that is turned by half, of 64 × 48 pixels.
TEST(Apply, OtherChannelsAreThoseOfTheFile) {
  const std::vector<Transform> list = {CenterCrop{30, 50}, RandomHorizontalFlip{1},
                                       RandomVerticalFlip{1}};
  for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
    for (const auto& [file, channels] :
         {std::pair{testing::MakePng({.color = 6}), Channels::kRgba},
          {testing::MakePng({.color = 4}), Channels::kRgba},
          {MakeJpeg({}), Channels::kRgba},
          {MakeJpeg({.color = JpegColor::kGray}), Channels::kRgba},
          {testing::MakePng({.color = 6}), StoredChannels(4)},
          {testing::MakePng({.color = 4}), StoredChannels(2)},
          {MakeJpeg({}), StoredChannels(3)},
          {MakeJpeg({.color = JpegColor::kGray}), StoredChannels(1)}}) {
      const PaddedFile padded(file);
      const std::vector<uint8_t> whole = ValuesOf(padded, channels);
      const Plan plan = Plan::Compile(list, {.layout = layout, .channels = channels}).value();
      const std::vector<uint8_t> row = RowOf(plan, padded);
      const auto count = static_cast<size_t>(CountOf(channels));
      ASSERT_EQ(row.size(), 30 * 50 * count);
      for (size_t i = 0; i < row.size(); ++i) {
        const bool planar = layout == Layout::kNchw;
        const size_t pixel = planar ? i % 1500 : i / count, c = planar ? i / 1500 : i % count;
        const size_t x = 7 + 49 - pixel % 50, y = 9 + 29 - pixel / 50;
        ASSERT_EQ(row[i], whole[(y * 64 + x) * count + c]) << NameOf(channels) << " " << i;
      }
    }
  }
}

TEST(Apply, OtherChannelsAreNormalized) {
  const Normalize normalize{{0.1F, 0.2F, 0.3F, 0.4F}, {1, 2, 4, 8}};
  const PaddedFile file(testing::MakePng({.color = 6}));
  const std::vector<uint8_t> values = ValuesOf(file, Channels::kRgba);
  for (const Channels channels : {Channels::kRgba, StoredChannels(4)}) {
    const PlanOptions options{.dtype = DType::kF32, .channels = channels};
    const Plan plan = Plan::Compile({CenterCrop{48, 64}, normalize}, options).value();
    const std::vector<uint8_t> row = RowOf(plan, file);
    for (size_t i = 0; i < values.size(); ++i) {
      float value;
      std::memcpy(&value, &row[4 * i], 4);
      ASSERT_NEAR(value, (values[i] / 255.0 - normalize.mean[i % 4]) / normalize.std[i % 4], 1e-6);
    }
  }
}

TEST(Apply, AnotherNumberOfChannelsIsAnError) {
  const Plan plan = Plan::Compile({CenterCrop{8, 8}}, {.channels = StoredChannels(5)}).value();
  MemoryBudget budget(64 << 20);
  const auto workspace = plan.MakeWorkspace(budget);
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  for (const auto& [file, count] : {std::pair{testing::MakePng({.color = 6}), "4 channels"},
                                    {testing::MakePng({.color = 0}), "1 channel"},
                                    {MakeJpeg({}), "3 channels"}}) {
    const Status status = plan.Apply(PaddedFile(file).span(), {}, *workspace, row.data(), times);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kUnimplemented);
    EXPECT_EQ(status.error().cause,
              std::string("an image of ") + count + ", where each must have 5");
  }
}

TEST(Apply, ChannelsOf16BitsDoNotBecome8Unasked) {
  const PaddedFile file(testing::MakePng({.color = 6, .bit_depth = 16}));
  for (const Channels channels : {Channels::kRgb, Channels::kRgba, StoredChannels(4)}) {
    PlanOptions options{.channels = channels};
    const Plan plan = Plan::Compile({CenterCrop{48, 64}}, options).value();
    MemoryBudget budget(64 << 20);
    std::vector<uint8_t> row(plan.row_bytes());
    StageTimes times;
    const Status status =
        plan.Apply(file.span(), {}, *plan.MakeWorkspace(budget), row.data(), times);
    ASSERT_FALSE(status.ok()) << NameOf(channels);
    EXPECT_EQ(status.error().code, Code::kUnimplemented);
    EXPECT_EQ(status.error().cause, "a PNG of 16 bits a channel, of which 8 would be lost");
    options.limits.accept_16_bits = true;
    RowOf(Plan::Compile({CenterCrop{48, 64}}, options).value(), file);
    options = {.dtype = DType::kU16, .channels = channels};
    RowOf(Plan::Compile({CenterCrop{48, 64}}, options).value(), file);
  }
}

// Decoded pixels have no alpha.
TEST(Apply, DecodedPixelsBecomeRgba) {
  const PaddedFile file(MakeJpeg({}));
  const WholeImage image = DecodeWhole(file.span()).value();
  const std::vector<Transform> list = {CenterCrop{30, 50}, RandomHorizontalFlip{1}};
  for (const Channels channels : {Channels::kRgba, StoredChannels(3)}) {
    const Plan plan = Plan::Compile(list, {.channels = channels}).value();
    EXPECT_EQ(RowOf(plan, ViewOf(image)), RowOf(plan, file)) << NameOf(channels);
  }
  const Plan four = Plan::Compile(list, {.channels = StoredChannels(4)}).value();
  MemoryBudget budget(64 << 20);
  std::vector<uint8_t> row(four.row_bytes());
  StageTimes times;
  const Status status =
      four.Apply(ViewOf(image), {}, *four.MakeWorkspace(budget), {.row = row.data()}, times);
  EXPECT_EQ(status.error().cause, "an image of 3 channels, where each must have 4");
}

// The plan reserves what a workspace keeps; a larger region is charged while it is decoded.
TEST(Apply, MemoryOfOtherChannelsStaysWithinThePlan) {
  const std::vector<Transform> list = {RandomResizedCrop{20, 20, {1, 1}, {1, 1}}};
  const Plan rgb = Plan::Compile(list).value();
  const Plan rgba = Plan::Compile(list, {.channels = Channels::kRgba}).value();
  const Plan wide = Plan::Compile(list, {.dtype = DType::kU16}).value();
  EXPECT_EQ(rgb.extra_bytes(), 0u);
  const auto masked = [&](Channels channels) {
    const PlanOptions options{.channels = channels, .pieces = {{}, {Piece::Kind::kMask, 0}}};
    return Plan::Compile(list, options).value().extra_bytes();
  };
  EXPECT_EQ(masked(Channels::kRgba), masked(Channels::kRgb) + rgba.extra_bytes());
  for (const Plan* plan : {&rgba, &wide}) {
    for (const int side : {300, 900}) {
      const PaddedFile file(testing::MakePng({.width = side, .height = side, .color = 6}));
      MemoryBudget budget(64 << 20), of_rgb(64 << 20);
      std::vector<uint8_t> row(plan->row_bytes());
      StageTimes times;
      const auto workspace = plan->MakeWorkspace(budget), plain = rgb.MakeWorkspace(of_rgb);
      ASSERT_TRUE(rgb.Apply(file.span(), {}, *plain, row.data(), times).ok());
      ASSERT_TRUE(plan->Apply(file.span(), {}, *workspace, row.data(), times).ok());
      const uint64_t reserve = plan->extra_bytes() / 2;  // of one image at a time
      EXPECT_LE(MemoryOf(*workspace), MemoryOf(*plain) + reserve) << side;
      const uint64_t region =
          uint64_t{6} * static_cast<uint64_t>(side) * static_cast<uint64_t>(side);
      EXPECT_GT(budget.peak(), region) << side;
      EXPECT_EQ(region > reserve, side == 900);
    }
  }
  const PaddedFile large(testing::MakePng({.width = 900, .height = 900, .color = 6}));
  MemoryBudget tight(4 << 20);
  std::vector<uint8_t> row(rgba.row_bytes());
  StageTimes times;
  const Status status = rgba.Apply(large.span(), {}, *rgba.MakeWorkspace(tight), row.data(), times);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, Code::kResourceExhausted);
  EXPECT_GE(status.error().wanted_bytes, uint64_t{8} * 900 * 900);
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
