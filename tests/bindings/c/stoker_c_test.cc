// Uses the table of C functions as a plugin would.
#include "bindings/c/stoker_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/registry.h"
#include "core/batch/batch.h"
#include "core/batch/dtype.h"
#include "engine/metrics/counters.h"
#include "gpu/backend/device.h"
#include "gpu/backend/open_device.h"
#include "io/folder/image_folder.h"
#include "io/ranges/path_source.h"
#include "tests/bindings/c/taken_error.h"
#include "tests/testing/devices/hooked_device.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/photo_folder.h"

namespace {

using stoker::testing::DeviceCall;
using stoker::testing::HookedDevice;
using stoker::testing::PhotoFolder;

// A new key each time, so that each test has loaders of its own.
std::string NewKey() {
  static int count = 0;
  return "stoker_c_test/" + std::to_string(++count);
}

class StokerCTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kPerEpoch = 3;  // 20 photographs in batches of 8

  std::string Spec(const std::string& more = "") const {
    return R"({"source": {"kind": "image_folder", "directory": ")" + photos_.path() +
           R"("}, "transforms": [{"name": "RandomResizedCrop", "height": 8, "width": 8}],
            "batch_size": 8, "shuffle": true)" +
           more + "}";
  }

  stoker_dataset* Open(const std::string& key, const std::string& spec) {
    stoker_dataset* dataset = nullptr;
    EXPECT_EQ(Take(api_->dataset_open(key.c_str(), spec.c_str(), &dataset)), "");
    return dataset;
  }

  std::string Take(stoker_error* error) { return stoker::testing::TakenError(*api_, error); }

  stoker_batch* Next(stoker_cursor* cursor) {
    stoker_batch* batch = nullptr;
    int32_t passed = -1;
    EXPECT_EQ(Take(api_->cursor_next(cursor, nullptr, &batch, &passed)), "");
    EXPECT_EQ(passed, batch != nullptr ? 1 : 0);
    return batch;
  }

  static stoker_batch_name Named(stoker::BatchName batch) {
    stoker_batch_name name{};
    name.struct_size = sizeof(name);
    name.epoch = batch.epoch;
    name.index = batch.index;
    name.start = batch.start;
    return name;
  }

  std::string BatchAt(stoker_dataset* dataset, stoker::BatchName batch, stoker_batch** made) {
    const stoker_batch_name name = Named(batch);
    return Take(api_->dataset_batch_at(dataset, &name, nullptr, made));
  }

  std::string Append(stoker_cursor* cursor, stoker::BatchName batch) {
    const stoker_batch_name name = Named(batch);
    return Take(api_->cursor_append(cursor, &name));
  }

  stoker_column Column(const stoker_batch* batch, int32_t index) {
    stoker_column column{};
    column.struct_size = sizeof(column);
    EXPECT_EQ(Take(api_->batch_column(batch, index, &column)), "");
    return column;
  }

  std::vector<uint8_t> Pixels(stoker_batch* batch) {
    const stoker_column image = Column(batch, 0);
    const auto* bytes = static_cast<const uint8_t*>(image.data);
    std::vector<uint8_t> pixels(bytes, bytes + image.bytes);
    api_->batch_free(batch);
    return pixels;
  }

  const stoker_api* api_ = stoker_get_api(STOKER_ABI_VERSION);
  PhotoFolder photos_{20, 2};
};

TEST_F(StokerCTest, RefusesUnknownAbiVersions) {
  EXPECT_EQ(stoker_get_api(STOKER_ABI_VERSION + 1), nullptr);
  EXPECT_EQ(api_->abi_version, STOKER_ABI_VERSION);
  EXPECT_EQ(api_->struct_size, sizeof(stoker_api));
  EXPECT_STRNE(api_->version, "");
}

// C functions have no context, so their counters are global.
std::atomic<int> spans_begun{0}, spans_ended{0};

