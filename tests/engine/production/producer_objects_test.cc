// Samples with objects: their batches, errors, states, and what a loader refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "io/memory/arrays.h"
#include "io/ranges/path_source.h"
#include "io/select/subset.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::PhotoFolder;
using testing::RuntimeUnderTest;
using Source = std::shared_ptr<const SampleSource>;

constexpr int kPhotos = 37;

// Sample `id` has id % 4 objects, which are numbered from 10 id.
int64_t ObjectsIn(uint64_t id) { return static_cast<int64_t>(id % 4); }

struct ObjectsOfRows {
  std::vector<uint64_t> samples;
  std::vector<std::vector<int64_t>> numbers;  // of the objects of each row
  friend bool operator==(const ObjectsOfRows&, const ObjectsOfRows&) = default;
};

void AddObjects(const Batch& batch, ObjectsOfRows& rows) {
  const Column& numbers = *batch.column("numbers");
  const Column& halves = *batch.column("halves");
  ASSERT_EQ(numbers.shape, (std::vector<int64_t>{numbers.offsets[batch.rows()]}));
  ASSERT_EQ(halves.shape, (std::vector<int64_t>{numbers.shape[0], 2}));
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const std::span<const int64_t> of_row = numbers.objects<const int64_t>(row);
    const std::span<const float> half = halves.objects<const float>(row);
    ASSERT_EQ(half.size(), 2 * of_row.size());
    for (size_t i = 0; i < of_row.size(); ++i) {
      EXPECT_EQ(half[2 * i], static_cast<float>(of_row[i]) / 2);
    }
    rows.samples.push_back(batch.sample_ids()[static_cast<size_t>(row)]);
    rows.numbers.emplace_back(of_row.begin(), of_row.end());
  }
}

// Expects that each sample has its own objects.
void ExpectOwnObjects(const ObjectsOfRows& rows, size_t count) {
  ASSERT_EQ(rows.samples.size(), count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<int64_t> expected;
    for (int64_t object = 0; object < ObjectsIn(rows.samples[i]); ++object) {
      expected.push_back(static_cast<int64_t>(rows.samples[i]) * 10 + object);
    }
    EXPECT_EQ(rows.numbers[i], expected) << rows.samples[i];
  }
}

class ProducerObjects : public ::testing::Test {
 protected:
  ProducerObjects() {
    for (uint64_t id = 0; id < kPhotos; ++id) {
      for (int64_t object = 0; object < ObjectsIn(id); ++object) {
        numbers_.push_back(static_cast<int64_t>(id) * 10 + object);
        halves_.push_back(static_cast<float>(numbers_.back()) / 2);
        halves_.push_back(0);
      }
      offsets_.push_back(static_cast<int64_t>(numbers_.size()));
    }
  }

  std::vector<ArrayColumn> Columns() const {
    ArrayColumn numbers{.name = "numbers",
                        .dtype = DType::kI64,
                        .row_shape = {},
                        .data = numbers_.data(),
                        .samples = kPhotos,
                        .offsets = offsets_.data(),
                        .kind = Field::Kind::kObject};
    ArrayColumn halves = numbers;
    halves.name = "halves";
    halves.dtype = DType::kF32;
    halves.row_shape = {2};
    halves.data = halves_.data();
    return {std::move(numbers), std::move(halves)};
  }

  Source Photos() const { return PhotosWith(Columns()); }
  Source PhotosWith(std::vector<ArrayColumn> columns) const {
    std::vector<std::string> paths;
    for (uint64_t id = 0; id < kPhotos; ++id) paths.push_back(photos_.FileOf(id));
    return Files(PathTable(paths), {.columns = std::move(columns)}).value();
  }

