// ReadService: the reader threads of a Runtime. Each owns one Reader (one ring) for its lifetime
// and serves every loader in turn: it pulls requests, submits them together, and hands back those
// that have finished.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/result/result.h"
#include "core/time/trace.h"
#include "io/readers/reader.h"

namespace stoker {

// A loader from the reader threads' point of view. Both functions are called on reader threads,
// several at a time, and must not block.
class ReadClient {
 public:
  // Writes up to requests.size() requests to start now into `requests` and returns how many. If it
  // returns fewer and more will come, the client calls ReadService::Wake when they do.
  virtual size_t Pull(std::span<ReadRequest*> requests) = 0;

  // Called when a pulled request has finished, with success or an error. The thread pulls again
  // afterwards, without a Wake.
  virtual void CompleteRead(ReadRequest& request) = 0;

 protected:
  ~ReadClient() = default;
};

class ReadService {
 public:
  using ReaderFactory = std::function<Result<std::unique_ptr<Reader>>()>;

  // Threads start with the first Attach. `trace` must outlive the service.
  ReadService(int threads, ReaderFactory factory, const Trace& trace);
  ~ReadService();  // precondition: every client is detached and its requests are finished

  // Starts to pull from `client`. Fails if a reader cannot be made. Files that readers keep open
  // are closed first, and again by Detach: a client reads the files that have its paths when it
  // starts, and none stays open after the last client.
  Status Attach(ReadClient* client);

  // After Detach returns no thread calls Pull of `client` again; for requests pulled before,
  // CompleteRead is still called.
  void Detach(ReadClient* client);
  // The same, but waits no longer than `most`; false means call it again.
  [[nodiscard]] bool TryDetach(ReadClient* client, std::chrono::milliseconds most);

  // Wakes sleeping reader threads, because there may be requests to pull. Thread-safe; takes no
  // lock and makes no system call unless a reader thread sleeps.
  void Wake();

  // CPU time of the reader threads, for reading and for the few instructions of their clients'
  // calls.
  uint64_t read_cpu_ns() const;

 private:
  struct ReaderThread {
    std::thread thread;
    uint64_t generation = 0;  // version of the client list it uses; under mutex_
    Status started;
    bool running = false;  // under mutex_
  };

  void Run(ReaderThread& self);
  void Serve(ReaderThread& self, Reader& reader);
  void Sleep(uint32_t wakes, bool briefly);  // until the next Wake; `briefly`: or for a second
  size_t Read(Reader& reader, std::span<ReadRequest*> requests, size_t pulled);
  size_t PullAll(const std::vector<ReadClient*>& clients, size_t first,
                 std::vector<ReadRequest*>& requests, size_t room);

  const int thread_count_;
  const ReaderFactory factory_;
  const Trace& trace_;
  // A sleeper counts itself and then reads wakes_; a waker counts and then reads sleepers_. All
  // four are seq_cst, so they cannot miss each other.
  std::atomic<uint32_t> wakes_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable woken_;
  std::atomic<uint64_t> generation_{1};  // version of clients_
  std::atomic<bool> closing_{false};
  std::mutex attaching_;  // held by the one Attach that starts threads
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReadClient*> clients_;
  std::vector<std::unique_ptr<ReaderThread>> threads_;
};

}  // namespace stoker
