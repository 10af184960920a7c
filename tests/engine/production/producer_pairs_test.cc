// Samples of two images each, from files: their batches, errors, memory and states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/memory/memory_manager.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_pairs.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::Effort;
using ::testing::HasSubstr;
using testing::PhotoPairs;
using testing::RuntimeUnderTest;

constexpr int kPairs = 41;
constexpr uint64_t kMebibyte = 1 << 20;

// One row of a batch: the sample, and the bytes of each of its columns.
struct PairRow {
  uint64_t sample = 0;
  std::vector<std::string> columns;
  friend bool operator==(const PairRow&, const PairRow&) = default;
};
using PairRows = std::vector<PairRow>;

void AddPairRows(const Batch& batch, PairRows& rows) {
  for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
    rows.push_back({batch.sample_ids()[row], {}});
    for (const Column& column : batch.columns()) {
      const size_t bytes = column.bytes() / static_cast<size_t>(batch.rows());
      rows.back().columns.emplace_back(static_cast<const char*>(column.data) + row * bytes, bytes);
    }
  }
}

class ProducerPairs : public ::testing::Test {
 protected:
  LoaderOptions Options(std::shared_ptr<const SampleSource> source, int threads = 2) const {
    LoaderOptions options;
    options.source = std::move(source);
    options.transforms = {RandomResizedCrop{.height = 16, .width = 24}, RandomHorizontalFlip{}};
    options.batch_size = 7;
    options.shuffle = true;
    options.seed = 5;
    options.max_bad_fraction = 1;
    options.bad_samples_file = list_;
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }
  LoaderOptions Options(int threads = 2) const { return Options(pairs_.Source(), threads); }

  static PairRows Epochs(Loader& loader, uint64_t epochs) {
    PairRows rows;
    testing::ForEachBatch(loader, epochs, [&](const Batch& batch) { AddPairRows(batch, rows); });
    return rows;
  }
  static PairRows Epochs(const LoaderOptions& options, uint64_t epochs = 1) {
    return Epochs(*Loader::Open(options).value(), epochs);
  }

  // Returns the rows that two loaders of one image each make of the pairs.
  PairRows Expected(uint64_t epochs) const {
    PairRows rows = Epochs(Options(pairs_.first().Source()), epochs);
    const PairRows second = Epochs(Options(pairs_.second().Source()), epochs);
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].sample, second.at(i).sample);
      rows[i].columns.insert(rows[i].columns.begin() + 1, second[i].columns[0]);
    }
    return rows;
  }

  std::vector<nlohmann::json> Listed() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(list_);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  // Takes away or damages second pieces, and first ones, too. Returns the files that are named, by
  // the id of their sample.
  std::map<uint64_t, std::string> Damage() const {
    const auto first = [&](uint64_t id) { return pairs_.first().FileOf(id); };
    const auto second = [&](uint64_t id) { return pairs_.second().FileOf(id); };
    std::map<uint64_t, std::string> bad = {{3, second(3)},   {8, second(8)},  {11, second(11)},
                                           {17, first(17)},  {23, first(23)}, {29, first(29)},
                                           {38, second(38)}, {40, second(40)}};
    pairs_.second().Overwrite(3, "this is no photograph");
    pairs_.second().Overwrite(8, "");
    std::filesystem::resize_file(bad[11], 400);
    pairs_.first().Overwrite(17, "this is no photograph");
    pairs_.first().Overwrite(23, "nor is this");  // the second one is missing
    const std::string of_23 = second(23);
    std::filesystem::resize_file(bad[29], 300);
    pairs_.PutSecond(38, testing::MakeJpeg({.width = 30, .height = 31}));
    // Removed last, because the ids of files are those of the folders' lists.
    std::filesystem::remove(of_23);
    std::filesystem::remove(bad[40]);
    return bad;
  }

  const PhotoPairs pairs_{kPairs, 3};
  const std::shared_ptr<const SampleSource> source_ = pairs_.Source();
  const testing::TempFolder folder_;
  const std::string list_ = folder_.Path("bad.jsonl");
};

