#include "core/time/trace.h"

#include <utility>

namespace stoker {

bool Trace::Entry::Enter() {
  uint64_t state = state_.load(std::memory_order_relaxed);
  while ((state & kListens) != 0) {
    if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
      return true;
    }
  }
  return false;
}

// No thread enters a closed entry, so exactly one thread finds that it was the last to leave.
void Trace::Entry::Leave() {
  if (state_.fetch_sub(1, std::memory_order_acq_rel) == kInUse + 1) Empty();
}

void Trace::Entry::Open(std::shared_ptr<TraceListener> listener) {
  listener_ = std::move(listener);
  state_.store(kListens | kInUse, std::memory_order_release);
}

void Trace::Entry::Close() {
  const uint64_t before = state_.fetch_and(~kListens, std::memory_order_acq_rel);
  if (before == (kListens | kInUse)) Empty();
}

void Trace::Entry::Empty() {
  const std::shared_ptr<TraceListener> gone = std::move(listener_);
  listener_ = nullptr;
  state_.store(0, std::memory_order_release);
}

bool Trace::Listen(const void* owner, std::shared_ptr<TraceListener> listener) {
  std::shared_ptr<TraceListener> gone;  // after the lock is released
  std::lock_guard lock(mutex_);
  const uint32_t on = on_.load(std::memory_order_relaxed);
  int before = kMax, room = kMax;
  for (int i = 0; i < kMax; ++i) {
    if ((on >> i & 1) != 0 && owners_[static_cast<size_t>(i)] == owner) before = i;
    if (entries_[static_cast<size_t>(i)].free()) room = i;
  }
  if (listener != nullptr && room == kMax) return false;
  if (listener != nullptr) {
    entries_[static_cast<size_t>(room)].Open(std::move(listener));
    owners_[static_cast<size_t>(room)] = owner;
    on_.fetch_or(uint32_t{1} << room, std::memory_order_release);
  }
  if (before == kMax) return true;
  gone = entries_[static_cast<size_t>(before)].listener();
  on_.fetch_and(~(uint32_t{1} << before), std::memory_order_relaxed);
  entries_[static_cast<size_t>(before)].Close();
  return true;
}

std::shared_ptr<TraceListener> Trace::listener(const void* owner) const {
  std::lock_guard lock(mutex_);
  for (size_t i = 0; i < entries_.size(); ++i) {
    if ((on_.load(std::memory_order_relaxed) >> i & 1) != 0 && owners_[i] == owner) {
      return entries_[i].listener();  // closed under the mutex only
    }
  }
  return nullptr;
}

template <typename Call>
void Trace::Notify(const Call& call) const {
  const uint32_t on = on_.load(std::memory_order_relaxed);
  for (size_t i = 0; on >> i != 0; ++i) {
    if ((on >> i & 1) == 0 || !entries_[i].Enter()) continue;
    call(*entries_[i].listener());
    entries_[i].Leave();
  }
}

void Trace::Counter(const TraceSource& source, const char* name, double value) const {
  Notify([&](TraceListener& listener) { listener.Counter(source, name, value); });
}

void Trace::Instant(const TraceSource& source, const char* name, std::string_view text) const {
  Notify([&](TraceListener& listener) { listener.Instant(source, name, text); });
}

void Trace::Task(const TraceSource& source, const TraceTask& task) const {
  Notify([&](TraceListener& listener) { listener.Task(source, task); });
}

template <typename Call>
void TraceSpan::BeginWith(const Trace& trace, uint32_t on, const Call& call) {
  trace_ = &trace;
  for (size_t i = 0; on >> i != 0; ++i) {
    if ((on >> i & 1) == 0 || !trace.entries_[i].Enter()) continue;
    spans_[i] = call(*trace.entries_[i].listener());
    listening_ |= uint32_t{1} << i;
  }
}

void TraceSpan::Begin(const Trace& trace, uint32_t on, const char* name) {
  BeginWith(trace, on, [&](TraceListener& listener) { return listener.Begin(name); });
}

void TraceSpan::Begin(const Trace& trace, uint32_t on, const char* name, uint64_t epoch,
                      uint64_t index) {
  BeginWith(trace, on,
            [&](TraceListener& listener) { return listener.BeginBatch(name, epoch, index); });
}

void TraceSpan::End() {
  for (size_t i = Trace::kMax; i-- > 0;) {
    if ((listening_ >> i & 1) == 0) continue;
    trace_->entries_[i].listener()->End(spans_[i]);
    trace_->entries_[i].Leave();
  }
}

}  // namespace stoker
