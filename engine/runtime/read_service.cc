#include "engine/runtime/read_service.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "core/system/start_thread.h"

namespace stoker {

ReadService::ReadService(int threads, ReaderFactory factory, const Trace& trace)
    : thread_count_(threads), factory_(std::move(factory)), trace_(trace) {}

ReadService::~ReadService() {
  closing_ = true;
  Wake();
  for (auto& t : threads_) t->thread.join();
}

Status ReadService::Attach(ReadClient* client) {
  std::lock_guard one_at_a_time(attaching_);
  std::unique_lock lock(mutex_);
  while (threads_.size() < static_cast<size_t>(thread_count_)) {
    threads_.push_back(std::make_unique<ReaderThread>());
    ReaderThread& added = *threads_.back();
    Result<std::thread> thread = StartThread("a reader's thread", [this, &added] { Run(added); });
    if (!thread.ok()) {
      threads_.pop_back();
      if (!threads_.empty()) break;  // the threads that did start do the work
      return std::move(thread).error();
    }
    added.thread = *std::move(thread);
    changed_.wait(lock, [&] { return added.running || !added.started.ok(); });
    if (!added.started.ok()) {
      Error error = added.started.error();
      added.thread.join();
      threads_.pop_back();
      return error;
    }
  }
  clients_.push_back(client);
  ++generation_;
  Wake();
  return {};
}

void ReadService::Detach(ReadClient* client) {
  while (!TryDetach(client, std::chrono::seconds(1))) {
  }
}

bool ReadService::TryDetach(ReadClient* client, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  if (std::erase(clients_, client) != 0) {
    ++generation_;
    Wake();
  }
  const uint64_t generation = generation_;
  return changed_.wait_for(lock, most, [&] {
    return std::ranges::all_of(threads_, [&](auto& t) { return t->generation >= generation; });
  });
}

void ReadService::Run(ReaderThread& self) {
  NameThread("stoker/reader");
  Result<std::unique_ptr<Reader>> reader = factory_();
  {
    std::lock_guard lock(mutex_);
    self.running = reader.ok();
    if (!reader.ok()) self.started = reader.error();
    changed_.notify_all();
  }
  if (reader.ok()) Serve(self, **reader);
}

void ReadService::Serve(ReaderThread& self, Reader& reader) {
  std::vector<ReadClient*> clients;
  std::vector<ReadRequest*> requests(reader.capacity());
  uint64_t generation = 0;
  size_t turn = 0;  // rotates which client is asked first, for when there is room for only one read
  while (true) {
    const uint32_t wakes = wakes_.load(std::memory_order_seq_cst);
    if (generation != generation_.load(std::memory_order_acquire)) {
      const std::vector<ReadClient*> before = clients;
      {
        std::lock_guard lock(mutex_);
        clients = clients_;
        generation = generation_.load(std::memory_order_relaxed);
      }
      for (ReadClient* const client : before) {
        if (std::ranges::find(clients, client) == clients.end()) reader.GiveUp(client);
      }
      reader.CloseFiles();  // a new client's files may have the paths of an earlier one's
      std::lock_guard lock(mutex_);
      self.generation = generation;
      changed_.notify_all();
    }
    const size_t pulled = PullAll(clients, turn, requests, reader.room());
    if (pulled != 0) ++turn;
    if (pulled == 0 && reader.in_flight() == 0) {
      if (closing_.load(std::memory_order_acquire)) return;
      Sleep(wakes, /*briefly=*/reader.FreeLost());
      continue;
    }
    const size_t finished = Read(reader, requests, pulled);
    for (size_t i = 0; i < finished; ++i) {
      static_cast<ReadClient*>(requests[i]->owner)->CompleteRead(*requests[i]);
    }
  }
}

// Starts the first `pulled` requests, and replaces them in the array by the requests that have
// finished.
size_t ReadService::Read(Reader& reader, std::span<ReadRequest*> requests, size_t pulled) {
  const TraceSpan span(trace_, "stoker.read");
  reader.Submit(requests.first(pulled));
  return reader.Reap(requests, /*wait=*/pulled == 0);
}

void ReadService::Wake() {
  wakes_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard lock(sleep_mutex_);
  woken_.notify_all();
}

void ReadService::Sleep(uint32_t wakes, bool briefly) {
  std::unique_lock lock(sleep_mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  const auto woken = [&] { return wakes_.load(std::memory_order_seq_cst) != wakes; };
  if (briefly) {
    (void)woken_.wait_for(lock, std::chrono::seconds(1), woken);
  } else {
    woken_.wait(lock, woken);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

size_t ReadService::PullAll(const std::vector<ReadClient*>& clients, size_t first,
                            std::vector<ReadRequest*>& requests, size_t room) {
  size_t pulled = 0;
  for (size_t i = 0; i < clients.size() && pulled < room; ++i) {
    const size_t share = (room - pulled + clients.size() - i - 1) / (clients.size() - i);
    ReadClient* client = clients[(first + i) % clients.size()];
    const size_t got = client->Pull({requests.data() + pulled, share});
    for (size_t r = pulled; r < pulled + got; ++r) requests[r]->owner = client;
    pulled += got;
  }
  return pulled;
}

uint64_t ReadService::read_cpu_ns() const {
  std::lock_guard lock(mutex_);
  uint64_t total = 0;
  for (const auto& t : threads_) {
    clockid_t clock{};
    timespec cpu{};
    if (pthread_getcpuclockid(const_cast<std::thread&>(t->thread).native_handle(), &clock) != 0 ||
        clock_gettime(clock, &cpu) != 0) {
      continue;
    }
    total += static_cast<uint64_t>(cpu.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(cpu.tv_nsec);
  }
  return total;
}

}  // namespace stoker