TEST_F(ProducerPairs, AreWhatTwoLoadersOfOneImageEachMake) {
  constexpr uint64_t kEpochs = 3;
  const PairRows expected = Expected(kEpochs);
  ASSERT_EQ(expected.size(), kEpochs * kPairs);
  for (int round = 0; round < Effort(8); ++round) {
    RuntimeOptions runtime = RuntimeUnderTest(round % 2 == 0 ? 1 : 4);
    runtime.reader = round / 2 % 2 == 0 ? ReaderKind::kPread : ReaderKind::kAuto;
    runtime.reader_threads = 1 + round % 3;
    if (round % 4 == 3) runtime.reads_in_flight = 1;
    LoaderOptions options = Options();
    options.runtime = Runtime::Create(runtime).value();
    options.depth = round % 5;
    EXPECT_EQ(Epochs(options, kEpochs), expected) << "round " << round;
  }
}

TEST_F(ProducerPairs, EverySampleOccursOnceInAnEpochAndIsCountedOnce) {
  uint64_t bytes = 0;
  for (uint64_t id = 0; id < kPairs; ++id) {
    bytes += std::filesystem::file_size(pairs_.first().FileOf(id)) +
             std::filesystem::file_size(pairs_.second().FileOf(id));
  }
  LoaderOptions options = Options(4);
  options.epochs = 2;
  const auto loader = Loader::Open(options).value();
  for (uint64_t epoch = 0; epoch < 2; ++epoch) {
    std::set<uint64_t> ids;
    for (const PairRow& row : Epochs(*loader, 1)) ids.insert(row.sample);
    EXPECT_EQ(ids.size(), kPairs);
  }
  EXPECT_EQ(loader->Stats().samples, 2 * kPairs);
  EXPECT_EQ(loader->Stats().bytes_read, 2 * bytes);
}

TEST_F(ProducerPairs, AnErrorNamesTheFileOfItsPiece) {
  LoaderOptions options = Options(source_);
  options.batch_size = 1;
  options.shuffle = false;
  const std::map<uint64_t, std::string> bad = Damage();
  for (const int threads : {1, 4}) {
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    const auto iterator = Loader::Open(options).value()->Iterate();
    for (uint64_t id = 0; id < kPairs; ++id) {
      const Result<Batch> batch = iterator->Next();
      ASSERT_EQ(batch.ok(), !bad.contains(id)) << id;
      if (!batch.ok()) {
        EXPECT_EQ(batch.error().file, bad.at(id)) << batch.error().ToString();
      }
    }
  }
}

TEST_F(ProducerPairs, SamplesWithABadPieceAreDroppedAndCountedOnce) {
  const PairRows whole = Epochs(Options(source_));
  const std::map<uint64_t, std::string> bad = Damage();
  PairRows expected;
  std::ranges::copy_if(whole, std::back_inserter(expected),
                       [&](const PairRow& row) { return !bad.contains(row.sample); });
  for (const int threads : {1, 2, 4}) {
    LoaderOptions options = Options(source_, threads);
    options.on_bad = BadPolicy::Parse("drop").value();
    std::filesystem::remove(list_);
    const auto loader = Loader::Open(options).value();
    EXPECT_EQ(Epochs(*loader, 1), expected);
    EXPECT_EQ(loader->Stats().bad.dropped, bad.size());
    std::map<uint64_t, std::string> named;
    for (const nlohmann::json& line : Listed()) named[line.at("id")] = line.at("path");
    EXPECT_EQ(Listed().size(), bad.size());
    EXPECT_EQ(named, bad);
  }
}

