#include "core/time/trace.h"

#include <gmock/gmock.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/effort.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;

// Records the calls of one thread.
class CallRecorder final : public TraceListener {
 public:
  explicit CallRecorder(bool* gone = nullptr) : gone_(gone) {}
  ~CallRecorder() override {
    if (gone_ != nullptr) *gone_ = true;
  }

  int64_t Begin(const char* name) override {
    calls.push_back("begin " + std::string(name));
    return next_++;
  }
  int64_t BeginBatch(const char* name, uint64_t epoch, uint64_t index) override {
    calls.push_back("begin " + std::string(name) + " " + std::to_string(epoch) + ":" +
                    std::to_string(index));
    return next_++;
  }
  void End(int64_t span) override { calls.push_back("end " + std::to_string(span)); }
  void Counter(const TraceSource& source, const char* name, double value) override {
    calls.push_back(std::string(name) + " of " + std::to_string(source.number) + " is " +
                    std::to_string(static_cast<int>(value)));
  }
  void Instant(const TraceSource&, const char* name, std::string_view text) override {
    calls.push_back(std::string(name) + ": " + std::string(text));
  }
  void Task(const TraceSource&, const TraceTask& task) override {
    calls.push_back("task " + std::string(task.name));
  }

  std::vector<std::string> calls;

 private:
  bool* const gone_;
  int64_t next_ = 7;
};

TEST(Trace, WithoutListenersIsANoOp) {
  Trace trace;
  EXPECT_FALSE(trace.listening());
  const TraceSpan span(trace, "a");
  trace.Counter({}, "c", 1);
  EXPECT_TRUE(trace.Listen(&trace, nullptr));  // no listener is removed
}

TEST(Trace, ReportsSpansCountersAndInstants) {
  Trace trace;
  const auto calls = std::make_shared<CallRecorder>();
  ASSERT_TRUE(trace.Listen(&trace, calls));
  EXPECT_TRUE(trace.listening());
  {
    const TraceSpan outer(trace, "outer");
    const TraceSpan inner(trace, "inner", 2, 17);
    trace.Counter({.number = 3, .name = "loader"}, "depth", 4);
    trace.Instant({}, "decision", "why");
    trace.Task({}, {.name = "batch"});
  }
  EXPECT_THAT(calls->calls, ElementsAre("begin outer", "begin inner 2:17", "depth of 3 is 4",
                                        "decision: why", "task batch", "end 8", "end 7"));
}

TEST(Trace, ListenersMayImplementSpansOnly) {
  class Plain final : public TraceListener {
   public:
    int64_t Begin(const char* name) override { return begun = name, 0; }
    void End(int64_t) override {}
    std::string begun;
  };
  Trace trace;
  const auto plain = std::make_shared<Plain>();
  ASSERT_TRUE(trace.Listen(&trace, plain));
  { const TraceSpan span(trace, "mix", 1, 2); }
  trace.Counter({}, "c", 1);
  trace.Task({}, {});
  EXPECT_EQ(plain->begun, "mix");
}

TEST(Trace, SupportsSeveralListeners) {
  Trace trace;
  const auto first = std::make_shared<CallRecorder>();
  const auto second = std::make_shared<CallRecorder>();
  ASSERT_TRUE(trace.Listen(&first, first));
  {
    const TraceSpan span(trace, "a");
    ASSERT_TRUE(trace.Listen(&second, second));
    { const TraceSpan both(trace, "b"); }
  }
  EXPECT_THAT(first->calls, ElementsAre("begin a", "begin b", "end 8", "end 7"));
  EXPECT_THAT(second->calls, ElementsAre("begin b", "end 7"));  // "a" began before
  EXPECT_EQ(trace.listener(&first), first);
  EXPECT_EQ(trace.listener(&second), second);
  EXPECT_EQ(trace.listener(&trace), nullptr);
}

