#include "io/remote/object_request.h"

#include <array>

#include "core/hash/sha256.h"

namespace stoker {

namespace {

// The SHA-256 of an empty text: a GET has no body.
constexpr char kNoBody[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// Returns a time in the form "20130524T000000Z".
std::string AwsTime(std::time_t now) {
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &parts)};
}

// Returns the value of the header Host, without the scheme's default port, as libcurl sends it.
std::string HostHeader(const HttpUrlParts& parts) {
  std::string host(parts.host);
  const std::string own_port = parts.scheme == "https" ? ":443" : ":80";
  if (host.ends_with(own_port)) host.resize(host.size() - own_port.size());
  return host;
}

ObjectRequest S3Request(const ObjectUrl& url, const ObjectSettings& settings,
                        const ObjectCredentials& credentials, std::time_t now) {
  std::string endpoint = settings.s3_endpoint, path;
  const bool in_path = !endpoint.empty() || url.bucket.find('.') != std::string::npos;
  if (endpoint.empty()) {
    endpoint = "https://" + (in_path ? "" : url.bucket + ".") + "s3." + settings.s3_region +
               ".amazonaws.com";
  }
  const HttpUrlParts parts = SplitHttpUrl(endpoint);
  path = std::string(parts.path);
  if (in_path) path += "/" + url.bucket;
  path += "/" + PercentEncoded(url.key, /*slashes=*/true);

  const std::string host = HostHeader(parts);
  ObjectRequest request{.url = std::string(parts.scheme) + "://" + host + path, .headers = {}};
  if (!credentials.aws) return request;
  std::vector<HeaderToSign> headers = {
      {"host", host}, {"x-amz-content-sha256", kNoBody}, {"x-amz-date", AwsTime(now)}};
  if (!credentials.aws->token.empty()) {
    headers.push_back({"x-amz-security-token", credentials.aws->token});
  }
  for (const HeaderToSign& header : headers) {
    if (header.name != "host") request.headers.push_back(header.name + ": " + header.value);
  }
  request.headers.push_back("authorization: " + AwsAuthorization(*credentials.aws,
                                                                 settings.s3_region, "s3", now,
                                                                 path, "", headers, kNoBody));
  return request;
}

ObjectRequest GsRequest(const ObjectUrl& url, const ObjectSettings& settings,
                        const ObjectCredentials& credentials) {
  ObjectRequest request{
      .url = settings.gs_endpoint + "/" + url.bucket + "/" + PercentEncoded(url.key, true),
      .headers = {}};
  // An intercepted token can be used for an hour, so it is never sent over http://.
  if (!credentials.google_token.empty() && request.url.starts_with("https://")) {
    request.headers.push_back("authorization: Bearer " + credentials.google_token);
  }
  return request;
}

}  // namespace

ObjectRequest BuildObjectRequest(const ObjectUrl& url, const ObjectSettings& settings,
                                 const ObjectCredentials& credentials, std::time_t now) {
  switch (url.store) {
    case ObjectUrl::Store::kS3:
      return S3Request(url, settings, credentials, now);
    case ObjectUrl::Store::kGs:
      return GsRequest(url, settings, credentials);
    case ObjectUrl::Store::kHttp:
      break;
  }
  return {.url = url.http, .headers = {}, .follows_redirects = true};
}

std::string AwsAuthorization(const AwsCredentials& credentials, const std::string& region,
                             const std::string& service, std::time_t now, const std::string& path,
                             const std::string& query, const std::vector<HeaderToSign>& headers,
                             const std::string& payload_hash) {
  const std::string time = AwsTime(now), day = time.substr(0, 8);
  std::string lines, names;
  for (const HeaderToSign& header : headers) {
    lines += header.name + ":" + header.value + "\n";
    names += (names.empty() ? "" : ";") + header.name;
  }
  const std::string canonical =
      "GET\n" + path + "\n" + query + "\n" + lines + "\n" + names + "\n" + payload_hash;
  const std::string scope = day + "/" + region + "/" + service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + Hexadecimal(Sha256(canonical));

  Sha256Digest key = HmacSha256("AWS4" + credentials.secret, day);
  for (const std::string_view part :
       {std::string_view(region), std::string_view(service), std::string_view("aws4_request")}) {
    key = HmacSha256(AsText(key), part);
  }
  return "AWS4-HMAC-SHA256 Credential=" + credentials.key_id + "/" + scope +
         ",SignedHeaders=" + names + ",Signature=" + Hexadecimal(HmacSha256(AsText(key), to_sign));
}

}  // namespace stoker
