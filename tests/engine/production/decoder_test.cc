// Decoder turns photographs and rows in memory into rows of their batch.
#include "engine/production/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/time/stage_times.h"
#include "engine/production/producer_parts.h"
#include "io/memory/arrays.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/indexed_photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/samples/photo_pairs.h"
#include "tests/testing/threads/one_lease.h"

namespace stoker {
namespace {

// A turn has kLeast samples at least, and ends after kTurnNs, or kMost samples at the latest.
constexpr uint32_t kLeast = 8, kMost = 32;
constexpr uint64_t kTurnNs = 8'000'000;

using ::testing::HasSubstr;
using ::testing::Not;
using Kind = SampleOutcome::Kind;

struct Ended {
  uint32_t sample;
  Kind kind;
  Status status;
};

// Hands out the samples that the test has prepared, and records their results.
class FakeSamples final : public Decoder::Samples {
 public:
  std::optional<uint32_t> TakeReady() override {
    if (take) return take();
    if (ready.empty()) return std::nullopt;
    return std::exchange(ready, {ready.begin() + 1, ready.end()}).front();
  }
  void Done(uint32_t sample, SampleOutcome outcome, int) override {
    done.push_back({sample, outcome.kind, std::move(outcome.status)});
  }

  std::deque<uint32_t> ready;
  std::function<std::optional<uint32_t>()> take;  // in place of the ready ones
  std::vector<Ended> done;
};

class DecoderTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kRows = 4;

  explicit DecoderTest(size_t pieces = 1) : samples_(16, budget_, pieces) {}

  // A slot for the columns that these options make, and as many samples as it has rows.
  void Open(LoaderOptions options) {
    options_ = std::move(options);
    options_.batch_size = kRows;
    options_.seed = 5;
    order_.emplace(
        Sampler::Make({.samples = options_.source->size(), .seed = 5, .batch_size = kRows})
            .value());
    std::optional<Plan> plan = PlanOf(options_, {}).value();
    std::vector<ColumnSpec> columns = ColumnsOf(options_, plan, nullptr).value();
    std::optional<Mixer> mixer;
    if (options_.mix) mixer.emplace(Mixer::Make(options_, false, columns).value());
    pool_ = SlotPool::Make({.columns = columns, .batch_size = kRows, .working_slots = 1},
                           Reservation(budget_))
                .value();
    slot_ = pool_->Acquire();
    slot_->rows = kRows;
    decoder_.emplace(options_, *order_, std::move(plan), std::move(mixer), nullptr, columns,
                     nullptr, samples_, budget_, Decoder::Refuse(), 1);
  }
  ~DecoderTest() override {
    if (slot_ != nullptr) pool_->Abandon(slot_);
  }

  // Prepares the sample of this row with the bytes of its file, as a reader leaves it.
  uint32_t Read(uint32_t row) { return Read(row, photos_); }
  uint32_t Read(uint32_t row, const testing::PhotoFolder& files) {
    const uint32_t index = samples_.Take().value();
    SampleInFlight& sample = samples_[index];
    const SamplerEntry entry = order_->At({}, row);
    sample.claim = {.row = row, .slot = slot_};
    sample.read.sample = entry.sample;
    sample.draw = {options_.seed, 0, entry.position};
    Fill(sample.read, files.FileOf(entry.sample));
    return index;
  }

  static void Fill(ReadRequest& read, const std::string& path) {
    read.path = path;
    read.status = {};
    const std::string bytes = BytesOf(path);
    EXPECT_TRUE(read.buffer.Grow(bytes.size() + kBufferPadding).ok());
    std::copy(bytes.begin(), bytes.end(), read.buffer.data());
    read.size = bytes.size();
  }

