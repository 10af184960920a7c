// Loaders over samples that are in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "engine/memory/memory_plan.h"
#include "engine/order/sampler.h"
#include "engine/production/producer.h"
#include "engine/production/producer_parts.h"
#include "io/memory/arrays.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/threads/executors.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/reference.h"

namespace stoker {
namespace {

using ::stoker::testing::ExecutorsUnderTest;
using ::stoker::testing::TakeEpoch;
using ::stoker::testing::TakeIds;

// An array with bytes that differ from row to row and along each row.
struct Array {
  Array(std::string name, DType dtype, std::vector<int64_t> row_shape, uint64_t samples)
      : column{std::move(name), dtype, std::move(row_shape), nullptr, samples} {
    bytes.resize(column.row_bytes() * samples);
    uint32_t state = 12345;
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1) >> 24);
    column.data = bytes.data();
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  std::vector<uint8_t> bytes;
  ArrayColumn column;
};

std::shared_ptr<Runtime> MakeRuntime(RuntimeOptions options, testing::TestedExecutor executor) {
  testing::SetExecutor(executor, options);
  return Runtime::Create(options).value();
}

LoaderOptions OptionsOf(std::vector<ArrayColumn> columns) {
  LoaderOptions options;
  options.source = Arrays(std::move(columns), nullptr).value();
  options.batch_size = 8;
  options.shuffle = true;
  options.seed = 3;
  options.runtime = Runtime::Create({.threads = 2}).value();
  return options;
}

// Every row of the batch is the row of its sample, in every column.
void ExpectRows(const Batch& batch, const std::vector<const Array*>& arrays) {
  ASSERT_EQ(batch.columns().size(), arrays.size());
  for (size_t c = 0; c < arrays.size(); ++c) {
    const Column& column = batch.columns()[c];
    std::vector<int64_t> shape = arrays[c]->column.row_shape;
    shape.insert(shape.begin(), batch.rows());
    EXPECT_EQ(column.shape, shape);
    EXPECT_EQ(column.dtype, arrays[c]->column.dtype);
    EXPECT_EQ(column.name, arrays[c]->column.name);
    const size_t bytes = arrays[c]->column.row_bytes();
    for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
      ASSERT_EQ(std::memcmp(static_cast<const uint8_t*>(column.data) + row * bytes,
                            arrays[c]->column.Row(batch.sample_ids()[row]), bytes),
                0)
          << column.name << " row " << row;
    }
  }
}

// Takes an epoch, looks at every row, and returns the ids in their order.
std::vector<uint64_t> TakeRows(Producer& loader, const std::vector<const Array*>& arrays) {
  std::vector<uint64_t> ids;
  while (Batch batch = loader.Next().value()) {
    ExpectRows(batch, arrays);
    ids.insert(ids.end(), batch.sample_ids().begin(), batch.sample_ids().end());
  }
  return ids;
}

