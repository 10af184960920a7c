// Samples that cannot be used: their substitutes, the counts, and when a run ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "engine/loader/loader.h"
#include "io/select/weighted.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Fingerprint;
using ::stoker::testing::PhotoFolder;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kPhotos = 41;
constexpr size_t kRowBytes = size_t{16} * 16 * 3;

// The content of an epoch: for each row the sample and the bytes of image and label.
struct Row {
  uint64_t sample;
  std::string bytes;
  friend bool operator==(const Row&, const Row&) = default;
};
using Rows = std::vector<Row>;

void AddRows(const Batch& batch, Rows& rows) {
  const auto* const pixels = static_cast<const char*>(batch.images().data);
  const auto labels = batch.labels().as<int64_t>();
  ASSERT_EQ(batch.images().shape[0], batch.rows());
  ASSERT_EQ(labels.size(), static_cast<size_t>(batch.rows()));
  for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
    rows.push_back({batch.sample_ids()[row], std::string(pixels + row * kRowBytes, kRowBytes) +
                                                 std::to_string(labels[row])});
  }
}

class BadSamplesTest : public ::testing::Test {
 protected:
  LoaderOptions Options(const std::string& on_bad, int threads = 2, int depth = 2) const {
    RuntimeOptions runtime = testing::RuntimeUnderTest(threads);
    runtime.memory_budget = 64 << 20;
    LoaderOptions options;
    options.source = source_;
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16}, RandomHorizontalFlip{}};
    options.batch_size = 7;
    options.shuffle = true;
    options.seed = 5;
    options.depth = depth;
    options.on_bad = BadPolicy::Parse(on_bad).value();
    options.max_bad_fraction = 1;
    options.bad_samples_file = list_;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  std::string FileOf(uint64_t id) const { return files_[id]; }

  // Damages five of the photographs, each in a different way.
  void Damage() {
    photos_.Overwrite(3, "this is no photograph");
    photos_.Overwrite(11, "");
    std::filesystem::resize_file(FileOf(17), 400);
    std::filesystem::remove(FileOf(23));
    std::filesystem::remove(FileOf(40));
    std::filesystem::create_directory(FileOf(40));
  }

  static Rows Epoch(Loader& loader) {
    Rows rows;
    auto iterator = loader.Iterate();
    while (Batch batch = iterator->Next().value()) AddRows(batch, rows);
    return rows;
  }
  static Rows Epoch(const LoaderOptions& options) { return Epoch(*Loader::Open(options).value()); }

  std::vector<nlohmann::json> Listed() const {
    std::vector<nlohmann::json> lines;
    std::ifstream file(list_);
    for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  const PhotoFolder photos_{kPhotos, 3};
  const std::shared_ptr<const SampleSource> source_ = photos_.Source();
  const std::vector<std::string> files_ = [this] {
    std::vector<std::string> files;
    for (uint64_t id = 0; id < kPhotos; ++id) files.push_back(photos_.FileOf(id));
    return files;
  }();
  const testing::TempFolder folder_;
  const std::string list_ = folder_.Path("bad.jsonl");
  const std::vector<uint64_t> bad_ = {3, 11, 17, 23, 40};
};

bool IsBad(const std::vector<uint64_t>& bad, uint64_t sample) {
  return std::ranges::count(bad, sample) != 0;
}

TEST_F(BadSamplesTest, ASubstituteTakesTheSamePositionForAnyThreadsAndDepth) {
  const Rows whole = Epoch(Options("fail"));
  Damage();
  const LoaderOptions options = Options("substitute");
  auto loader = Loader::Open(options).value();
  const Rows rows = Epoch(*loader);
  ASSERT_EQ(rows.size(), kPhotos);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_FALSE(IsBad(bad_, rows[i].sample));
    if (!IsBad(bad_, whole[i].sample)) {
      EXPECT_EQ(rows[i], whole[i]);
    }
  }
  const BadCounts counts = loader->Stats().bad;
  EXPECT_EQ(counts.substituted, bad_.size());
  EXPECT_EQ(counts.dropped, 0u);
  const auto lines = Listed();
  EXPECT_GE(lines.size(), bad_.size());  // a substitute may be bad, too
  EXPECT_EQ(lines.size(), std::accumulate(counts.faults.begin(), counts.faults.end(), size_t{0}));
  for (const int threads : {1, 3, 4}) {
    for (const int depth : {1, 5}) EXPECT_EQ(Epoch(Options("substitute", threads, depth)), rows);
  }
}