  LoaderOptions Options(Source source, int threads = 2) const {
    LoaderOptions options;
    options.source = std::move(source);
    options.transforms = {RandomResizedCrop{.height = 16, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = 7;
    options.shuffle = true;
    options.seed = 5;
    options.max_bad_fraction = 1;
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }
  LoaderOptions Options() const { return Options(Photos()); }

  static ObjectsOfRows Epochs(Loader& loader, uint64_t epochs = 1) {
    ObjectsOfRows rows;
    testing::ForEachBatch(loader, epochs, [&](const Batch& batch) { AddObjects(batch, rows); });
    return rows;
  }
  static ObjectsOfRows Epochs(const LoaderOptions& options, uint64_t epochs = 1) {
    return Epochs(*Loader::Open(options).value(), epochs);
  }

  const PhotoFolder photos_{kPhotos, 2};
  std::vector<int64_t> offsets_{0}, numbers_;
  std::vector<float> halves_;
};

TEST_F(ProducerObjects, AreThoseOfTheirSample) {
  const ObjectsOfRows rows = Epochs(Options(), 3);
  ExpectOwnObjects(rows, 3 * kPhotos);
  EXPECT_EQ(Epochs(Options(Photos(), 1), 3), rows);
}

TEST_F(ProducerObjects, OfOneSampleABatch) {
  LoaderOptions options = Options();
  options.batch_size = 1;
  ExpectOwnObjects(Epochs(options), kPhotos);
}

TEST_F(ProducerObjects, BelongToTheSubstitute) {
  for (const uint64_t id : {3, 4, 11, 12, 30}) photos_.Overwrite(id, "no photograph");
  LoaderOptions options = Options();
  options.on_bad = BadPolicy::Parse("substitute").value();
  ExpectOwnObjects(Epochs(options, 2), 2 * kPhotos);
}

TEST_F(ProducerObjects, OfDroppedSamplesAreDropped) {
  for (const uint64_t id : {3, 4, 11, 12, 30}) photos_.Overwrite(id, "no photograph");
  LoaderOptions options = Options();
  options.on_bad = BadPolicy::Parse("drop").value();
  const ObjectsOfRows rows = Epochs(options, 2);
  ExpectOwnObjects(rows, 2 * (kPhotos - 5));
}

TEST_F(ProducerObjects, MayBeNone) {
  const std::vector<int64_t> none(kPhotos + 1);
  std::vector<ArrayColumn> columns = Columns();
  for (ArrayColumn& column : columns) column.offsets = none.data();
  const auto iterator = Loader::Open(Options(PhotosWith(columns))).value()->Iterate();
  int64_t rows = 0;
  while (const Batch batch = iterator->Next().value()) {
    EXPECT_EQ(batch.column("numbers")->shape, (std::vector<int64_t>{0}));
    EXPECT_EQ(batch.column("halves")->shape, (std::vector<int64_t>{0, 2}));
    for (int64_t row = 0; row <= batch.rows(); ++row) {
      EXPECT_EQ(batch.column("halves")->offsets[row], 0);
    }
    rows += batch.rows();
  }
  EXPECT_EQ(rows, kPhotos);
}

// Nothing is left to deliver, and no slot is compacted twice.
TEST_F(ProducerObjects, OfNoUsableSampleAreNotDelivered) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, "no photograph");
  LoaderOptions options = Options();
  options.on_bad = BadPolicy::Parse("drop").value();
  EXPECT_EQ(Epochs(options), ObjectsOfRows());
}

TEST_F(ProducerObjects, AreTheSameAfterResuming) {
  const auto loader = Loader::Open(Options()).value();
  const ObjectsOfRows all = Epochs(*loader);
  const auto resumed = Loader::Open(Options()).value();
  const auto iterator = resumed->Iterate();
  ASSERT_TRUE(iterator->Restore(loader->StateAt({0, 2})).ok());
  ObjectsOfRows rest;
  while (const Batch batch = iterator->Next().value()) AddObjects(batch, rest);
  EXPECT_EQ(rest.samples, std::vector<uint64_t>(all.samples.begin() + 14, all.samples.end()));
  ExpectOwnObjects(rest, kPhotos - 14);
}

