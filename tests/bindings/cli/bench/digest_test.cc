#include "bindings/cli/bench/digest.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch/slot_pool.h"

namespace stoker {
namespace {

uint64_t HashOf(const std::string& text, uint64_t seed = 0) {
  Hash64 hash(seed);
  hash.Add(text.data(), text.size());
  return hash.value();
}

// Values of Python's xxhash.xxh64(text, seed).
TEST(Hash64, MatchesXxh64) {
  EXPECT_EQ(HashOf(""), 0xef46db3751d8e999);
  EXPECT_EQ(HashOf("", 1), 0xd5afba1336a3be4b);
  EXPECT_EQ(HashOf("a"), 0xd24ec4f1a98c6e5b);
  EXPECT_EQ(HashOf("abc"), 0x44bc2cf5ad770999);
  EXPECT_EQ(HashOf(std::string(31, 'x')), 0x60dd0d01083b99f0);
  EXPECT_EQ(HashOf(std::string(32, 'y')), 0x64da1f1d3495ce66);
  EXPECT_EQ(HashOf("Nobody inspects the spammish repetition"), 0xfbcea83c8a378bf1);
  EXPECT_EQ(HashOf("Nobody inspects the spammish repetition", 1), 0x43f425448d954db6);

  std::string all(1280, '\0');
  std::iota(all.begin(), all.end(), '\0');
  EXPECT_EQ(HashOf(all), 0xafc184ad7938a354);
  EXPECT_EQ(HashOf(all, 1), 0xf4493e5e44988d52);
}

TEST(Hash64, DoesNotDependOnHowTheBytesAreSplit) {
  std::string text(1000, '\0');
  std::iota(text.begin(), text.end(), '\7');
  for (size_t step = 1; step <= 70; ++step) {
    Hash64 hash;
    for (size_t at = 0; at < text.size(); at += step) {
      hash.Add(text.data() + at, std::min(step, text.size() - at));
    }
    EXPECT_EQ(hash.value(), HashOf(text)) << "in pieces of " << step;
  }
}

// Returns batches of `rows` rows, 4 bytes of pixels each, sample ids from `first_id`.
class Batches {
 public:
  Batch Make(int64_t rows, uint64_t first_id, uint64_t epoch = 0, uint64_t index = 0) {
    Slot* slot = pool_->Acquire();
    slot->rows = rows;
    slot->epoch = epoch;
    slot->index = index;
    for (Column& column : slot->columns) column.shape[0] = rows;
    for (int64_t row = 0; row < rows; ++row) {
      slot->sample_ids[static_cast<size_t>(row)] = first_id + static_cast<uint64_t>(row);
      std::memset(slot->Row(0, row), static_cast<int>(first_id) + static_cast<int>(row), 4);
      *static_cast<int64_t*>(slot->Row(1, row)) = 7;
    }
    return pool_->Lend(slot);
  }

 private:
  MemoryBudget budget_{1 << 20};
  std::shared_ptr<SlotPool> pool_ =
      SlotPool::Make({.columns = {{"image", DType::kU8, {2, 2, 1}}, {"label", DType::kI64, {}}},
                      .batch_size = 8,
                      .working_slots = 1,
                      .lent_slots = 8},
                     Reservation(budget_))
          .value();
};

std::string DigestOf(const Batch& batch) {
  BatchDigest digest;
  digest.Add(batch);
  return digest.order_and_pixels();
}

TEST(BatchDigest, ChangesWithEveryPartOfABatch) {
  Batches batches;
  const std::string plain = DigestOf(batches.Make(8, 0));
  EXPECT_EQ(plain, DigestOf(batches.Make(8, 0)));
  EXPECT_NE(plain, DigestOf(batches.Make(7, 0)));
  EXPECT_NE(plain, DigestOf(batches.Make(8, 1)));
  EXPECT_NE(plain, DigestOf(batches.Make(8, 0, 1)));
  EXPECT_NE(plain, DigestOf(batches.Make(8, 0, 0, 1)));

  Batch pixel = batches.Make(8, 0);
  pixel.images().as<uint8_t>().back() ^= 1;
  EXPECT_NE(plain, DigestOf(pixel));
  Batch label = batches.Make(8, 0);
  label.labels().as<int64_t>().back() ^= 1;
  EXPECT_NE(plain, DigestOf(label));
}

TEST(BatchDigest, IsOfTheTextOfStringsAndNotOfTheirPlace) {
  const auto digest = [](std::string first, std::string second) {
    std::array<std::string_view, 2> texts{first, second};
    const std::array<uint64_t, 2> ids{3, 4};
    const std::array<Column, 1> columns{Column{"caption", DType::kString, {2}, texts.data()}};
    BatchDigest made;
    made.Add(0, 0, ids, columns);
    return made.order_and_pixels();
  };
  EXPECT_EQ(digest("ab", "c"), digest("ab", "c"));
  EXPECT_NE(digest("ab", "c"), digest("ab", "d"));
  EXPECT_NE(digest("ab", "c"), digest("a", "bc"));
}

TEST(BatchDigest, IsOfTheDivisionOfObjectsIntoRows) {
  const auto digest = [](std::array<int64_t, 3> offsets, std::array<float, 3> values) {
    const std::array<uint64_t, 2> ids{3, 4};
    Column column{"area", DType::kF32, {3}, values.data()};
    column.offsets = offsets.data();
    BatchDigest made;
    made.Add(0, 0, ids, std::span(&column, 1));
    return made.order_and_pixels();
  };
  EXPECT_EQ(digest({0, 1, 3}, {1, 2, 3}), digest({0, 1, 3}, {1, 2, 3}));
  EXPECT_NE(digest({0, 1, 3}, {1, 2, 3}), digest({0, 2, 3}, {1, 2, 3}));
  EXPECT_NE(digest({0, 1, 3}, {1, 2, 3}), digest({0, 1, 3}, {1, 2, 4}));
}

TEST(BatchDigest, SampleDigestIgnoresOrderAndBatching) {
  Batches batches;
  BatchDigest one;
  one.Add(batches.Make(8, 0, 3));
  BatchDigest two;
  two.Add(batches.Make(3, 5, 3));
  two.Add(batches.Make(5, 0, 3));
  EXPECT_EQ(one.samples(), two.samples());
  EXPECT_NE(one.order_and_pixels(), two.order_and_pixels());

  BatchDigest other_epoch;
  other_epoch.Add(batches.Make(8, 0, 4));
  EXPECT_NE(one.samples(), other_epoch.samples());
  BatchDigest shifted;
  shifted.Add(batches.Make(8, 1, 3));
  EXPECT_NE(one.samples(), shifted.samples());
}

}  // namespace
}  // namespace stoker