TEST_F(BadSamplesTest, SubstitutesDifferBetweenEpochsAndSeeds) {
  Damage();
  std::set<uint64_t> substitutes;
  const auto add = [&](const LoaderOptions& options) {
    auto loader = Loader::Open(options).value();
    for (int epoch = 0; epoch < 4; ++epoch) {
      const Rows rows = Epoch(*loader);
      std::map<uint64_t, int> times;
      for (const Row& row : rows) {
        if (++times[row.sample] > 1) substitutes.insert(row.sample);
      }
    }
  };
  LoaderOptions options = Options("substitute");
  add(options);
  options.seed = 6;
  add(options);
  EXPECT_GT(substitutes.size(), 10u);
}

TEST_F(BadSamplesTest, DroppedRowsLeaveTheOrderOfTheOthers) {
  Rows expected;
  std::ranges::copy_if(Epoch(Options("fail")), std::back_inserter(expected),
                       [&](const Row& row) { return !IsBad(bad_, row.sample); });
  Damage();
  for (const int threads : {1, 2, 4}) {
    for (const int depth : {1, 3}) {
      auto loader = Loader::Open(Options("drop", threads, depth)).value();
      EXPECT_EQ(Epoch(*loader), expected);
      EXPECT_EQ(loader->Stats().bad.dropped, bad_.size());
      EXPECT_EQ(loader->Stats().bad.substituted, 0u);
    }
  }
}

TEST_F(BadSamplesTest, BatchesThatLoseAllTheirRowsAreLeftOut) {
  Damage();
  LoaderOptions options = Options("drop");
  options.batch_size = 1;
  options.shuffle = false;
  auto loader = Loader::Open(options).value();
  for (uint64_t epoch = 0; epoch < 3; ++epoch) {
    auto iterator = loader->Iterate();
    std::vector<uint64_t> indices;
    while (Batch batch = iterator->Next().value()) {
      ASSERT_EQ(batch.rows(), 1);
      ASSERT_EQ(batch.index(), batch.sample_ids()[0]);
      indices.push_back(batch.index());
      ASSERT_EQ(iterator->position(), (BatchName{epoch, batch.index() + 1}));
    }
    EXPECT_EQ(indices.size(), kPhotos - bad_.size());
    EXPECT_THAT(indices, Each(Not(::testing::AnyOfArray(bad_))));
    EXPECT_EQ(iterator->position(), (BatchName{epoch, kPhotos})) << "the last sample is bad";
  }
  const Batch none = loader->BatchAt({0, 3}).value();
  ASSERT_TRUE(none) << "a batch that was asked for by name is there";
  EXPECT_EQ(none.rows(), 0);
}

TEST_F(BadSamplesTest, EachClassHasItsOwnAction) {
  Damage();
  LoaderOptions options = Options("vanished=substitute,undecodable=drop,truncated=drop");
  options.shuffle = false;
  options.batch_size = 41;
  auto loader = Loader::Open(options).value();
  auto iterator = loader->Iterate();
  const Result<Batch> failed = iterator->Next();
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().file, FileOf(40)) << failed.error().ToString();
  std::map<std::string, std::string> actions;
  for (const auto& line : Listed()) actions[line["path"]] = line["action"];
  EXPECT_EQ(actions[FileOf(3)], "drop");
  EXPECT_EQ(actions[FileOf(17)], "drop");
  EXPECT_EQ(actions[FileOf(23)], "substitute");
  EXPECT_EQ(actions[FileOf(40)], "fail");
  const BadCounts counts = loader->Stats().bad;
  EXPECT_EQ(counts.dropped + counts.substituted, 0u) << "the batch was not delivered";
  EXPECT_GE(counts.faults[static_cast<size_t>(SampleFault::kVanished)], 1u);
}

