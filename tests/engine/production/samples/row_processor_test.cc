// Rows that a loader's processor makes are those of Processor::Process, and stay in their places.
#include "engine/production/samples/row_processor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/slot_pool.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/numbers/random.h"
#include "engine/arrays/processor.h"
#include "engine/loader/loader.h"
#include "engine/order/patch_counts.h"
#include "engine/production/producer_parts.h"
#include "io/select/sized.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/listed_files.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/processor/figures.h"

namespace stoker {
namespace {

using ::stoker::testing::ListedFiles;
using ::testing::HasSubstr;

// Recipes whose rows have places of their own sizes (Qwen, tiles, pinpoints), or the same shape.
ProcessorRecipe Qwen() {
  return {.family = ProcessorFamily::kQwen,
          .sizing = Sizing::kPixels,
          .min_pixels = 56 * 56,
          .max_pixels = 112 * 112,
          .patch = {14, 14},
          .merge = 2,
          .temporal = 2};
}
ProcessorRecipe Tiles() {
  return {.family = ProcessorFamily::kTiled,
          .sizing = Sizing::kTiles,
          .size = {28, 28},
          .max_tiles = 6,
          .patch = {28, 28}};
}
ProcessorRecipe Pinpoints() {
  return {.family = ProcessorFamily::kLlavaNext,
          .sizing = Sizing::kPinpoints,
          .size = {28, 28},
          .pinpoints = {{56, 28}, {28, 84}, {56, 56}},
          .patch = {28, 28},
          .pads_batch = true};
}
ProcessorRecipe NaFlex() {
  return {.family = ProcessorFamily::kNaFlex,
          .sizing = Sizing::kPatches,
          .patch = {16, 16},
          .padded_rows = 20};
}
ProcessorRecipe Plain() { return {.size = {40, 32}}; }

class RowProcessorTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kCount = 22;
  static constexpr uint64_t kLarge = 7;  // the image with the most patches

  RowProcessorTest() {
    for (uint64_t id = 0; id < kCount; ++id) {
      const int side = static_cast<int>(id);
      sizes_.push_back({20 + side * 37 % 61, 20 + side * 23 % 53});
      files_.push_back({folder_.Path(std::to_string(id)), static_cast<int64_t>(100 + id)});
      const auto [width, height] = sizes_.back();
      Put(id, id % 2 == 0 ? MakeImage<testing::JpegOptions>(width, height, &testing::MakeJpeg)
                          : MakeImage<testing::PngOptions>(width, height, &testing::MakePng));
    }
    sizes_[kLarge] = {160, 150};
    Put(kLarge, testing::MakePng({.width = 160, .height = 150}));
  }

  template <typename Options>
  static std::vector<uint8_t> MakeImage(int width, int height,
                                        std::vector<uint8_t> (*make)(const Options&)) {
    Options options;
    options.width = width;
    options.height = height;
    return make(options);
  }