TEST_F(StokerCTest, TracesEachSpanOnceUntilTracingIsRemoved) {
  static const stoker_trace trace{sizeof(stoker_trace),
                                  [](const char*) { return int64_t{++spans_begun}; },
                                  [](int64_t) { ++spans_ended; }};
  stoker_dataset* dataset = Open(NewKey(), Spec());
  for (int i = 0; i < 20; ++i) api_->dataset_set_trace(dataset, &trace);  // as each dataset does
  stoker_batch* batch = nullptr;
  ASSERT_EQ(BatchAt(dataset, {0, 0}, &batch), "");
  api_->batch_free(batch);
  const int begun = spans_begun;
  EXPECT_GT(begun, 0);
  api_->dataset_set_trace(dataset, nullptr);
  stoker_dataset_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Take(api_->dataset_info(dataset, &info)), "");
  const int threads = info.cores + 2;  // each may have been about to tell
  const int most = spans_begun + threads;
  for (int i = 0; i < 2 * threads; ++i) {
    ASSERT_EQ(BatchAt(dataset, {1, static_cast<uint64_t>(i % 3)}, &batch), "");
    api_->batch_free(batch);
  }
  api_->dataset_free(dataset);
  EXPECT_LE(spans_begun, most);
  EXPECT_EQ(spans_ended, spans_begun);
}

// The batches are the same as without the index, so no error reports the damage.
TEST_F(StokerCTest, WarnsOnceOfADamagedIndex) {
  stoker_dataset* sound = Open(NewKey(), Spec());
  EXPECT_EQ(api_->dataset_warning(sound), nullptr);
  api_->dataset_free(sound);

  std::ofstream(photos_.path() + "/.stoker-index") << "damaged";
  stoker_dataset* dataset = Open(NewKey(), Spec());
  ASSERT_NE(dataset, nullptr);
  const char* warning = api_->dataset_warning(dataset);
  ASSERT_NE(warning, nullptr);
  EXPECT_EQ(warning, "the folder is listed and photographs are decoded without the index: " +
                         photos_.path() +
                         "/.stoker-index: this is not an index file. Run `stoker "
                         "index` again.");
  EXPECT_EQ(api_->dataset_warning(dataset), nullptr);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, CursorDeliversAnEpochOfBatches) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_dataset_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Take(api_->dataset_info(dataset, &info)), "");
  EXPECT_EQ(info.batches_per_epoch, kPerEpoch);
  EXPECT_GE(info.cores, 1);
  EXPECT_GE(info.depth, 1);

  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &cursor)), "");
  stoker_batch_name next = Named({});
  EXPECT_NE(Take(api_->cursor_place(cursor, &next)), "") << "not decided yet";
  for (uint64_t i = 0; i < kPerEpoch; ++i) {
    stoker_batch* batch = Next(cursor);
    ASSERT_NE(batch, nullptr);
    stoker_batch_info about{};
    about.struct_size = sizeof(about);
    ASSERT_EQ(Take(api_->batch_info(batch, &about)), "");
    EXPECT_EQ(about.epoch, 0u);
    EXPECT_EQ(about.index, i);
    EXPECT_EQ(about.columns, 2);
    EXPECT_LT(about.sample_ids[0], 20u);
    const stoker_column image = Column(batch, 0), label = Column(batch, 1);
    const int64_t rows = i + 1 < kPerEpoch ? 8 : 4;
    EXPECT_STREQ(image.name, "image");
    EXPECT_EQ(image.dtype, STOKER_U8);
    EXPECT_EQ(std::vector<int64_t>(image.dims, image.dims + image.ndim),
              (std::vector<int64_t>{rows, 8, 8, 3}));
    EXPECT_EQ(image.bytes, static_cast<uint64_t>(rows * 8 * 8 * 3));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(image.data) % 64, 0u);
    EXPECT_STREQ(label.name, "label");
    EXPECT_EQ(label.dtype, STOKER_I64);
    EXPECT_EQ(std::vector<int64_t>(label.dims, label.dims + label.ndim),
              (std::vector<int64_t>{rows}));
    stoker_column none{};
    none.struct_size = sizeof(none);
    EXPECT_NE(Take(api_->batch_column(batch, 2, &none)), "");
    EXPECT_EQ(api_->batch_owner(batch, 2), nullptr);
    api_->batch_free(batch);
  }
  EXPECT_EQ(Next(cursor), nullptr);
  ASSERT_EQ(Take(api_->cursor_place(cursor, &next)), "");
  EXPECT_EQ(next.epoch, 0u);
  EXPECT_EQ(next.index, kPerEpoch);
  EXPECT_EQ(next.end, kPerEpoch);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