TEST_F(BadSamplesTest, TheListHasALineForEachInTheOrderOfDelivery) {
  Damage();
  const auto list = [&](int threads, int depth) {
    std::filesystem::remove(list_);
    const Rows rows = Epoch(Options("drop", threads, depth));
    return Listed();
  };
  const auto lines = list(1, 1);
  ASSERT_EQ(lines.size(), bad_.size());
  for (const auto& line : lines) {
    EXPECT_TRUE(IsBad(bad_, line["id"]));
    EXPECT_EQ(line["path"], FileOf(line["id"]));
    EXPECT_EQ(line["epoch"], 0);
    EXPECT_NE(line["cause"], "");
    if (line["id"] == 17) {
      EXPECT_EQ(line["class"], "truncated");
      EXPECT_EQ(line["offset"], 400);
    }
  }
  EXPECT_EQ(list(4, 5), lines);
  EXPECT_EQ(list(2, 2), lines);
}

TEST_F(BadSamplesTest, ARunEndsWhenTooManyAreBad) {
  Damage();  // 12 %
  LoaderOptions options = Options("substitute");
  options.max_bad_fraction = 0.05;
  auto loader = Loader::Open(options).value();
  uint64_t samples = 0, errors = 0;
  for (int epoch = 0; epoch < 30 && errors == 0; ++epoch) {
    auto iterator = loader->Iterate();
    while (true) {
      const Result<Batch> batch = iterator->Next();
      if (!batch.ok()) {
        const std::optional<BatchName> at = iterator->position();
        EXPECT_EQ(at->epoch * kPhotos + std::min(at->index * 7, kPhotos), samples)
            << "no batch is lost";
        EXPECT_EQ(batch.error().code, Code::kDataLoss);
        EXPECT_THAT(batch.error().cause, HasSubstr("the share of 0.05"));
        EXPECT_THAT(batch.error().cause, HasSubstr(" vanished"));
        EXPECT_THAT(batch.error().cause, HasSubstr("the first: " + photos_.path()));
        if (++errors == 3) break;  // every later call returns the same
        continue;
      }
      ASSERT_EQ(errors, 0u);
      if (!*batch) break;
      samples += static_cast<uint64_t>(batch->rows());
    }
  }
  EXPECT_EQ(errors, 3u);
  EXPECT_GE(samples, BadSampleLog::kSamplesBefore);
  EXPECT_LT(samples, BadSampleLog::kSamplesBefore + 7);
}

TEST_F(BadSamplesTest, AFewBadSamplesDoNotEndARun) {
  photos_.Overwrite(3, "this is no photograph");  // 2.4 %
  LoaderOptions options = Options("drop");
  options.max_bad_fraction = 0.025;
  auto loader = Loader::Open(options).value();
  for (int epoch = 0; epoch < 30; ++epoch) EXPECT_EQ(Epoch(*loader).size(), kPhotos - 1);
  EXPECT_EQ(loader->Stats().bad.dropped, 30u);
}

TEST_F(BadSamplesTest, ARunEndsWhenNothingCanBeUsedAnyMore) {
  for (uint64_t id = 0; id < kPhotos; ++id) std::filesystem::remove(FileOf(id));
  LoaderOptions options = Options("drop");
  options.max_bad_fraction = 0.5;
  auto loader = Loader::Open(options).value();
  Result<Batch> batch = Batch();
  for (int epoch = 0; epoch < 4 && batch.ok(); ++epoch) batch = loader->Iterate()->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().cause, HasSubstr("one after the other, could not be used"));
  EXPECT_EQ(loader->Stats().bad.dropped, 2 * kPhotos + 3 * 7) << "in whole batches";
}

TEST_F(BadSamplesTest, WhereAllAreBadNoSubstituteIsFound) {
  for (uint64_t id = 0; id < kPhotos; ++id) photos_.Overwrite(id, "no photograph");
  auto loader = Loader::Open(Options("substitute")).value();
  const Result<Batch> batch = loader->Iterate()->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().cause, HasSubstr("nor could the 16 samples before it"));
}

