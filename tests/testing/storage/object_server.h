// ObjectServer: serves one object for tests, on a port of this machine.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace stoker::testing {

// Answers each GET with the bytes that `answer` returns, headers and body. `answer` is called on a
// thread for each connection; the connection is closed after a response that says so, and otherwise
// kept.
class ObjectServer {
 public:
  struct Get {
    std::string path;
    uint64_t first = 0, last = 0;  // of the range; 0 and 2^64 - 1: there is none
    uint64_t number = 0;           // of this request, from 0
  };
  using Answer = std::function<std::string(const Get&)>;

  explicit ObjectServer(Answer answer);
  ~ObjectServer();  // ends all connections, and waits for the calls of `answer`
  ObjectServer(const ObjectServer&) = delete;
  ObjectServer& operator=(const ObjectServer&) = delete;

  const std::string& url() const { return url_; }  // "http://127.0.0.1:12345"
  uint64_t requests() const { return requests_; }

  // Returns the correct response: a part of `object`.
  static std::string Part(const std::string& object, const Get& get);

 private:
  void Accept();
  void Serve(int connection);

  const Answer answer_;
  int listener_ = -1;
  std::string url_;
  std::atomic<uint64_t> requests_{0};
  std::mutex mutex_;
  bool ending_ = false;           // under mutex_
  std::vector<int> connections_;  // under mutex_; closed by the destructor
  std::vector<std::thread> threads_;
  std::thread accepting_;
};

}  // namespace stoker::testing