// C functions have no context of their own here.
std::mt19937 interrupts;

TEST_F(StokerCTest, InterruptsAndWhatDidNotArriveLoseNoBatch) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  const auto epoch = [&](uint64_t number) {
    std::vector<std::vector<uint8_t>> batches;
    stoker_cursor* cursor = nullptr;
    EXPECT_EQ(Take(api_->cursor_open(dataset, static_cast<int64_t>(number), 0, &cursor)), "");
    while (stoker_batch* batch = Next(cursor)) batches.push_back(Pixels(batch));
    api_->cursor_free(cursor);
    return batches;
  };
  const stoker_interrupt half{sizeof(stoker_interrupt),
                              [](void*) { return static_cast<int>(interrupts() % 2); }, nullptr};
  int interrupted = 0, taken_back = 0;
  stoker_cursor* cursor = nullptr;
  for (uint64_t number = 0; interrupted < stoker::testing::Effort(200); ++number) {
    ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &cursor)), "");
    std::vector<std::vector<uint8_t>> got;
    bool arrived = false;  // and was not taken back
    for (bool end = false; !end;) {
      stoker_batch* batch = nullptr;
      int32_t passed = -1;
      const std::string error = Take(api_->cursor_next(cursor, &half, &batch, &passed));
      end = error.empty() && batch == nullptr;
      if (batch != nullptr) {
        got.push_back(Pixels(batch));
        arrived = true;
      }
      if (!error.empty()) {
        ++interrupted;
        EXPECT_EQ(passed, 0);
      }
      if (arrived && !end && interrupts() % 4 == 0) {  // perhaps with the next one fetched
        ++taken_back;
        got.pop_back();
        arrived = false;
        api_->cursor_take_back(cursor);
        api_->cursor_take_back(cursor);  // does nothing
      }
      if (got.empty() && interrupts() % 4 == 0) {  // another cursor has the place for a while
        stoker_cursor* other = nullptr;
        ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &other)), "");
        api_->batch_free(Next(other));
        batch = nullptr;
        (void)Take(api_->cursor_next(cursor, &half, &batch, &passed));
        api_->batch_free(batch);
        if (batch != nullptr) api_->cursor_take_back(cursor);
        api_->cursor_take_back(other);
        api_->cursor_free(other);
      }
      if (got.empty() && interrupts() % 8 == 0) {  // dropped before a batch was delivered
        api_->cursor_free(cursor);
        ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &cursor)), "");
      }
    }
    api_->cursor_free(cursor);
    ASSERT_EQ(got, epoch(number));
  }
  EXPECT_GT(taken_back, 0);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, OwnerKeepsItsColumnAlive) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  stoker_batch* batch = Next(cursor);
  const stoker_column image = Column(batch, 0);
  stoker_owner* owner = api_->batch_owner(batch, 0);
  const std::vector<uint8_t> pixels = Pixels(batch);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
  EXPECT_EQ(std::memcmp(image.data, pixels.data(), pixels.size()), 0);
  api_->owner_free(owner);
}