TEST_F(ProducerObjects, OfSelectedSamplesReserveLess) {
  std::vector<uint64_t> few;
  for (uint64_t id = 0; id < kPhotos; id += 4) few.push_back(id + (id % 8 == 0 ? 1 : 0));
  const auto some = Subset(Photos(), few).value();
  EXPECT_EQ(some->max_objects(), 1u);
  const auto loader = Loader::Open(Options(some)).value();
  EXPECT_EQ(Epochs(*loader).samples.size(), few.size());
  const auto all = Loader::Open(Options()).value();
  EXPECT_LT(loader->Stats().slot_bytes, all->Stats().slot_bytes);
}

TEST_F(ProducerObjects, OfArraysAreCopied) {
  const std::vector<uint8_t> pixels(kPhotos * 12);
  const ArrayColumn images{.name = "image",
                           .dtype = DType::kU8,
                           .row_shape = {2, 2, 3},
                           .data = pixels.data(),
                           .samples = kPhotos};
  const auto source = Arrays({images, Columns()[0]}, nullptr).value();
  EXPECT_FALSE(source->label());
  LoaderOptions options = Options(source);
  options.transforms.clear();
  const auto iterator = Loader::Open(options).value()->Iterate();
  size_t rows = 0;
  while (Batch batch = iterator->Next().value()) {
    const Column& numbers = batch.columns()[1];
    for (int64_t row = 0; row < batch.rows(); ++row, ++rows) {
      const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
      const auto of_row = numbers.objects<const int64_t>(row);
      ASSERT_EQ(of_row.size(), static_cast<size_t>(ObjectsIn(id)));
      for (size_t i = 0; i < of_row.size(); ++i) {
        EXPECT_EQ(of_row[i], static_cast<int64_t>(id * 10 + i));
      }
    }
  }
  EXPECT_EQ(rows, static_cast<size_t>(kPhotos));
}

// A function of rows sees the objects of its row, and may change their values.
class DoublesNumbers final : public MapFunction {
 public:
  std::string Describe() const override { return "doubles"; }
  Status MapRow(const MappedRow& row) const override {
    const size_t numbers = row.column("numbers").value();
    EXPECT_EQ(row.objects(numbers), static_cast<size_t>(ObjectsIn(row.sample())));
    EXPECT_EQ(row.objects(0), 1u);
    for (int64_t& number : row.as<int64_t>(numbers)) number *= 2;
    const size_t halves = row.column("halves").value();
    EXPECT_EQ(row.as<float>(halves).size(), 2 * row.objects(halves));
    for (float& half : row.as<float>(halves)) half *= 2;
    return {};
  }
};

TEST_F(ProducerObjects, CanBeMappedByRow) {
  LoaderOptions options = Options();
  ObjectsOfRows rows = Epochs(options);
  options.map = std::make_shared<DoublesNumbers>();
  const ObjectsOfRows mapped = Epochs(options);
  for (std::vector<int64_t>& row : rows.numbers) {
    for (int64_t& number : row) number *= 2;
  }
  EXPECT_EQ(mapped, rows);
}

// A function of batches gets ragged columns as they are delivered.
class AddsToNumbers final : public MapFunction {
 public:
  std::string Describe() const override { return "adds"; }
  int calls() const override { return 2; }
  Status MapBatch(const Batch& batch) const override {
    const Column& numbers = *batch.column("numbers");
    EXPECT_EQ(numbers.offsets[batch.rows()], numbers.shape[0]);
    for (int64_t& number : numbers.as<int64_t>()) number += 1;
    for (float& half : batch.column("halves")->as<float>()) half += 0.5f;
    return {};
  }
};

TEST_F(ProducerObjects, CanBeMappedByBatch) {
  LoaderOptions options = Options();
  ObjectsOfRows rows = Epochs(options);
  options.map = std::make_shared<AddsToNumbers>();
  const ObjectsOfRows mapped = Epochs(options);
  for (std::vector<int64_t>& row : rows.numbers) {
    for (int64_t& number : row) number += 1;
  }
  EXPECT_EQ(mapped, rows);
}

