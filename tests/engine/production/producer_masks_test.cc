// Samples of an image and its mask, from two folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/time/stage_times.h"
#include "engine/loader/loader.h"
#include "engine/production/producer_parts.h"
#include "io/folder/masks.h"
#include "io/ranges/path_source.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

class ProducerMasks : public ::testing::Test {
 protected:
  static constexpr int kImages = 23;

  ProducerMasks() {
    for (const char* const folder : {"images", "masks"}) {
      std::filesystem::create_directory(folder_.Path(folder));
    }
    for (int i = 0; i < kImages; ++i) {
      const int width = 30 + i * 7 % 41, height = 30 + i * 11 % 37;
      Write(ImageOf(i), testing::MakeJpeg(
                            {.width = width, .height = height, .seed = static_cast<uint64_t>(i)}));
      Write(MaskOf(i), testing::MakePng({.width = width,
                                         .height = height,
                                         .color = i % 2 == 0 ? 0 : 3,
                                         .bit_depth = 1 << i % 4,
                                         .seed = static_cast<uint64_t>(i)}));
    }
  }

  static std::string Number(uint64_t id) { return std::to_string(10 + id); }
  std::string ImageOf(uint64_t id) const { return folder_.Path("images/" + Number(id) + ".jpg"); }
  std::string MaskOf(uint64_t id) const { return folder_.Path("masks/" + Number(id) + ".png"); }
  static void Write(const std::string& path, const std::vector<uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes.begin(), bytes.end());
  }
  static std::vector<uint8_t> Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  LoaderOptions Options(std::vector<Transform> transforms) const {
    LoaderOptions options;
    options.source = Masks(folder_.Path("images"), folder_.Path("masks"), {.fill = 255}).value();
    options.transforms = std::move(transforms);
    options.dtype = DType::kF32;
    options.layout = Layout::kNchw;
    options.batch_size = 5;
    options.shuffle = true;
    options.seed = 3;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(3)).value();
    return options;
  }

  // Returns the row that the plan of a piece alone makes of this file.
  std::vector<uint8_t> Planned(const Plan& plan, const std::string& path, const DrawKey& key) {
    std::vector<uint8_t> bytes = Read(path);
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    std::vector<uint8_t> row(plan.row_bytes());
    StageTimes times;
    plan.Apply(std::span(bytes).first(size), key, *plan.MakeWorkspace(budget_), row.data(), times)
        .value();
    return row;
  }

  const testing::TempFolder folder_;
  MemoryBudget budget_{uint64_t{1} << 30};
};

std::vector<uint8_t> RowOf(const Column& column, int64_t rows, int64_t row) {
  const size_t bytes = column.bytes() / static_cast<size_t>(rows);
  const auto* const data = static_cast<const uint8_t*>(column.data) + row * bytes;
  return {data, data + bytes};
}

TEST_F(ProducerMasks, AreMovedAsTheirImages) {
  const std::vector<std::vector<Transform>> recipes = {
      {RandomResizedCrop{.height = 32, .width = 24}, RandomHorizontalFlip{}},
      {CenterCrop{.height = 64, .width = 80}},  // most images are smaller
      {PadTo{.height = 80, .width = 80}}};
  for (const std::vector<Transform>& recipe : recipes) {
    const LoaderOptions options = Options(recipe);
    const Plan plan = *PlanOf(options, {}).value();
    const auto loader = Loader::Open(options).value();
    const auto iterator = loader->Iterate();
    int64_t rows = 0;
    while (Batch batch = iterator->Next().value()) {
      const Column& masks = *batch.column("mask");
      EXPECT_EQ(&masks, &batch.columns()[1]);
      EXPECT_EQ(masks.dtype, DType::kU8);
      EXPECT_EQ(masks.shape, (std::vector<int64_t>{batch.rows(), plan.output_size().height,
                                                   plan.output_size().width}));
      for (int64_t row = 0; row < batch.rows(); ++row, ++rows) {
        const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
        const DrawKey key{options.seed, 0, batch.position() + static_cast<uint64_t>(row)};
        EXPECT_EQ(RowOf(batch.images(), batch.rows(), row), Planned(plan, ImageOf(id), key));
        EXPECT_EQ(RowOf(masks, batch.rows(), row), Planned(plan.piece(1), MaskOf(id), key));
      }
    }
    EXPECT_EQ(rows, kImages);
  }
}