// A field of stoker_stats is a counter of the library's table.
TEST_F(StokerCTest, StatsAreCountersOfTheTable) {
  static constexpr std::array kCounters = {"samples",      "batches",      "bytes_read",
                                           "wait_seconds", "lent_batches", "lent_bytes",
                                           "memory_used"};
  struct Fields {
    uint64_t struct_size;
    std::array<uint64_t, kCounters.size()> values;
  };
  static_assert(sizeof(Fields) == sizeof(stoker_stats));
  const auto counters_of = [](stoker::LoaderStats stats) {
    std::array<uint64_t, kCounters.size()> counters{};
    for (size_t i = 0; i < kCounters.size(); ++i) {
      const auto row = std::ranges::find(stoker::AllCounters(), std::string_view(kCounters[i]),
                                         &stoker::CounterRow::name);
      EXPECT_NE(row, stoker::AllCounters().end());
      const stoker::CounterValue value = row->in(stats);
      counters[i] = std::holds_alternative<int*>(value)
                        ? static_cast<uint64_t>(*std::get<int*>(value))
                        : *std::get<uint64_t*>(value);
    }
    return counters;
  };
  const std::string key = NewKey();
  stoker_dataset* dataset = Open(key, Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  for (uint64_t i = 1; i < kPerEpoch; ++i) api_->batch_free(Next(cursor));
  stoker_batch* batch = Next(cursor);  // the last one
  const auto unused = [](const auto&) { return stoker::Error{}; };
  const auto loader = *stoker::Registry::Get().FindOrOpen(key, unused);
  // The Runtime's memory may still change, because workers and loaders of earlier tests end.
  std::array<uint64_t, kCounters.size()> before{}, after{};
  stoker_stats stats{};
  do {
    before = counters_of(loader->Stats());
    stats.struct_size = sizeof(stats);
    ASSERT_EQ(Take(api_->dataset_stats(dataset, &stats)), "");
    after = counters_of(loader->Stats());
  } while (before != after);
  EXPECT_EQ(std::bit_cast<Fields>(stats).values, after);
  EXPECT_THAT(after, ::testing::Each(::testing::Ne(0u)));
  api_->batch_free(batch);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, DatasetsOfOneKeyAreSharedAndTheirEpochCountOutlivesThem) {
  const std::string key = NewKey();
  stoker_dataset* one = Open(key, Spec());
  stoker_dataset* two = Open(key, "not looked at: it is there");
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(one, -1, 0, &cursor)), "");
  api_->batch_free(Next(cursor));
  EXPECT_EQ(api_->epoch_next(key.c_str()), 1u);
  stoker_stats stats{};
  stats.struct_size = sizeof(stats);
  ASSERT_EQ(Take(api_->dataset_stats(two, &stats)), "");
  EXPECT_EQ(stats.batches, 1u);
  EXPECT_EQ(stats.lent_batches, 0u);
  api_->cursor_free(cursor);
  api_->dataset_free(one);
  api_->dataset_free(two);
  EXPECT_EQ(api_->epoch_take(key.c_str()), 1u);
  api_->epoch_set_next(key.c_str(), 0);
  EXPECT_EQ(api_->epoch_next(key.c_str()), 0u) << "also backwards";
  const std::string refused = Take(api_->dataset_open(key.c_str(), "{", &one));
  EXPECT_EQ(refused.substr(0, 2), "1 ") << refused;
}

TEST_F(StokerCTest, SeekAppendAndBatchAtDeliverTheNamedBatches) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  std::vector<std::vector<uint8_t>> epoch;
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 1, 1, &cursor)), "");
  while (stoker_batch* batch = Next(cursor)) epoch.push_back(Pixels(batch));
  ASSERT_EQ(epoch.size(), kPerEpoch);
  const stoker_batch_name third = Named({1, 2}), beyond = Named({1, kPerEpoch + 1});
  ASSERT_EQ(Take(api_->cursor_seek(cursor, &third)), "");
  EXPECT_EQ(Pixels(Next(cursor)), epoch[2]);
  EXPECT_EQ(Next(cursor), nullptr);
  ASSERT_EQ(Append(cursor, {1, 1}), "");
  ASSERT_EQ(Append(cursor, {1, 0}), "");
  EXPECT_EQ(Pixels(Next(cursor)), epoch[1]);
  EXPECT_EQ(Pixels(Next(cursor)), epoch[0]);
  EXPECT_EQ(Next(cursor), nullptr);
  EXPECT_NE(Append(cursor, {1, kPerEpoch}), "");
  EXPECT_NE(Take(api_->cursor_seek(cursor, &beyond)), "");
  for (uint64_t i : {2, 0, 1}) {
    stoker_batch* batch = nullptr;
    ASSERT_EQ(BatchAt(dataset, {1, i}, &batch), "");
    EXPECT_EQ(Pixels(batch), epoch[i]);
  }
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, AStateIsTextThatFitsAndGivesItsPlace) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  const stoker_batch_name third = Named({1, 2});
  uint64_t size = 0;
  std::string text(1000, 'x');
  ASSERT_EQ(Take(api_->dataset_state(dataset, &third, text.data(), 1, &size)), "");
  EXPECT_EQ(text.front(), 'x') << "it does not fit";
  ASSERT_EQ(Take(api_->dataset_state(dataset, &third, text.data(), size, &size)), "");
  text.resize(size - 1);
  stoker_batch_name place = Named({});
  ASSERT_EQ(Take(api_->dataset_place(dataset, text.c_str(), 1, &place)), "");
  EXPECT_EQ(place.epoch, 1u);
  EXPECT_EQ(place.index, 2u);
  EXPECT_EQ(place.end, kPerEpoch);
  std::string other = text;
  other.replace(other.find("\"batch_size\":\"8\""), 16, "\"batch_size\":\"4\"");
  ASSERT_EQ(Take(api_->dataset_place(dataset, other.c_str(), 0, &place)), "");
  EXPECT_EQ(place.index, 1u);
  EXPECT_NE(Take(api_->dataset_place(dataset, other.c_str(), 1, &place))
                .find("batch_size was 4 and is 8"),
            std::string::npos);
  EXPECT_EQ(Take(api_->dataset_place(dataset, "{}", 1, &place)).substr(0, 2), "1 ");
  api_->dataset_free(dataset);
}

