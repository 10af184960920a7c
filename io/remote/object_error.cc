#include "io/remote/object_error.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "core/result/secrets.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

using Cure = FetchFailure::Cure;

// A failure caused by credentials, the server or the network: any object would fail.
FetchFailure FailureAt(const ObjectFetch& fetch, Code code, std::string cause, std::string advice,
                       Cure cure = Cure::kNone) {
  return {.error = {.code = code,
                    .cause = std::move(cause),
                    .file = WithoutSecrets(fetch.url),
                    .offset = fetch.offset,
                    .advice = std::move(advice),
                    .detail = Error::Detail::kOfNoSample},
          .cure = cure};
}

FetchFailure FailureOfObject(const ObjectFetch& fetch, Code code, std::string cause,
                             std::string advice) {
  FetchFailure failure = FailureAt(fetch, code, std::move(cause), std::move(advice));
  failure.error.detail = Error::Detail::kNone;
  return failure;
}

// Returns a text like "the server answers 403 (AccessDenied: Access Denied)".
std::string Answer(const HttpResponse& response, std::string_view body) {
  constexpr size_t kLongest = 200;
  const std::string_view code = XmlElement(body, "Code"), message = XmlElement(body, "Message");
  std::string text = "the server answers " + std::to_string(response.status);
  if (code.empty()) return text;
  text.append(" (").append(Printable(code.substr(0, kLongest)));
  if (!message.empty()) text.append(": ").append(Printable(message.substr(0, kLongest)));
  return text + ")";
}

std::string AdviceOnAccess(std::string_view url, bool has_credentials) {
  if (url.starts_with("s3://")) {
    if (has_credentials) {
      return "Check that these credentials are valid and may read the object, and that AWS_REGION "
             "is the bucket's; the environment and ~/.aws/credentials were read again";
    }
    return "No credentials were found: write ~/.aws/credentials, which is read again when they "
           "expire, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY";
  }
  if (url.starts_with("gs://")) {
    return has_credentials
               ? "GOOGLE_OAUTH_ACCESS_TOKEN is valid for an hour: start the program again with a "
                 "new "
                 "one, of `gcloud auth print-access-token`; its account must be allowed to read "
                 "the object"
               : "Set GOOGLE_OAUTH_ACCESS_TOKEN=\"$(gcloud auth print-access-token)\"; key files "
                 "of service accounts are not read";
  }
  return "Give a URL that needs no login, or a signed one that has not expired";
}

std::string AdviceOnCertificates() {
  const char* const given = std::getenv("AWS_CA_BUNDLE");
  if (given != nullptr && *given != '\0') {
    return "AWS_CA_BUNDLE is " + Printable(given) +
           "; it must be a file with the certificate of the authority that signed the server's";
  }
  return "Install the system's certificates (apt-get install ca-certificates), or set "
         "AWS_CA_BUNDLE to a file with the certificate of the authority that signed the server's";
}

bool IsTransient(int status, std::string_view code) {
  constexpr std::array kTransient = {408, 425, 429, 500, 502, 503, 504};
  constexpr std::array<std::string_view, 2> kCodes = {"RequestTimeout", "InternalError"};  // S3's
  return std::ranges::find(kTransient, status) != kTransient.end() ||
         std::ranges::find(kCodes, code) != kCodes.end();
}

bool IsOfCredentials(int status, std::string_view code) {
  constexpr std::array<std::string_view, 4> kCodes = {"ExpiredToken", "TokenRefreshRequired",
                                                      "InvalidToken", "RequestExpired"};
  return status == 401 || status == 403 ||
         (status == 400 && std::ranges::find(kCodes, code) != kCodes.end());
}

// S3 answers a request for a key that does not exist like one for a key that may not be read,
// unless the credentials may list the bucket. Wrong credentials and signatures have other codes.
bool IsForbidden(int status, std::string_view code) {
  return status == 403 && (code.empty() || code == "AccessDenied");
}

FetchFailure Forbidden(const ObjectFetch& fetch, const std::string& answer, bool has_credentials) {
  FetchFailure failure = FailureAt(
      fetch, Code::kPermissionDenied,
      answer + ": access is denied, or there is no such object and its folder may not be listed",
      AdviceOnAccess(fetch.url, has_credentials) +
          ". If others are read and this one is missing, on_bad \"forbidden=drop\" leaves it out",
      Cure::kCredentials);
  failure.error.detail = Error::Detail::kForbidden;
  return failure;
}

