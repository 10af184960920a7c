// Describes why a transfer failed, and whether a retry may succeed.
#pragma once

#include <string>
#include <string_view>

#include "core/result/result.h"
#include "io/remote/http_response.h"
#include "io/remote/object_fetch.h"

namespace stoker {

struct FetchFailure {
  enum class Cure { kNone, kRetry, kCredentials };

  Error error;  // names the URL and the offset
  Cure cure = Cure::kNone;
};

// The failure of a response whose status is not a success; `body` is the beginning of the server's
// text. `has_credentials`: whether the request had any.
FetchFailure FailureOfStatus(const ObjectFetch& fetch, const HttpResponse& response,
                             std::string_view body, bool has_credentials);

// The failure that libcurl reports with `code`; `what` is libcurl's text for it.
FetchFailure FailureOfTransfer(const ObjectFetch& fetch, int code, const std::string& what,
                               int stall_timeout_s);

// The object has changed since the source was opened.
FetchFailure ObjectChanged(const ObjectFetch& fetch);

// Failures of a successful response that does not match the request.
FetchFailure WrongResponse(const ObjectFetch& fetch, std::string cause);
FetchFailure RangeIgnored(const ObjectFetch& fetch);
FetchFailure IsEncoded(const ObjectFetch& fetch, const std::string& encoding);

// Returns the error of the last of several tries.
Error AfterTries(Error error, int tries);

}  // namespace stoker
