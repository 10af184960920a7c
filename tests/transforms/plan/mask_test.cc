// Masks are moved as their images are, and keep their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/transforms/jpeg/fast/each_target.h"
#include "tests/transforms/plan/padded_file.h"
#include "tests/transforms/plan/random_recipe.h"
#include "transforms/mask/pack.h"
#include "transforms/plan/keep_motion.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/plan_run.h"
#include "transforms/plan/reference.h"
#include "transforms/png/reference_decoder.h"

namespace stoker {
namespace {

using testing::MakePng;
using testing::PaddedFile;
using testing::PngOptions;
using testing::Random;

constexpr Piece kImage{}, kMask{Piece::Kind::kMask, 0}, kMaskIn255{Piece::Kind::kMask, 255},
    kMask16{Piece::Kind::kMask16, 0}, kMask16In770{Piece::Kind::kMask16, 770};

Plan PlanOf(std::vector<Transform> transforms, PlanOptions options = {}) {
  if (options.pieces.size() < 2) options.pieces = {kImage, kMask};
  return Plan::Compile(std::move(transforms), options).value();
}

// A PNG with one channel of any kind, of 16 bits only if `deep`.
PngOptions RandomMask(Random& random, bool deep = false) {
  PngOptions options;
  options.width = random.Between(1, 90);
  options.height = random.Between(1, 90);
  options.color = random.OneIn(2) ? 0 : 3;
  options.bit_depth = 1 << random.Between(0, 3);
  if (deep && random.OneIn(2)) {
    options.color = 0;
    options.bit_depth = 16;
  }
  options.interlaced = random.OneIn(3);
  options.seed = static_cast<uint64_t>(random.Between(0, 1 << 20));
  return options;
}

std::vector<uint8_t> Oriented(const std::vector<uint8_t>& png, int orientation) {
  return testing::WithChunk(png, "IDAT",
                            testing::PngChunk("eXIf", testing::OrientationTiff(orientation, true)));
}

struct Row {
  Status status;
  std::vector<uint8_t> values;
};

Row Apply(const Plan& plan, const PaddedFile& file, const DrawKey& key) {
  MemoryBudget budget(64 << 20);
  StageTimes times;
  Row row{{}, std::vector<uint8_t>(plan.row_bytes(), 0x5a)};
  row.status = plan.Apply(file.span(), key, *plan.MakeWorkspace(budget), row.values.data(), times);
  return row;
}

// ---- The reference.

void MovesAsTheReference() {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  Random random(21);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(600); ++n) {
    PlanOptions options;
    options.dtype = kDTypes[random.Between(0, 3)];
    options.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
    options.decode = random.OneIn(2) ? DecodeSize::kFull : DecodeSize::kScaled;
    options.read_later = random.OneIn(2);
    options.defer_to_device = random.OneIn(4);
    options.exif_orientation = !random.OneIn(4);
    constexpr Piece kMasks[] = {kMask, kMaskIn255, kMask16, kMask16In770};
    options.pieces = {kImage, kMasks[random.Between(0, 3)]};
    const std::vector<Transform> list = RandomRecipe(random, options.dtype);
    options.objects = testing::FieldsFor(list);
    const Result<Plan> plan = Plan::Compile(list, options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    const Plan& mask = plan->piece(1);
    const bool deep = options.pieces[1].kind == Piece::Kind::kMask16;
    const PngOptions png = RandomMask(random, deep);
    const PaddedFile file(Oriented(MakePng(png), random.Between(1, 8)));
    const DrawKey key{1, 2, static_cast<uint64_t>(n)};
    std::vector<uint8_t> wanted(mask.row_bytes(), 0xa5), row(mask.row_bytes() + 3, 0x5a);
    StageTimes times;
    auto workspace = plan->MakeWorkspace(budget);
    ASSERT_TRUE(ApplyReference(mask, file.span(), key, wanted.data()).ok());
    const EncodedImage image{
        .piece = 1, .bytes = file.span(), .key = key, .to = {.row = row.data() + 1}};
    const Status status = plan->Apply(image, *workspace, times);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
    ASSERT_EQ(std::memcmp(wanted.data(), row.data() + 1, wanted.size()), 0)
        << n << ": " << plan->Describe() << " of " << png.width << " × " << png.height;
    ASSERT_TRUE(row.front() == 0x5a && row[row.size() - 1] == 0x5a && row[row.size() - 2] == 0x5a);
  }
}

TEST(Masks, MoveAsTheReference) { testing::ForEachTarget(MovesAsTheReference); }

// ---- Packed.

std::vector<uint8_t> PackedMaskOf(const std::vector<uint8_t>& png, int orientation, int bits) {
  const WholeImage whole = DecodeWholeMask(png, /*wide=*/true).value();
  std::vector<uint16_t> values(whole.pixels.size() / 2);
  std::memcpy(values.data(), whole.pixels.data(), whole.pixels.size());
  return PackValues({.size = whole.size,
                     .bits = bits == 16 ? 16 : 8,
                     .orientation = orientation,
                     .values = values.data()});
}

TEST(Masks, PackedOnesMoveAsTheirPngs) {
  Random random(24);
  MemoryBudget budget(256 << 20);
  for (int n = 0; n < testing::Effort(600); ++n) {
    PlanOptions options;
    options.exif_orientation = !random.OneIn(4);
    constexpr Piece kMasks[] = {kMask, kMaskIn255, kMask16, kMask16In770};
    options.pieces = {kImage, kMasks[random.Between(0, 3)]};
    const std::vector<Transform> list = RandomRecipe(random, options.dtype);
    options.objects = testing::FieldsFor(list);
    const Plan plan = Plan::Compile(list, options).value();
    const bool deep = options.pieces[1].kind == Piece::Kind::kMask16;
    PngOptions png = RandomMask(random, deep);
    png.regions = random.OneIn(2);
    const int orientation = random.Between(1, 8);
    const std::vector<uint8_t> file = Oriented(MakePng(png), orientation);
    const PaddedFile files[] = {PaddedFile(file),
                                PaddedFile(PackedMaskOf(file, orientation, png.bit_depth))};
    std::vector<uint8_t> rows[2];
    auto workspace = plan.MakeWorkspace(budget);
    for (size_t i = 0; i < 2; ++i) {
      rows[i].assign(plan.piece(1).row_bytes(), static_cast<uint8_t>(i));
      StageTimes times;
      const EncodedImage image{.piece = 1,
                               .bytes = files[i].span(),
                               .key = {1, 2, static_cast<uint64_t>(n)},
                               .to = {.row = rows[i].data()}};
      const Status status = plan.Apply(image, *workspace, times);
      ASSERT_TRUE(status.ok()) << status.error().ToString();
    }
    ASSERT_TRUE(rows[0] == rows[1])
        << n << ": " << plan.Describe() << " of " << png.width << " × " << png.height;
  }
}

// ---- The image.

// Transforms that move pixels, nearest, and fill with zeros.
std::vector<Transform> RandomMoves(Random& random) {
  constexpr Interpolation kNearest = Interpolation::kNearest;
  std::vector<Transform> list;
  const auto side = [&] { return random.Between(4, 60); };
  if (random.OneIn(2)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(3)) list.emplace_back(Pad{testing::NextMargins(random, 5)});
  const bool pads = random.OneIn(3);
  if (!pads) {
    list.emplace_back(
        RandomResizedCrop{side(), side(), {0.08, 1}, {0.75, 4.0 / 3}, true, kNearest});
  }
  for (int n = random.Between(0, 4); n > 0; --n) {
    switch (random.Between(0, 6)) {
      case 0:
        list.emplace_back(RandomRotation{.degrees = {-30, 30}, .interpolation = kNearest});
        break;
      case 1:
        list.emplace_back(
            RandomZoom{{-0.9, 1}, {}, testing::NextPaddingOfAffine(random), kNearest});
        break;
      case 2:
        list.emplace_back(TrivialAugmentWide{31, kNearest});
        break;
      case 3:
        if (pads) break;
        list.emplace_back(RandomCrop{.height = side(),
                                     .width = side(),
                                     .padding = testing::NextMargins(random, 4),
                                     .pad_if_needed = true,
                                     .padding_mode = testing::NextPadding(random)});
        break;
      case 4:
        if (!pads) list.emplace_back(CenterCrop{side(), side()});
        break;
      case 5:
        if (!pads) list.emplace_back(Pad{testing::NextMargins(random, 4)});
        break;
      default:
        list.emplace_back(RandomHorizontalFlip{});
        break;
    }
  }
  if (pads) list.emplace_back(PadTo{400, 400});
  return list;
}

// Compiles a list whose crops are allowed only if they are not larger than what is left.
std::optional<Plan> Compiled(const std::vector<Transform>& list, const PlanOptions& options) {
  Result<Plan> plan = Plan::Compile(list, options);
  return plan.ok() ? std::optional(*std::move(plan)) : std::nullopt;
}

// Policies change colours, too.
bool HasPolicy(const std::vector<Transform>& list) {
  return std::ranges::any_of(list, [](const Transform& transform) {
    return std::holds_alternative<TrivialAugmentWide>(transform);
  });
}

// A gray image is its own mask: the image's row has the mask's values in all of its channels.
TEST(Masks, MoveAsAnImageOfTheSameValues) {
  Random random(22);
  int compared = 0;
  for (int n = 0; n < testing::Effort(400); ++n) {
    const std::vector<Transform> list = RandomMoves(random);
    if (HasPolicy(list)) continue;
    const std::optional<Plan> plan = Compiled(list, {.pieces = {kImage, kMask}});
    if (!plan) continue;
    PngOptions png = RandomMask(random);
    png.color = 0;
    png.bit_depth = 8;
    const PaddedFile file(MakePng(png));
    const DrawKey key{7, 0, static_cast<uint64_t>(n)};
    const Row image = Apply(*plan, file, key), mask = Apply(plan->piece(1), file, key);
    ASSERT_TRUE(image.status.ok() && mask.status.ok());
    for (size_t i = 0; i < mask.values.size(); ++i) {
      ASSERT_EQ(mask.values[i], image.values[3 * i]) << n << ": " << plan->Describe();
    }
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(400) / 4);
}

// Colours, blur, erasing, normalization and interpolation change nothing about a mask.
TEST(Masks, AreTheSameWithAndWithoutColours) {
  Random random(23);
  const Normalize normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  int compared = 0;
  for (int n = 0; n < testing::Effort(400); ++n) {
    const std::vector<Transform> plain = RandomMoves(random);
    std::vector<Transform> with;
    bool sized = false;
    for (Transform transform : plain) {
      if (sized && random.OneIn(2)) {
        with.emplace_back(ColorJitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}, 0.8});
      }
      if (auto* const crop = std::get_if<RandomResizedCrop>(&transform)) {
        crop->interpolation = kInterpolations[random.Between(0, 4)];
        sized = true;
      }
      if (auto* const rotation = std::get_if<RandomRotation>(&transform)) {
        rotation->interpolation = Interpolation::kBilinear;
        rotation->fill = Fill{9, 9, 9};
      }
      with.push_back(transform);
    }
    with.emplace_back(normalize);
    if (sized) with.emplace_back(RandomErasing{.p = 0.7});
    const std::optional<Plan> one = Compiled(plain, {.pieces = {kImage, kMaskIn255}});
    const std::optional<Plan> other =
        Compiled(with, {.dtype = DType::kF32, .pieces = {kImage, kMaskIn255}});
    if (!one || !other) continue;
    const PaddedFile file(MakePng(RandomMask(random)));
    const DrawKey key{8, 0, static_cast<uint64_t>(n)};
    const Row a = Apply(one->piece(1), file, key), b = Apply(other->piece(1), file, key);
    ASSERT_TRUE(a.status.ok() && b.status.ok());
    ASSERT_EQ(a.values, b.values) << n << ": " << other->Describe();
    ++compared;
  }
  EXPECT_GT(compared, testing::Effort(400) / 4);
}