TEST(Trace, AListenerReplacesTheOneOfTheSameKey) {
  Trace trace;
  bool gone = false;
  ASSERT_TRUE(trace.Listen(&trace, std::make_shared<CallRecorder>(&gone)));
  const auto next = std::make_shared<CallRecorder>();
  ASSERT_TRUE(trace.Listen(&trace, next));
  EXPECT_TRUE(gone);
  EXPECT_EQ(trace.listener(&trace), next);
  { const TraceSpan span(trace, "a"); }
  EXPECT_THAT(next->calls, ElementsAre("begin a", "end 7"));
}

TEST(Trace, ListenersLiveUntilTheirOpenSpansEnd) {
  Trace trace;
  bool gone = false;
  auto calls = std::make_shared<CallRecorder>(&gone);
  std::vector<std::string>& seen = calls->calls;
  ASSERT_TRUE(trace.Listen(&trace, std::move(calls)));
  {
    const TraceSpan span(trace, "a");
    ASSERT_TRUE(trace.Listen(&trace, nullptr));
    EXPECT_FALSE(trace.listening());
    const TraceSpan later(trace, "b");
    EXPECT_FALSE(gone);
    EXPECT_THAT(seen, ElementsAre("begin a"));
  }
  EXPECT_TRUE(gone);
}

TEST(Trace, RefusesTooManyListeners) {
  Trace trace;
  std::vector<std::shared_ptr<CallRecorder>> all;
  for (int i = 0; i < Trace::kMax; ++i) {
    all.push_back(std::make_shared<CallRecorder>());
    ASSERT_TRUE(trace.Listen(all.back().get(), all.back()));
  }
  const auto more = std::make_shared<CallRecorder>();
  EXPECT_FALSE(trace.Listen(more.get(), more));
  EXPECT_EQ(trace.listener(more.get()), nullptr);
  {
    const TraceSpan span(trace, "a");
    ASSERT_TRUE(trace.Listen(all[3].get(), nullptr));
    EXPECT_FALSE(trace.Listen(more.get(), more));  // its span is not over
  }
  EXPECT_TRUE(trace.Listen(more.get(), more));
  { const TraceSpan span(trace, "b"); }
  EXPECT_THAT(more->calls, ElementsAre("begin b", "end 7"));
  EXPECT_THAT(all[3]->calls, ElementsAre("begin a", "end 7"));
  EXPECT_THAT(all[4]->calls, ElementsAre("begin a", "end 7", "begin b", "end 8"));
}

TEST(Trace, NumbersAreDistinct) {
  Trace trace;
  EXPECT_EQ(trace.NewNumber(), 1U);
  EXPECT_EQ(trace.NewNumber(), 2U);
}

// The sanitizers detect the use of a destroyed listener by its memory.
class Balance final : public TraceListener {
 public:
  explicit Balance(std::atomic<int64_t>& open) : open_(open), alive_(new int(1)) {}
  ~Balance() override { delete alive_; }
  int64_t Begin(const char*) override {
    open_ += *alive_;
    return 0;
  }
  void End(int64_t) override { open_ -= *alive_; }

 private:
  std::atomic<int64_t>& open_;
  const int* const alive_;
};

TEST(Trace, ListenersComeAndGoWhileThreadsAreInSpans) {
  Trace trace;
  std::atomic<int64_t> open{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> tellers;
  for (int t = 0; t < 3; ++t) {
    tellers.emplace_back([&] {
      while (!done) {
        const TraceSpan outer(trace, "outer");
        const TraceSpan inner(trace, "inner", 1, 2);
        trace.Instant({}, "now", "");
      }
    });
  }
  std::vector<std::thread> listeners;
  for (int t = 0; t < 2; ++t) {
    listeners.emplace_back([&, t] {
      const char* who = t == 0 ? "first" : "second";
      for (int i = 0; i < testing::Effort(2000); ++i) {
        (void)trace.Listen(who, std::make_shared<Balance>(open));
        if (i % 3 == 0) (void)trace.Listen(who, nullptr);
      }
      (void)trace.Listen(who, nullptr);
    });
  }
  for (std::thread& thread : listeners) thread.join();
  done = true;
  for (std::thread& thread : tellers) thread.join();
  EXPECT_EQ(open, 0);  // every span that was begun has ended
  EXPECT_FALSE(trace.listening());
}

}  // namespace
}  // namespace stoker
