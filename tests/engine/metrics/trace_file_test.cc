#include "engine/metrics/trace_file.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/production/producer.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/photo_folder.h"

namespace stoker {
namespace {

using Json = nlohmann::json;
using ::stoker::testing::PhotoFolder;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class TraceFileTest : public ::testing::Test {
 protected:
  TraceFileTest() {
    std::string name = "/tmp/stoker-trace-XXXXXX";
    folder_ = mkdtemp(name.data());
    runtime_ = Runtime::Create({.threads = 2}).value();
  }
  ~TraceFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name = "trace.json") const { return (folder_ / name).string(); }

  std::unique_ptr<TraceFile> Start(const char* name = "trace.json", TraceFileOptions options = {}) {
    return TraceFile::Start(runtime_, path(name), options).value();
  }

  Json Read(const char* name = "trace.json") const {
    std::ifstream file(path(name));
    return Json::parse(file);
  }

  std::unique_ptr<Producer> Open(const PhotoFolder& photos, uint32_t batch_size = 8) {
    LoaderOptions options;
    options.source = photos.Source();
    options.transforms = {RandomResizedCrop{.height = 32, .width = 32}};
    options.batch_size = batch_size;
    options.epochs = 2;
    options.runtime = runtime_;
    return Producer::Open(std::move(options)).value();
  }

  std::filesystem::path folder_;
  std::shared_ptr<Runtime> runtime_;
};

std::vector<Json> Of(const Json& trace, const std::string& phase, const std::string& name = "") {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents")) {
    const bool named = name.empty() || event.at("name") == name;
    if (event.at("ph") == phase && named) found.push_back(event);
  }
  return found;
}

std::set<std::string> NamesOf(const std::vector<Json>& events) {
  std::set<std::string> names;
  for (const Json& event : events) names.insert(event.at("name"));
  return names;
}

std::set<std::string> ThreadNames(const Json& trace, const char* what = "thread_name") {
  std::set<std::string> names;
  for (const Json& event : Of(trace, "M", what)) names.insert(event.at("args").at("name"));
  return names;
}

uint64_t Nanoseconds(const Json& micros) {
  return static_cast<uint64_t>(micros.get<double>() * 1000 + 0.5);
}

// Checks the format's requirements for every event, and that the slices of each row nest.
void ExpectSound(const Json& trace) {
  std::map<std::pair<uint64_t, uint64_t>, std::vector<std::pair<uint64_t, uint64_t>>> rows;
  for (const Json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ASSERT_THAT("XiCM", HasSubstr(phase));
    EXPECT_TRUE(event.at("name").is_string());
    EXPECT_TRUE(event.at("pid").is_number_unsigned());
    EXPECT_TRUE(event.at("tid").is_number_unsigned());
    if (phase == "M") continue;
    EXPECT_TRUE(event.at("ts").is_number()) << event;
    EXPECT_GE(event.at("ts").get<double>(), 0) << event;
    if (phase != "X") continue;
    const uint64_t begin = Nanoseconds(event.at("ts"));
    rows[{event.at("pid"), event.at("tid")}].emplace_back(begin,
                                                          begin + Nanoseconds(event.at("dur")));
  }
  for (auto& [row, slices] : rows) {
    std::ranges::stable_sort(slices, {}, [](const auto& slice) { return slice.first; });
    std::vector<uint64_t> open;  // ends
    for (const auto& [begin, end] : slices) {
      while (!open.empty() && open.back() <= begin) open.pop_back();
      EXPECT_TRUE(open.empty() || end <= open.back()) << "on row " << row.second;
      open.push_back(end);
    }
  }
}

TEST_F(TraceFileTest, ShowsWhatALoaderDoes) {
  const PhotoFolder photos(40, 2);
  const std::unique_ptr<Producer> loader = Open(photos);
  std::unique_ptr<TraceFile> trace = Start();
  while (loader->Next().value()) {
  }
  const TraceSummary told = trace->Stop().value();
  EXPECT_EQ(told.path, path());
  EXPECT_EQ(told.dropped, 0U);
  EXPECT_EQ(told.bytes, std::filesystem::file_size(path()));
  const Json json = Read();
  ExpectSound(json);
  EXPECT_THAT(NamesOf(Of(json, "X")),
              AllOf(Contains("stoker.wait"), Contains("stoker.read"), Contains("stoker.decode")));
  const std::set<std::string> threads = ThreadNames(json);
  EXPECT_THAT(threads, Contains("stoker/reader"));
  EXPECT_THAT(threads, Contains("stoker/worker 1"));
  EXPECT_THAT(threads, Contains(HasSubstr("consumer (")));
  EXPECT_EQ(json.at("otherData").at("dropped_events"), "0");
  EXPECT_EQ(json.at("otherData").at("events"), std::to_string(told.events));
}

