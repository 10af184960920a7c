// Columns that a program's function adds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/production/producer.h"
#include "io/memory/arrays.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RuntimeUnderTest;

constexpr uint64_t kCaptions = 23;

// Counts the letters of each caption, into the caption's column and another one.
class CountLetters final : public MapFunction {
 public:
  CountLetters(int calls, std::vector<ColumnSpec> columns)
      : calls_(calls), columns_(std::move(columns)) {}
  std::string Describe() const override { return "CountLetters"; }
  int calls() const override { return calls_; }
  std::vector<ColumnSpec> columns() const override { return columns_; }

  Status MapRow(const MappedRow& row) const override {
    const size_t strings = row.columns().size() - 1;  // after all others
    EXPECT_EQ(row.columns()[strings].name, "caption");
    Write(row.as<std::string_view>(strings)[0], row.as<int32_t>(row.column("caption").value()),
          row.as<uint64_t>(row.column("letters").value()));
    return {};
  }

  Status MapBatch(const Batch& batch) const override {
    const std::span<const std::string_view> strings = batch.columns().back().as<std::string_view>();
    for (size_t row = 0; row < strings.size(); ++row) {
      Write(strings[row], batch.column("caption")->as<int32_t>().subspan(2 * row, 2),
            batch.column("letters")->as<uint64_t>().subspan(row, 1));
    }
    return {};
  }

 private:
  static void Write(std::string_view text, std::span<int32_t> counts, std::span<uint64_t> letters) {
    EXPECT_THAT(counts, ElementsAre(0, 0));
    EXPECT_THAT(letters, ElementsAre(0));
    counts[0] = static_cast<int32_t>(text.size());
    letters[0] = text.size();
  }

  const int calls_;
  const std::vector<ColumnSpec> columns_;
};

std::vector<ColumnSpec> Declared() {
  return {{"caption", DType::kI32, {2}}, {"letters", DType::kU64, {}}};
}

class MapColumns : public ::testing::Test {
 protected:
  MapColumns() {
    for (uint64_t i = 0; i < kCaptions; ++i) texts_.emplace_back(i, 'x');
    for (const std::string& text : texts_) captions_.emplace_back(text);
  }

  LoaderOptions Options(std::shared_ptr<const MapFunction> map, int threads = 2) const {
    LoaderOptions options;
    options.source = Arrays({{"image", DType::kU8, {2, 2, 3}, pixels_.data(), kCaptions},
                             {"caption", DType::kString, {}, captions_.data(), kCaptions}},
                            nullptr)
                         .value();
    options.batch_size = 5;
    options.shuffle = true;
    options.map = std::move(map);
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }

  std::vector<uint8_t> pixels_ = std::vector<uint8_t>(kCaptions * 12);
  std::vector<std::string> texts_;
  std::vector<std::string_view> captions_;
};

TEST_F(MapColumns, RowsAndBatchesAddTheSame) {
  for (const int calls : {0, 1, 3}) {
    for (const bool transforms : {false, true}) {
      LoaderOptions options = Options(std::make_shared<CountLetters>(calls, Declared()));
      if (transforms)
        options.transforms = {Resize{.height = 2, .width = 2}, RandomHorizontalFlip{}};
      const auto loader = Loader::Open(std::move(options)).value();
      const auto batches = loader->Iterate();
      uint64_t rows = 0;
      while (const Batch batch = batches->Next().value()) {
        ASSERT_EQ(batch.columns().size(), 4U);
        EXPECT_EQ(batch.column("caption"), &batch.columns()[1]);
        EXPECT_THAT(batch.columns()[1].shape, ElementsAre(batch.rows(), 2));
        for (const uint64_t id : batch.sample_ids()) {
          const size_t row = rows++ % 5;
          EXPECT_EQ(batch.columns()[1].as<int32_t>()[2 * row], static_cast<int32_t>(id));
          EXPECT_EQ(batch.column("letters")->as<uint64_t>()[row], id);
        }
      }
      EXPECT_EQ(rows, kCaptions);
    }
  }
}

TEST_F(MapColumns, WrongColumnsAreRefused) {
  const std::vector<std::pair<std::vector<ColumnSpec>, const char*>> cases = {
      {{{"image", DType::kU8, {}}}, "'image', and batches have one with this name already"},
      {{{"a", DType::kU8, {}}, {"a", DType::kU8, {}}}, "'a', and batches have one"},
      {{{"caption", DType::kU8, {}}, {"caption", DType::kU8, {}}},
       "'caption', and batches have one"},
      {{{"a", DType::kString, {}}}, "a function adds numbers only"},
      {{{"a", DType::kU8, {0}}}, "dimension of 0"},
      {{{"", DType::kU8, {}}}, "has no name"}};
  for (const auto& [columns, words] : cases) {
    const auto opened = Producer::Open(Options(std::make_shared<CountLetters>(0, columns)));
    ASSERT_FALSE(opened.ok()) << words;
    EXPECT_EQ(opened.error().code, Code::kInvalidArgument);
    EXPECT_THAT(opened.error().cause, HasSubstr(words));
  }
}

TEST_F(MapColumns, StatesKnowTheColumns) {
  const auto first = Loader::Open(Options(std::make_shared<CountLetters>(0, Declared()))).value();
  auto changed = Declared();
  changed[1].dtype = DType::kI64;
  const auto second = Loader::Open(Options(std::make_shared<CountLetters>(0, changed))).value();
  EXPECT_TRUE(first->PlaceOf(first->StateAt({0, 1})).ok());
  const auto refused = second->PlaceOf(first->StateAt({0, 1}));
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().cause, HasSubstr("letters uint64"));
}

}  // namespace
}  // namespace stoker