TEST_F(ProducerPairs, SubstitutesAreTheSameForAnyThreads) {
  const PairRows whole = Epochs(Options(source_));
  const std::map<uint64_t, std::string> bad = Damage();
  const auto rows_with = [&](int threads) {
    LoaderOptions options = Options(source_, threads);
    options.on_bad = BadPolicy::Parse("substitute").value();
    const auto loader = Loader::Open(options).value();
    PairRows rows = Epochs(*loader, 1);
    EXPECT_EQ(loader->Stats().bad.substituted, bad.size());
    return rows;
  };
  const PairRows rows = rows_with(1);
  ASSERT_EQ(rows.size(), whole.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_FALSE(bad.contains(rows[i].sample));
    if (!bad.contains(whole[i].sample)) {
      EXPECT_EQ(rows[i], whole[i]);
    }
  }
  for (const int threads : {2, 4}) EXPECT_EQ(rows_with(threads), rows);
}

TEST_F(ProducerPairs, AStateContinuesWithTheNextBatch) {
  const PairRows all = Epochs(Options(), 2);
  std::string state;
  PairRows rows;
  {
    const auto loader = Loader::Open(Options()).value();
    const auto iterator = loader->Iterate();
    for (int batch = 0; batch < 3; ++batch) AddPairRows(iterator->Next().value(), rows);
    state = loader->StateAt(*iterator->position());
  }
  const auto loader = Loader::Open(Options(1)).value();
  loader->epochs().Restore(loader->PlaceOf(state).value());
  const PairRows rest = Epochs(*loader, 2);
  rows.insert(rows.end(), rest.begin(), rest.end());
  EXPECT_EQ(rows, all);
}

// Progressive photographs of 1200 × 800 pixels take 5.5 MiB each, so two do not fit next to each
// other, neither those of one sample nor of two.
class ProducerLargePairs : public ProducerPairs {
 protected:
  static constexpr uint64_t kTight = 10 * kMebibyte;

  ProducerLargePairs() {
    for (const uint64_t id : {3, 4, 5, 17, 30}) {
      Put(pairs_.first(), id, Progressive(1200, 800, id));
      Put(pairs_.second(), id, Progressive(1200, 800, 100 + id));
    }
  }

  static std::vector<uint8_t> Progressive(int width, int height, uint64_t seed) {
    return testing::MakeJpeg({.width = width,
                              .height = height,
                              .scans = testing::JpegScans::kProgressive,
                              .seed = seed});
  }
  static void Put(const testing::PhotoFolder& folder, uint64_t id,
                  const std::vector<uint8_t>& bytes) {
    folder.Overwrite(id, {bytes.begin(), bytes.end()});
  }

  LoaderOptions Limited(uint64_t budget, int round) const {
    LoaderOptions options = Options();
    options.batch_size = 4;
    options.depth = 2;
    RuntimeOptions runtime = RuntimeUnderTest(1 + (round + 1) % 4);
    runtime.reader = round % 2 == 0 ? ReaderKind::kPread : ReaderKind::kAuto;
    runtime.reader_threads = 1 + round % 3;
    runtime.memory_budget = budget;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }
};

TEST_F(ProducerLargePairs, SamplesWithoutRoomWaitAndBatchesStayTheSame) {
  const PairRows expected = Epochs(Limited(512 * kMebibyte, 0));
  uint64_t waited = 0;
  for (int round = 0; round < Effort(8) || (waited == 0 && round < 40); ++round) {
    const LoaderOptions options = Limited(kTight, round);
    EXPECT_EQ(Epochs(options), expected) << "round " << round;
    EXPECT_LE(options.runtime->budget().peak(), kTight);
    EXPECT_EQ(options.runtime->budget().used(), 0u);
    waited += options.runtime->memory().samples_waited();
  }
  EXPECT_GT(waited, 0u);
}

