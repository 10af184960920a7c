// Transfer: one HTTP request of libcurl, and its result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/result/result.h"
#include "io/remote/http_response.h"
#include "io/remote/libcurl.h"
#include "io/remote/object_error.h"
#include "io/remote/object_fetch.h"
#include "io/remote/object_request.h"
#include "io/remote/object_settings.h"

namespace stoker {

// libcurl holds its address. Used for one fetch after another; each may take several tries.
class Transfer {
 public:
  // Precondition: `library` and `settings` outlive the Transfer. handle() is null if there is no
  // memory.
  Transfer(const Libcurl& library, const ObjectSettings& settings);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  void* handle() const { return handle_; }  // libcurl's easy handle

  // Makes the handle ready for a try. Precondition: the handle is in no multi handle.
  void Prepare(ObjectFetch& fetch, const ObjectRequest& request);

  // Returns the result of the try that libcurl ended with `code`: nullopt if the fetch is complete;
  // its size and version are then set.
  std::optional<FetchFailure> End(int code);

  const HttpResponse& response() const { return response_; }

 private:
  static size_t OnHeader(char* line, size_t size, size_t count, void* self);
  static size_t OnBody(char* bytes, size_t size, size_t count, void* self);
  bool LimitProtocols(int option, int older, bool is_secure);
  void SetHeaders(const ObjectRequest& request);
  bool TakeBody(const char* bytes, size_t count);
  bool SaysEmpty() const;
  bool is_success() const { return response_.status == 200 || response_.status == 206; }
  std::optional<FetchFailure> Accept();
  std::optional<FetchFailure> CheckVersion() const;
  std::optional<FetchFailure> CheckRange();
  std::optional<FetchFailure> CheckWhole();
  std::optional<FetchFailure> MakeRoomFor(uint64_t bytes);

  const Libcurl& library_;
  const ObjectSettings& settings_;
  void* handle_ = nullptr;
  curl_slist* headers_ = nullptr;
  ObjectFetch* fetch_ = nullptr;
  bool has_credentials_ = false;

  HttpResponse response_;
  bool accepted_ = false;
  std::optional<FetchFailure> refused_;  // a failure found while headers or body arrived
  std::optional<uint64_t> wanted_;       // bytes of the body; nullopt means until it ends
  uint64_t received_ = 0;
  std::string error_body_;  // the beginning of the server's text with an error
};

}  // namespace stoker