// A palette's indices move to where its colours do; no index is 255 there.
TEST(Masks, IndicesMoveAsTheirColours) {
  Random random(24);
  for (int n = 0; n < testing::Effort(200); ++n) {
    const Plan plan =
        PlanOf({RandomResizedCrop{30, 40, {0.1, 1}, {0.5, 2}, true, Interpolation::kNearest},
                RandomHorizontalFlip{}, RandomRotation{.degrees = {-60, 60}}},
               {.pieces = {kImage, kMaskIn255}});
    PngOptions png = RandomMask(random);
    png.color = 3;
    png.bit_depth = std::min(png.bit_depth, 4);
    const PaddedFile file(MakePng(png));
    const uint8_t* const palette = file.span().data() + 33 + 8;
    const DrawKey key{9, 0, static_cast<uint64_t>(n)};
    const Row image = Apply(plan, file, key), mask = Apply(plan.piece(1), file, key);
    ASSERT_TRUE(image.status.ok() && mask.status.ok());
    for (size_t i = 0; i < mask.values.size(); ++i) {
      constexpr uint8_t kBlack[3] = {};
      const uint8_t value = mask.values[i];
      const uint8_t* const colour = value == 255 ? kBlack : palette + 3 * ptrdiff_t{value};
      ASSERT_TRUE(value == 255 || value < 1 << png.bit_depth);
      ASSERT_EQ(std::memcmp(colour, image.values.data() + 3 * i, 3), 0) << n << ", " << i;
    }
  }
}

