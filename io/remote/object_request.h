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
  bool follows_redirects = false;    // never with credentials, which another server would receive
};

// Builds a GET of the whole object; a caller adds the range. s3:// is signed by AWS' Signature
// Version 4 if there are credentials, at the time `now`; gs:// has the token of OAuth 2, if the
// server is https://. A bucket is part of the host's name on AWS, if it has no dots, otherwise part
// of the path.
ObjectRequest BuildObjectRequest(const ObjectUrl& url, const ObjectSettings& settings,
                                 const ObjectCredentials& credentials, std::time_t now);

// Returns the value of the header Authorization for a GET without a body. `path` and `query` are as
// they are sent: percent-encoded, and the query's parts sorted. `headers` are those to sign,
// including the host: lower-case names, sorted, with values without spaces around them.
struct HeaderToSign {
  std::string name, value;
};
std::string AwsAuthorization(const AwsCredentials& credentials, const std::string& region,
                             const std::string& service, std::time_t now, const std::string& path,
                             const std::string& query, const std::vector<HeaderToSign>& headers,
                             const std::string& payload_hash);

}  // namespace stoker