// Each batch has the bytes of a PadTo of its own size, also after a row was dropped.
TEST_F(ProducerMasks, HaveTheSizeOfTheirBatchesLargestImage) {
  Write(ImageOf(7), {1, 2, 3});
  for (const uint32_t batch_size : {1u, 5u, 30u}) {
    LoaderOptions options = Options({Resize{.size = 20, .max_size = 45}, PadTo{.multiple = 8}});
    options.batch_size = batch_size;
    options.on_bad = BadPolicy::Parse("drop").value();
    const auto loader = Loader::Open(options).value();
    EXPECT_EQ(loader->columns()[0].row_shape, (std::vector<int64_t>{3, 48, 48}));
    EXPECT_EQ(loader->columns()[0].height_at, 1u);
    EXPECT_EQ(loader->columns()[1].height_at, 0u);
    EXPECT_EQ(loader->columns()[2].height_at, std::nullopt);
    int64_t rows = 0;
    std::set<std::vector<int64_t>> shapes;
    for (const auto iterator = loader->Iterate(0);;) {
      const Batch batch = iterator->Next().value();
      if (!batch) break;
      const Column &images = batch.images(), &masks = *batch.column("mask");
      const int64_t height = images.shape[2], width = images.shape[3];
      shapes.insert(images.shape);
      EXPECT_EQ(masks.shape, (std::vector<int64_t>{batch.rows(), height, width}));
      int64_t most[] = {0, 0};
      for (int64_t i = 0; i < 2 * batch.rows(); ++i) {
        const int64_t side = batch.column("image_size")->as<int32_t>()[static_cast<size_t>(i)];
        most[i % 2] = std::max(most[i % 2], (side + 7) / 8 * 8);
      }
      EXPECT_EQ(height, most[0]);
      EXPECT_EQ(width, most[1]);
      LoaderOptions fixed = options;
      fixed.transforms[1] =
          PadTo{.height = static_cast<int>(height), .width = static_cast<int>(width)};
      const Plan plan = *PlanOf(fixed, {}).value();
      for (int64_t row = 0; row < batch.rows(); ++row, ++rows) {
        const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
        const DrawKey key{options.seed, 0, 0};  // nothing is drawn
        EXPECT_EQ(RowOf(images, batch.rows(), row), Planned(plan, ImageOf(id), key));
        EXPECT_EQ(RowOf(masks, batch.rows(), row), Planned(plan.piece(1), MaskOf(id), key));
      }
    }
    EXPECT_EQ(rows, kImages - 1);
    if (batch_size == 1) {
      EXPECT_GT(shapes.size(), 3u);
    }
  }
}

// Slots are used again, and a batch without rows does not keep the shape of an earlier one.
TEST_F(ProducerMasks, ABatchThatLostItsRowsHasTheLargestShape) {
  Write(ImageOf(7), {1, 2, 3});
  LoaderOptions options = Options({Resize{.size = 20, .max_size = 45}, PadTo{.multiple = 8}});
  options.batch_size = 1;
  options.on_bad = BadPolicy::Parse("drop").value();
  const auto loader = Loader::Open(options).value();
  const auto iterator = loader->Iterate();
  int without_rows = 0;
  for (uint64_t batch = 0; batch < 2 * kImages; ++batch) {
    ASSERT_TRUE(iterator->Append({.epoch = batch / kImages, .index = batch % kImages}).ok());
  }
  for (uint64_t batch = 0; batch < 2 * kImages; ++batch) {
    const Batch made = iterator->Next().value();
    ASSERT_TRUE(made);
    if (made.rows() != 0) continue;
    ++without_rows;
    EXPECT_EQ(made.images().shape, (std::vector<int64_t>{0, 3, 48, 48}));
    EXPECT_EQ(made.column("mask")->shape, (std::vector<int64_t>{0, 48, 48}));
  }
  EXPECT_EQ(without_rows, 2);
}

TEST_F(ProducerMasks, OfTheBatchesSizeAreNotMappedByRows) {
  class Rows final : public MapFunction {
   public:
    std::string Describe() const override { return "of_rows"; }
  };
  LoaderOptions options = Options({Resize{.max_size = 45}, PadTo{.multiple = 8}});
  options.map = std::make_shared<Rows>();
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_THAT(loader.error().ToString(),
              HasSubstr("'of_rows' is called with rows, whose size with transforms[1], PadTo"));
}

TEST_F(ProducerMasks, ErrorsNameTheMask) {
  Write(MaskOf(2), testing::MakePng({.width = 44, .height = 52, .color = 2}));
  Write(MaskOf(3), testing::MakePng({.width = 5, .height = 6, .color = 0}));
  LoaderOptions options = Options({RandomResizedCrop{.height = 32, .width = 24}});
  options.shuffle = false;
  options.batch_size = 1;
  const auto iterator = Loader::Open(options).value()->Iterate();
  for (uint64_t id = 0; id < 5; ++id) {
    const Result<Batch> batch = iterator->Next();
    ASSERT_EQ(batch.ok(), id != 2 && id != 3);
    if (batch.ok()) continue;
    EXPECT_EQ(batch.error().file, MaskOf(id));
    if (id == 3) {
      EXPECT_THAT(batch.error().cause, HasSubstr("5 × 6"));
      EXPECT_THAT(batch.error().cause, HasSubstr(ImageOf(3)));
    }
  }
}

TEST_F(ProducerMasks, AStateWithAnotherFillIsRefused) {
  LoaderOptions options = Options({RandomResizedCrop{.height = 32, .width = 24}});
  const std::string state = Loader::Open(options).value()->StateAt({0, 1});
  EXPECT_TRUE(Loader::Open(options).value()->PlaceOf(state).ok());
  options.source = Masks(folder_.Path("images"), folder_.Path("masks"), {.fill = 0}).value();
  EXPECT_FALSE(Loader::Open(options).value()->PlaceOf(state).ok());
}

}  // namespace
}  // namespace stoker
