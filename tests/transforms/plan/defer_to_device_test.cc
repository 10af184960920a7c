#include "transforms/plan/row/defer_to_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

// Operations are written over memory that was used before.
struct Left {
  DeferredOps row;
  std::vector<ErasedBox> boxes;

  Left(DrawnSample& drawn, uint32_t count) : boxes(count) {
    std::vector<uint8_t> bytes(DeferredOpsBytes(count) + 1, 0x5a);
    DeferToDevice(drawn, {}, count, bytes.data());
    EXPECT_EQ(bytes.back(), 0x5a);
    std::memcpy(&row, bytes.data(), sizeof(row));
    if (count == 0) return;
    std::memcpy(boxes.data(), bytes.data() + sizeof(row), count * sizeof(ErasedBox));
  }
};

TEST(DeferToDevice, DefersAMirrorThatComesLast) {
  DrawnSample drawn;
  EXPECT_EQ(Left(drawn, 0).row.mirror, 0u);
  drawn.geometry.mirror_columns = drawn.geometry.mirror_rows = true;
  const Left left(drawn, 0);
  EXPECT_EQ(left.row.mirror, 1u);
  EXPECT_EQ(left.row.mixing, RowMixing::kNone);
  EXPECT_FALSE(drawn.geometry.mirror_columns);
  EXPECT_TRUE(drawn.geometry.mirror_rows);
}

TEST(DeferToDevice, KeepsAMirrorBeforeOtherSteps) {
  DrawnSample drawn;
  drawn.geometry.mirror_columns = true;
  drawn.steps.push_back({Grayscale{}, 0});
  EXPECT_EQ(Left(drawn, 0).row.mirror, 0u);
  EXPECT_TRUE(drawn.geometry.mirror_columns);
}

TEST(DeferToDevice, DefersErasuresInOrder) {
  DrawnSample drawn;
  drawn.erasures = {{.box = {1, 2, 3, 4}, .value = {5, 6, 7}, .noise = {}},
                    {.box = {8, 9, 10, 11}, .value = {}, .noise = 0x123456789abcdef0}};
  const Left left(drawn, 3);
  EXPECT_TRUE(drawn.erasures.empty());
  const ErasedBox &first = left.boxes[0], &second = left.boxes[1], &third = left.boxes[2];
  EXPECT_EQ(first.box.x, 1);
  EXPECT_EQ(first.box.y, 2);
  EXPECT_EQ(first.box.width, 3);
  EXPECT_EQ(first.box.height, 4);
  EXPECT_EQ(first.value[0], 5);
  EXPECT_EQ(first.value[2], 7);
  EXPECT_EQ(first.noisy, 0u);
  EXPECT_EQ(second.box.height, 11);
  EXPECT_EQ(second.noisy, 1u);
  EXPECT_EQ(second.noise_key, 0x123456789abcdef0u);
  EXPECT_EQ(third.box.width, 0);
  EXPECT_EQ(third.box.height, 0);
  EXPECT_EQ(third.noisy, 0u);
}

// A plan that defers operations refuses the same lists and draws the same numbers; its rows are
// bytes.
TEST(DeferToDevice, ChecksTheWholeListAndMakesRowsOfBytes) {
  const std::vector<Transform> list = {RandomResizedCrop{4, 6}, RandomErasing{.p = 1},
                                       Normalize{{0.5F, 0.5F, 0.5F}, {0.5F, 0.5F, 0.25F}},
                                       RandomErasing{.p = 1, .noise = true}};
  PlanOptions options{.dtype = DType::kBF16, .layout = Layout::kNchw};
  const Plan whole = Plan::Compile(list, options).value();
  EXPECT_EQ(whole.work_bytes(), 0u);
  options.defer_to_device = true;
  const Plan plan = Plan::Compile(list, options).value();
  EXPECT_EQ(plan.dtype(), DType::kU8);
  EXPECT_EQ(plan.row_shape(), (std::vector<int64_t>{4, 6, 3}));
  EXPECT_EQ(plan.row_bytes(), 72u);
  EXPECT_EQ(plan.finished_shape(), whole.row_shape());
  EXPECT_EQ(plan.boxes(), 2u);
  EXPECT_EQ(plan.work_bytes(), DeferredOpsBytes(2));
  EXPECT_EQ(plan.scale(), whole.scale());
  EXPECT_EQ(plan.bias(), whole.bias());
  EXPECT_EQ(plan.Describe(), whole.Describe() + ", finished on the device");
  options.dtype = DType::kU8;
  EXPECT_FALSE(Plan::Compile(list, options).ok());
}

}  // namespace
}  // namespace stoker
