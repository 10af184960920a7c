// What a failed transfer means: the error in words, and whether a further try may cure it.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"
#include "io/objects/http_response.h"
#include "io/objects/object_fetch.h"

namespace stoker {

struct FetchFailure {
  enum class Cure { kNone, kRetry, kCredentials };

  Error error;  // names the URL and the offset
  Cure cure = Cure::kNone;
};

// Of a response whose status is no success; `body` is the beginning of what the server wrote.
// `has_credentials`: whether the request had any.
FetchFailure FailureOfStatus(const ObjectFetch& fetch, const HttpResponse& response,
                             std::string_view body, bool has_credentials);

// Of libcurl's code; `what` is its text.
FetchFailure FailureOfTransfer(const ObjectFetch& fetch, int code, const std::string& what,
                               int stall_timeout_s);

// The object is not the one that the source was opened with.
FetchFailure ObjectChanged(const ObjectFetch& fetch);

// A response that should be a success, and is not what was asked for.
FetchFailure WrongResponse(const ObjectFetch& fetch, std::string cause);
FetchFailure RangeIgnored(const ObjectFetch& fetch);
FetchFailure IsEncoded(const ObjectFetch& fetch, const std::string& encoding);

// An error after the last try.
Error AfterTries(Error error, int tries);

}  // namespace stoker
