#include "engine/metrics/trace_recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "core/time/stage_times.h"

namespace stoker {

namespace {

constexpr size_t kBlockEvents = 1000;

uint64_t ThisThread() { return static_cast<uint64_t>(pthread_self()); }

// Returns the approximate size in bytes.
size_t SizeOf(const TraceDetail& detail) {
  size_t bytes = sizeof detail + detail.source_name.size() + detail.text.size();
  bytes += detail.parts.size() * sizeof detail.parts[0];
  for (const auto& argument : detail.arguments) {
    const auto* text = std::get_if<std::string>(&argument.second);
    bytes += sizeof argument + (text == nullptr ? 0 : text->size());
  }
  return bytes;
}

std::unique_ptr<TraceDetail> DetailOf(const TraceSource& source) {
  auto detail = std::make_unique<TraceDetail>();
  detail->source = source.number;
  detail->source_name = source.name;
  return detail;
}

}  // namespace

// Written by its own thread only. Readers see the events below `used`.
struct TraceRecorder::Block {
  std::array<TraceEvent, kBlockEvents> events;
  std::atomic<size_t> used{0};
  std::atomic<Block*> next{nullptr};
};

struct TraceRecorder::Log {
  explicit Log(uint64_t key) : thread(key), id(static_cast<uint64_t>(gettid())) {
    pthread_getname_np(pthread_self(), name.data(), name.size());
  }
  ~Log() {
    for (Block* block = first; block != nullptr;) {
      const std::unique_ptr<Block> gone(block);
      block = gone->next.load(std::memory_order_relaxed);
    }
  }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  Block* Room(TraceRecorder& recorder);

