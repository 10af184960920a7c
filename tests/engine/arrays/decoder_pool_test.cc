// Images decoded on workers equal those that one thread decodes, in order; of several failures the
// first image's is reported.
#include "engine/arrays/decoder_pool.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/runtime/runtime.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::MakeJpeg;
using testing::MakePng;

std::vector<uint8_t> PoolFile(int n) {
  const auto seed = static_cast<uint64_t>(n);
  if (n % 5 == 4) return MakePng({.width = 30 + n, .height = 20, .seed = seed});
  return MakeJpeg({.width = 30 + n, .height = 50, .orientation = n % 9, .seed = seed});
}

std::vector<std::vector<uint8_t>> PoolFiles(int count) {
  std::vector<std::vector<uint8_t>> files;
  for (int n = 0; n < count; ++n) files.push_back(PoolFile(n));
  return files;
}

std::vector<EncodedInput> InputsOf(const std::vector<std::vector<uint8_t>>& files) {
  std::vector<EncodedInput> inputs;
  for (const std::vector<uint8_t>& file : files) inputs.push_back({file, {}});
  return inputs;
}

std::vector<uint8_t> BytesOf(const DecodedArray& array) {
  const auto* const data = static_cast<const uint8_t*>(array.memory.get());
  return {data, data + array.shape.bytes()};
}

class DecoderPoolTest : public ::testing::TestWithParam<testing::TestedExecutor> {
 protected:
  std::shared_ptr<Runtime> MakeRuntime(int threads) {
    RuntimeOptions options{.threads = threads, .reader = ReaderKind::kPread};
    testing::SetExecutor(GetParam(), options);
    return Runtime::Create(options).value();
  }
  DecoderPool pool_{{}, 256 << 20};
};

INSTANTIATE_TEST_SUITE_P(Executors, DecoderPoolTest,
                         ::testing::ValuesIn(testing::ExecutorsUnderTest()));

TEST_P(DecoderPoolTest, AllAreThoseOfOneThreadInOrder) {
  const std::vector<std::vector<uint8_t>> files = PoolFiles(60);
  const std::vector<EncodedInput> inputs = InputsOf(files);
  for (const int threads : {1, 3}) {
    const auto runtime = MakeRuntime(threads);
    const std::vector<DecodedArray> arrays = pool_.DecodeAll(inputs, {}, *runtime, nullptr).value();
    ASSERT_EQ(arrays.size(), inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DecodedArray one = pool_.Decode(inputs[i], {}).value();
      ASSERT_EQ(arrays[i].shape.sides, one.shape.sides);
      ASSERT_EQ(BytesOf(arrays[i]), BytesOf(one)) << i;
    }
  }
}

TEST_P(DecoderPoolTest, ReportsTheFirstFailure) {
  std::vector<std::vector<uint8_t>> files = PoolFiles(60);
  for (const size_t damaged : {11, 12, 40}) files[damaged].resize(files[damaged].size() / 2);
  const std::vector<EncodedInput> inputs = InputsOf(files);
  const auto runtime = MakeRuntime(3);
  for (int round = 0; round < 20; ++round) {
    const Error error = pool_.DecodeAll(inputs, {}, *runtime, nullptr).error();
    ASSERT_EQ(error.code, Code::kDataLoss);
    ASSERT_EQ(error.cause.find("images[11]: "), 0u) << error.cause;
    ASSERT_TRUE(error.offset.has_value());
  }
}

TEST_P(DecoderPoolTest, AnInterruptEndsIt) {
  const std::vector<uint8_t> file = MakeJpeg({.width = 1500, .height = 1500});
  const std::vector<EncodedInput> inputs(3000, EncodedInput{file, {}});
  const auto runtime = MakeRuntime(2);
  int asked = 0;
  const Result<std::vector<DecodedArray>> arrays = pool_.DecodeAll(
      inputs, {.resize = Resize{.height = 2, .width = 2}}, *runtime, [&] { return ++asked > 0; });
  ASSERT_FALSE(arrays.ok());
  EXPECT_EQ(arrays.error().code, Code::kCancelled);
  EXPECT_EQ(asked, 1);
}

