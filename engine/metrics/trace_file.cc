#include "engine/metrics/trace_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/system/output_file.h"
#include "core/time/stage_times.h"
#include "core/time/trace.h"
#include "engine/runtime/runtime.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMinMemory = uint64_t{1} << 20;

uint64_t UnixNanoseconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::nanoseconds(now).count());
}

// The details of a task or an instant, next to its name.
struct Detail {
  uint64_t number = 0;    // of the source
  std::string name;       // of the source
  uint64_t begin_ns = 0;  // of a task
  uint64_t end_ns = 0;
  std::string text;  // of an instant
  std::vector<TraceTask::Part> parts;
  std::vector<std::pair<const char*, Json>> arguments;
};

struct Event {
  enum class Kind : uint8_t { kSpan, kBatchSpan, kCounter, kInstant, kTask };
  Kind kind = Kind::kSpan;
  const char* name = "";
  uint64_t thread = 0;              // the kernel's thread id
  uint64_t begin_ns = 0;            // of a task: when it was reported
  std::atomic<uint64_t> end_ns{0};  // of a span; 0 until it ends
  uint64_t epoch = 0;               // of a counter: its source's number
  uint64_t index = 0;               // of a counter: the bits of its value, a double
  std::unique_ptr<const Detail> detail;
};

std::unique_ptr<Detail> DetailOf(const TraceSource& source) {
  auto detail = std::make_unique<Detail>();
  detail->number = source.number;
  detail->name = source.name;
  return detail;
}

// Returns the approximate size in bytes.
size_t SizeOf(const Detail& detail) {
  size_t bytes = sizeof detail + detail.name.size() + detail.text.size();
  bytes += detail.parts.size() * sizeof detail.parts[0];
  for (const auto& argument : detail.arguments) {
    const auto* text = argument.second.get_ptr<const std::string*>();
    bytes += sizeof argument + (text == nullptr ? 0 : text->size());
  }
  return bytes;
}

uint64_t ThisThread() {
  thread_local const auto id = static_cast<uint64_t>(gettid());
  return id;
}

struct Interval {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

}  // namespace

// Keeps the events in memory, which is bounded. Events that do not fit are counted, and the time of
// the first one is kept: nothing is lost silently.
class TraceFile::Recorder final : public TraceListener {
 public:
  explicit Recorder(uint64_t memory) : memory_(memory) {}

  int64_t Begin(const char* name) override { return Add(Event::Kind::kSpan, name, 0, 0); }
  int64_t BeginBatch(const char* name, uint64_t epoch, uint64_t index) override {
    return Add(Event::Kind::kBatchSpan, name, epoch, index);
  }
  void End(int64_t span) override {
    if (span == 0) return;  // dropped
    std::bit_cast<Event*>(span)->end_ns.store(NowNanoseconds(), std::memory_order_release);
  }
  void Counter(const TraceSource& source, const char* name, double value) override {
    (void)Add(Event::Kind::kCounter, name, source.number, std::bit_cast<uint64_t>(value));
  }
  void Instant(const TraceSource& source, const char* name, std::string_view text) override {
    std::unique_ptr<Detail> detail = DetailOf(source);
    detail->text = text;
    (void)Add(Event::Kind::kInstant, name, 0, 0, std::move(detail));
  }
  void Task(const TraceSource& source, const TraceTask& task) override;

  // Events that are added later are missing. Their pointers are valid as long as the recorder.
  struct Recorded {
    std::map<uint64_t, std::string> threads;               // names at the first event, by thread id
    std::map<uint64_t, std::vector<const Event*>> events;  // by thread, ordered by begin
    uint64_t dropped = 0;
    uint64_t dropped_since_ns = 0;
  };
  Recorded Read() const;

 private:
  int64_t Add(Event::Kind kind, const char* name, uint64_t epoch, uint64_t index,
              std::unique_ptr<const Detail> detail = nullptr);
  bool Fits(const Detail* detail);

  const uint64_t memory_;
  mutable std::mutex mutex_;  // of all threads; held while one event is added
  std::deque<Event> events_;
  std::map<uint64_t, std::string> threads_;
  uint64_t used_ = 0;
  uint64_t dropped_ = 0;
  uint64_t dropped_since_ns_ = 0;
};

void TraceFile::Recorder::Task(const TraceSource& source, const TraceTask& task) {
  std::unique_ptr<Detail> detail = DetailOf(source);
  detail->begin_ns = task.begin_ns;
  detail->end_ns = task.end_ns;
  detail->parts.assign(task.parts.begin(), task.parts.end());
  for (const TraceArgument& argument : task.arguments) {
    detail->arguments.emplace_back(
        argument.name, argument.text.empty() ? Json(argument.number) : Json(argument.text));
  }
  (void)Add(Event::Kind::kTask, task.name, task.epoch, task.index, std::move(detail));
}

