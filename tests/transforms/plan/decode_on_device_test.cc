// A plan that decodes on a device lets the worker decode where a crop has no room.
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <vector>

#include "core/batch/crop_region.h"
#include "core/batch/device_crop.h"
#include "core/memory/buffer.h"
#include "tests/testing/images/make_jpeg.h"
#include "transforms/jpeg/fast/index/crop_index.h"
#include "transforms/packed/pack.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Padded(Bytes bytes) {
  bytes.resize(bytes.size() + kBufferPadding);
  return bytes;
}
std::span<const uint8_t> Unpadded(const Bytes& padded) {
  return std::span(padded).first(padded.size() - kBufferPadding);
}
Bytes PackedPhotograph() {
  const Bytes jpeg = Padded(testing::MakeJpeg({.width = 200, .height = 160}));
  return PackJpeg(Unpadded(jpeg)).value();
}

class DecodeOnDevice : public ::testing::Test {
 protected:
  static Plan Compiled(bool decode_on_device) {
    return Plan::Compile({Resize{.height = 50, .width = 40}},
                         {.defer_to_device = true, .decode_on_device = decode_on_device})
        .value();
  }

  DecodeOnDevice() {
    region_.Use(memory_[0].bytes, {.bytes = memory_.size() * sizeof(Unit), .samples = 1 << 20});
  }

  Status Apply(std::span<const uint8_t> file, std::span<const uint8_t> crop_index = {}) {
    StageTimes times;
    const OutputRows rows{
        .row = row_.data(), .work = work_.data(), .crops = &region_, .crop_at = &crop_at_};
    return plan_.Apply({.bytes = file, .to = rows, .crop_index = crop_index}, *workspace_, times);
  }
  uint64_t WithoutRoom() const {
    return PathsOf(*workspace_).on_worker[static_cast<size_t>(OnWorker::kNoRoom)];
  }
  uint64_t OnDevice() const { return PathsOf(*workspace_).on_device; }

  struct alignas(decode::kCropAlignment) Unit {
    uint8_t bytes[decode::kCropAlignment];
  };
  const Bytes packed_ = Padded(PackedPhotograph());
  const Plan plan_ = Compiled(/*decode_on_device=*/true);
  std::vector<Unit> memory_ = std::vector<Unit>(10'000);
  CropRegion region_;
  Bytes row_ = Bytes(plan_.row_bytes()), work_ = Bytes(plan_.work_bytes() + 1);
  uint64_t crop_at_ = 7;
  MemoryBudget budget_{64 << 20};
  std::unique_ptr<Workspace, void (*)(Workspace*)> workspace_ = plan_.MakeWorkspace(budget_);
};

TEST_F(DecodeOnDevice, TheWorkerDecodesWhatTheBudgetHasNoRoomFor) {
  budget_.SetLimit(100);
  const Status refused = Apply(Unpadded(packed_));
  EXPECT_EQ(WithoutRoom(), 1u);
  EXPECT_EQ(OnDevice(), 0u);
  EXPECT_EQ(crop_at_, decode::kNoCrop);
  EXPECT_EQ(region_.bytes(), 0u);
  EXPECT_EQ(refused.error().code, Code::kResourceExhausted) << "and the worker has none";

  budget_.SetLimit(64 << 20);
  EXPECT_TRUE(Apply(Unpadded(packed_)).ok());
  EXPECT_EQ(WithoutRoom(), 1u);
  EXPECT_EQ(OnDevice(), 1u);
  EXPECT_EQ(crop_at_, 0u);
}

// The index has an entry point before each MCU, all of them at the first one.
TEST_F(DecodeOnDevice, TheWorkerDecodesWhatAForgedIndexMakesTooLarge) {
  const Bytes jpeg =
      Padded(testing::MakeJpeg({.width = 900, .height = 900, .color = testing::JpegColor::kGray}));
  jpeg::FrameHeader frame;
  ASSERT_EQ(ParseHeader(Unpadded(jpeg), frame), Fallback::kNone);
  const jpeg::IndexShape shape(frame, /*interval=*/1);
  const Bytes forged =
      PackCropIndex(Unpadded(jpeg), frame, shape,
                    std::vector<jpeg::EntryPoint>(static_cast<size_t>(shape.entry_points())));
  const size_t list_bytes =
      static_cast<size_t>(shape.entry_points()) * sizeof(decode::CropInterval);
  ASSERT_GT(list_bytes, region_.bytes_left());
  const Plan plain = Compiled(/*decode_on_device=*/false);
  const auto workspace = plain.MakeWorkspace(budget_);
  Bytes wanted(row_.size());
  StageTimes times;
  const Status decoded =
      plain.Apply(Unpadded(jpeg), {}, *workspace, wanted.data(), times, {}, work_.data());
  ASSERT_TRUE(decoded.ok());
  ASSERT_TRUE(Apply(Unpadded(jpeg), forged).ok());
  EXPECT_EQ(row_, wanted);
  EXPECT_LT(MemoryOf(*workspace_), MemoryOf(*workspace) + list_bytes / 2);
  EXPECT_EQ(WithoutRoom(), 1u);
  EXPECT_EQ(crop_at_, decode::kNoCrop);
  EXPECT_EQ(region_.bytes(), 0u);
}

TEST_F(DecodeOnDevice, ARowIsWrittenIfThereIsNoPlaceForItsCrop) {
  const Plan plain = Compiled(/*decode_on_device=*/false);
  const auto workspace = plain.MakeWorkspace(budget_);
  Bytes wanted(row_.size());
  StageTimes times;
  const auto write = [&](const Plan& plan, Workspace& space, Bytes& row) {
    return plan.Apply(Unpadded(packed_), {}, space, row.data(), times, {}, work_.data());
  };
  ASSERT_TRUE(write(plain, *workspace, wanted).ok());
  ASSERT_TRUE(write(plan_, *workspace_, row_).ok());
  EXPECT_EQ(row_, wanted);
  const Bytes pixels(size_t{3} * 90 * 70, 100);
  const ImageView image{PixelLayout::kInterleaved, {90, 70}, {pixels.data()}, {3 * 90}};
  ASSERT_TRUE(
      plan_.Apply(image, {}, *workspace_, {.row = row_.data(), .work = work_.data()}, times).ok());
  EXPECT_EQ(row_, Bytes(row_.size(), 100));
  EXPECT_EQ(OnDevice(), 0u);
}

}  // namespace
}  // namespace stoker