// A program's own source may give other objects than it promised.
class Lies final : public SampleSource {
 public:
  enum class About : uint8_t { kTooMany, kHalfARow, kFewerOfOneField };
  Lies(Source photos, About about) : photos_(std::move(photos)), about_(about) {}
  uint64_t size() const override { return photos_->size(); }
  std::span<const Field> fields() const override { return photos_->fields(); }
  uint32_t max_objects() const override { return about_ == About::kTooMany ? 2 : 3; }
  ByteRange RangeOf(uint64_t id) const override { return photos_->RangeOf(id); }
  void PathOf(uint32_t file, std::string& path) const override { photos_->PathOf(file, path); }
  std::span<const uint8_t> View(size_t field, uint64_t id) const override {
    const std::span<const uint8_t> all = photos_->View(field, id);
    if (id != 7) return id % 4 == 3 && about_ == About::kTooMany ? std::span<const uint8_t>() : all;
    if (about_ == About::kHalfARow) return all.first(all.size() - 4);
    if (about_ == About::kFewerOfOneField && field == 2) return all.first(fields()[2].row_bytes());
    return all;
  }
  const std::vector<std::string>& classes() const override { return photos_->classes(); }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "lies"; }

 private:
  const Source photos_;
  const About about_;
};

TEST_F(ProducerObjects, ThatASourceDoesNotHaveAreAnErrorOfTheSample) {
  for (const auto about :
       {Lies::About::kTooMany, Lies::About::kHalfARow, Lies::About::kFewerOfOneField}) {
    LoaderOptions options = Options(std::make_shared<Lies>(Photos(), about));
    options.shuffle = false;
    const auto iterator = Loader::Open(options).value()->Iterate();
    EXPECT_TRUE(iterator->Next().ok());
    const Result<Batch> batch = iterator->Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().code, Code::kDataLoss);
    EXPECT_THAT(batch.error().cause, HasSubstr("for sample 7"));
    EXPECT_EQ(batch.error().file, photos_.FileOf(7));
    EXPECT_TRUE(iterator->Next().ok());
  }
}

Error RefusalOfObjects(LoaderOptions options) {
  const auto loader = Loader::Open(std::move(options));
  return loader.ok() ? Error{Code::kCancelled, "not refused"} : loader.error();
}

TEST_F(ProducerObjects, ViewsAndMixingAreRefused) {
  const auto expect_refused = [](const LoaderOptions& options) {
    const Error error = RefusalOfObjects(options);
    EXPECT_EQ(error.code, Code::kUnimplemented);
    EXPECT_THAT(error.cause, HasSubstr("objects ('numbers')"));
  };
  LoaderOptions options = Options();
  options.mix = BatchMix{.choices = {MixUp{}}};
  expect_refused(options);
  options = Options();
  options.views = {options.transforms, options.transforms};
  options.transforms.clear();
  expect_refused(options);
}

TEST_F(ProducerObjects, MustFitIntoTheBudget) {
  std::vector<int64_t> many(kPhotos + 1, 1'000'000);
  many[0] = 0;
  const std::vector<int64_t> values(1'000'000);
  ArrayColumn column = Columns()[0];
  column.data = values.data();
  column.offsets = many.data();
  LoaderOptions options = Options(PhotosWith({column}));
  RuntimeOptions runtime = RuntimeUnderTest(2);
  runtime.memory_budget = 48 << 20;
  options.runtime = Runtime::Create(runtime).value();
  const Error error = RefusalOfObjects(options);
  EXPECT_EQ(error.code, Code::kResourceExhausted);
  EXPECT_THAT(error.cause,
              HasSubstr("each row has room for 1000000 objects, the most of any sample"));
  ASSERT_FALSE(error.changes.empty());
  EXPECT_GT(error.changes[0].least, uint64_t{7} * 8 * 1'000'000);
  const std::vector<std::array<float, 4>> boxes(1'000'000);
  column.data = boxes.data();
  column.dtype = DType::kF32;
  column.row_shape = {4};
  column.kind = Field::Kind::kBoxes;
  options.source = PhotosWith({column});
  options.transforms = {Mosaic{.size = 16}};
  EXPECT_THAT(RefusalOfObjects(options).cause,
              HasSubstr("room for 4000000 objects, 4 times the most of any sample"));
}

}  // namespace
}  // namespace stoker