TEST_P(DecoderPoolTest, NoneAreNone) {
  const auto runtime = MakeRuntime(2);
  EXPECT_TRUE(pool_.DecodeAll({}, {}, *runtime, nullptr).value().empty());
}

// In each order, in one call and in several.
TEST(DecoderPool, AcceptsAnImageWhateverCameBefore) {
  std::vector<uint8_t> long_file = PoolFile(1);
  long_file.resize(28 << 20);
  const std::vector<uint8_t> progressive =
      MakeJpeg({.width = 1200, .height = 1024, .scans = testing::JpegScans::kProgressive});
  const std::vector<uint8_t> usual = PoolFile(2);
  const auto runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
  const EncodedInput a{long_file, {}}, b{progressive, {}}, c{usual, {}};
  for (std::vector<EncodedInput> inputs : {std::vector{a, b, c, a}, std::vector{b, b, a, c}}) {
    DecoderPool pool({}, 34 << 20);
    for (int time = 0; time < 2; ++time) {
      const std::vector<DecodedArray> all = pool.DecodeAll(inputs, {}, *runtime, nullptr).value();
      for (size_t i = 0; i < inputs.size(); ++i) {
        EXPECT_EQ(BytesOf(all[i]), BytesOf(pool.Decode(inputs[i], {}).value())) << i;
      }
    }
    const std::vector<uint8_t> too_long(35 << 20);
    inputs[1] = {too_long, {}};
    const Error error = pool.DecodeAll(inputs, {}, *runtime, nullptr).error();
    EXPECT_EQ(error.code, Code::kResourceExhausted);
    EXPECT_EQ(error.cause.find("images[1]: "), 0U) << error.cause;
  }
}

TEST(DecoderPool, ReadsFilesAndNamesThem) {
  const std::filesystem::path folder = ::testing::TempDir() + "decoder_pool_test";
  std::filesystem::create_directories(folder);
  const std::string sound = folder / "sound.jpg", cut = folder / "cut.jpg";
  const std::vector<uint8_t> file = PoolFile(1);
  const auto write = [&](const std::string& path, size_t size) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(size));
  };
  write(sound, file.size());
  write(cut, file.size() / 2);
  DecoderPool pool({}, 64 << 20);
  EXPECT_EQ(BytesOf(pool.Decode({{}, sound}, {}).value()),
            BytesOf(pool.Decode({file, {}}, {}).value()));
  const Error damaged = pool.Decode({{}, cut}, {}).error();
  EXPECT_EQ(damaged.code, Code::kDataLoss);
  EXPECT_EQ(damaged.file, cut);
  const Error missing = pool.Decode({{}, folder / "none.jpg"}, {}).error();
  EXPECT_EQ(missing.code, Code::kNotFound);
  EXPECT_EQ(missing.file, (folder / "none.jpg").string());
  std::filesystem::remove_all(folder);
}

TEST(DecoderPool, PoolsMayShareABudget) {
  const std::vector<uint8_t> file = PoolFile(3);
  const auto budget = std::make_shared<MemoryBudget>(uint64_t{64} << 20);
  {
    DecoderPool first({}, budget), second({.max_pixels = 1 << 20}, budget);
    ASSERT_TRUE(first.Decode({file, {}}, {}).ok());
    const uint64_t of_one = budget->used();
    EXPECT_GT(of_one, 0U) << "its decoder is kept";
    ASSERT_TRUE(second.Decode({file, {}}, {}).ok());
    EXPECT_GT(budget->used(), of_one);
    budget->SetLimit(budget->used());
    const std::vector<uint8_t> larger = MakeJpeg({.width = 900, .height = 900, .seed = 1});
    EXPECT_EQ(second.Decode({larger, {}}, {}).error().code, Code::kResourceExhausted);
  }
  EXPECT_EQ(budget->used(), 0U);
}

