// ObjectUrl: what a URL names: an object of an HTTP server, of S3 or of Google Cloud Storage.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace stoker {

struct ObjectUrl {
  enum class Store { kHttp, kS3, kGs };

  Store store = Store::kHttp;
  std::string http;    // of kHttp: the URL itself
  std::string bucket;  // of the others
  std::string key;     // any bytes, without a leading slash
};

// Whether a path names an object: it begins with http://, https://, s3:// or gs://.
bool IsObjectUrl(std::string_view path);

// InvalidArgument, with the URL: no host, bucket or key; a control character or a space; a user's
// name or password, which would be seen in messages.
Result<ObjectUrl> ParseObjectUrl(std::string_view url);

// A URL of HTTP to its query; any other path as it is.
std::string_view BeforeQuery(std::string_view url);

// A URL of HTTP without the parameters of its query that sign it, which are others each time; any
// other path as it is. What is left, as a version or a key, may tell objects apart.
std::string WithoutSignature(std::string_view url);

// RFC 3986: bytes other than letters, digits and -._~ as %XX. Slashes are left where `slashes`.
std::string PercentEncoded(std::string_view text, bool slashes);

// "https://host:8080/path" in parts: "https", "host:8080", "/path" (with a query, if there is one).
struct HttpUrlParts {
  std::string_view scheme, host, path;
};
// Precondition: it begins with http:// or https://.
HttpUrlParts SplitHttpUrl(std::string_view url);

}  // namespace stoker