  static std::string BytesOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  LoaderOptions Photos() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 16, .width = 16}, RandomHorizontalFlip{}};
    return options;
  }

  // Returns what the plan alone makes of the sample of a row, whose file is in this folder.
  std::vector<uint8_t> Expected(uint32_t row) { return Expected(row, photos_); }
  std::vector<uint8_t> Expected(uint32_t row, const testing::PhotoFolder& folder) {
    const Plan plan = *PlanOf(options_, {}).value();
    const auto workspace = plan.MakeWorkspace(budget_);
    const SamplerEntry entry = order_->At({}, row);
    std::string bytes = BytesOf(folder.FileOf(entry.sample));
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    std::vector<uint8_t> pixels(plan.row_bytes());
    StageTimes times;
    plan.Apply({reinterpret_cast<const uint8_t*>(bytes.data()), size},
               {options_.seed, 0, entry.position}, *workspace, pixels.data(), times)
        .value();
    return pixels;
  }

  // Returns how many samples a turn takes if `next` always has another one.
  uint32_t SamplesOfTurn(const std::function<uint32_t()>& next) {
    constexpr uint32_t kEndless = 4 * kMost;
    uint32_t taken = 0;
    flow_.take = [&]() -> std::optional<uint32_t> {
      if (taken == kEndless) return std::nullopt;
      ++taken;
      return next();
    };
    const uint32_t first = flow_.TakeReady().value();
    decoder_->Turn(first, /*worker=*/0, flow_);
    return taken;
  }

  // The same for samples that are ready at once. A machine may be so slow that they take kTurnNs
  // all the same.
  void ExpectWholeTurn(const std::function<uint32_t()>& next) {
    const uint64_t begun = NowNanoseconds();
    const uint32_t taken = SamplesOfTurn(next);
    const bool is_slow = NowNanoseconds() - begun >= kTurnNs;
    EXPECT_LE(taken, kMost);
    EXPECT_GE(taken, is_slow ? kLeast : kMost);
  }

  std::vector<uint8_t> Row(uint32_t row, size_t column = 0) const {
    const auto* data = static_cast<const uint8_t*>(slot_->Row(column, row));
    return {data, data + slot_->columns[column].bytes() / kRows};
  }

  static constexpr uint64_t kFiles = 8;
  const testing::PhotoFolder photos_{kFiles, 2};
  LoaderOptions options_;
  std::optional<Sampler> order_;
  MemoryBudget budget_{256 << 20};
  SamplesInFlight samples_;
  std::shared_ptr<SlotPool> pool_;
  Slot* slot_ = nullptr;
  std::optional<Decoder> decoder_;
  FakeSamples flow_;
};

TEST_F(DecoderTest, DecodesReadyPhotographsTogetherIntoTheirRows) {
  Open(Photos());
  for (uint32_t row = 0; row < kRows; ++row) flow_.ready.push_back(Read(row));
  const uint32_t first = flow_.TakeReady().value();
  decoder_->Turn(first, /*worker=*/0, flow_);
  ASSERT_EQ(flow_.done.size(), kRows) << "the ready ones were taken, too";
  for (const Ended& ended : flow_.done) EXPECT_TRUE(ended.status.ok());
  for (uint32_t row = 0; row < kRows; ++row) {
    const uint64_t id = order_->At({}, row).sample;
    EXPECT_EQ(Row(row), Expected(row)) << row;
    EXPECT_EQ(slot_->sample_ids[row], id);
    EXPECT_EQ(*static_cast<const int64_t*>(slot_->Row(1, row)), options_.source->LabelOf(id));
  }
  LoaderStats stats;
  decoder_->AddTo(stats);
  EXPECT_EQ(stats.samples, kRows);
}

// The indexes are useless, and as large as their photographs.
TEST_F(DecoderTest, CropIndexesAreInTheMemoryOfTheWorkspace) {
  constexpr size_t kLarge = 1 << 20;
  for (uint64_t id = 0; id < kFiles; ++id) {
    photos_.Overwrite(id, BytesOf(photos_.FileOf(id)).append(kLarge, '\0'));
  }
  LoaderOptions options = Photos();
  options.source = std::make_shared<testing::IndexedPhotos>(
      options.source, std::vector(kFiles, std::vector<uint8_t>(kLarge, 1)));
  Open(options);
  const auto decode_all = [&](uint64_t room) {
    for (uint32_t row = 0; row < kRows; ++row) flow_.ready.push_back(Read(row));
    budget_.SetLimit(budget_.used() + room);
    decoder_->Turn(flow_.TakeReady().value(), 0, flow_);
    ASSERT_EQ(flow_.done.size(), kRows);
    for (const Ended& ended : std::exchange(flow_.done, {})) {
      EXPECT_TRUE(ended.status.ok());
      samples_.Give(ended.sample);
    }
    budget_.SetLimit(MemoryBudget::kNoLimit);
    for (uint32_t row = 0; row < kRows; ++row) EXPECT_EQ(Row(row), Expected(row)) << row;
  };
  decode_all(8 * kLarge);
  EXPECT_GE(MemoryOf(decoder_->workspace(0)), 2 * kLarge) << "two photographs are interleaved";
  decoder_->FreeWorkspaces();
  EXPECT_EQ(MemoryOf(decoder_->workspace(0)), 0u);
  decode_all(kLarge);
  EXPECT_LT(MemoryOf(decoder_->workspace(0)), kLarge) << "decoded without";
}