TEST_F(BadSamplesTest, ProductionMayEndAtAnyTime) {
  for (uint64_t id = 0; id < kPhotos; id += 2) photos_.Overwrite(id, "no photograph");
  auto loader = Loader::Open(Options("substitute", 3, 4)).value();
  auto iterator = loader->Iterate();
  for (uint64_t i = 0; i < 60; ++i) {
    ASSERT_TRUE(iterator->Seek({i, i % 6}).ok());
    if (i % 3 != 0) {
      ASSERT_TRUE(iterator->Next().ok());
    }
    if (i % 10 == 9) {
      loader = Loader::Open(Options("substitute", 3, 4)).value();
      iterator = loader->Iterate();
    }
  }
  loader->Stop();
  EXPECT_EQ(iterator->Next().error().code, Code::kCancelled);
}

TEST_F(BadSamplesTest, OnADeviceTheyCountWhenTheyAreDelivered) {
  Damage();
  LoaderOptions options = Options("drop");
  options.shuffle = false;
  options.dtype = DType::kF32;  // some operations are deferred to the device
  auto host = Loader::Open(options).value();
  const auto expected = host->Iterate();
  std::filesystem::remove(list_);
  options.to_device = DeviceOptions{.devices = {Device::Open({}).value()}, .buffers = 4};
  auto loader = Loader::Open(options).value();
  auto iterator = loader->Iterate();
  size_t dropped = 0;
  for (uint64_t index = 0; index < 6; ++index) {
    const DeviceBatch batch = iterator->NextOnDevice().value();
    ASSERT_TRUE(batch);
    const Batch same = expected->Next().value();
    EXPECT_TRUE(std::ranges::equal(batch.sample_ids(), same.sample_ids()));
    dropped += std::min<size_t>(7, kPhotos - index * 7) - static_cast<size_t>(batch.rows());
    EXPECT_EQ(loader->Stats().bad.dropped, dropped);
    EXPECT_EQ(Listed().size(), dropped);
  }
  EXPECT_EQ(dropped, bad_.size());
  EXPECT_FALSE(iterator->NextOnDevice().value());
}

TEST_F(BadSamplesTest, OnADeviceBatchesThatLoseAllTheirRowsAreLeftOut) {
  Damage();
  LoaderOptions options = Options("drop");
  options.shuffle = false;
  options.batch_size = 1;
  options.to_device = DeviceOptions{.devices = {Device::Open({}).value()}, .buffers = 4};
  auto iterator = Loader::Open(options).value()->Iterate();
  uint64_t batches = 0;
  while (DeviceBatch batch = iterator->NextOnDevice().value()) {
    EXPECT_FALSE(IsBad(bad_, batch.sample_ids()[0]));
    ++batches;
  }
  EXPECT_EQ(batches, kPhotos - bad_.size());
}

TEST_F(BadSamplesTest, SubstitutesComeFromTheOrder) {
  Damage();
  LoaderOptions options = Options("substitute");
  std::vector<double> weights(kPhotos, 0);
  for (const uint64_t id : {3, 11, 20, 21}) weights[id] = 1;
  options.source = Weighted(source_, weights, 40).value();
  for (const Row& row : Epoch(options)) {
    EXPECT_TRUE(row.sample == 20 || row.sample == 21) << row.sample;
  }
}

TEST_F(BadSamplesTest, IterationsSideBySideHaveTheSameBatches) {
  Damage();
  auto loader = Loader::Open(Options("substitute")).value();
  const Rows rows = Epoch(*loader);
  auto first = loader->Iterate(0), second = loader->Iterate(0);
  Rows ours, theirs;
  for (uint64_t i = 0; i < 6; ++i) {
    AddRows(first->Next().value(), ours);
    AddRows(second->Next().value(), theirs);
  }
  EXPECT_EQ(ours, rows);
  EXPECT_EQ(theirs, rows);
}

TEST_F(BadSamplesTest, MixedBatchesMayBeShorter) {
  Damage();
  LoaderOptions options = Options("drop");
  options.dtype = DType::kF32;
  options.mix = BatchMix{.choices = {MixUp{}}, .num_classes = 3};
  auto loader = Loader::Open(options).value();
  auto iterator = loader->Iterate();
  int64_t rows = 0;
  while (Batch batch = iterator->Next().value()) {
    const auto labels = batch.labels().as<float>();
    ASSERT_EQ(labels.size(), static_cast<size_t>(batch.rows() * 3));
    for (size_t i = 0; i < labels.size(); i += 3) {
      EXPECT_NEAR(labels[i] + labels[i + 1] + labels[i + 2], 1, 1e-6);
    }
    rows += batch.rows();
  }
  EXPECT_EQ(rows, static_cast<int64_t>(kPhotos - bad_.size()));
}

