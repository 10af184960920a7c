// ObjectRequest: the HTTP request that gets an object, or a range of it.
#pragma once

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/remote/object_settings.h"
#include "io/remote/object_url.h"

namespace stoker {

struct ObjectRequest {
  std::string url;                   // http:// or https://
  std::vector<std::string> headers;  // credentials: "authorization: …"
  bool follows_redirects = false;    // never with credentials, which the other server would receive
};

// Builds a GET of the whole object; a caller adds the range. s3:// is signed by AWS' Signature
// Version 4 if there are credentials, at the time `now`; gs:// is sent with the OAuth 2 token if
// the server is https://. On AWS, a bucket without dots is part of the host's name, otherwise of
// the path.
ObjectRequest BuildObjectRequest(const ObjectUrl& url, const ObjectSettings& settings,
                                 const ObjectCredentials& credentials, std::time_t now);

// Returns the value of the Authorization header for a GET without a body. `path` and `query` must
// be as sent: percent-encoded, the query's parameters sorted. `headers` are those to sign,
// including the host: names in lower case, sorted, with trimmed values.
struct HeaderToSign {
  std::string name, value;
};
std::string AwsAuthorization(const AwsCredentials& credentials, const std::string& region,
                             const std::string& service, std::time_t now, const std::string& path,
                             const std::string& query, const std::vector<HeaderToSign>& headers,
                             const std::string& payload_hash);

}  // namespace stoker