bool TraceFile::Recorder::Fits(const Detail* detail) {
  const uint64_t bytes = sizeof(Event) + (detail == nullptr ? 0 : SizeOf(*detail));
  if (used_ + bytes > memory_) return false;
  used_ += bytes;
  return true;
}

// Returns the address of the event as the number of a span, or 0 if it did not fit.
int64_t TraceFile::Recorder::Add(Event::Kind kind, const char* name, uint64_t epoch, uint64_t index,
                                 std::unique_ptr<const Detail> detail) {
  const uint64_t thread = ThisThread();
  const std::lock_guard lock(mutex_);
  const uint64_t now = NowNanoseconds();
  if (!Fits(detail.get())) {
    if (dropped_++ == 0) dropped_since_ns_ = now;
    return 0;
  }
  if (std::string& thread_name = threads_[thread]; thread_name.empty()) {
    std::array<char, 16> text{};
    pthread_getname_np(pthread_self(), text.data(), text.size());
    thread_name = text.data();
  }
  Event& event = events_.emplace_back();
  event.kind = kind;
  event.name = name;
  event.thread = thread;
  event.epoch = epoch;
  event.index = index;
  event.detail = std::move(detail);
  event.begin_ns = now;
  return std::bit_cast<int64_t>(&event);
}

TraceFile::Recorder::Recorded TraceFile::Recorder::Read() const {
  const std::lock_guard lock(mutex_);
  Recorded recorded{threads_, {}, dropped_, dropped_since_ns_};
  for (const Event& event : events_) recorded.events[event.thread].push_back(&event);
  return recorded;
}

namespace {

using Kind = Event::Kind;

bool IsWait(const Event* event) { return std::string_view(event->name) == "stoker.wait"; }

// Writes the Trace Event Format, which ui.perfetto.dev and chrome://tracing open:
// docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
//
// The process has one track of spans for each thread. Each loader appears as a process of its own
// with counters, decisions, and one track for each batch that was in production at a time.
class Writer {
 public:
  Writer(Interval period, std::FILE* stream) : period_(period), stream_(stream) {}

  uint64_t events() const { return events_; }

  void Begin() {
    Write("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    Describe("process_name", pid_, 0, {{"name", "stoker"}});
  }
  void Thread(uint64_t id, std::string name, const std::vector<const Event*>& events);
  // Writes the tasks of each source, in as many tracks as there were concurrent tasks.
  void Sources();
  void WriteDropped(uint64_t events, uint64_t since_ns) {
    Json event = Basic(
        "i",
        std::to_string(events) + " events from here on are missing: they did not fit into memory",
        pid_, 0);
    event.update({{"s", "g"}, {"ts", At(since_ns)}});
    Put(event);
  }
  void End(const Json& about) { Write("\n],\"otherData\":" + Text(about) + "}\n"); }

 private:
  struct Source {
    std::string name;
    std::vector<const Event*> tasks;
  };

  static std::string Text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  void Write(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stream_); }
  void Put(const Json& event) { Write((std::exchange(begun_, true) ? ",\n" : "") + Text(event)); }

  // In microseconds.
  static double Micros(uint64_t ns) { return static_cast<double>(ns) / 1000; }
  double At(uint64_t ns) const {
    return Micros(std::clamp(ns, period_.begin_ns, period_.end_ns) - period_.begin_ns);
  }
  uint64_t PidOf(uint64_t source) const { return pid_ + source; }

  static Json Basic(const char* phase, std::string_view name, uint64_t pid, uint64_t tid) {
    return {{"ph", phase}, {"name", name}, {"pid", pid}, {"tid", tid}};
  }
  void Describe(const char* what, uint64_t pid, uint64_t tid, Json about) {
    Json event = Basic("M", what, pid, tid);
    event["args"] = std::move(about);
    Put(event);
  }
  void Track(uint64_t pid, uint64_t tid, const std::string& name, uint64_t place) {
    Describe("thread_name", pid, tid, {{"name", name}});
    Describe("thread_sort_index", pid, tid, {{"sort_index", place}});
  }
  void Slice(std::string_view name, uint64_t pid, uint64_t tid, Interval interval, Json arguments) {
    const uint64_t begin = std::clamp(interval.begin_ns, period_.begin_ns, period_.end_ns);
    const uint64_t end = std::clamp(interval.end_ns, begin, period_.end_ns);
    Json event = Basic("X", name, pid, tid);
    event.update({{"cat", "stoker"}, {"ts", At(begin)}, {"dur", Micros(end - begin)}});
    event["args"] = std::move(arguments);
    Put(event);
  }

