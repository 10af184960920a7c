// Random numbers of a program's functions, and columns by name.
#include "engine/map/row_random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "io/memory/arrays.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

constexpr uint64_t kDrawnSamples = 23;
constexpr uint64_t kDrawSeed = 9;

// Draws two numbers for each row, from the row's generator or from the same one of a batch.
class Draw final : public MapFunction {
 public:
  Draw(int calls, int world) : calls_(calls), world_(static_cast<uint64_t>(world)) {}
  std::string Describe() const override { return "Draw"; }
  int calls() const override { return calls_; }

  Status MapRow(const MappedRow& row) const override {
    EXPECT_EQ(row.column("no such column"), std::nullopt);
    RowRandom random = row.random();
    for (uint64_t& drawn : row.as<uint64_t>(row.column("drawn").value())) drawn = random();
    return {};
  }

  Status MapBatch(const Batch& batch) const override {
    const std::span<uint64_t> drawn = batch.column("drawn")->as<uint64_t>();
    for (size_t row = 0; row < batch.sample_ids().size(); ++row) {
      RowRandom random(kDrawSeed, batch.epoch(), batch.position() + row * world_);
      for (uint64_t& number : drawn.subspan(2 * row, 2)) number = random();
    }
    return {};
  }

 private:
  const int calls_;
  const uint64_t world_;
};

struct DrawSettings {
  int calls = 0, threads = 2;
  int64_t batch_size = 5;
  uint64_t seed = kDrawSeed;
  int world = 1;
};

// By epoch and sample, the two numbers that were drawn.
using Drawn = std::map<std::pair<uint64_t, uint64_t>, std::vector<uint64_t>>;

void AddDrawn(const Batch& batch, Drawn& drawn) {
  EXPECT_EQ(batch.column("drawn"), &batch.columns()[1]);
  EXPECT_EQ(batch.column("none"), nullptr);
  const std::span<const uint64_t> all = batch.column("drawn")->as<uint64_t>();
  for (size_t row = 0; row < batch.sample_ids().size(); ++row) {
    drawn[{batch.epoch(), batch.sample_ids()[row]}] = {all[2 * row], all[2 * row + 1]};
  }
}

Drawn DrawnWith(const DrawSettings& settings) {
  static const std::vector<uint64_t> zeros(2 * kDrawnSamples);
  Drawn drawn;
  for (int rank = 0; rank < settings.world; ++rank) {
    LoaderOptions options;
    options.source = Arrays({{"image", DType::kU64, {2}, zeros.data(), kDrawnSamples},
                             {"drawn", DType::kU64, {2}, zeros.data(), kDrawnSamples}},
                            nullptr)
                         .value();
    options.batch_size = settings.batch_size;
    options.shuffle = true;
    options.seed = settings.seed;
    options.rank = rank;
    options.world = settings.world;
    options.map = std::make_shared<Draw>(settings.calls, settings.world);
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(settings.threads)).value();
    const auto loader = Loader::Open(std::move(options)).value();
    for (uint64_t epoch = 0; epoch < 2; ++epoch) {
      const auto batches = loader->Iterate(epoch);
      while (const Batch batch = batches->Next().value()) AddDrawn(batch, drawn);
    }
  }
  return drawn;
}

TEST(RowRandom, DependsOnSeedEpochAndPositionAlone) {
  const Drawn wanted = DrawnWith({.threads = 1});
  std::set<uint64_t> different;
  for (const auto& [name, numbers] : wanted) different.insert(numbers.begin(), numbers.end());
  EXPECT_EQ(different.size(), 4 * kDrawnSamples);
  EXPECT_EQ(DrawnWith({.threads = 4}), wanted);
  EXPECT_EQ(DrawnWith({.calls = 2}), wanted);
  EXPECT_EQ(DrawnWith({.batch_size = 7}), wanted);
  EXPECT_EQ(DrawnWith({.batch_size = 4, .world = 3}), wanted);
  EXPECT_EQ(DrawnWith({.calls = 1, .batch_size = 4, .world = 3}), wanted);
  EXPECT_NE(DrawnWith({.seed = kDrawSeed + 1}), wanted);
}

TEST(RowRandom, SuitsTheStandardLibraryAndIsUniform) {
  RowRandom random(1, 2, 3), same(1, 2, 3);
  EXPECT_EQ(std::uniform_int_distribution<uint64_t>(0, ~uint64_t{0})(random), same());
  double sum = 0;
  std::vector<int> faces(6);
  for (int i = 0; i < 60000; ++i) {
    sum += random.Uniform();
    ++faces[random.Below(6)];
  }
  EXPECT_NEAR(sum / 60000, 0.5, 0.01);
  for (const int face : faces) EXPECT_NEAR(face, 10000, 600);
}

}  // namespace
}  // namespace stoker