// ---- What is left of the steps.

size_t StepsOfMask(const std::vector<Transform>& list, ImageSize size, uint64_t id) {
  const Plan plan = PlanOf(list);
  DrawnSample drawn;
  EXPECT_TRUE(plan.piece(1).Draw({1, 0, id}, size, drawn).ok());
  KeepMotion(drawn, {255, 255, 255});
  return drawn.steps.size();
}

TEST(Masks, NeedNoTileIfStepsOnlyChangeColours) {
  const ColorJitter jitter{{0.5, 1.5}, {0.5, 1.5}, {0, 2}, {-0.5, 0.5}};
  const Pad pad{{3, 4, 5, 6}, {1, 2, 3}};
  for (uint64_t id = 0; id < 20; ++id) {
    const ImageSize size{50 + static_cast<int>(id), 40};
    EXPECT_EQ(StepsOfMask({RandomResizedCrop{32, 32}, jitter, RandomHorizontalFlip{},
                           RandomVerticalFlip{}, GaussianBlur{3, 3}},
                          size, id),
              0u);
    EXPECT_EQ(StepsOfMask({Resize{.height = 40, .width = 40}, pad, jitter, RandomHorizontalFlip{},
                           RandomCrop{.height = 20, .width = 20}, RandomHorizontalFlip{}},
                          size, id),
              0u);
    // What was cut off must not come back.
    EXPECT_EQ(
        StepsOfMask({Resize{.height = 40, .width = 40}, jitter, CenterCrop{20, 20}, pad}, size, id),
        1u);
    EXPECT_EQ(StepsOfMask({Resize{.height = 40, .width = 40}, RandomRotation{.degrees = {30, 31}},
                           jitter, CenterCrop{9, 9}},
                          size, id),
              2u);
  }
}

