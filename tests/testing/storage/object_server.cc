#include "tests/testing/storage/object_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <utility>

namespace stoker::testing {

namespace {

// Parses a request like "GET /x HTTP/1.1\r\n…Range: bytes=0-9\r\n".
ObjectServer::Get GetOf(std::string_view head) {
  ObjectServer::Get get;
  get.last = std::numeric_limits<uint64_t>::max();
  get.path = head.substr(4, head.find(' ', 4) - 4);
  constexpr std::string_view kRange = "Range: bytes=";
  const size_t range = head.find(kRange);
  if (range == std::string_view::npos) return get;
  const std::string text(head.substr(range + kRange.size(), 64));
  char* dash = nullptr;
  get.first = std::strtoull(text.c_str(), &dash, 10);
  get.last = std::strtoull(dash + 1, nullptr, 10);
  return get;
}

bool SendAll(int connection, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

}  // namespace

ObjectServer::ObjectServer(Answer answer) : answer_(std::move(answer)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (listener_ < 0 || bind(listener_, any, size) != 0 || listen(listener_, 64) != 0 ||
      getsockname(listener_, any, &size) != 0) {
    std::perror("a server for the test");
    std::abort();
  }
  url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  accepting_ = std::thread([this] { Accept(); });
}

ObjectServer::~ObjectServer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
  }
  shutdown(listener_, SHUT_RDWR);
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
  for (const int connection : connections_) close(connection);
  close(listener_);
}

void ObjectServer::Accept() {
  for (;;) {
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) return;
    const std::lock_guard lock(mutex_);
    connections_.push_back(connection);
    if (ending_) return;
    threads_.emplace_back([this, connection] { Serve(connection); });
  }
}

void ObjectServer::Serve(int connection) {
  std::string received;
  std::array<char, 4096> bytes{};
  for (;;) {
    const size_t end = received.find("\r\n\r\n");
    if (end == std::string::npos) {
      const ssize_t got = recv(connection, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      received.append(bytes.data(), static_cast<size_t>(got));
      continue;
    }
    Get get = GetOf(std::string_view(received).substr(0, end + 2));
    received.erase(0, end + 4);
    get.number = requests_.fetch_add(1);
    const std::string response = answer_(get);
    const bool sent = SendAll(connection, response);
    if (sent && response.find("Connection: close") == std::string::npos) continue;
    shutdown(connection, SHUT_RDWR);
    return;
  }
}

std::string ObjectServer::Part(const std::string& object, const Get& get) {
  const uint64_t end = std::min<uint64_t>(get.last, object.size() - 1) + 1;
  const std::string body = object.substr(get.first, end - get.first);
  return "HTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\nContent-Range: bytes " +
         std::to_string(get.first) + "-" + std::to_string(end - 1) + "/" +
         std::to_string(object.size()) + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

}  // namespace stoker::testing