  void WriteEvent(const Event& event, uint64_t tid);
  void Span(const Event& event, uint64_t tid);
  void TasksOf(Source& source, uint64_t number);
  void Task(const Event& task, uint64_t pid, uint64_t tid);

  const Interval period_;
  std::FILE* const stream_;
  const uint64_t pid_ = static_cast<uint64_t>(getpid());
  bool begun_ = false;
  uint64_t events_ = 0;
  std::map<uint64_t, Source> sources_;
  int workers_ = 0;
};

void Writer::Thread(uint64_t id, std::string name, const std::vector<const Event*>& events) {
  enum : uint64_t { kConsumer = 1, kCopier, kWorker, kReader };
  uint64_t place = kConsumer;
  if (name == "stoker/worker") {
    name += " " + std::to_string(++workers_);
    place = kWorker;
  } else if (name.starts_with("stoker/")) {
    place = name == "stoker/reader" ? kReader : kCopier;
  } else if (std::ranges::any_of(events, IsWait)) {
    name = "consumer (" + name + ")";
  }
  Track(pid_, id, name, place);
  for (const Event* event : events) WriteEvent(*event, id);
  events_ += events.size();
}

void Writer::WriteEvent(const Event& event, uint64_t tid) {
  if (event.kind == Kind::kTask) {
    Source& source = sources_[event.detail->number];
    source.name = event.detail->name;
    source.tasks.push_back(&event);
  } else if (event.kind == Kind::kCounter) {
    sources_[event.epoch];
    Json counter = Basic("C", event.name, PidOf(event.epoch), 0);
    counter["ts"] = At(event.begin_ns);
    counter["args"] = {{"value", std::bit_cast<double>(event.index)}};
    Put(counter);
  } else if (event.kind == Kind::kInstant) {
    sources_[event.detail->number].name = event.detail->name;
    Json instant = Basic("i", event.detail->text, PidOf(event.detail->number), 0);
    instant.update({{"s", "p"}, {"cat", event.name}, {"ts", At(event.begin_ns)}});
    Put(instant);
  } else {
    Span(event, tid);
  }
}

void Writer::Span(const Event& event, uint64_t tid) {
  const uint64_t end = event.end_ns.load(std::memory_order_acquire);
  Json arguments = Json::object();
  if (event.kind == Kind::kBatchSpan) arguments = {{"epoch", event.epoch}, {"batch", event.index}};
  if (end == 0) arguments["unfinished"] = true;
  Slice(event.name, pid_, tid, {event.begin_ns, end == 0 ? period_.end_ns : end}, arguments);
}

void Writer::Sources() {
  for (auto& [number, source] : sources_) {
    if (number == 0) continue;  // events of the process
    const std::string about = source.name.empty() ? "" : ": " + source.name;
    Describe("process_name", PidOf(number), 0,
             {{"name", "stoker loader " + std::to_string(number) + about}});
    Describe("process_sort_index", PidOf(number), 0, {{"sort_index", number}});
    TasksOf(source, number);
  }
}

void Writer::TasksOf(Source& source, uint64_t number) {
  std::ranges::sort(source.tasks, {}, [](const Event* task) { return task->detail->begin_ns; });
  std::vector<uint64_t> free_from;  // by track
  for (const Event* task : source.tasks) {
    const auto track = std::ranges::find_if(
        free_from, [&](uint64_t since) { return since <= task->detail->begin_ns; });
    const auto index = static_cast<uint64_t>(track - free_from.begin()) + 1;
    const uint64_t tid = number * 1000 + index;
    if (track == free_from.end()) {
      Track(PidOf(number), tid, "in production " + std::to_string(index), index);
      free_from.push_back(task->detail->end_ns);
    } else {
      *track = task->detail->end_ns;
    }
    Task(*task, PidOf(number), tid);
  }
}

void Writer::Task(const Event& task, uint64_t pid, uint64_t tid) {
  Json arguments = {{"epoch", task.epoch}, {"batch", task.index}};
  for (const auto& [name, value] : task.detail->arguments) arguments[name] = value;
  const std::string name =
      std::string(task.name) + " " + std::to_string(task.epoch) + ":" + std::to_string(task.index);
  const Interval whole{task.detail->begin_ns, task.detail->end_ns};
  Slice(name, pid, tid, whole, arguments);
  for (const TraceTask::Part& part : task.detail->parts) {
    const uint64_t begin = std::clamp(part.begin_ns, whole.begin_ns, whole.end_ns);
    const uint64_t end = std::clamp(part.end_ns, begin, whole.end_ns);
    if (end > begin && end > period_.begin_ns) {
      Slice(part.name, pid, tid, {begin, end}, Json::object());
    }
  }
}

}  // namespace