// ---- Runs.

// Images and masks in one workspace, in turns, have the rows that they have alone.
TEST(Masks, ShareAWorkspaceWithImages) {
  const Plan plan =
      PlanOf({RandomResizedCrop{48, 40, {0.01, 0.1}}, TrivialAugmentWide{}, RandomErasing{}},
             {.dtype = DType::kF32,
              .decode = DecodeSize::kScaled,
              .pieces = {kImage, kMaskIn255, kImage, kMask}});
  EXPECT_EQ(plan.piece(2).row_bytes(), plan.row_bytes());
  std::vector<PaddedFile> images, masks;
  for (uint64_t n = 0; n < 40; ++n) {
    const int width = 60 + static_cast<int>(n), height = 200 - static_cast<int>(n);
    images.emplace_back(testing::MakeJpeg({.width = width, .height = height, .seed = n}));
    masks.emplace_back(
        MakePng({.width = width, .height = height, .color = 3, .bit_depth = 4, .seed = n}));
  }
  std::vector<std::vector<uint8_t>> rows(4 * images.size());
  const auto encoded = [&](size_t i) {
    const auto piece = static_cast<uint32_t>(i % 4);
    rows[i].assign(plan.piece(piece).row_bytes(), 0x5a);
    return EncodedImage{.tag = static_cast<uint32_t>(i),
                        .piece = piece,
                        .bytes = (piece % 2 == 0 ? images : masks)[i / 4].span(),
                        .key = {3, 0, i / 4},
                        .to = {.row = rows[i].data()}};
  };
  MemoryBudget budget(64 << 20), of_images(64 << 20);
  const auto workspace = plan.MakeWorkspace(budget), images_alone = plan.MakeWorkspace(of_images);
  StageTimes times, alone_times;
  PlanRun run(plan, *workspace, times);
  size_t next = 0, finished = 0;
  const auto fill = [&] {
    while (run.has_room() && next < rows.size()) run.Begin(encoded(next++));
  };
  for (fill(); run.busy(); fill()) {
    const std::optional<FinishedRows> done = run.Advance();
    if (!done) continue;
    ASSERT_TRUE(done->status.ok()) << done->status.error().ToString();
    EXPECT_EQ(done->piece, done->tag % 4);
    const int n = static_cast<int>(done->tag) / 4;
    EXPECT_EQ(done->viewed, (ImageSize{60 + n, 200 - n}));
    ++finished;
  }
  EXPECT_EQ(finished, rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::vector<uint8_t> interleaved = rows[i];
    const EncodedImage image = encoded(i);
    if (image.piece % 2 == 0) {
      ASSERT_TRUE(plan.Apply(image, *images_alone, alone_times).ok());
      EXPECT_EQ(rows[i], interleaved) << i;
    } else {
      EXPECT_EQ(Apply(plan.piece(image.piece), masks[i / 4], image.key).values, interleaved) << i;
    }
  }
  const DecodePaths with = PathsOf(*workspace), without = PathsOf(*images_alone);
  EXPECT_EQ(with.fast, without.fast);
  EXPECT_EQ(with.scaled, without.scaled);
  EXPECT_EQ(with.scalable, without.scalable);
  EXPECT_GT(times.resize_ns, 0u);
  EXPECT_EQ(TransformTimesOf(*workspace).size(), plan.transforms().size());
  FreeMemoryOf(*workspace);
  EXPECT_EQ(budget.used(), 0u);
}