// An array outlives the pool, and its memory belongs to the caller: two calls never share it.
TEST(DecoderPool, ArraysAreIndependent) {
  const std::vector<uint8_t> file = PoolFile(3);
  DecodedArray first, second;
  {
    DecoderPool pool({}, 64 << 20);
    first = pool.Decode({file, {}}, {}).value();
    const std::vector<uint8_t> before = BytesOf(first);
    second = pool.Decode({file, {}}, {}).value();
    std::memset(second.memory.get(), 0, second.shape.bytes());
    EXPECT_EQ(BytesOf(first), before);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first.memory.get()) % 64, 0u);
  EXPECT_NE(first.memory, second.memory);
}

TEST(ArrayMemory, IsReusedOnlyAfterItsRelease) {
  constexpr size_t kBytes = 1 << 20;
  ArrayMemory arrays;
  std::shared_ptr<void> first = arrays.Allocate(kBytes).value();
  const std::shared_ptr<void> second = arrays.Allocate(kBytes).value();
  EXPECT_NE(first.get(), second.get());
  void* const was = first.get();
  const std::weak_ptr<void> watched = first;
  std::shared_ptr<void> view(first, static_cast<uint8_t*>(was) + 10);
  first.reset();
  const std::shared_ptr<void> third = arrays.Allocate(kBytes).value();
  EXPECT_NE(third.get(), was);  // `view` still has it
  view.reset();
  EXPECT_TRUE(watched.expired());
  EXPECT_NE(arrays.Allocate(3 * kBytes).value().get(), was);  // too small
  EXPECT_NE(arrays.Allocate(kBytes / 4).value().get(), was);  // much too large
  EXPECT_EQ(arrays.Allocate(kBytes - 5000).value().get(), was);
}

TEST(ArrayMemory, KeepsLittleAndOutlivesItsMaker) {
  std::shared_ptr<void> last;
  {
    ArrayMemory arrays;
    std::vector<std::shared_ptr<void>> many;
    for (int i = 0; i < 60; ++i)
      many.push_back(arrays.Allocate(ArrayMemory::kKeptBytes / 8).value());
    last = many.back();
    many.clear();
    std::vector<std::shared_ptr<void>> small;
    for (size_t bytes = 1; bytes < (200 << 10); bytes = 3 * bytes + 1) {
      small.push_back(arrays.Allocate(bytes).value());
      std::memset(small.back().get(), 1, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(small.back().get()) % 64, 0u);
    }
  }
  std::memset(last.get(), 1, ArrayMemory::kKeptBytes / 8);
}

// Memory other than the arrays is returned to the budget when a worker has grown large.
TEST(DecoderPool, LargeWorkersAreNotKept) {
  DecoderPool pool({}, 256 << 20);
  ASSERT_TRUE(pool.Decode({MakeJpeg({.width = 64, .height = 64}), {}}, {}).ok());
  const uint64_t usual = pool.budget().used();
  EXPECT_GT(usual, 0u);
  const std::vector<uint8_t> turned = MakeJpeg({.width = 4000, .height = 3000, .orientation = 6});
  ASSERT_TRUE(pool.Decode({turned, {}}, {}).ok());
  EXPECT_LE(pool.budget().used(), usual);
}

TEST(DecoderPool, ThreadsDoNotDisturbEachOther) {
  const std::vector<std::vector<uint8_t>> files = PoolFiles(40);
  DecoderPool pool({}, 64 << 20);
  std::vector<std::vector<uint8_t>> want;
  for (const std::vector<uint8_t>& file : files) {
    want.push_back(BytesOf(pool.Decode({file, {}}, {}).value()));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(BytesOf(pool.Decode({files[i], {}}, {}).value()), want[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stoker