TEST_F(DecoderTest, ADamagedPhotographIsAnErrorThatNamesItsFile) {
  Open(Photos());
  const uint32_t bad = Read(0), good = Read(1);
  samples_[bad].read.buffer.data()[0] = 0;  // no format begins like that
  flow_.ready = {good};
  decoder_->Turn(bad, 0, flow_);
  ASSERT_EQ(flow_.done.size(), 2u);
  for (const Ended& ended : flow_.done) {
    EXPECT_EQ(ended.status.ok(), ended.sample == good);
    if (ended.sample == bad) {
      EXPECT_EQ(ended.status.error().file, photos_.FileOf(order_->At({}, 0).sample));
    }
  }
  EXPECT_EQ(Row(1), Expected(1));
}

TEST_F(DecoderTest, AFailedReadIsItsSamplesError) {
  Open(Photos());
  const uint32_t index = Read(0);
  samples_[index].read.status = Error{Code::kNotFound, "gone"};
  decoder_->Turn(index, 0, flow_);
  ASSERT_EQ(flow_.done.size(), 1u);
  EXPECT_EQ(flow_.done[0].status.error().code, Code::kNotFound);
}

TEST_F(DecoderTest, TellsSamplesThatCannotBeUsedFromRows) {
  Open(Photos());
  const uint32_t unread = Read(0), damaged = Read(1), good = Read(2);
  samples_[unread].read.status = Error{Code::kNotFound, "gone"};
  samples_[damaged].read.buffer.data()[0] = 0;
  flow_.ready = {damaged, good};
  decoder_->Turn(unread, 0, flow_);
  ASSERT_EQ(flow_.done.size(), 3u);
  for (const Ended& done : flow_.done) {
    EXPECT_EQ(done.kind, done.sample == good ? Kind::kRow : Kind::kUnusable);
  }
}

TEST_F(DecoderTest, PostponesSamplesWithoutMemory) {
  Open(Photos());
  const uint32_t index = Read(0);
  samples_[index].read.status =
      Error{.code = Code::kResourceExhausted, .cause = "full", .wanted_bytes = 1};
  decoder_->Turn(index, 0, flow_);
  ASSERT_EQ(flow_.done.size(), 1u);
  EXPECT_EQ(flow_.done[0].kind, Kind::kNoMemory);
  LoaderStats stats;
  decoder_->AddTo(stats);
  EXPECT_EQ(stats.samples, 0u) << "it is counted when its row is written";
}

// Other loaders have tasks, too.
TEST_F(DecoderTest, ATurnEndsWhileSamplesAreReady) {
  Open(Photos());
  const uint32_t index = Read(0);
  ExpectWholeTurn([&] { return index; });
}

TEST_F(DecoderTest, ATurnEndsWhileSamplesArePostponed) {
  Open(Photos());
  const uint32_t index = Read(0);
  ExpectWholeTurn([&] {
    samples_[index].read.status =
        Error{.code = Code::kResourceExhausted, .cause = "full", .wanted_bytes = 1};
    return index;
  });
}

TEST_F(DecoderTest, ATurnOfSlowSamplesEndsAfterAFew) {
  Open(Photos());
  const uint32_t index = Read(0);
  // The waits for the samples after the first add up to more than kTurnNs.
  const auto slow = [&] {
    std::this_thread::sleep_for(std::chrono::nanoseconds(kTurnNs / (kLeast - 2)));
    return index;
  };
  EXPECT_EQ(SamplesOfTurn(slow), kLeast);
}

class DecoderOfPairsTest : public DecoderTest {
 protected:
  DecoderOfPairsTest() : DecoderTest(/*pieces=*/2) {
    LoaderOptions options = Photos();
    options.source = pairs_.Source();
    Open(std::move(options));
  }

  uint32_t ReadPair(uint32_t row) {
    const uint32_t index = Read(row, pairs_.first());
    SampleInFlight& sample = samples_[index];
    Fill(sample.read_of(1), pairs_.second().FileOf(sample.read.sample));
    return index;
  }