TEST_F(BadSamplesTest, AListThatCannotBeOpenedIsAnErrorAtOnce) {
  LoaderOptions options = Options("drop");
  options.bad_samples_file = folder_.Path("none/bad.jsonl");
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_EQ(loader.error().file, options.bad_samples_file);
}

TEST_F(BadSamplesTest, AListOnAFullDiskStopsTheRunBeforeTheNextBatch) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full";
  photos_.Overwrite(3, "no photograph");
  LoaderOptions options = Options("drop");
  options.shuffle = false;
  options.bad_samples_file = "/dev/full";
  auto loader = Loader::Open(options).value();
  auto iterator = loader->Iterate();
  EXPECT_EQ(iterator->Next().value().rows(), 6) << "the batch itself is delivered";
  for (int i = 0; i < 3; ++i) {
    const Result<Batch> batch = iterator->Next();
    ASSERT_FALSE(batch.ok());
    EXPECT_EQ(batch.error().file, "/dev/full");
    EXPECT_THAT(batch.error().cause, HasSubstr("cannot list bad samples"));
    EXPECT_EQ(iterator->position(), (BatchName{0, 1})) << "nothing is passed";
  }
}

TEST(BadSampleLogTest, LinesThatFoundNoRoomComeWhenThereIsSome) {
  const testing::TempFolder folder;
  const std::string path = folder.Path("bad.jsonl");
  const BadRow bad{0,
                   7,
                   SampleFault::kUndecodable,
                   OnBad::kDrop,
                   {.code = Code::kDataLoss,
                    .cause = "no photograph",
                    .file = "http://me:secret@h/7.jpg?signature=secret"}};
  const int code = testing::ExitCodeOfChild([&] {
    (void)signal(SIGXFSZ, SIG_IGN);
    const auto log = BadSampleLog::Open(path, 1).value();
    log->Count({0, 0}, 9, {bad}, false);
    rlimit before{};
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit low{.rlim_cur = 200, .rlim_max = before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &low);
    log->Count({0, 1}, 9, {bad}, false);
    log->Count({0, 2}, 9, {bad}, false);
    const bool refused = !log->Check().ok();
    setrlimit(RLIMIT_FSIZE, &before);
    return refused && log->Check().ok() && log->counts().dropped == 3 ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  std::ifstream file(path);
  uint64_t batch = 0;
  for (std::string line; std::getline(file, line); ++batch) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_EQ(json["batch"], batch);
    EXPECT_EQ(line.find("secret"), std::string::npos) << line;
  }
  EXPECT_EQ(batch, 3u);
}

TEST(BadPolicyTest, TextsAreReadAsTheyAreWritten) {
  for (const char* text : {"fail", "substitute", "drop", "vanished=drop",
                           "unreadable=substitute,truncated=drop,over_limits=substitute",
                           "vanished=drop,forbidden=drop"}) {
    EXPECT_EQ(BadPolicy::Parse(text).value().ToString(), text);
  }
  EXPECT_EQ(BadPolicy::Parse("drop").value()[SampleFault::kUnsupported], OnBad::kDrop);
  EXPECT_EQ(BadPolicy::Parse("drop").value()[SampleFault::kForbidden], OnBad::kFail);
  EXPECT_EQ(BadPolicy::Parse("vanished=drop,vanished=fail").value(), BadPolicy());
  for (const char* wrong : {"", "skip", "drop,", "drop,fail", "vanished", "vanished=", "=drop",
                            "vanished=drop,,", "vanished=drop,fail", "Vanished=drop"}) {
    const auto policy = BadPolicy::Parse(wrong);
    ASSERT_FALSE(policy.ok()) << wrong;
    EXPECT_THAT(policy.error().advice, HasSubstr("fail, substitute, drop"));
  }
}

}  // namespace
}  // namespace stoker