TEST_F(ProducerLargePairs, RefusesATooLargePieceAndNamesASufficientBudget) {
  Put(pairs_.first(), 12, testing::MakeJpeg({.width = 3000, .height = 2000}));
  Put(pairs_.second(), 12, Progressive(3000, 2000, 12));
  const PairRows expected = Epochs(Limited(512 * kMebibyte, 0));
  uint64_t named = 0;
  for (int round = 0; round < Effort(3); ++round) {
    const auto iterator = Loader::Open(Limited(kTight, round)).value()->Iterate();
    int refused = 0;
    for (size_t batches = (kPairs + 3) / 4; batches > 0; --batches) {
      const Result<Batch> batch = iterator->Next();
      if (batch.ok()) continue;
      ++refused;
      EXPECT_EQ(batch.error().code, Code::kResourceExhausted);
      EXPECT_EQ(batch.error().file, pairs_.second().FileOf(12));
      EXPECT_THAT(batch.error().cause, HasSubstr("this sample needs"));
      named = batch.error().changes.at(0).least;
    }
    EXPECT_EQ(refused, 1);
  }
  EXPECT_GT(named, kTight);
  EXPECT_LT(named, 96 * kMebibyte);
  EXPECT_EQ(Epochs(Limited(named, 0)), expected);
}

// A source whose fields a test chooses.
class OfFields final : public SampleSource {
 public:
  explicit OfFields(std::vector<Field> fields, int calls = 0)
      : fields_(std::move(fields)), calls_(calls) {}
  uint64_t size() const override { return 10; }
  std::span<const Field> fields() const override { return fields_; }
  int calls() const override { return calls_; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void PathOf(uint32_t file, std::string& path) const override { path = std::to_string(file); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "fields"; }

 private:
  const std::vector<Field> fields_;
  const int calls_;
  const std::vector<std::string> classes_;
};

Error Refusal(LoaderOptions options) {
  const auto loader = Loader::Open(std::move(options));
  return loader.ok() ? Error{Code::kCancelled, "not refused"} : loader.error();
}

TEST_F(ProducerPairs, EncodedFieldsComeFirstAndAnImageIsTheFirst) {
  const Field image{.name = "image", .kind = Field::Kind::kImage};
  const Field mask{.name = "mask", .kind = Field::Kind::kMask};
  const Field label{.name = "label", .kind = Field::Kind::kFixed, .dtype = DType::kI64};
  for (const std::vector<Field>& fields :
       {std::vector{mask, image}, {mask}, {image, label, mask}, {label, image}}) {
    const Error error = Refusal(Options(std::make_shared<OfFields>(fields)));
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_THAT(error.cause, HasSubstr("encoded fields"));
  }
}

TEST_F(ProducerPairs, CallsGiveOneImage) {
  const std::vector<Field> fields = {{.name = "image", .kind = Field::Kind::kImage},
                                     {.name = "second", .kind = Field::Kind::kImage}};
  const Error error = Refusal(Options(std::make_shared<OfFields>(fields, 2)));
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_THAT(error.cause, HasSubstr("2 encoded images per sample, and calls"));
}

TEST_F(ProducerPairs, ViewsMixingAndCachesAreRefused) {
  const auto expect_refused = [](const LoaderOptions& options) {
    const Error error = Refusal(options);
    EXPECT_EQ(error.code, Code::kUnimplemented);
    EXPECT_THAT(error.cause, HasSubstr("encoded images"));
  };
  LoaderOptions options = Options();
  options.mix = BatchMix{.choices = {MixUp{}}};
  expect_refused(options);
  options = Options();
  options.views = {options.transforms, options.transforms};
  options.transforms.clear();
  expect_refused(options);
  options = Options();
  options.cache = CacheChoice::Parse("dir:" + folder_.Path("cache") + ":1GB").value();
  expect_refused(options);
}

TEST_F(ProducerPairs, AStateOfOneImageIsRefused) {
  const auto pairs = Loader::Open(Options()).value();
  const auto alone = Loader::Open(Options(pairs_.first().Source())).value();
  EXPECT_THAT(pairs->PlaceOf(alone->StateAt({0, 1})).error().cause,
              HasSubstr("images of a sample was none and is image, image"));
}

}  // namespace
}  // namespace stoker