FetchFailure WrongRegion(const ObjectFetch& fetch, const HttpResponse& response,
                         const std::string& answer) {
  const std::string region = Printable(response.bucket_region);
  return FailureAt(
      fetch, Code::kInvalidArgument, answer + ": the bucket is in another region",
      region.empty() ? "Set AWS_REGION to the bucket's region" : "Set AWS_REGION=" + region);
}

}  // namespace

FetchFailure FailureOfStatus(const ObjectFetch& fetch, const HttpResponse& response,
                             std::string_view body, bool has_credentials) {
  const std::string answer = Answer(response, body);
  const std::string_view code = XmlElement(body, "Code");
  const int status = response.status;
  const bool is_s3 = fetch.url.starts_with("s3://");
  if (status == 404 || status == 410) {
    return FailureOfObject(fetch, Code::kNotFound, answer + ": there is no such object", "");
  }
  if (code == "RequestTimeTooSkewed") {
    return FailureAt(fetch, Code::kPermissionDenied, answer,
                     "Set this machine's clock (`timedatectl`): requests are signed with its time");
  }
  if (IsForbidden(status, code)) return Forbidden(fetch, answer, has_credentials);
  if (IsOfCredentials(status, code)) {
    return FailureAt(fetch, Code::kPermissionDenied, answer + ": access is denied",
                     AdviceOnAccess(fetch.url, has_credentials), Cure::kCredentials);
  }
  if (status == 412) return ObjectChanged(fetch);
  if (status == 416) {
    const bool known = response.range && response.range->total;
    return FailureOfObject(
        fetch, Code::kDataLoss,
        "the object ends" +
            (known ? " at byte " + std::to_string(*response.range->total) : std::string()) +
            " before the bytes wanted from here",
        "Open the source again if the object was replaced");
  }
  if (is_s3 && (status == 301 || status == 307 || code == "AuthorizationHeaderMalformed")) {
    return WrongRegion(fetch, response, answer);
  }
  if (IsTransient(status, code)) {
    return FailureAt(fetch, Code::kUnavailable, answer, "Try again later, or with fewer reads",
                     Cure::kRetry);
  }
  return FailureAt(fetch, Code::kUnavailable, answer, "Look at the URL in a browser or with curl");
}

FetchFailure FailureOfTransfer(const ObjectFetch& fetch, int code, const std::string& what,
                               int stall_timeout_s) {
  constexpr std::array kForGood = {CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,
                                   CURLE_TOO_MANY_REDIRECTS,   CURLE_PEER_FAILED_VERIFICATION,
                                   CURLE_SSL_CACERT_BADFILE,   CURLE_SSL_CERTPROBLEM,
                                   CURLE_OUT_OF_MEMORY,        CURLE_WRITE_ERROR};
  const bool for_good = std::ranges::find(kForGood, code) != kForGood.end();
  std::string cause = "the transfer failed: " + what;
  std::string advice = "Check the URL, the network and the proxy";
  if (code == CURLE_OPERATION_TIMEDOUT) {
    cause += " (STOKER_HTTP_TIMEOUT is " + std::to_string(stall_timeout_s) + " s)";
    advice = "Set STOKER_HTTP_TIMEOUT to more seconds if the server is that slow";
  }
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    advice = AdviceOnCertificates();
  }
  return FailureAt(fetch, Code::kUnavailable, std::move(cause), std::move(advice),
                   for_good ? Cure::kNone : Cure::kRetry);
}

FetchFailure ObjectChanged(const ObjectFetch& fetch) {
  return FailureOfObject(
      fetch, Code::kDataLoss, "the object has changed since the source was opened",
      "Open the source again, and leave objects as they are while they are used");
}

FetchFailure WrongResponse(const ObjectFetch& fetch, std::string cause) {
  return FailureAt(fetch, Code::kUnavailable, std::move(cause),
                   "Look for a proxy that changes responses", Cure::kRetry);
}

FetchFailure RangeIgnored(const ObjectFetch& fetch) {
  return FailureAt(fetch, Code::kUnimplemented,
                   "the server ignores Range and sends whole objects (200)",
                   "Use a server that sends ranges, as nginx and all object stores do; Python's "
                   "http.server does not");
}

FetchFailure IsEncoded(const ObjectFetch& fetch, const std::string& encoding) {
  return FailureOfObject(
      fetch, Code::kUnimplemented,
      "the server sends the object compressed (Content-Encoding: " + Printable(encoding) + ")",
      "Store the object without Content-Encoding, or turn the server's compression "
      "off for it: its ranges are read");
}

Error AfterTries(Error error, int tries) {
  error.cause += ", " + std::to_string(tries) + " times";
  return error;
}

}  // namespace stoker