  void Put(uint64_t id, const std::vector<uint8_t>& bytes) const {
    std::ofstream(files_[id].path, std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  // `sizes`: what the source says; none means that it knows none.
  LoaderOptions Options(const ProcessorRecipe& recipe, const std::vector<ImageSize>& sizes,
                        DType dtype = DType::kF32) const {
    LoaderOptions options;
    options.source = std::make_shared<ListedFiles>(files_);
    if (!sizes.empty()) options.source = Sized(options.source, sizes).value();
    options.processor = Processor::Create({.recipe = recipe, .dtype = dtype}).value();
    options.batch_size = 4;
    options.shuffle = true;
    options.seed = 5;
    options.max_bad_fraction = 1;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
    return options;
  }

  std::vector<uint8_t> BytesOf(uint64_t id) const {
    std::ifstream file(files_[id].path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static void ExpectBytes(const void* got, const void* wanted, size_t bytes) {
    EXPECT_EQ(std::memcmp(got, wanted, bytes), 0);
  }

  // Compares each row with what the processor makes of its file, and all its figures.
  void ExpectRows(const Batch& batch, const Processor& processor) const {
    const Column& pixels = batch.columns()[0];
    EXPECT_EQ(pixels.name, "pixel_values");
    const std::vector<ColumnSpec> figures =
        FigureColumns(processor.recipe(), processor.recipe().padded_rows != 0);
    ASSERT_EQ(batch.columns().size(), 2 + figures.size());
    for (size_t row = 0; row < batch.sample_ids().size(); ++row) {
      const uint64_t id = batch.sample_ids()[row];
      SCOPED_TRACE("sample " + std::to_string(id));
      EXPECT_EQ(batch.labels().as<int64_t>()[row], files_[id].label);
      const ProcessedImages made =
          processor.Process({.bytes = {}, .path = files_[id].path}).value();
      const size_t bytes = made.array.shape.bytes();
      if (pixels.offsets != nullptr) {
        const auto got = pixels.objects<uint8_t>(static_cast<int64_t>(row));
        ASSERT_EQ(got.size() * SizeOf(pixels.dtype), bytes);
      } else {
        ASSERT_EQ(pixels.bytes(), bytes * batch.sample_ids().size());
      }
      const size_t first = pixels.offsets != nullptr
                               ? static_cast<size_t>(pixels.offsets[row]) *
                                     (pixels.bytes() / static_cast<size_t>(pixels.shape[0]))
                               : row * bytes;
      ExpectBytes(static_cast<const uint8_t*>(pixels.data) + first, made.array.memory.get(), bytes);
      for (size_t i = 0; i < figures.size(); ++i) {
        std::vector<uint8_t> wanted(stoker::BytesOf(figures[i].dtype, figures[i].row_shape));
        WriteFigures(processor.recipe(), made.images[0], figures[i].name, wanted);
        ExpectBytes(batch.columns()[2 + i].as<uint8_t>().data() + row * wanted.size(),
                    wanted.data(), wanted.size());
      }
    }
  }

  // Compares the rows of an epoch; returns its samples.
  std::vector<uint64_t> TakeIds(Loader& loader) const {
    std::vector<uint64_t> ids;
    testing::ForEachBatch(loader, 1, [&](const Batch& batch) {
      ExpectRows(batch, *loader.options().processor);
      ids.insert(ids.end(), batch.sample_ids().begin(), batch.sample_ids().end());
    });
    std::ranges::sort(ids);
    return ids;
  }

  const testing::TempFolder folder_;
  std::vector<ImageSize> sizes_;
  std::vector<ListedFiles::Sample> files_;
};

std::vector<uint64_t> AllBut(const std::set<uint64_t>& without, uint64_t count) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < count; ++id) {
    if (!without.contains(id)) ids.push_back(id);
  }
  return ids;
}

TEST_F(RowProcessorTest, RowsAreThoseOfTheProcessor) {
  for (const ProcessorRecipe& recipe : {Qwen(), Tiles(), Pinpoints(), NaFlex(), Plain()}) {
    for (const std::vector<ImageSize>& known : {sizes_, std::vector<ImageSize>()}) {
      for (const DType dtype : {DType::kF32, DType::kU8}) {
        const LoaderOptions options = Options(recipe, known, dtype);
        EXPECT_EQ(TakeIds(*Loader::Open(options).value()), AllBut({}, kCount)) << TextOf(recipe);
      }
    }
  }
}

TEST_F(RowProcessorTest, BytesAreTheSameOnAnyExecutor) {
  for (const ProcessorRecipe& recipe : {Qwen(), NaFlex()}) {
    std::vector<uint64_t> wanted;
    for (const testing::TestedExecutor executor : testing::ExecutorsUnderTest()) {
      for (const int threads : {1, 2, 5}) {
        LoaderOptions options = Options(recipe, sizes_);
        options.transforms = {RandomHorizontalFlip{}, RandomVerticalFlip{}};
        options.depth = threads;
        RuntimeOptions runtime = testing::RuntimeUnderTest(threads);
        testing::SetExecutor(executor, runtime, static_cast<uint64_t>(threads));
        options.runtime = Runtime::Create(runtime).value();
        const auto loader = Loader::Open(options).value();
        std::vector<uint64_t> prints;
        testing::ForEachBatch(
            *loader, 2, [&](const Batch& batch) { prints.push_back(testing::Fingerprint(batch)); });
        if (wanted.empty()) wanted = prints;
        EXPECT_EQ(prints, wanted) << threads << " threads";
      }
    }
    EXPECT_EQ(wanted.size(), 2 * ((kCount + 3) / 4));
  }
}

// A file that has more patches than its source says, in batches of rows and in those of patches.
TEST_F(RowProcessorTest, AnImageThatHasNoRoomIsABadSample) {
  std::vector<ImageSize> lies = sizes_;
  lies[kLarge] = {30, 30};
  const std::vector<std::pair<ProcessorRecipe, uint32_t>> cases = {
      {Qwen(), 0}, {Qwen(), 150}, {Tiles(), 15}};
  for (const auto& [recipe, batch_tokens] : cases) {
    LoaderOptions options = Options(recipe, lies);
    if (batch_tokens != 0) options.batch_size = 0;
    options.batch_tokens = batch_tokens;
    const auto failing = Loader::Open(options).value();
    const auto iterator = failing->Iterate();
    std::vector<Error> errors;
    for (Result<Batch> batch = iterator->Next(); !batch.ok() || *batch; batch = iterator->Next()) {
      if (!batch.ok()) errors.push_back(batch.error());
    }
    ASSERT_EQ(errors.size(), 1u);
    EXPECT_EQ(errors[0].code, Code::kDataLoss);
    EXPECT_EQ(errors[0].file, files_[kLarge].path);
    EXPECT_THAT(errors[0].cause, HasSubstr("the image has 160 × 150 pixels"));
    EXPECT_THAT(errors[0].cause, HasSubstr("the source says that the image has 30 × 30 pixels"));

    options.on_bad = BadPolicy::Parse("drop").value();
    const auto dropping = Loader::Open(options).value();
    EXPECT_EQ(TakeIds(*dropping), AllBut({kLarge}, kCount));
    EXPECT_EQ(dropping->Stats().bad.dropped, 1u);

    options.on_bad = BadPolicy::Parse("substitute").value();
    const auto substituting = Loader::Open(options).value();
    const std::vector<uint64_t> ids = TakeIds(*substituting);
    const BadCounts bad = substituting->Stats().bad;
    EXPECT_EQ(bad.substituted + bad.dropped, 1u);
    EXPECT_EQ(ids.size(), kCount - bad.dropped);
    EXPECT_EQ(std::ranges::count(ids, kLarge), 0);
  }
}

TEST_F(RowProcessorTest, ASmallerImageLeavesRoom) {
  std::vector<ImageSize> lies = sizes_;
  for (uint64_t id = 0; id < kCount; id += 3) lies[id] = {160, 150};
  const LoaderOptions options = Options(Qwen(), lies);
  EXPECT_EQ(TakeIds(*Loader::Open(options).value()), AllBut({}, kCount));
}

// Each delivered row is what the processor makes of its file; the samples that it refuses are gone.
TEST_F(RowProcessorTest, DamagedImagesLeaveTheOthersWhole) {
  RandomStream random({11, 0, 0}, 0);
  for (int round = 0; round < testing::Effort(20); ++round) {
    for (uint64_t id = 0; id < kCount; ++id) {
      if (random.Below(3) != 0) continue;
      std::vector<uint8_t> bytes = BytesOf(id);
      if (random.Below(2) == 0) bytes.resize(random.Below(bytes.size()) + 1);
      for (uint64_t i = random.Below(4); i != 0; --i) {
        bytes[random.Below(bytes.size())] = static_cast<uint8_t>(random.Below(256));
      }
      Put(id, bytes);
    }
    LoaderOptions options = Options(round % 2 == 0 ? Qwen() : Tiles(), sizes_);
    options.on_bad = BadPolicy::Parse("drop").value();
    std::set<uint64_t> refused;
    for (uint64_t id = 0; id < kCount; ++id) {
      const auto made = options.processor->Process({.bytes = {}, .path = files_[id].path});
      const auto wanted = options.processor->Plan(sizes_[id]).value().rows;
      if (!made.ok() || made->images[0].rows > wanted) refused.insert(id);
    }
    EXPECT_EQ(TakeIds(*Loader::Open(options).value()), AllBut(refused, kCount)) << round;
  }
}

// Bytes around the place of a row stay as they are, and its own if the image has no room.
TEST_F(RowProcessorTest, WritesOnlyInItsPlace) {
  constexpr uint8_t kGuard = 0xAB;
  LoaderOptions options = Options(Qwen(), sizes_);
  MemoryBudget budget(64 << 20);
  options.patch_counts = PatchCountsOf(options, budget.limit()).value();
  const std::vector<ColumnSpec> columns = ColumnsOf(options, std::nullopt, nullptr).value();
  const auto pool =
      SlotPool::Make({.columns = columns, .batch_size = 4, .working_slots = 1}, Reservation(budget))
          .value();
  Slot* const slot = pool->Acquire();
  slot->SetRows(3);
  const size_t each = columns[0].object_bytes();
  const std::span<uint8_t> memory(static_cast<uint8_t*>(slot->columns[0].data),
                                  columns[0].room * each);
  RowProcessor processor(options, budget, 1);
  for (uint64_t id = 0; id < kCount; ++id) {
    const ProcessedImages made =
        options.processor->Process({.bytes = {}, .path = files_[id].path}).value();
    const auto rows = static_cast<uint64_t>(made.images[0].rows);
    std::vector<uint8_t> bytes = BytesOf(id);
    bytes.resize(bytes.size() + kBufferPadding);
    const auto image = std::span<const uint8_t>(bytes).first(bytes.size() - kBufferPadding);
    for (const uint64_t room : {rows - 1, rows, rows + 3}) {
      std::ranges::fill(memory, kGuard);
      slot->starts = {0, 5, 5 + room, 9 + room};
      const RowClaim claim{.row = 1, .rows = 1, .slot = slot};
      processor.Begin(claim);
      const Status written =
          processor.Write(claim, id, {.bytes = image, .key = DrawKey{5, 0, id}}, 0);
      const size_t used = room < rows ? 0 : made.array.shape.bytes();
      EXPECT_EQ(written.ok(), used != 0);
      if (used == 0) {
        EXPECT_EQ(written.error().code, Code::kDataLoss);
      }
      ExpectBytes(memory.data() + 5 * each, made.array.memory.get(), used);
      const auto is_guard = [](uint8_t byte) { return byte == kGuard; };
      EXPECT_TRUE(std::ranges::all_of(memory.first(5 * each), is_guard)) << id;
      EXPECT_TRUE(std::ranges::all_of(memory.subspan(5 * each + used), is_guard)) << id;
    }
  }
  pool->Abandon(slot);
}

}  // namespace
}  // namespace stoker
