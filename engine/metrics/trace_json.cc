#include "engine/metrics/trace_json.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

namespace {

using Json = nlohmann::json;
using Kind = TraceEvent::Kind;

std::string Quoted(std::string_view text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string Number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[32];
  std::snprintf(text, sizeof text, "%.12g", value);
  return text;
}

// The members of an event. Values are JSON already.
class Members {
 public:
  Members& Add(const char* name, const std::string& value) {
    text_ += text_.empty() ? "\"" : ",\"";
    text_ += name;
    text_ += "\":";
    text_ += value;
    return *this;
  }
  Members& Add(const char* name, uint64_t value) { return Add(name, std::to_string(value)); }
  Members& AddText(const char* name, std::string_view value) { return Add(name, Quoted(value)); }
  std::string Object() const { return "{" + text_ + "}"; }

 private:
  std::string text_;
};

struct Interval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

class Writer {
 public:
  Writer(const TraceRecorder& recorder, const TracePeriod& period, std::FILE* stream)
      : recorder_(recorder), period_(period), stream_(stream) {}

  uint64_t Write() {
    Put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    Name("process_name", pid_, 0, "stoker");
    const std::vector<TraceRecorder::Thread> threads = recorder_.Threads();
    int worker = 0;
    for (const TraceRecorder::Thread& thread : threads) WriteThread(thread, worker);
    WriteSources();
    WriteDropped();
    Put("\n],\"otherData\":" + OtherData(threads.size()) + "}\n");
    return events_;
  }

 private:
  struct Source {
    std::string name;
    std::vector<const TraceEvent*> tasks;
  };

  void Put(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stream_); }

  void Event(const Members& members) {
    Put((std::exchange(begun_, true) ? ",\n" : "") + members.Object());
  }

  // Returns microseconds with three decimals.
  static std::string Micros(uint64_t ns) {
    const std::string below = std::to_string(1000 + ns % 1000);
    return std::to_string(ns / 1000) + "." + below.substr(1);
  }
  std::string At(uint64_t ns) const {
    return Micros(std::clamp(ns, period_.begin_ns, period_.end_ns) - period_.begin_ns);
  }

  static Members Basic(const char* phase, std::string_view name, uint64_t pid, uint64_t tid) {
    return Members().AddText("ph", phase).AddText("name", name).Add("pid", pid).Add("tid", tid);
  }

  void Name(const char* what, uint64_t pid, uint64_t tid, std::string_view name) {
    const std::string value = Members().AddText("name", name).Object();
    Event(Basic("M", what, pid, tid).Add("args", value));
  }
  void SortIndex(const char* what, uint64_t pid, uint64_t tid, uint64_t index) {
    const std::string value = Members().Add("sort_index", index).Object();
    Event(Basic("M", what, pid, tid).Add("args", value));
  }

  void Slice(std::string_view name, uint64_t pid, uint64_t tid, Interval interval,
             const Members& arguments) {
    const uint64_t begin = std::clamp(interval.begin_ns, period_.begin_ns, period_.end_ns);
    const uint64_t end = std::clamp(interval.end_ns, begin, period_.end_ns);
    Event(Basic("X", name, pid, tid)
              .AddText("cat", "stoker")
              .Add("ts", At(begin))
              .Add("dur", Micros(end - begin))
              .Add("args", arguments.Object()));
  }

  void WriteThread(const TraceRecorder::Thread& thread, int& worker);
  void WriteEvent(const TraceEvent& event, uint64_t tid);
  void WriteSources();
  void WriteTask(const TraceEvent& task, uint64_t pid, uint64_t tid);
  void WriteDropped();
  std::string OtherData(size_t threads) const;
  uint64_t PidOf(uint64_t source) const { return pid_ + source; }

  const TraceRecorder& recorder_;
  const TracePeriod& period_;
  std::FILE* const stream_;
  const uint64_t pid_ = static_cast<uint64_t>(getpid());
  bool begun_ = false;
  uint64_t events_ = 0;
  std::map<uint64_t, Source> sources_;
};

bool Waits(const TraceEvent* event) { return std::string_view(event->name) == "stoker.wait"; }

void Writer::WriteThread(const TraceRecorder::Thread& thread, int& worker) {
  enum : uint64_t { kConsumer = 1, kStager, kWorker, kReader };
  std::string name = thread.name;
  uint64_t index = kConsumer;
  if (name == "stoker/worker") {
    name += " " + std::to_string(++worker);
    index = kWorker;
  } else if (name.starts_with("stoker/")) {
    index = name == "stoker/reader" ? kReader : kStager;
  } else if (std::ranges::any_of(thread.events, Waits)) {
    name = "consumer (" + name + ")";
  }
  Name("thread_name", pid_, thread.id, name);
  SortIndex("thread_sort_index", pid_, thread.id, index);
  for (const TraceEvent* event : thread.events) WriteEvent(*event, thread.id);
  events_ += thread.events.size();
}