// Other ranks have had six of the twenty photographs; fourteen are left, in batches of eight and
// six.
TEST_F(StokerCTest, ABatchOfAnEpochThatOthersBeganHasAName) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &cursor)), "");
  const stoker_batch_name first = Named({1, 0, 6});
  ASSERT_EQ(Take(api_->cursor_seek(cursor, &first)), "");
  std::vector<std::vector<uint8_t>> rest;
  while (stoker_batch* batch = Next(cursor)) {
    stoker_batch_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(Take(api_->batch_info(batch, &info)), "");
    EXPECT_EQ(info.epoch, 1u);
    EXPECT_EQ(info.index, rest.size());
    EXPECT_EQ(info.start, 6u);
    rest.push_back(Pixels(batch));
  }
  stoker_batch_name end = Named({});
  ASSERT_EQ(Take(api_->cursor_place(cursor, &end)), "");
  EXPECT_EQ(end.index, 2u);
  EXPECT_EQ(end.start, 6u);
  EXPECT_EQ(end.end, 2u);
  EXPECT_EQ(end.last_rows, 6u);
  ASSERT_EQ(rest.size(), 2u);
  for (uint64_t index : {1, 0}) {
    stoker_batch* batch = nullptr;
    ASSERT_EQ(BatchAt(dataset, {1, index, 6}, &batch), "");
    EXPECT_EQ(Pixels(batch), rest[index]);
    ASSERT_EQ(Append(cursor, {1, index, 6}), "");
    EXPECT_EQ(Pixels(Next(cursor)), rest[index]);
  }
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