TEST_F(TraceFileTest, StartsAndStopsMidEpoch) {
  const PhotoFolder photos(40, 2);
  const std::unique_ptr<Producer> loader = Open(photos);
  ASSERT_TRUE(loader->Next().ok());
  for (const char* name : {"first.json", "second.json"}) {
    std::unique_ptr<TraceFile> trace = Start(name);
    ASSERT_TRUE(loader->Next().ok());
    ASSERT_TRUE(trace->Stop().ok());
    ASSERT_TRUE(loader->Next().ok());
    const Json json = Read(name);
    ExpectSound(json);
    EXPECT_EQ(Of(json, "X", "stoker.wait").size(), 1U);  // of the batch in between
  }
  EXPECT_FALSE(runtime_->trace().listening());
}

TEST_F(TraceFileTest, TwoFilesRecordAtOnce) {
  std::unique_ptr<TraceFile> all = Start("all.json");
  { const TraceSpan span(runtime_->trace(), "one"); }
  std::unique_ptr<TraceFile> part = Start("part.json");
  { const TraceSpan span(runtime_->trace(), "two"); }
  ASSERT_TRUE(part->Stop().ok());
  { const TraceSpan span(runtime_->trace(), "three"); }
  ASSERT_TRUE(all->Stop().ok());
  EXPECT_EQ(NamesOf(Of(Read("all.json"), "X")), (std::set<std::string>{"one", "two", "three"}));
  EXPECT_EQ(NamesOf(Of(Read("part.json"), "X")), std::set<std::string>{"two"});
}

TEST_F(TraceFileTest, HasEveryKindOfEvent) {
  const uint64_t begin = NowNanoseconds();
  std::unique_ptr<TraceFile> trace = Start();
  Trace& told = runtime_->trace();
  const TraceSource loader{3, "image_folder(\"a\xff\")"};
  {
    const TraceSpan outer(told, "stoker.wait", 2, 17);
    const TraceSpan inner(told, "inner");
    told.Counter(loader, "depth", 4.5);
    told.Instant(loader, "tuner", "depth 4 → 7: \"waits\"");
  }
  const uint64_t now = NowNanoseconds();
  const std::vector<TraceTask::Part> parts = {{"read", now + 10, now + 20},
                                              {"decode", now + 20, now + 2000}};
  const std::vector<TraceArgument> arguments = {{.name = "rows", .number = 64},
                                                {.name = "file", .text = "a/b.jpg"}};
  const auto task = [&](uint64_t index, uint64_t from, uint64_t to) {
    told.Task(loader, {"batch", 1, index, from, to, parts, arguments});
  };
  task(0, begin, now + 1000);  // before the trace began: cut
  task(1, now, now + 1000);
  task(2, now + 1000, now + 3000);  // in the row of the first
  while (NowNanoseconds() < now + 4000) {
  }
  EXPECT_EQ(trace->Stop().value().events, 7U);
  const Json json = Read();
  ExpectSound(json);

  const Json wait = Of(json, "X", "stoker.wait").at(0);
  EXPECT_EQ(wait.at("args"), (Json{{"epoch", 2}, {"batch", 17}}));
  EXPECT_EQ(wait.at("pid"), getpid());
  EXPECT_EQ(wait.at("tid"), gettid());
  EXPECT_EQ(Of(json, "X", "inner").at(0).at("args"), Json::object());
  const Json depth = Of(json, "C", "depth").at(0);
  EXPECT_EQ(depth.at("args"), (Json{{"value", 4.5}}));
  EXPECT_EQ(depth.at("pid"), getpid() + 3);
  const Json decision = Of(json, "i").at(0);
  EXPECT_EQ(decision.at("name"), "depth 4 → 7: \"waits\"");
  EXPECT_EQ(decision.at("s"), "p");
  EXPECT_THAT(ThreadNames(json, "process_name"),
              Contains("stoker loader 3: image_folder(\"a\xef\xbf\xbd\")"));
  EXPECT_EQ(Of(json, "X", "batch 1:0").at(0).at("ts"), 0);
  const Json batch = Of(json, "X", "batch 1:1").at(0);
  EXPECT_EQ(batch.at("args"),
            (Json{{"epoch", 1}, {"batch", 1}, {"rows", 64}, {"file", "a/b.jpg"}}));
  EXPECT_EQ(batch.at("dur"), 1.0);
  EXPECT_NE(batch.at("tid"), Of(json, "X", "batch 1:0").at(0).at("tid"));
  EXPECT_THAT(ThreadNames(json), AllOf(Contains("in production 1"), Contains("in production 2"),
                                       Not(Contains("in production 3"))));
  EXPECT_EQ(Of(json, "X", "read").size(), 2U);    // not in the third, which began later
  EXPECT_EQ(Of(json, "X", "decode").size(), 3U);  // cut to its batch
}

TEST_F(TraceFileTest, MarksSpansThatAreOpenAtTheEnd) {
  std::unique_ptr<TraceFile> trace = Start();
  {
    const TraceSpan span(runtime_->trace(), "long");
    ASSERT_TRUE(trace->Stop().ok());
    trace.reset();  // the span still has whom it was told
  }
  const Json json = Read();
  ExpectSound(json);
  EXPECT_EQ(Of(json, "X", "long").at(0).at("args"), (Json{{"unfinished", true}}));
}