void Writer::WriteEvent(const TraceEvent& event, uint64_t tid) {
  if (event.kind == Kind::kTask) {
    Source& source = sources_[event.detail->source];
    source.name = event.detail->source_name;
    source.tasks.push_back(&event);
    return;
  }
  if (event.kind == Kind::kCounter) {
    sources_[event.epoch];
    const std::string value = Number(std::bit_cast<double>(event.index));
    return Event(Basic("C", event.name, PidOf(event.epoch), 0)
                     .Add("ts", At(event.begin_ns))
                     .Add("args", Members().Add("value", value).Object()));
  }
  if (event.kind == Kind::kInstant) {
    sources_[event.detail->source].name = event.detail->source_name;
    return Event(Basic("i", event.detail->text, PidOf(event.detail->source), 0)
                     .AddText("s", "p")
                     .AddText("cat", event.name)
                     .Add("ts", At(event.begin_ns)));
  }
  const uint64_t end = event.end_ns.load(std::memory_order_acquire);
  Members arguments;
  if (event.kind == Kind::kBatchSpan) {
    arguments.Add("epoch", event.epoch).Add("batch", event.index);
  }
  if (end == 0) arguments.Add("unfinished", "true");
  Slice(event.name, pid_, tid, {event.begin_ns, end == 0 ? period_.end_ns : end}, arguments);
}

// Writes the tasks of each source, in as many tracks as there were concurrent tasks.
void Writer::WriteSources() {
  for (auto& [number, source] : sources_) {
    if (number == 0) continue;  // events of the process
    const uint64_t pid = PidOf(number);
    const std::string about = source.name.empty() ? "" : ": " + source.name;
    Name("process_name", pid, 0, "stoker loader " + std::to_string(number) + about);
    SortIndex("process_sort_index", pid, 0, number);
    std::ranges::sort(source.tasks, {}, [](const TraceEvent* t) { return t->detail->begin_ns; });
    std::vector<uint64_t> free_from;  // by track
    for (const TraceEvent* task : source.tasks) {
      const auto track = std::ranges::find_if(
          free_from, [&](uint64_t since) { return since <= task->detail->begin_ns; });
      const auto index = static_cast<uint64_t>(track - free_from.begin()) + 1;
      const uint64_t tid = number * 1000 + index;
      if (track == free_from.end()) {
        Name("thread_name", pid, tid, "in production " + std::to_string(index));
        SortIndex("thread_sort_index", pid, tid, index);
        free_from.push_back(task->detail->end_ns);
      } else {
        *track = task->detail->end_ns;
      }
      WriteTask(*task, pid, tid);
    }
  }
}

void Writer::WriteTask(const TraceEvent& task, uint64_t pid, uint64_t tid) {
  Members arguments;
  arguments.Add("epoch", task.epoch).Add("batch", task.index);
  for (const auto& [name, value] : task.detail->arguments) {
    const auto* text = std::get_if<std::string>(&value);
    arguments.Add(name, text != nullptr ? Quoted(*text) : Number(std::get<double>(value)));
  }
  const std::string name =
      std::string(task.name) + " " + std::to_string(task.epoch) + ":" + std::to_string(task.index);
  const Interval whole{task.detail->begin_ns, task.detail->end_ns};
  Slice(name, pid, tid, whole, arguments);
  for (const TraceTask::Part& part : task.detail->parts) {
    const uint64_t begin = std::clamp(part.begin_ns, whole.begin_ns, whole.end_ns);
    const uint64_t end = std::clamp(part.end_ns, begin, whole.end_ns);
    if (end > begin && end > period_.begin_ns) Slice(part.name, pid, tid, {begin, end}, {});
  }
}

void Writer::WriteDropped() {
  const TraceRecorder::Dropped dropped = recorder_.dropped();
  if (dropped.events == 0) return;
  const std::string text = std::to_string(dropped.events) +
                           " events from here on are missing: they did not fit into memory";
  Event(Basic("i", text, pid_, 0).AddText("s", "g").Add("ts", At(dropped.since_ns)));
}

std::string Writer::OtherData(size_t threads) const {
  return Members()
      .AddText("events", std::to_string(events_))
      .AddText("dropped_events", std::to_string(recorder_.dropped().events))
      .AddText("threads", std::to_string(threads))
      .AddText("begin_monotonic_ns", std::to_string(period_.begin_ns))
      .AddText("begin_unix_ns", std::to_string(period_.begin_unix_ns))
      .Object();
}

}  // namespace

uint64_t WriteTraceJson(const TraceRecorder& recorder, const TracePeriod& period,
                        std::FILE* stream) {
  return Writer(recorder, period, stream).Write();
}

}  // namespace stoker