// Appends as many batches ahead as the depth allows, as the TensorFlow plugin does with splits, and
// takes them in bursts, for which the tuner raises the depth.
TEST_F(StokerCTest, ADatasetsDepthFollowsTheTuner) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, -1, 0, &cursor)), "");
  const auto depth = [&] {
    stoker_dataset_info info{};
    info.struct_size = sizeof(info);
    EXPECT_EQ(Take(api_->dataset_info(dataset, &info)), "");
    return info.depth;
  };
  const int32_t first = depth();
  uint64_t appended = 0, taken = 0;
  for (int burst = 0; burst < 500 && depth() <= first; ++burst) {
    const auto begun = std::chrono::steady_clock::now();
    for (int i = 0; i < 8; ++i, ++taken) {
      for (; appended < taken + static_cast<uint64_t>(depth()); ++appended) {
        ASSERT_EQ(Append(cursor, {appended / kPerEpoch, appended % kPerEpoch}), "");
      }
      api_->batch_free(Next(cursor));
    }
    std::this_thread::sleep_for(3 * (std::chrono::steady_clock::now() - begun));
  }
  EXPECT_GT(depth(), first);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, ABadSampleIsAnErrorThatNamesItAndTheCursorGoesOn) {
  photos_.Overwrite(0, "no picture");
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  int bad = 0, good = 0;
  for (uint64_t i = 0; i < kPerEpoch; ++i) {
    stoker_batch* batch = nullptr;
    int32_t passed = -1;
    const std::string error = Take(api_->cursor_next(cursor, nullptr, &batch, &passed));
    EXPECT_EQ(passed, 1);
    if (error.empty()) {
      ++good;
      api_->batch_free(batch);
    } else {
      ++bad;
      EXPECT_EQ(error.substr(0, 2), "4 ") << error;
      EXPECT_NE(error.find(photos_.FileOf(0)), std::string::npos) << error;
      EXPECT_EQ(batch, nullptr);
    }
  }
  EXPECT_EQ(bad, 1);
  EXPECT_EQ(good, 2);
  EXPECT_EQ(Next(cursor), nullptr);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, DatasetPathNamesTheFileOfASample) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_batch* batch = nullptr;
  ASSERT_EQ(BatchAt(dataset, {0, 0}, &batch), "");
  stoker_batch_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Take(api_->batch_info(batch, &info)), "");
  const auto* labels = static_cast<const int64_t*>(Column(batch, 1).data);
  const std::vector<std::string> classes = stoker::ImageFolder(photos_.path()).value()->classes();
  char path[STOKER_MAX_PATH];
  for (size_t row = 0; row < 8; ++row) {
    ASSERT_EQ(Take(api_->dataset_path(dataset, info.sample_ids[row], path)), "");
    EXPECT_TRUE(std::ifstream(path).good()) << path;
    const std::string folder =
        photos_.path() + "/" + classes[static_cast<size_t>(labels[row])] + "/";
    EXPECT_EQ(std::string(path).substr(0, folder.size()), folder);
  }
  EXPECT_EQ(Take(api_->dataset_path(dataset, 20, path)),
            std::to_string(STOKER_INVALID_ARGUMENT) + " sample 20 of 20.");
  api_->batch_free(batch);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, HoldingTooManyBatchesIsAnErrorThatSkipsNothing) {
  stoker_dataset* dataset = Open(NewKey(), Spec(R"(, "lent_batches": 1)"));
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  stoker_batch* held = Next(cursor);
  stoker_batch* batch = nullptr;
  int32_t passed = -1;
  const std::string error = Take(api_->cursor_next(cursor, nullptr, &batch, &passed));
  EXPECT_EQ(error.substr(0, 2), "5 ") << error;
  EXPECT_EQ(passed, 0);
  api_->batch_free(held);
  api_->batch_free(Next(cursor));
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, ColumnsSayWhetherTheyArePinned) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  stoker_batch* batch = Next(cursor);
  EXPECT_EQ(Column(batch, 0).pinned, 0);
  EXPECT_EQ(Column(batch, 1).pinned, 0);
  api_->batch_free(batch);
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);

  // The loader is found by its key: its device is the host, which a spec has no name for.
  const std::string key = NewKey();
  stoker::LoaderOptions options = stoker::ParseLoaderSpec(Spec()).value();
  options.pinned_for = stoker::Device::Open({stoker::DeviceName::Kind::kHost, 0}).value();
  const auto loader =
      stoker::Registry::Get()
          .FindOrOpen(key, [&](auto epochs) { return stoker::Loader::Open(options, epochs); })
          .value();
  dataset = Open(key, "");
  batch = nullptr;
  ASSERT_EQ(BatchAt(dataset, {0, 0}, &batch), "");
  EXPECT_EQ(Column(batch, 0).pinned, 1);
  EXPECT_EQ(Column(batch, 1).pinned, -1) << "labels have memory of their own";
  stoker_column older{};
  older.struct_size = offsetof(stoker_column, pinned);
  older.pinned = 77;
  ASSERT_EQ(Take(api_->batch_column(batch, 0, &older)), "");
  EXPECT_EQ(older.pinned, 77);
  api_->batch_free(batch);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, RaggedColumnsHaveOffsets) {
  const std::vector<int64_t> offsets{0, 2, 2, 3, 7, 8};
  std::vector<float> areas(8);
  std::iota(areas.begin(), areas.end(), 1.F);
  const auto folder = stoker::ImageFolder(photos_.path()).value();
  stoker::PathTable paths;
  for (uint64_t id = 0; id + 1 < offsets.size(); ++id) {
    std::string path;
    folder->PathOf(folder->RangeOf(id).file, path);
    paths.Add(path);
  }
  const stoker::ArrayColumn area{.name = "area",
                                 .dtype = stoker::DType::kF32,
                                 .row_shape = {},
                                 .data = areas.data(),
                                 .samples = offsets.size() - 1,
                                 .offsets = offsets.data(),
                                 .kind = stoker::Field::Kind::kObject};
  stoker::LoaderOptions options;
  options.source = stoker::Files(std::move(paths), {.columns = {area}}).value();
  options.transforms = {stoker::Resize{.height = 8, .width = 8}};
  options.batch_size = 3;
  const std::string key = NewKey();
  const auto loader =
      stoker::Registry::Get()
          .FindOrOpen(key, [&](auto epochs) { return stoker::Loader::Open(options, epochs); })
          .value();
  stoker_dataset* const dataset = Open(key, "");
  stoker_cursor* cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  for (size_t first = 0; first < 5; first += 3) {
    stoker_batch* const batch = Next(cursor);
    stoker_batch_info info{};
    info.struct_size = sizeof(info);
    ASSERT_EQ(Take(api_->batch_info(batch, &info)), "");
    EXPECT_EQ(info.rows, first == 0 ? 3 : 2);
    EXPECT_EQ(Column(batch, 0).offsets, nullptr);
    const stoker_column column = Column(batch, 1);
    ASSERT_NE(column.offsets, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(column.offsets) % 64, 0u);
    stoker_column older{};
    older.struct_size = offsetof(stoker_column, offsets);
    ASSERT_EQ(Take(api_->batch_column(batch, 1, &older)), "");
    EXPECT_EQ(older.offsets, nullptr);
    stoker_owner* const owner = api_->batch_owner(batch, 1);
    api_->batch_free(batch);
    const auto* const values = static_cast<const float*>(column.data);
    EXPECT_EQ(column.dims[0], column.offsets[info.rows]);
    for (size_t row = 0; row < static_cast<size_t>(info.rows); ++row) {
      const std::vector<float> got(values + column.offsets[row], values + column.offsets[row + 1]);
      const std::vector<float> wanted(areas.begin() + offsets[first + row],
                                      areas.begin() + offsets[first + row + 1]);
      EXPECT_EQ(got, wanted);
    }
    api_->owner_free(owner);
  }
  api_->cursor_free(cursor);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, ABatchOnADeviceIsReleasedOnceOnTheStreamThatWaitedForIt) {
  const auto this_thread = std::this_thread::get_id();
  int records = 0;  // by this thread, not by the copier's
  const auto device = std::make_shared<HookedDevice>(
      stoker::MakeHostDevice(), [&](DeviceCall call) -> stoker::Status {
        if (call == DeviceCall::kRecord && std::this_thread::get_id() == this_thread) ++records;
        return {};
      });
  const std::string key = NewKey();
  stoker::LoaderOptions options = stoker::ParseLoaderSpec(Spec()).value();
  options.to_device = {.devices = {device}, .buffers = 2};
  const auto loader =
      stoker::Registry::Get()
          .FindOrOpen(key, [&](auto epochs) { return stoker::Loader::Open(options, epochs); })
          .value();
  stoker_dataset* const dataset = Open(key, "");
  stoker_dataset* const on_host = Open(NewKey(), Spec());
  stoker_cursor* cursor = nullptr;
  stoker_cursor* host_cursor = nullptr;
  ASSERT_EQ(Take(api_->cursor_open(dataset, 0, 0, &cursor)), "");
  ASSERT_EQ(Take(api_->cursor_open(on_host, 0, 0, &host_cursor)), "");
  const stoker::DeviceStream stream = device->MakeStream(stoker::StreamPriority::kNormal).value();
  const stoker::DeviceEvent done = device->MakeEvent(false).value();
  for (int i = 0; i < static_cast<int>(kPerEpoch); ++i) {
    stoker_batch* const batch = Next(cursor);
    ASSERT_EQ(Take(api_->batch_wait_on(batch, stream.handle)), "");
    const stoker_column image = Column(batch, 0);
    stoker_owner* const images = api_->batch_owner(batch, 0);
    stoker_owner* const labels = api_->batch_owner(batch, 1);
    api_->batch_free(batch);
    std::vector<uint8_t> copied(image.bytes);
    // The stream has read nothing yet when the owners are freed.
    ASSERT_TRUE(device->Occupy(20'000'000, stream).ok());
    ASSERT_TRUE(device->Copy(copied.data(), image.data, image.bytes, stream).ok());
    api_->owner_free(images);
    EXPECT_EQ(records, i) << "an owner is left";
    api_->owner_free(labels);
    EXPECT_EQ(records, i + 1);
    ASSERT_TRUE(device->inner()->Record(done, stream).ok());
    stoker_batch* const host = Next(host_cursor);
    ASSERT_TRUE(device->Synchronize(done).ok());
    EXPECT_EQ(copied, Pixels(host));
  }
  EXPECT_EQ(device->count(DeviceCall::kRecordAll), 0) << "its users are known";
  device->Destroy(done);
  device->Destroy(stream);
  api_->cursor_free(cursor);
  api_->cursor_free(host_cursor);
  api_->dataset_free(dataset);
  api_->dataset_free(on_host);
}

