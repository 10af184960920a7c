// The rows that a plan says it needs are enough: from a range of a packed JPEG with only these, it
// writes the batch row that it writes from the whole file.
#include <gtest/gtest.h>

#include <vector>

#include "core/numbers/divide_up.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/transforms/jpeg/fast/kinds.h"
#include "tests/transforms/plan/padded_file.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/packed_file.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using testing::Effort;
using testing::PaddedFile;
using testing::Random;

std::vector<Transform> RandomTransforms(Random& random) {
  const auto interpolation = static_cast<Interpolation>(random.Between(0, 4));
  const bool antialias = !random.OneIn(4);
  std::vector<Transform> list;
  if (random.OneIn(2)) {
    list.emplace_back(RandomResizedCrop{.height = random.Between(1, 70),
                                        .width = random.Between(1, 70),
                                        .antialias = antialias,
                                        .interpolation = interpolation});
  } else {
    list.emplace_back(Resize{
        .size = random.Between(40, 120), .antialias = antialias, .interpolation = interpolation});
    const int side = random.Between(20, 60);
    if (random.OneIn(2)) {
      list.emplace_back(CenterCrop{side, side});
    } else {
      list.emplace_back(RandomCrop{
          .height = side, .width = side, .padding = {3, 3, 3, 3}, .pad_if_needed = true});
    }
  }
  if (random.OneIn(2)) list.emplace_back(RandomHorizontalFlip{});
  if (random.OneIn(3)) list.emplace_back(RandomVerticalFlip{});
  if (random.OneIn(3)) list.emplace_back(RandAugment{});
  return list;
}

// Packed JPEGs of every kind and orientation.
std::vector<std::vector<uint8_t>> Photographs() {
  std::vector<std::vector<uint8_t>> files;
  int orientation = 0;
  for (const testing::FastJpeg& kind : testing::FastJpegs()) {
    for (const ImageSize size : {ImageSize{200, 150}, ImageSize{90, 310}}) {
      const PaddedFile jpeg(testing::MakeJpeg({.width = size.width,
                                               .height = size.height,
                                               .color = kind.color,
                                               .sampling = kind.sampling,
                                               .orientation = 1 + orientation++ % 8}));
      files.push_back(PackJpeg(jpeg.span()).value());
    }
  }
  return files;
}

TEST(RowsOf, AreEnough) {
  const std::vector<std::vector<uint8_t>> files = Photographs();
  MemoryBudget budget(256 << 20);
  Random random(5);
  uint64_t read = 0, all = 0;
  for (int n = 0; n < Effort(1500); ++n) {
    std::vector<std::vector<Transform>> lists(random.OneIn(2) ? 2 : 1, RandomTransforms(random));
    if (auto* crop = std::get_if<RandomResizedCrop>(&lists.back()[0])) {  // unlike that of view 0
      crop->antialias = random.OneIn(2);
    }
    const PlanOptions options{.exif_orientation = !random.OneIn(4),
                              .decode = random.OneIn(3) ? DecodeSize::kScaled : DecodeSize::kFull};
    const Result<Plan> plan = Plan::CompileViews(lists, options);
    ASSERT_TRUE(plan.ok()) << plan.error().ToString();
    const std::vector<uint8_t>& file =
        files[static_cast<size_t>(random.Between(0, static_cast<int>(files.size()) - 1))];
    const PaddedFile whole(file);
    const packed::PackedFile opened = packed::PackedFile::Open(whole.span()).value();
    const jpeg::FrameHeader& frame = opened.frame();
    const DrawKey key{3, 1, static_cast<uint64_t>(n)};
    const std::optional<AxisSpan> rows = plan->RowsOf(key, frame.size, frame.orientation);
    ASSERT_TRUE(rows && 0 <= rows->begin && rows->begin < rows->end &&
                rows->end <= frame.size.height);
    const int height = 8 * frame.mcu_rows();
    const RowParts::Bytes range = opened.row_parts().Find(
        rows->begin / height, DivideUp(rows->end, height), opened.mcu_rows(), file.size());
    const PaddedFile part({file.begin() + static_cast<ptrdiff_t>(range.begin),
                           file.begin() + static_cast<ptrdiff_t>(range.end)});
    std::vector<std::vector<uint8_t>> want(2, std::vector<uint8_t>(plan->row_bytes()));
    std::vector<std::vector<uint8_t>> got = want;
    const auto apply = [&](const PaddedFile& from, std::vector<std::vector<uint8_t>>& to) {
      auto workspace = plan->MakeWorkspace(budget);
      StageTimes times;
      void* const other = to[1].data();
      return plan->Apply({.bytes = from.span(),
                          .key = key,
                          .to = {.row = to[0].data(), .other_rows = {&other, plan->views() - 1}}},
                         *workspace, times);
    };
    ASSERT_TRUE(apply(whole, want).ok());
    const Status status = apply(part, got);
    ASSERT_TRUE(status.ok()) << status.error().ToString() << " " << plan->Describe();
    ASSERT_EQ(got, want) << n << ": " << plan->Describe();
    read += range.end - range.begin;
    all += file.size();
  }
  EXPECT_LT(read, all * 9 / 10);
}

TEST(RowsOf, AreUnknownForAnImageThatIsAnError) {
  const Plan plan = Plan::Compile({RandomCrop{.height = 50, .width = 50}}).value();
  EXPECT_FALSE(plan.RowsOf({1, 0, 0}, {40, 40}, Orientation::kNormal));
  EXPECT_TRUE(plan.RowsOf({1, 0, 0}, {60, 60}, Orientation::kNormal));
}

}  // namespace
}  // namespace stoker