// What masks take in addition to images is what the plan says that they do.
TEST(Masks, MemoryStaysWithinThePlan) {
  const Plan plan = PlanOf({RandomResizedCrop{500, 400}, RandomRotation{.degrees = {-30, 30}}});
  const Plan without =
      Plan::Compile({RandomResizedCrop{500, 400}, RandomRotation{.degrees = {-30, 30}}}).value();
  EXPECT_GT(plan.extra_bytes(), without.extra_bytes());
  const PaddedFile file(MakePng({.width = 600, .height = 500, .color = 0}));
  std::vector<uint8_t> row(plan.row_bytes());
  StageTimes times;
  const auto peak_of = [&](std::span<const uint32_t> pieces) {
    MemoryBudget budget(64 << 20);
    const auto workspace = plan.MakeWorkspace(budget);
    for (uint64_t n = 0; n < 20; ++n) {
      for (const uint32_t piece : pieces) {
        const EncodedImage image{
            .piece = piece, .bytes = file.span(), .key = {1, 0, n}, .to = {.row = row.data()}};
        EXPECT_TRUE(plan.Apply(image, *workspace, times).ok());
      }
    }
    return budget.peak();
  };
  const uint32_t pieces[] = {0, 1};
  const uint64_t images = peak_of(std::span(pieces).first(1)), both = peak_of(pieces);
  EXPECT_GT(both, images);
  EXPECT_LE(both - images, (plan.extra_bytes() - without.extra_bytes()) / 2);
}

// ---- Shapes and errors.

TEST(Masks, HaveRowsOfOneChannel) {
  const Plan plan = PlanOf({RandomResizedCrop{20, 30}, Normalize{}}, {.dtype = DType::kF32,
                                                                      .layout = Layout::kNchw,
                                                                      .defer_to_device = true,
                                                                      .decode_on_device = true});
  EXPECT_EQ(&plan.piece(0), &plan);
  EXPECT_EQ(plan.mask(), std::nullopt);
  const Plan& mask = plan.piece(1);
  EXPECT_EQ(mask.mask(), kMask);
  EXPECT_EQ(mask.dtype(), DType::kU8);
  EXPECT_EQ(mask.row_shape(), (std::vector<int64_t>{20, 30}));
  EXPECT_EQ(mask.finished_shape(), mask.row_shape());
  EXPECT_EQ(mask.row_bytes(), 600u);
  EXPECT_EQ(mask.work_bytes(), 0u);
  EXPECT_EQ(mask.RowsOf({1, 0, 0}, {100, 100}, Orientation::kNormal), std::nullopt);
  const Plan images =
      Plan::Compile({RandomResizedCrop{20, 30}}, {.pieces = {kImage, kImage}}).value();
  EXPECT_EQ(&images.piece(1), &images);
}