  void Damage(uint32_t index, size_t piece) { samples_[index].read_of(piece).buffer.data()[0] = 0; }
  static Error NoMemory() {
    return {.code = Code::kResourceExhausted, .cause = "full", .wanted_bytes = 1};
  }

  Ended Decode(uint32_t index) {
    flow_.done.clear();
    decoder_->Turn(index, 0, flow_);
    EXPECT_EQ(flow_.done.size(), 1u) << "once";
    return flow_.done.at(0);
  }

  const testing::PhotoPairs pairs_{kFiles, 2};
};

TEST_F(DecoderOfPairsTest, EachPieceGoesToItsColumnWithTheSameDraw) {
  uint64_t bytes = 0;
  for (uint32_t row = 0; row < kRows; ++row) {
    const uint32_t index = ReadPair(row);
    bytes += samples_[index].read.size + samples_[index].read_of(1).size;
    flow_.ready.push_back(index);
  }
  decoder_->Turn(flow_.TakeReady().value(), 0, flow_);
  ASSERT_EQ(flow_.done.size(), kRows);
  for (const Ended& ended : flow_.done) EXPECT_TRUE(ended.status.ok());
  for (uint32_t row = 0; row < kRows; ++row) {
    const uint64_t id = order_->At({}, row).sample;
    EXPECT_EQ(Row(row, 0), Expected(row, pairs_.first())) << row;
    EXPECT_EQ(Row(row, 1), Expected(row, pairs_.second())) << row;
    EXPECT_NE(Row(row, 0), Row(row, 1)) << row;
    EXPECT_EQ(slot_->sample_ids[row], id);
    EXPECT_EQ(*static_cast<const int64_t*>(slot_->Row(2, row)), options_.source->LabelOf(id));
  }
  LoaderStats stats;
  decoder_->AddTo(stats);
  EXPECT_EQ(stats.samples, kRows);
  EXPECT_EQ(stats.bytes_read, bytes);
}

TEST_F(DecoderOfPairsTest, TheErrorOfTheFirstPieceThatFailedCounts) {
  const uint64_t id = order_->At({}, 0).sample;
  const auto file_of = [&](std::vector<size_t> damaged) {
    const uint32_t index = ReadPair(0);
    for (const size_t piece : damaged) Damage(index, piece);
    const Ended ended = Decode(index);
    samples_.Give(index);
    EXPECT_EQ(ended.kind, Kind::kUnusable);
    return ended.status.error().file;
  };
  EXPECT_EQ(file_of({0}), pairs_.first().FileOf(id));
  EXPECT_EQ(file_of({1}), pairs_.second().FileOf(id));
  EXPECT_EQ(file_of({0, 1}), pairs_.first().FileOf(id));
}

TEST_F(DecoderOfPairsTest, AFailedReadIsThatOfItsPiece) {
  const uint64_t id = order_->At({}, 0).sample;
  const uint32_t index = ReadPair(0);
  samples_[index].read_of(1).status = Error{Code::kNotFound, "gone"};
  const Ended second = Decode(index);
  EXPECT_EQ(second.status.error().code, Code::kNotFound);
  EXPECT_EQ(second.status.error().file, pairs_.second().FileOf(id));
  EXPECT_FALSE(second.status.error().offset);
  samples_[index].read_of(1).status = Error{Code::kNotFound, "gone"};
  Damage(index, 0);
  EXPECT_EQ(Decode(index).status.error().file, pairs_.first().FileOf(id));
  samples_[index].read.status = Error{Code::kNotFound, "gone"};
  EXPECT_EQ(Decode(index).status.error().file, pairs_.first().FileOf(id));
}

// Which samples are unusable does not depend on the memory.
TEST_F(DecoderOfPairsTest, MemoryIsTheErrorOnlyIfThereIsNoOther) {
  const uint32_t index = ReadPair(0);
  samples_[index].read_of(1).status = NoMemory();
  EXPECT_EQ(Decode(index).kind, Kind::kNoMemory);
  samples_[index].read_of(1).status = NoMemory();
  Damage(index, 0);
  EXPECT_EQ(Decode(index).kind, Kind::kUnusable);
}