TEST_F(TraceFileTest, CountsDroppedEvents) {
  std::unique_ptr<TraceFile> trace = Start("trace.json", {.memory = uint64_t{1} << 20});
  constexpr uint64_t kTold = 40'000;
  {
    const TraceSpan first(runtime_->trace(), "first");
    for (uint64_t i = 1; i < kTold; ++i) const TraceSpan span(runtime_->trace(), "more");
    runtime_->trace().Task({1, "loader"}, {.name = "late"});
  }
  const TraceSummary told = trace->Stop().value();
  EXPECT_EQ(told.events + told.dropped, kTold + 1);
  EXPECT_GT(told.events, 10'000U);
  EXPECT_LT(told.events, 20'000U);
  const Json json = Read();
  ExpectSound(json);
  EXPECT_EQ(Of(json, "X").size(), told.events);
  EXPECT_EQ(Of(json, "X", "first").at(0).at("args"), Json::object());  // its end had its place
  EXPECT_EQ(json.at("otherData").at("dropped_events"), std::to_string(told.dropped));
  EXPECT_THAT(Of(json, "i").at(0).at("name"), HasSubstr(std::to_string(told.dropped) + " events"));
}

TEST_F(TraceFileTest, SeparatesTwoLoaders) {
  Trace& trace = runtime_->trace();
  std::unique_ptr<TraceFile> file = Start();
  trace.Counter({1, ""}, "depth", 4);
  trace.Counter({2, ""}, "depth", 5);
  trace.Task({1, "train"}, {.name = "batch"});
  trace.Task({2, "validation"}, {.name = "batch"});
  ASSERT_TRUE(file->Stop().ok());
  const Json json = Read();
  EXPECT_THAT(ThreadNames(json, "process_name"),
              AllOf(Contains("stoker loader 1: train"), Contains("stoker loader 2: validation")));
  EXPECT_NE(Of(json, "C").at(0).at("pid"), Of(json, "C").at(1).at("pid"));
}

TEST_F(TraceFileTest, ErrorsNameFileAndCause) {
  const auto missing = TraceFile::Start(runtime_, path("no/folder.json"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, Code::kNotFound);
  EXPECT_EQ(missing.error().file, path("no/folder.json"));
  const auto small = TraceFile::Start(runtime_, path(), {.memory = 1000});
  ASSERT_FALSE(small.ok());
  EXPECT_EQ(small.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path()));

  std::vector<std::unique_ptr<TraceFile>> traces;
  for (int i = 0; i < Trace::kMax; ++i) {
    traces.push_back(Start(("trace" + std::to_string(i)).c_str()));
  }
  const auto many = TraceFile::Start(runtime_, path());
  ASSERT_FALSE(many.ok());
  EXPECT_EQ(many.error().code, Code::kResourceExhausted);

  ASSERT_TRUE(traces[0]->Stop().ok());
  EXPECT_EQ(traces[0]->Stop().error().code, Code::kFailedPrecondition);
}

TEST_F(TraceFileTest, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "there is no /dev/full here";
  std::unique_ptr<TraceFile> trace = TraceFile::Start(runtime_, "/dev/full").value();
  const auto stopped = trace->Stop();
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kResourceExhausted);
  EXPECT_EQ(stopped.error().file, "/dev/full");
  EXPECT_EQ(stopped.error().advice, "Free some space, and run again");
}

TEST_F(TraceFileTest, AForkedChildWritesNothing) {
  std::unique_ptr<TraceFile> trace = Start();
  { const TraceSpan span(runtime_->trace(), "parent"); }
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = !trace->Stop().ok();
    trace.reset();
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(std::filesystem::exists(path()));
  ASSERT_TRUE(trace->Stop().ok());
  EXPECT_EQ(Of(Read(), "X").size(), 1U);
}

TEST_F(TraceFileTest, ThreadsMayTraceWhileTheFileIsWritten) {
  std::atomic<bool> done{false};
  std::vector<std::thread> tellers;
  for (int t = 0; t < 4; ++t) {
    tellers.emplace_back([&, t] {
      const TraceSource source{static_cast<uint64_t>(t), "loader"};
      while (!done) {
        const TraceSpan outer(runtime_->trace(), "outer");
        const TraceSpan inner(runtime_->trace(), "inner", 1, 2);
        runtime_->trace().Instant(source, "now", "text");
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    });
  }
  for (int i = 0; i < testing::Effort(30); ++i) {
    std::unique_ptr<TraceFile> trace = Start();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    const TraceSummary told = trace->Stop().value();
    const Json json = Read();
    ExpectSound(json);
    EXPECT_EQ(Of(json, "X").size() + Of(json, "i").size(), told.events);
  }
  done = true;
  for (std::thread& thread : tellers) thread.join();
}

}  // namespace
}  // namespace stoker