TEST_F(StokerCTest, ABatchOfTheHostIsOnNoStream) {
  stoker_dataset* const dataset = Open(NewKey(), Spec());
  stoker_batch* batch = nullptr;
  ASSERT_EQ(BatchAt(dataset, {0, 0}, &batch), "");
  EXPECT_NE(Take(api_->batch_wait_on(batch, nullptr)).find("in the host's memory"),
            std::string::npos);
  api_->batch_free(batch);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, ABatchHasAColumnOfEachField) {
  const std::vector<int64_t> labels(20, 3);
  std::vector<float> places;
  stoker::PathTable paths;
  for (uint64_t id = 0; id < 20; ++id) {
    paths.Add(photos_.FileOf(id));
    places.insert(places.end(), {static_cast<float>(id), 0.5F});
  }
  stoker::LoaderOptions options = stoker::ParseLoaderSpec(Spec()).value();
  options.source =
      stoker::Files(std::move(paths),
                    {.columns = {{"label", stoker::DType::kI64, {}, labels.data(), 20},
                                 {"place", stoker::DType::kF32, {2}, places.data(), 20}}})
          .value();
  const std::string key = NewKey();
  const auto loader =
      stoker::Registry::Get()
          .FindOrOpen(key, [&](auto epochs) { return stoker::Loader::Open(options, epochs); })
          .value();
  stoker_dataset* dataset = Open(key, "");
  stoker_batch* batch = nullptr;
  ASSERT_EQ(BatchAt(dataset, {0, 1}, &batch), "");
  stoker_batch_info info{};
  info.struct_size = sizeof(info);
  ASSERT_EQ(Take(api_->batch_info(batch, &info)), "");
  EXPECT_EQ(info.columns, 3);
  EXPECT_STREQ(Column(batch, 0).name, "image");
  EXPECT_STREQ(Column(batch, 1).name, "label");
  EXPECT_EQ(static_cast<const int64_t*>(Column(batch, 1).data)[7], 3);
  const stoker_column place = Column(batch, 2);
  EXPECT_STREQ(place.name, "place");
  EXPECT_EQ(place.dtype, STOKER_F32);
  ASSERT_EQ(place.ndim, 2);
  EXPECT_EQ(place.dims[0], 8);
  EXPECT_EQ(place.dims[1], 2);
  for (size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(static_cast<const float*>(place.data)[2 * row],
              static_cast<float>(info.sample_ids[row]));
  }
  api_->batch_free(batch);
  api_->dataset_free(dataset);
}

TEST_F(StokerCTest, OlderCallersGetTheFieldsTheyKnow) {
  stoker_dataset* dataset = Open(NewKey(), Spec());
  stoker_dataset_info info;
  std::memset(&info, 0x5a, sizeof(info));
  info.struct_size = 2 * sizeof(uint64_t);
  ASSERT_EQ(Take(api_->dataset_info(dataset, &info)), "");
  EXPECT_EQ(info.batches_per_epoch, kPerEpoch);
  EXPECT_EQ(info.struct_size, 2 * sizeof(uint64_t));
  EXPECT_EQ(info.cores, 0x5a5a5a5a) << "beyond what it knows";
  api_->dataset_free(dataset);
}

}  // namespace
