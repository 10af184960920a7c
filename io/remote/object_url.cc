#include "io/remote/object_url.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/result/secrets.h"

namespace stoker {

namespace {

struct Scheme {
  std::string_view prefix;
  ObjectUrl::Store store;
};
constexpr std::array<Scheme, 4> kSchemes = {{{"http://", ObjectUrl::Store::kHttp},
                                             {"https://", ObjectUrl::Store::kHttp},
                                             {"s3://", ObjectUrl::Store::kS3},
                                             {"gs://", ObjectUrl::Store::kGs}}};

const Scheme* SchemeOf(std::string_view url) {
  const auto* const found = std::ranges::find_if(
      kSchemes, [&](const Scheme& scheme) { return url.starts_with(scheme.prefix); });
  return found == kSchemes.end() ? nullptr : found;
}

bool IsHttp(std::string_view url) {
  return url.starts_with("http://") || url.starts_with("https://");
}

Error BadUrl(std::string_view url, std::string cause, std::string advice = "") {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = WithoutSecrets(url),
          .advice = std::move(advice)};
}

bool IsBucketCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

Result<ObjectUrl> ParseHttp(std::string_view url) {
  const auto bad = [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f'; };
  if (std::ranges::any_of(url, bad)) {
    return BadUrl(url, "the URL has a space or a control character",
                  "Write %20 for a space, as browsers show it");
  }
  if (url.find('#') != std::string_view::npos) {  // servers never see it
    return BadUrl(url, "the URL has a '#', which begins a fragment and names no object",
                  "Write %23 if the '#' belongs to a name");
  }
  const std::string_view host = SplitHttpUrl(url).host;
  if (host.empty()) return BadUrl(url, "the URL has no host");
  if (host.find('@') != std::string_view::npos) {
    return BadUrl(url, "the URL has a user's name or password in it, which messages would show",
                  "Use a signed URL, or s3:// with credentials in the environment");
  }
  return ObjectUrl{
      .store = ObjectUrl::Store::kHttp, .http = std::string(url), .bucket = {}, .key = {}};
}

Result<ObjectUrl> ParseStore(std::string_view url, const Scheme& scheme) {
  const std::string_view rest = url.substr(scheme.prefix.size());
  const size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  if (bucket.empty() || !std::ranges::all_of(bucket, IsBucketCharacter)) {
    return BadUrl(url,
                  "the URL has no bucket's name, or one with other characters than a-z, 0-9, "
                  "'.', '-' and '_'");
  }
  if (slash == std::string_view::npos || slash + 1 == rest.size()) {
    return BadUrl(url, "the URL names a bucket, and no object in it");
  }
  if (rest.find('\0') != std::string_view::npos) return BadUrl(url, "the URL has a NUL");
  return ObjectUrl{.store = scheme.store,
                   .http = {},
                   .bucket = std::string(bucket),
                   .key = std::string(rest.substr(slash + 1))};
}

// Returns the parameters of a query, including empty ones.
std::vector<std::string_view> PartsOf(std::string_view query) {
  std::vector<std::string_view> parts;
  for (size_t end = query.find('&'); end != std::string_view::npos; end = query.find('&')) {
    parts.push_back(query.substr(0, end));
    query.remove_prefix(end + 1);
  }
  parts.push_back(query);
  return parts;
}

// Returns a parameter's name in lower case.
std::string NameOf(std::string_view part) {
  std::string name(part.substr(0, part.find('=')));
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

bool HasParameter(std::string_view query, std::string_view name) {
  return std::ranges::any_of(PartsOf(query),
                             [name](std::string_view part) { return NameOf(part) == name; });
}

// Parameters of a signature of AWS, CloudFront or Google.
constexpr std::array<std::string_view, 6> kOfSignature = {
    "signature", "expires", "key-pair-id", "policy", "awsaccesskeyid", "googleaccessid"};
// Parameters of a signature of Azure.
constexpr std::array<std::string_view, 15> kOfSig = {"sig", "se",  "sp",    "sv",    "st",
                                                     "sr",  "spr", "skoid", "sktid", "skt",
                                                     "ske", "sks", "skv",   "sip",   "si"};

template <size_t kCount>
bool Contains(const std::array<std::string_view, kCount>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

bool IsObjectUrl(std::string_view path) { return SchemeOf(path) != nullptr; }

Result<ObjectUrl> ParseObjectUrl(std::string_view url) {
  const Scheme* const scheme = SchemeOf(url);
  if (scheme == nullptr) {
    return BadUrl(url, "objects cannot be read from this kind of URL",
                  "Give http://, https://, s3:// or gs://");
  }
  return scheme->store == ObjectUrl::Store::kHttp ? ParseHttp(url) : ParseStore(url, *scheme);
}

std::string_view BeforeQuery(std::string_view url) {
  return IsHttp(url) ? url.substr(0, url.find('?')) : url;
}

std::string WithoutSignature(std::string_view url) {
  std::string kept(BeforeQuery(url));
  if (kept.size() == url.size()) return kept;
  const std::string_view query = url.substr(kept.size() + 1);
  const bool has_signature = HasParameter(query, "signature"), has_sig = HasParameter(query, "sig");
  char mark = '?';
  for (const std::string_view part : PartsOf(query)) {
    const std::string name = NameOf(part);
    const bool signs = name.starts_with("x-amz-") || name.starts_with("x-goog-") ||
                       (has_signature && Contains(kOfSignature, name)) ||
                       (has_sig && Contains(kOfSig, name));
    if (signs) continue;
    kept.append(1, std::exchange(mark, '&')).append(part);
  }
  return kept;
}

std::string PercentEncoded(std::string_view text, bool slashes) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool plain = (IsBucketCharacter(c)) || c == '~' || (slashes && c == '/');
    if (plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

Status CheckFolderUrl(std::string_view folder) {
  if (!IsHttp(folder) || folder.find_first_of("?#") == std::string_view::npos) return {};
  return BadUrl(folder, "the folder's URL has a query or a fragment, in which names would end up",
                "Give the folder's URL without them");
}

void AppendName(std::string_view name, std::string& folder) {
  if (IsHttp(folder)) {
    folder += PercentEncoded(name, /*slashes=*/true);
  } else {
    folder += name;
  }
}

HttpUrlParts SplitHttpUrl(std::string_view url) {
  const size_t colon = url.find("://");
  const std::string_view rest = url.substr(colon + 3);
  const size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  return {.scheme = url.substr(0, colon), .host = rest.substr(0, end), .path = rest.substr(end)};
}

}  // namespace stoker
