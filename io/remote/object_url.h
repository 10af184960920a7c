// ObjectUrl: the parts of a URL of an object of an HTTP server, of S3 or of Google Cloud Storage.
#pragma once

#include <string>
#include <string_view>

#include "core/result/result.h"

namespace stoker {

struct ObjectUrl {
  enum class Store { kHttp, kS3, kGs };

  Store store = Store::kHttp;
  std::string http;    // for kHttp: the URL itself
  std::string bucket;  // for the other stores
  std::string key;     // any bytes, without a leading slash
};

// Whether a path names an object: it begins with http://, https://, s3:// or gs://.
bool IsObjectUrl(std::string_view path);

// Parses a URL. InvalidArgument, with the URL: it has no host, bucket or key; an HTTP URL has a
// control character, a space or a fragment; or a user's name or password, which messages would
// show.
Result<ObjectUrl> ParseObjectUrl(std::string_view url);

// Returns an HTTP URL up to its query; any other path unchanged.
std::string_view BeforeQuery(std::string_view url);

// Returns an HTTP URL without the query parameters that sign it, which differ each time; any other
// path unchanged. The remaining parameters, such as a version or a key, may distinguish objects.
std::string WithoutSignature(std::string_view url);

// Encodes bytes other than letters, digits and -._~ as %XX (RFC 3986). Slashes stay if `slashes`.
std::string PercentEncoded(std::string_view text, bool slashes);

// Refuses an HTTP URL with a query or a fragment as a folder: names would be appended to these.
Status CheckFolderUrl(std::string_view folder);

// Appends a name to a folder with its slash. In an HTTP URL the name's bytes become %XX as needed:
// otherwise "#", "?" and "%" in a name would be URL syntax and name another object.
void AppendName(std::string_view name, std::string& folder);

// "https://host:8080/path" in parts: "https", "host:8080", "/path" (with a query, if there is one).
struct HttpUrlParts {
  std::string_view scheme, host, path;
};
// Precondition: it begins with http:// or https://.
HttpUrlParts SplitHttpUrl(std::string_view url);

}  // namespace stoker