  const uint64_t thread;
  const uint64_t id;
  std::array<char, 16> name{};
  Block* const first = new Block;
  // Atomic because a new thread may reuse the id of a thread that has ended.
  std::atomic<Block*> last{first};
};

TraceRecorder::TraceRecorder(uint64_t memory)
    : memory_(memory), logs_(std::make_unique<std::array<std::atomic<Log*>, kMaxThreads>>()) {}

TraceRecorder::~TraceRecorder() {
  for (std::atomic<Log*>& bucket : *logs_) delete bucket.load(std::memory_order_acquire);
}

bool TraceRecorder::Reserve(size_t bytes) {
  if (used_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= memory_) return true;
  used_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Returns the log of this thread, created at its first event; null: no memory.
TraceRecorder::Log* TraceRecorder::Mine() {
  const uint64_t self = ThisThread();
  const size_t start = (self * 0x9e3779b97f4a7c15U) >> 32;  // Fibonacci hashing (Knuth, 6.4)
  for (size_t step = 0; step < kMaxThreads; ++step) {
    std::atomic<Log*>& bucket = (*logs_)[(start + step) % kMaxThreads];
    Log* log = bucket.load(std::memory_order_acquire);
    if (log == nullptr) {
      constexpr size_t kBytes = sizeof(Log) + sizeof(Block);
      if (!Reserve(kBytes)) return nullptr;
      auto made = std::make_unique<Log>(self);
      if (bucket.compare_exchange_strong(log, made.get(), std::memory_order_acq_rel)) {
        return made.release();
      }
      used_.fetch_sub(kBytes, std::memory_order_relaxed);  // another thread was faster: `log` is
                                                           // its log
    }
    if (log->thread == self) return log;
  }
  return nullptr;
}

// Returns the block with room for one more event; null: no memory.
TraceRecorder::Block* TraceRecorder::Log::Room(TraceRecorder& recorder) {
  Block* const block = last.load(std::memory_order_acquire);
  if (block->used.load(std::memory_order_acquire) < kBlockEvents) return block;
  if (!recorder.Reserve(sizeof(Block))) return nullptr;
  auto* const next = new Block;
  block->next.store(next, std::memory_order_release);
  last.store(next, std::memory_order_release);
  return next;
}

// Returns null if the event does not fit; it is then counted as dropped.
TraceEvent* TraceRecorder::Add(TraceEvent::Kind kind, const char* name, uint64_t epoch,
                               uint64_t index, std::unique_ptr<const TraceDetail> detail) {
  const size_t bytes = detail == nullptr ? 0 : SizeOf(*detail);
  Log* const log = Mine();
  if (log == nullptr || !Reserve(bytes)) return Drop();
  Block* const block = log->Room(*this);
  if (block == nullptr) {
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return Drop();
  }
  const size_t used = block->used.load(std::memory_order_relaxed);
  TraceEvent& event = block->events[used];
  event.kind = kind;
  event.name = name;
  event.epoch = epoch;
  event.index = index;
  event.detail = std::move(detail);
  event.begin_ns = NowNanoseconds();
  block->used.store(used + 1, std::memory_order_release);
  return &event;
}

TraceEvent* TraceRecorder::Drop() {
  if (dropped_.fetch_add(1, std::memory_order_relaxed) == 0) {
    dropped_since_ns_.store(NowNanoseconds(), std::memory_order_relaxed);
  }
  return nullptr;
}

int64_t TraceRecorder::Begin(const char* name) {
  return std::bit_cast<int64_t>(Add(TraceEvent::Kind::kSpan, name, 0, 0));
}

int64_t TraceRecorder::BeginBatch(const char* name, uint64_t epoch, uint64_t index) {
  return std::bit_cast<int64_t>(Add(TraceEvent::Kind::kBatchSpan, name, epoch, index));
}

void TraceRecorder::End(int64_t span) {
  if (span == 0) return;  // dropped
  auto* const event = std::bit_cast<TraceEvent*>(span);
  event->end_ns.store(NowNanoseconds(), std::memory_order_release);
}

void TraceRecorder::Counter(const TraceSource& source, const char* name, double value) {
  (void)Add(TraceEvent::Kind::kCounter, name, source.number, std::bit_cast<uint64_t>(value));
}

void TraceRecorder::Instant(const TraceSource& source, const char* name, std::string_view text) {
  std::unique_ptr<TraceDetail> detail = DetailOf(source);
  detail->text = text;
  (void)Add(TraceEvent::Kind::kInstant, name, 0, 0, std::move(detail));
}

void TraceRecorder::Task(const TraceSource& source, const TraceTask& task) {
  std::unique_ptr<TraceDetail> detail = DetailOf(source);
  detail->begin_ns = task.begin_ns;
  detail->end_ns = task.end_ns;
  detail->parts.assign(task.parts.begin(), task.parts.end());
  for (const TraceArgument& argument : task.arguments) {
    auto& value = detail->arguments.emplace_back(argument.name, argument.number).second;
    if (!argument.text.empty()) value = std::string(argument.text);
  }
  (void)Add(TraceEvent::Kind::kTask, task.name, task.epoch, task.index, std::move(detail));
}

std::vector<TraceRecorder::Thread> TraceRecorder::Threads() const {
  std::vector<Thread> threads;
  for (const std::atomic<Log*>& bucket : *logs_) {
    const Log* const log = bucket.load(std::memory_order_acquire);
    if (log == nullptr) continue;
    Thread& thread = threads.emplace_back(Thread{log->id, log->name.data(), {}});
    for (const Block* block = log->first; block != nullptr;
         block = block->next.load(std::memory_order_acquire)) {
      const size_t used = block->used.load(std::memory_order_acquire);
      for (size_t i = 0; i < used; ++i) thread.events.push_back(&block->events[i]);
    }
  }
  std::ranges::sort(threads, {}, &Thread::id);
  return threads;
}

TraceRecorder::Dropped TraceRecorder::dropped() const {
  return {dropped_.load(std::memory_order_relaxed),
          dropped_since_ns_.load(std::memory_order_relaxed)};
}

}  // namespace stoker