Result<std::unique_ptr<TraceFile>> TraceFile::Start(std::shared_ptr<Runtime> runtime,
                                                    std::string path,
                                                    const TraceFileOptions& options) {
  TRY(runtime->CheckProcess());
  if (options.memory < kMinMemory) {
    return Error{Code::kInvalidArgument, "a trace's memory is " + std::to_string(options.memory) +
                                             " bytes; it must be at least " +
                                             std::to_string(kMinMemory)};
  }
  std::error_code error;
  std::string absolute_path = std::filesystem::absolute(path, error);
  if (error) return SystemError(error.value(), "cannot write", path);
  if (Status s = CheckCanWrite(absolute_path); !s.ok()) return std::move(s).error().WithFile(path);
  std::unique_ptr<TraceFile> made(
      new TraceFile(std::move(runtime), std::move(path), std::move(absolute_path), options.memory));
  if (made->runtime_->trace().Listen(made.get(), made->recorder_)) return made;
  made->recorder_ = nullptr;
  return Error{
      .code = Code::kResourceExhausted,
      .cause = "too many listeners to this Runtime's trace: " + std::to_string(Trace::kMax),
      .advice = "Stop a trace first"};
}

TraceFile::TraceFile(std::shared_ptr<Runtime> runtime, std::string path, std::string absolute_path,
                     uint64_t memory)
    : runtime_(std::move(runtime)),
      path_(std::move(path)),
      absolute_path_(std::move(absolute_path)),
      recorder_(std::make_shared<Recorder>(memory)),
      begin_ns_(NowNanoseconds()),
      begin_unix_ns_(UnixNanoseconds()) {}

TraceFile::~TraceFile() {
  if (recorder_ != nullptr) (void)Stop();
}

Result<TraceSummary> TraceFile::Stop() {
  TRY(runtime_->CheckProcess());
  const std::shared_ptr<Recorder> recorder = std::exchange(recorder_, nullptr);
  if (recorder == nullptr) {
    return Error{Code::kFailedPrecondition, "this trace was already stopped"};
  }
  (void)runtime_->trace().Listen(this, nullptr);
  return Write(*recorder, NowNanoseconds());
}

void TraceFile::WriteJson(const Recorder& recorder, uint64_t end_ns, std::FILE* stream,
                          TraceSummary& summary) const {
  const Recorder::Recorded recorded = recorder.Read();
  Writer writer({begin_ns_, end_ns}, stream);
  writer.Begin();
  for (const auto& [thread, events] : recorded.events) {
    writer.Thread(thread, recorded.threads.at(thread), events);
  }
  writer.Sources();
  if (recorded.dropped != 0) writer.WriteDropped(recorded.dropped, recorded.dropped_since_ns);
  summary.events = writer.events();
  summary.dropped = recorded.dropped;
  writer.End({{"events", std::to_string(summary.events)},
              {"dropped_events", std::to_string(summary.dropped)},
              {"threads", std::to_string(recorded.threads.size())},
              {"begin_monotonic_ns", std::to_string(begin_ns_)},
              {"begin_unix_ns", std::to_string(begin_unix_ns_)}});
}

Result<TraceSummary> TraceFile::Write(const Recorder& recorder, uint64_t end_ns) {
  TraceSummary summary{.path = path_};
  Result<OutputFile> file = OutputFile::Open(absolute_path_);
  if (!file.ok()) return std::move(file).error().WithFile(path_);
  const int descriptor = fcntl(file->descriptor(), F_DUPFD_CLOEXEC, 0);
  std::FILE* stream = descriptor < 0 ? nullptr : fdopen(descriptor, "w");
  if (stream == nullptr) {
    const int error_number = errno;
    if (descriptor >= 0) close(descriptor);
    return CannotWrite(error_number, absolute_path_).WithFile(path_);
  }
  errno = 0;
  WriteJson(recorder, end_ns, stream, summary);
  const long bytes = std::ftell(stream);
  summary.bytes = bytes < 0 ? 0 : static_cast<uint64_t>(bytes);
  const bool written = std::ferror(stream) == 0;
  if (std::fclose(stream) != 0 || !written)
    return CannotWrite(errno, absolute_path_).WithFile(path_);
  if (Status s = file->Commit(OutputFile::Sync::kToDisk); !s.ok())
    return std::move(s).error().WithFile(path_);
  return summary;
}

}  // namespace stoker