TEST(Masks, Of16BitsHaveRowsOf16Bits) {
  const Plan plan = PlanOf({RandomResizedCrop{20, 30}}, {.pieces = {kImage, kMask16In770}});
  const Plan& mask = plan.piece(1);
  EXPECT_EQ(mask.mask(), kMask16In770);
  EXPECT_EQ(mask.dtype(), DType::kU16);
  EXPECT_EQ(mask.row_shape(), (std::vector<int64_t>{20, 30}));
  EXPECT_EQ(mask.row_bytes(), 1200u);
  EXPECT_NE(plan.Describe().find("nearest pixels, to uint16 20 × 30"), std::string::npos);
}

TEST(Masks, AreRefusedFirstAndInViews) {
  const Result<Plan> first = Plan::Compile({RandomResizedCrop{20, 30}}, {.pieces = {kMask}});
  EXPECT_EQ(first.error().code, Code::kInvalidArgument);
  EXPECT_EQ(first.error().cause, "the first piece of a sample is a mask, not an image");
  const Result<Plan> views = Plan::CompileViews(
      {{RandomResizedCrop{20, 30}}, {RandomResizedCrop{9, 9}}}, {.pieces = {kImage, kMask}});
  EXPECT_EQ(views.error().code, Code::kUnimplemented);
  EXPECT_EQ(views.error().cause, "samples with masks have one view");
}

TEST(Masks, OfOtherKindsAreRefused) {
  const Plan plan = PlanOf({RandomResizedCrop{20, 30}}, {.limits = {.accept_16_bits = true}});
  const auto cause_of = [&](std::vector<uint8_t> bytes) {
    const Row row = Apply(plan.piece(1), PaddedFile(std::move(bytes)), {1, 0, 0});
    return row.status.ok() ? "" : row.status.error().cause;
  };
  const std::string mask =
      "a mask is a PNG with one channel, of at most 8 bits unless its rows are uint16, and this "
      "one ";
  EXPECT_EQ(cause_of(MakePng({.color = 3})), "");
  EXPECT_EQ(cause_of(MakePng({.color = 2})), mask + "has 3 channels");
  EXPECT_EQ(cause_of(MakePng({.color = 0, .bit_depth = 16})), mask + "has 16 bits");
  EXPECT_EQ(cause_of(testing::MakeJpeg()), mask + "has the format JPEG");
}

// Damaged files are refused or decoded, and what comes after them is sound.
TEST(Masks, SurviveDamage) {
  Random random(25);
  const Plan plan = PlanOf({RandomResizedCrop{20, 30}, RandomRotation{.degrees = {-9, 9}}});
  const Plan& mask = plan.piece(1);
  MemoryBudget budget(64 << 20);
  const auto workspace = plan.MakeWorkspace(budget);
  const PaddedFile sound(MakePng({.color = 3, .bit_depth = 2}));
  const std::vector<uint8_t> wanted = Apply(mask, sound, {1, 0, 1}).values;
  StageTimes times;
  int refused = 0;
  for (int n = 0; n < testing::Effort(300); ++n) {
    std::vector<uint8_t> bytes = MakePng(RandomMask(random));
    for (int i = random.Between(0, 3); i > 0; --i) {
      bytes[static_cast<size_t>(random.Between(0, static_cast<int>(bytes.size()) - 1))] ^=
          static_cast<uint8_t>(1 << random.Between(0, 7));
    }
    bytes.resize(static_cast<size_t>(random.Between(1, static_cast<int>(bytes.size()))));
    std::vector<uint8_t> row(mask.row_bytes());
    const PaddedFile damaged(std::move(bytes));
    const DrawKey key{1, 0, static_cast<uint64_t>(n)};
    const Status status = mask.Apply(damaged.span(), key, *workspace, row.data(), times);
    refused += status.ok() ? 0 : 1;
    EXPECT_TRUE(status.ok() || !status.error().cause.empty());
    ASSERT_TRUE(mask.Apply(sound.span(), {1, 0, 1}, *workspace, row.data(), times).ok());
    ASSERT_EQ(row, wanted);
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace stoker
