// A plan that decodes on a device lets the worker decode where the memory budget has no room.
#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/buffer.h"
#include "core/crop_region.h"
#include "core/device_crop.h"
#include "tests/testing/make_jpeg.h"
#include "transforms/packed/pack.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

// Feeds one image.
class OneImage final : public ImageFeed {
 public:
  explicit OneImage(const EncodedImage& image) : image_(image) {}
  std::optional<EncodedImage> Next() override { return std::exchange(image_, std::nullopt); }
  void Done(uint32_t /*tag*/, Status status) override { done = std::move(status); }

  std::optional<Status> done;

 private:
  std::optional<EncodedImage> image_;
};

TEST(DecodeOnDevice, TheWorkerDecodesWhatTheBudgetHasNoRoomFor) {
  std::vector<uint8_t> jpeg = testing::MakeJpeg({.width = 200, .height = 160});
  const size_t size = jpeg.size();
  jpeg.resize(size + kBufferPadding);
  std::vector<uint8_t> packed = PackJpeg(std::span(jpeg).first(size)).value();
  const size_t packed_size = packed.size();
  packed.resize(packed_size + kBufferPadding);

  const Plan plan = Plan::Compile({Resize{.height = 50, .width = 40}},
                                  {.defer_to_device = true, .decode_on_device = true})
                        .value();
  struct alignas(decode::kCropAlignment) Unit {
    uint8_t bytes[decode::kCropAlignment];
  };
  std::vector<Unit> memory(10'000);
  CropRegion region;
  region.Use(memory[0].bytes, {.bytes = memory.size() * sizeof(Unit), .samples = 1 << 20});
  std::vector<uint8_t> row(plan.row_bytes()), work(plan.work_bytes() + 1);
  uint64_t crop_at = 7;
  const EncodedImage image{.bytes = std::span(packed).first(packed_size),
                           .row = row.data(),
                           .work = work.data(),
                           .crops = &region,
                           .crop_at = &crop_at};

  MemoryBudget budget(100);
  const auto workspace = plan.MakeWorkspace(budget);
  StageTimes times;
  OneImage refused(image);
  plan.ApplyAll(refused, *workspace, times);
  const auto no_room = static_cast<size_t>(OnWorker::kNoRoom);
  EXPECT_EQ(PathsOf(*workspace).on_worker[no_room], 1u);
  EXPECT_EQ(PathsOf(*workspace).on_device, 0u);
  EXPECT_EQ(crop_at, decode::kNoCrop);
  EXPECT_EQ(region.bytes(), 0u);
  EXPECT_EQ(refused.done->error().code, Code::kResourceExhausted) << "and the worker has none";

  budget.SetLimit(64 << 20);
  OneImage image_again(image);
  plan.ApplyAll(image_again, *workspace, times);
  EXPECT_TRUE(image_again.done->ok());
  EXPECT_EQ(PathsOf(*workspace).on_worker[no_room], 1u);
  EXPECT_EQ(PathsOf(*workspace).on_device, 1u);
  EXPECT_EQ(crop_at, 0u);
}

}  // namespace
}  // namespace stoker
