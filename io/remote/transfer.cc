#include "io/remote/transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/readers/plain_read.h"

namespace stoker {

namespace {

constexpr size_t kMostErrorBody = 4096;
constexpr long kSlow = 1024;     // bytes a second
constexpr int kQuickExit = 322;  // CURLOPT_QUICK_EXIT of libcurl 7.87
// CURLOPT_PROTOCOLS and CURLOPT_REDIR_PROTOCOLS, which newer headers mark as deprecated.
constexpr int kProtocols = 181, kRedirectProtocols = 182;

}  // namespace

Transfer::Transfer(const Libcurl& library, const ObjectSettings& settings)
    : library_(library), settings_(settings), handle_(library.easy_init()) {
  if (handle_ == nullptr) return;
  const auto set = [this](int option, auto value) {
    (void)library_.easy_setopt(handle_, option, value);  // older versions lack some options
  };
  set(CURLOPT_NOSIGNAL, 1L);
  set(kQuickExit, 1L);  // otherwise the end of a fetch waits for the name lookup
  set(CURLOPT_USERAGENT, "stoker");
  (void)LimitProtocols(CURLOPT_PROTOCOLS_STR, kProtocols, /*is_secure=*/false);
  set(CURLOPT_MAXREDIRS, 5L);
  // HTTP/2 would send all ranges over one connection, which is slower.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PATH_AS_IS, 1L);  // a key may have "/../" in it, and the signature covers it
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, 64L << 10);
  set(CURLOPT_CONNECTTIMEOUT, static_cast<long>(settings.connect_timeout_s));
  set(CURLOPT_LOW_SPEED_LIMIT, kSlow);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(settings.stall_timeout_s));
  if (!settings.certificates.empty()) set(CURLOPT_CAINFO, settings.certificates.c_str());
  set(CURLOPT_HEADERFUNCTION, &Transfer::OnHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &Transfer::OnBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
}

Transfer::~Transfer() {
  if (handle_ != nullptr) library_.easy_cleanup(handle_);
  library_.slist_free_all(headers_);
}

void Transfer::Prepare(ObjectFetch& fetch, const ObjectRequest& request) {
  fetch_ = &fetch;
  fetch.size = 0;
  fetch.status = {};
  response_ = {};
  accepted_ = false;
  refused_.reset();
  wanted_.reset();
  received_ = 0;
  error_body_.clear();
  has_credentials_ = !request.headers.empty();
  SetHeaders(request);
  std::string range;
  if (fetch.length != kUnknownLength) {
    range = std::to_string(fetch.offset) + "-" + std::to_string(fetch.offset + fetch.length - 1);
  } else if (fetch.offset != 0) {
    range = std::to_string(fetch.offset) + "-";
  }
  (void)library_.easy_setopt(handle_, CURLOPT_URL, request.url.c_str());
  const bool is_secure = request.url.starts_with("https://");  // redirects must be, too
  const bool limited = LimitProtocols(CURLOPT_REDIR_PROTOCOLS_STR, kRedirectProtocols, is_secure);
  (void)library_.easy_setopt(handle_, CURLOPT_RANGE, range.empty() ? nullptr : range.c_str());
  (void)library_.easy_setopt(handle_, CURLOPT_FOLLOWLOCATION,
                             request.follows_redirects && limited ? 1L : 0L);
}

// Sets an option of libcurl 7.85; with earlier versions the option `older`, which takes bits.
bool Transfer::LimitProtocols(int option, int older, bool is_secure) {
  const char* const names = is_secure ? "https" : "http,https";
  if (library_.easy_setopt(handle_, option, names) == CURLE_OK) return true;
  const long bits = is_secure ? CURLPROTO_HTTPS : CURLPROTO_HTTP | CURLPROTO_HTTPS;
  return library_.easy_setopt(handle_, older, bits) == CURLE_OK;
}

void Transfer::SetHeaders(const ObjectRequest& request) {
  library_.slist_free_all(std::exchange(headers_, nullptr));
  const auto append = [this](const std::string& header) {
    if (curl_slist* const longer = library_.slist_append(headers_, header.c_str())) {
      headers_ = longer;
    }
  };
  for (const std::string& header : request.headers) append(header);
  // A weak tag never matches If-Match: in that case only the response's tag is compared.
  if (fetch_->expected != nullptr && fetch_->expected->has_strong_etag()) {
    append("If-Match: " + fetch_->expected->etag);
  }
  (void)library_.easy_setopt(handle_, CURLOPT_HTTPHEADER, headers_);
}

size_t Transfer::OnHeader(char* line, size_t size, size_t count, void* self) {
  static_cast<Transfer*>(self)->response_.AddHeader({line, size * count});
  return size * count;
}

size_t Transfer::OnBody(char* bytes, size_t size, size_t count, void* self) {
  return static_cast<Transfer*>(self)->TakeBody(bytes, size * count) ? size * count : 0;
}

// Returns false to end the transfer.
bool Transfer::TakeBody(const char* bytes, size_t count) {
  if (!is_success()) {
    error_body_.append(bytes, std::min(count, kMostErrorBody - error_body_.size()));
    return true;
  }
  if (!accepted_) refused_ = Accept();
  if (!refused_ && wanted_ && count > *wanted_ - received_) {
    refused_ = WrongResponse(*fetch_, "the server sends more bytes than it has announced");
  }
  if (!refused_ && !wanted_) refused_ = MakeRoomFor(received_ + count);
  if (refused_) return false;
  uint8_t* const to = fetch_->buffer != nullptr ? fetch_->buffer->data() : fetch_->to.data();
  std::memcpy(to + received_, bytes, count);
  received_ += count;
  return true;
}

