// The reader threads of a Runtime. Each owns one Reader (one ring) for all its life and serves
// every loader of the process in turn: it pulls requests, submits them together, and hands back
// what has finished.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/result.h"
#include "core/trace.h"
#include "io/readers/reader.h"

namespace stoker {

// A loader, as the reader threads see it. Both calls come on reader threads, several at a time, and
// must not block.
class ReadClient {
 public:
  // Puts up to requests.size() requests to start now into `requests` and says how many. When it
  // returns fewer, and there will be more later, it calls ReadService::Kick then.
  virtual size_t Pull(std::span<ReadRequest*> requests) = 0;

  // One pulled request has finished, well or badly.
  virtual void Finish(ReadRequest& request) = 0;

 protected:
  ~ReadClient() = default;
};

class ReadService {
 public:
  using ReaderFactory = std::function<Result<std::unique_ptr<Reader>>()>;

  // Threads start with the first Attach. `trace` outlives the service.
  ReadService(int threads, ReaderFactory factory, const Trace& trace);
  ~ReadService();  // precondition: every client is detached and its requests are finished

  // Starts to pull from `client`. Fails when a reader cannot be made.
  Status Attach(ReadClient* client);

  // When it returns no thread will Pull from `client` again; requests pulled before still Finish.
  void Detach(ReadClient* client);

  // Any thread: there may be something to pull. No lock and no system call unless a reader thread
  // sleeps.
  void Kick();

  // CPU time of the reader threads: reading, and what little their clients' calls cost.
  uint64_t read_cpu_ns() const;

 private:
  struct ReaderThread {
    std::thread thread;
    uint64_t generation = 0;  // of the client list it works with; under mutex_
    Status started;
    bool running = false;  // under mutex_
  };

  void Run(ReaderThread& self);
  void Serve(ReaderThread& self, Reader& reader);
  void Sleep(uint32_t kicks);  // until there has been another Kick
  size_t Read(Reader& reader, std::span<ReadRequest*> requests, size_t pulled);
  size_t PullAll(const std::vector<ReadClient*>& clients, size_t first,
                 std::vector<ReadRequest*>& requests, size_t room);

  const int thread_count_;
  const ReaderFactory factory_;
  const Trace& trace_;
  // A sleeper counts itself, then looks at kicks_; a kicker counts, then looks for sleepers: in one
  // total order (seq_cst), so that they cannot miss each other.
  std::atomic<uint32_t> kicks_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::mutex sleep_mutex_;
  std::condition_variable kicked_;
  std::atomic<uint64_t> generation_{1};  // of clients_
  std::atomic<bool> closing_{false};
  std::mutex attaching_;  // threads are started by one Attach at a time
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ReadClient*> clients_;
  std::vector<std::unique_ptr<ReaderThread>> threads_;
};

}  // namespace stoker