// An error in a part of the first file may be that of the part; the whole sample is read again.
TEST_F(DecoderOfPairsTest, APartOfTheFirstPieceWithAnErrorIsReadAgainAsAWhole) {
  const uint32_t index = ReadPair(0);
  ReadRequest& first = samples_[index].read;
  first.length = first.size;
  Damage(index, 1);
  EXPECT_EQ(Decode(index).kind, Kind::kUnusable) << "the error is not the first piece's";
  Damage(index, 0);
  EXPECT_EQ(Decode(index).kind, Kind::kReadAgain);
  EXPECT_EQ(first.length, kUnknownLength);
}

TEST_F(DecoderOfPairsTest, PiecesOfASampleThatWaitedForMemoryAreNotInterleaved) {
  const auto workspace_of = [&](WorkToken work) {
    decoder_->FreeWorkspaces();
    const uint32_t index = ReadPair(0);
    samples_[index].work = std::move(work);
    EXPECT_EQ(Decode(index).kind, Kind::kRow);
    samples_[index].work = WorkToken();
    samples_.Give(index);
    EXPECT_EQ(Row(0, 0), Expected(0, pairs_.first()));
    EXPECT_EQ(Row(0, 1), Expected(0, pairs_.second()));
    return MemoryOf(decoder_->workspace(0));
  };
  testing::OneLease lease;
  const uint64_t usual = workspace_of(lease->Begin());
  lease->JoinWaitList(0, lease->Begin());
  WorkToken alone = lease->TakeRetry().value().work;
  ASSERT_TRUE(alone.alone());
  EXPECT_LT(workspace_of(std::move(alone)), usual);
}

TEST_F(DecoderOfPairsTest, PiecesOfDifferentSizesAreAnErrorThatNamesBoth) {
  const uint64_t id = order_->At({}, 0).sample;
  const auto error_of = [&](const testing::JpegOptions& first, const testing::JpegOptions& second) {
    const std::vector<uint8_t> photo = testing::MakeJpeg(first);
    pairs_.first().Overwrite(id, {photo.begin(), photo.end()});
    pairs_.PutSecond(id, testing::MakeJpeg(second));
    const uint32_t index = ReadPair(0);
    const Ended ended = Decode(index);
    samples_.Give(index);
    EXPECT_EQ(ended.kind, Kind::kUnusable);
    return ended.status.error();
  };
  const Error error = error_of({.width = 50, .height = 40}, {.width = 50, .height = 41});
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.file, pairs_.second().FileOf(id));
  EXPECT_THAT(error.cause, HasSubstr("50 × 41 pixels"));
  EXPECT_THAT(error.cause, HasSubstr(pairs_.first().FileOf(id)));
  EXPECT_THAT(error.cause, HasSubstr("50 × 40"));
  EXPECT_THAT(error.advice, Not(HasSubstr("EXIF")));
  const Error turned = error_of({.width = 50, .height = 40, .orientation = 6},  // as viewed 40 × 50
                                {.width = 50, .height = 40});
  EXPECT_THAT(turned.cause, HasSubstr("50 × 40 pixels"));
  EXPECT_THAT(turned.advice, HasSubstr("EXIF"));
}

TEST_F(DecoderTest, RowsInMemoryAreCopiedColumnByColumn) {
  std::vector<float> values(kRows * 3);
  std::vector<int64_t> labels(kRows);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = static_cast<int64_t>(10 * i);
  LoaderOptions options;
  options.source = Arrays({{.name = "x",
                            .dtype = DType::kF32,
                            .row_shape = {3},
                            .data = values.data(),
                            .samples = kRows},
                           {.name = "label",
                            .dtype = DType::kI64,
                            .row_shape = {},
                            .data = labels.data(),
                            .samples = kRows}},
                          nullptr)
                       .value();
  Open(options);
  const uint32_t run = samples_.Take().value();
  samples_[run].claim = {.row = 1, .rows = 3, .slot = slot_};
  decoder_->Turn(run, 0, flow_);
  ASSERT_EQ(flow_.done.size(), 1u);
  EXPECT_TRUE(flow_.done[0].status.ok());
  for (uint32_t row = 1; row < kRows; ++row) {
    EXPECT_EQ(static_cast<const float*>(slot_->Row(0, row))[2], values[3 * row + 2]);
    EXPECT_EQ(*static_cast<const int64_t*>(slot_->Row(1, row)), labels[row]);
    EXPECT_EQ(slot_->sample_ids[row], row);
  }
}

}  // namespace
}  // namespace stoker