// Checks a successful response before its body is taken.
std::optional<FetchFailure> Transfer::Accept() {
  accepted_ = true;
  const bool is_part = response_.status == 206;
  if (!is_part && !response_.encoding.empty()) return IsEncoded(*fetch_, response_.encoding);
  if (auto wrong = is_part ? CheckRange() : CheckWhole()) return wrong;
  if (wanted_ && response_.content_length && *response_.content_length != *wanted_) {
    return WrongResponse(*fetch_, "the server sends " + std::to_string(*response_.content_length) +
                                      " bytes instead of " + std::to_string(*wanted_));
  }
  ObjectVersion& now = fetch_->version;
  now = {.bytes = is_part ? *response_.range->total : wanted_.value_or(0),
         .etag = response_.etag,
         .modified_s = response_.modified_s,
         .of_store = response_.of_store};
  if (auto other = CheckVersion()) return other;
  // The room is at least one byte, so that a buffer's padding exists.
  return MakeRoomFor(std::max<uint64_t>(wanted_.value_or(1), 1));
}

// A response that lacks the header that would identify its version does not come from the object:
// it is a server's own page, or a proxy has changed its headers.
std::optional<FetchFailure> Transfer::CheckVersion() const {
  const ObjectVersion* const then = fetch_->expected;
  if (then == nullptr) return std::nullopt;
  const ObjectVersion& now = fetch_->version;
  const bool tagged = !then->etag.empty(), dated = !tagged && then->modified_s != 0;
  if (tagged && now.etag.empty()) {
    return WrongResponse(*fetch_,
                         "the server sends no ETag, which it did when the object was opened");
  }
  if (dated && now.modified_s == 0) {
    return WrongResponse(
        *fetch_, "the server sends no Last-Modified, which it did when the object was opened");
  }
  const bool other = tagged ? now.etag != then->etag : now.modified_s != then->modified_s;
  const bool other_size = now.bytes != 0 && now.bytes != then->bytes;
  if (other || other_size) return ObjectChanged(*fetch_);
  return std::nullopt;
}

// Checks a response with part of the object (206).
std::optional<FetchFailure> Transfer::CheckRange() {
  const auto& range = response_.range;
  if (!range || !range->first || *range->first != fetch_->offset) {
    return WrongResponse(*fetch_, "the server sends a different range than the requested one");
  }
  if (!range->total) {
    return WrongResponse(*fetch_, "the server does not say how long the object is");
  }
  const uint64_t end = *range->last + 1, bytes = end - fetch_->offset;
  const bool at_end = *range->total == end;
  const bool known = fetch_->length != kUnknownLength;
  const bool fits = known ? bytes == fetch_->length ||
                                (bytes < fetch_->length && at_end && fetch_->may_be_shorter)
                          : at_end;
  if (fits) {
    wanted_ = bytes;
    return std::nullopt;
  }
  if (known && bytes < fetch_->length && at_end) {
    response_.status = 416;
    return FailureOfStatus(*fetch_, response_, "", has_credentials_);
  }
  return WrongResponse(*fetch_, "the server sends a different range than the requested one");
}

// Checks a response with the whole object (200).
std::optional<FetchFailure> Transfer::CheckWhole() {
  const auto& bytes = response_.content_length;
  wanted_ = bytes;
  if (fetch_->length == kUnknownLength && fetch_->offset == 0) {
    if (bytes || response_.chunked) return std::nullopt;
    return WrongResponse(*fetch_, "the server does not say how long the object is");
  }
  const bool fits =
      bytes && fetch_->offset == 0 &&
      (*bytes == fetch_->length || (*bytes < fetch_->length && fetch_->may_be_shorter));
  if (fits) return std::nullopt;
  return RangeIgnored(*fetch_);
}

std::optional<FetchFailure> Transfer::MakeRoomFor(uint64_t bytes) {
  Status status;
  if (fetch_->buffer != nullptr) {
    status = MakeRoom(*fetch_->buffer, bytes, received_);
  } else if (bytes > fetch_->to.size()) {
    status = Error{Code::kResourceExhausted, "the object is larger than the memory for it"};
  }
  if (status.ok()) return std::nullopt;
  return FetchFailure{.error = Error(status.error()).WithFile(fetch_->url)};
}

// Returns whether a 416 says that the object is empty. S3 says so in the body.
bool Transfer::SaysEmpty() const {
  const bool has_total = response_.range && response_.range->total;
  return has_total ? response_.range->total == 0
                   : XmlElement(error_body_, "ActualObjectSize") == "0";
}

std::optional<FetchFailure> Transfer::End(int code) {
  if (refused_) return std::move(refused_);
  if (code != CURLE_OK) {
    return FailureOfTransfer(*fetch_, code, library_.easy_strerror(code),
                             settings_.stall_timeout_s);
  }
  if (response_.status == 416 && fetch_->offset == 0 && fetch_->may_be_shorter && SaysEmpty()) {
    fetch_->version = {.bytes = 0, .etag = response_.etag, .modified_s = response_.modified_s};
    return std::nullopt;  // an empty object has not even a first byte
  }
  if (!is_success()) return FailureOfStatus(*fetch_, response_, error_body_, has_credentials_);
  if (!accepted_) {  // the response had no body
    if (auto refused = Accept()) return refused;
  }
  if (wanted_ && received_ != *wanted_) {
    return WrongResponse(*fetch_, "the server sends " + std::to_string(received_) +
                                      " bytes instead of " + std::to_string(*wanted_));
  }
  if (fetch_->version.bytes == 0 && response_.status == 200) {  // the length was not announced
    fetch_->version.bytes = received_;
    if (auto other = CheckVersion()) return other;
  }
  fetch_->size = received_;
  return std::nullopt;
}

}  // namespace stoker