std::vector<uint64_t> Sorted(std::vector<uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::vector<uint64_t> Numbers(uint64_t n) {
  std::vector<uint64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(ProducerArrays, AShuffledEpochIsTheInputPermuted) {
  const Array images("image", DType::kF32, {5, 3}, 61), labels("label", DType::kI32, {}, 61);
  auto loader = Producer::Open(OptionsOf({images.column, labels.column})).value();
  EXPECT_EQ(loader->batches_per_epoch(), 8u);
  const Sampler order =
      Sampler::Make({.samples = 61, .shuffle = true, .seed = 3, .batch_size = 8}).value();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<uint64_t> wanted;
    for (uint64_t n = 0; n < 61; ++n) {
      wanted.push_back(order.At({epoch, n / 8}, static_cast<uint32_t>(n % 8)).sample);
    }
    const std::vector<uint64_t> ids = TakeRows(*loader, {&images, &labels});
    EXPECT_EQ(ids, wanted);
    EXPECT_EQ(Sorted(ids), Numbers(61));
  }
  EXPECT_GE(loader->Stats().samples, 3 * 61u);
  EXPECT_EQ(loader->Stats().bytes_read, 0u);
  EXPECT_EQ(loader->Stats().reader, "none");
  EXPECT_EQ(loader->Stats().plan, "rows copied as they are");
}

TEST(ProducerArrays, DeliversRowsOfEveryTypeAndShape) {
  for (DType dtype :
       {DType::kBool, DType::kU8, DType::kI8, DType::kU16, DType::kI16, DType::kU32, DType::kI32,
        DType::kU64, DType::kI64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
    for (const std::vector<int64_t>& shape :
         {std::vector<int64_t>{}, {1}, {7}, {28, 28}, {3, 1, 2, 1, 2, 1, 1}}) {
      const Array first("a", dtype, shape, 19), second("b", dtype, {2}, 19);
      auto loader = Producer::Open(OptionsOf({first.column, second.column})).value();
      EXPECT_EQ(Sorted(TakeRows(*loader, {&first, &second})), Numbers(19)) << NameOf(dtype);
    }
  }
}

TEST(ProducerArrays, DeliversOneColumnInOrder) {
  const Array rows("row", DType::kU8, {3}, 20);
  LoaderOptions options = OptionsOf({rows.column});
  options.shuffle = false;
  options.batch_size = 6;
  auto loader = Producer::Open(options).value();
  EXPECT_EQ(TakeRows(*loader, {&rows}), Numbers(20));
  options.drop_remainder = true;
  loader = Producer::Open(options).value();
  EXPECT_EQ(TakeRows(*loader, {&rows}), Numbers(18));
}

TEST(ProducerArrays, DeliversBigRowsAndBigLabels) {
  const Array images("image", DType::kU8, {1000, 1000}, 9), masks("mask", DType::kU8, {70'000}, 9);
  LoaderOptions options = OptionsOf({images.column, masks.column});
  options.batch_size = 2;
  auto loader = Producer::Open(options).value();
  EXPECT_EQ(Sorted(TakeRows(*loader, {&images, &masks})), Numbers(9));
}

TEST(ProducerArrays, FillsABatchOfManySmallRows) {
  const Array rows("row", DType::kU16, {}, 100'003);
  LoaderOptions options = OptionsOf({rows.column});
  options.batch_size = 40'000;  // more than one run
  auto loader = Producer::Open(options).value();
  for (int epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(Sorted(TakeRows(*loader, {&rows})), Numbers(100'003));
  }
}

TEST(ProducerArrays, BytesDependOnNeitherThreadsNorDepthNorExecutor) {
  const Array images("image", DType::kI16, {40, 40}, 203), labels("label", DType::kF64, {}, 203);
  const auto take = [&](int threads, int depth, testing::TestedExecutor executor, uint64_t budget) {
    LoaderOptions options = OptionsOf({images.column, labels.column});
    options.batch_size = 50;  // one run, two, or three; the last is short
    options.depth = depth;
    options.runtime = MakeRuntime(
        {.threads = threads, .reader_threads = 1 + depth % 3, .memory_budget = budget}, executor);
    auto loader = Producer::Open(options).value();
    std::vector<uint64_t> prints = TakeEpoch(*loader);
    const std::vector<uint64_t> second = TakeEpoch(*loader);
    prints.insert(prints.end(), second.begin(), second.end());
    return prints;
  };
  const std::vector<uint64_t> wanted = take(1, 1, ExecutorsUnderTest()[0], 0);
  EXPECT_EQ(wanted.size(), 10u);
  for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
    for (int threads : {1, 2, 8}) {
      for (int depth : {1, 3, 16}) {
        EXPECT_EQ(take(threads, depth, executor, 0), wanted);
      }
      const uint64_t tight = (static_cast<uint64_t>(threads) * kWorkspaceBytes) +
                             2 * kReadBufferBytes + 164'288;  // one batch, two runs in flight
      EXPECT_EQ(take(threads, 1, executor, tight), wanted);
    }
  }
}

TEST(ProducerArrays, DeliversRowsWithNegativeStrides) {
  Array rows("row", DType::kU32, {3}, 30);
  rows.column.samples = 15;
  rows.column.row_stride = -24;
  rows.column.data = rows.bytes.data() + 28 * 12;
  auto loader = Producer::Open(OptionsOf({rows.column})).value();
  EXPECT_EQ(Sorted(TakeRows(*loader, {&rows})), Numbers(15));
}

TEST(ProducerArrays, RanksShareTheSamples) {
  const Array rows("row", DType::kF32, {4}, 31);
  std::vector<uint64_t> all;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    LoaderOptions options = OptionsOf({rows.column});
    options.rank = rank;
    options.world = 3;
    auto loader = Producer::Open(options).value();
    const auto ids = TakeRows(*loader, {&rows});
    all.insert(all.end(), ids.begin(), ids.end());
  }
  EXPECT_EQ(Sorted(all), Numbers(31));
}

TEST(RunOf, IsAWorkersShareOfABatchUnlessThatIsTinyOrHuge) {
  struct Case {
    std::vector<int64_t> row_shape;
    int64_t batch_size;
    int workers;
    bool maps_rows;
    uint32_t rows;
  };
  const std::vector<Case> cases{{{224, 224, 3}, 64, 1, false, 13},   // 2 MiB
                                {{224, 224, 3}, 64, 16, false, 4},   // the share
                                {{224, 224, 3}, 64, 64, false, 1},   // the share
                                {{224, 224, 3}, 64, 100, false, 1},  // no row for some workers
                                {{224, 224, 3}, 4, 1, false, 4},     // the batch
                                {{224, 224, 3}, 64, 1, true, 1},     // more than 64 KiB
                                {{32, 32, 3}, 64, 1, false, 64},     // the batch
                                {{32, 32, 3}, 64, 2, false, 32},     // the share
                                {{32, 32, 3}, 64, 16, false, 21},    // 64 KiB
                                {{32, 32, 3}, 64, 1, true, 21},      // 64 KiB
                                {{32, 32, 3}, 8, 16, false, 8},  // the batch, of less than 64 KiB
                                {{1 << 22}, 8, 1, false, 1},     // more than 2 MiB
                                {{}, 3'000'000, 1, false, 1 << 21},    // 2 MiB
                                {{}, 3'000'000, 64, false, 1 << 16}};  // 64 KiB
  for (const Case& c : cases) {
    const Array rows("row", DType::kU8, c.row_shape, 1);
    LoaderOptions options = OptionsOf({rows.column});
    options.batch_size = c.batch_size;
    EXPECT_EQ(RunOf(options, c.maps_rows, c.workers), c.rows)
        << rows.column.row_bytes() << " bytes, batches of " << c.batch_size << ", " << c.workers
        << " workers";
  }
}

TEST(ProducerArrays, SeekGoesAnywhere) {
  const Array rows("row", DType::kF32, {4}, 61);
  auto loader = Producer::Open(OptionsOf({rows.column})).value();
  const std::vector<uint64_t> first = TakeEpoch(*loader), second = TakeEpoch(*loader);
  for (uint64_t index : {0, 3, 7}) {
    ASSERT_TRUE(loader->Seek({1, index}).ok());
    EXPECT_EQ(TakeEpoch(*loader),
              std::vector<uint64_t>(second.begin() + static_cast<ptrdiff_t>(index), second.end()));
  }
  ASSERT_TRUE(loader->Seek({0, 0}).ok());
  EXPECT_EQ(TakeEpoch(*loader), first);
}

TEST(ProducerArrays, BatchesAreCopiesThatOutliveTheArrays) {
  auto array = std::make_shared<Array>("row", DType::kU8, std::vector<int64_t>{9}, 16);
  const std::vector<uint8_t> wanted(array->bytes.begin(), array->bytes.begin() + 8 * 9);
  LoaderOptions options = OptionsOf({array->column});
  options.source = Arrays({array->column}, array).value();
  options.shuffle = false;
  const std::weak_ptr<Array> watched = std::exchange(array, nullptr);
  auto loader = Producer::Open(std::exchange(options, {})).value();
  const Batch batch = loader->Next().value();
  EXPECT_FALSE(watched.expired());
  loader.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_TRUE(std::ranges::equal(batch.images().as<uint8_t>(), wanted));
}

TEST(ProducerArrays, TransformsMatchThePlanAppliedByHand) {
  const Array images("image", DType::kU8, {37, 51, 3}, 40), labels("label", DType::kU8, {5}, 40);
  for (DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    const Layout layout = SizeOf(dtype) == 2 ? Layout::kNchw : Layout::kNhwc;
    for (testing::TestedExecutor executor : ExecutorsUnderTest()) {
      LoaderOptions options = OptionsOf({images.column, labels.column});
      options.transforms = {RandomResizedCrop{.height = 16, .width = 20}, RandomHorizontalFlip{}};
      options.dtype = dtype;
      options.layout = layout;
      options.runtime = MakeRuntime({.threads = 3}, executor);
      PlanOptions planned;
      planned.dtype = dtype;
      planned.layout = layout;
      const Plan plan = Plan::Compile(options.transforms, planned).value();
      auto loader = Producer::Open(options).value();
      std::vector<float> wanted(plan.row_bytes() / sizeof(float) + 1);
      uint64_t position = 0;
      (void)TakeIds(*loader);
      while (Batch batch = loader->Next().value()) {
        EXPECT_EQ(batch.images().dtype, dtype);
        EXPECT_EQ(batch.images().shape, layout == Layout::kNhwc
                                            ? (std::vector<int64_t>{batch.rows(), 16, 20, 3})
                                            : (std::vector<int64_t>{batch.rows(), 3, 16, 20}));
        for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
          const uint64_t id = batch.sample_ids()[row];
          const ImageView image{
              PixelLayout::kInterleaved, {51, 37}, {images.column.Row(id)}, {3 * 51}};
          ASSERT_TRUE(ApplyReference(plan, image, {3, 1, position++}, wanted.data()).ok());
          ASSERT_EQ(
              std::memcmp(wanted.data(),
                          static_cast<const uint8_t*>(batch.images().data) + row * plan.row_bytes(),
                          plan.row_bytes()),
              0);
          ASSERT_EQ(
              std::memcmp(labels.column.Row(id), batch.labels().as<uint8_t>().data() + row * 5, 5),
              0);
        }
      }
      EXPECT_EQ(position, 40u);
    }
  }
}

TEST(ProducerArrays, ErrorsNameArraysThatCannotBeTransformed) {
  const auto refusal = [](DType dtype, std::vector<int64_t> shape, bool transform, DType wanted) {
    const Array array("image", dtype, std::move(shape), 2);
    LoaderOptions options = OptionsOf({array.column});
    if (transform) options.transforms = {Resize{.height = 8, .width = 8}};
    options.dtype = wanted;
    const auto loader = Producer::Open(options);
    if (loader.ok()) return std::string();
    EXPECT_EQ(loader.error().code, Code::kInvalidArgument);
    return loader.error().ToString();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_EQ(refusal(DType::kU8, {4, 5, 3}, true, DType::kF32), "");
  EXPECT_TRUE(has(refusal(DType::kF32, {4, 5, 3}, true, DType::kU8), "float32 (4, 5, 3)"));
  EXPECT_TRUE(has(refusal(DType::kU8, {28, 28}, true, DType::kU8), "uint8 (28, 28)"));
  EXPECT_TRUE(has(refusal(DType::kU8, {4, 5, 1}, true, DType::kU8), "'image'"));
  EXPECT_TRUE(has(refusal(DType::kU8, {1, 65536, 3}, true, DType::kU8), "65535"));
  EXPECT_EQ(refusal(DType::kI16, {4}, false, DType::kU8), "");
  EXPECT_EQ(refusal(DType::kI16, {4}, false, DType::kI16), "");
  EXPECT_TRUE(has(refusal(DType::kU8, {4}, false, DType::kF32), "dtype is float32"));
}

TEST(ProducerArrays, RefusesALayoutForCopiedRows) {
  const Array array("image", DType::kU8, {4, 5, 3}, 2);
  LoaderOptions options = OptionsOf({array.column});
  options.layout = Layout::kNchw;
  const auto loader = Producer::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_NE(loader.error().ToString().find("layout is NCHW"), std::string::npos);
}

TEST(ProducerArrays, DestroyingLoadersAtWorkFreesTheirMemory) {
  const Array rows("row", DType::kF32, {100}, 500);
  LoaderOptions options = OptionsOf({rows.column});
  for (int i = 0; i < 60; ++i) {  // and each is destroyed in the middle of its work
    auto loader = Producer::Open(options).value();
    for (int n = 0; n < i % 7; ++n) ASSERT_TRUE(loader->Next().ok());
  }
  EXPECT_EQ(options.runtime->budget().used(), 0u);
}

}  // namespace
}  // namespace stoker
