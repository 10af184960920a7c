#include "core/result/secrets.h"

#include <algorithm>

namespace stoker {

namespace {

// Returns where the next URL's host begins, or npos.
size_t NextHost(std::string_view text) {
  constexpr std::string_view kPlain = "http://", kSecure = "https://";
  const size_t plain = text.find(kPlain), secure = text.find(kSecure);
  if (plain < secure) return plain + kPlain.size();
  return secure == std::string_view::npos ? secure : secure + kSecure.size();
}

void AppendUrl(std::string_view url, std::string& shown) {
  const std::string_view host = url.substr(0, url.find_first_of("/?#"));
  if (const size_t at = host.rfind('@'); at != std::string_view::npos) {
    shown += "…";
    url.remove_prefix(at);
  }
  const size_t query = url.find('?');
  shown += url.substr(0, query);
  if (query != std::string_view::npos) shown += "?…";
}

}  // namespace

std::string WithoutSecrets(std::string_view text) {
  std::string shown;
  for (size_t host = NextHost(text); host != std::string_view::npos; host = NextHost(text)) {
    const size_t end = std::min(text.find_first_of(" \t\r\n\"", host), text.size());
    shown += text.substr(0, host);
    AppendUrl(text.substr(host, end - host), shown);
    text.remove_prefix(end);
  }
  return shown.append(text);
}

Error WithoutSecrets(Error error) {
  for (std::string* const text : {&error.cause, &error.file, &error.advice}) {
    *text = WithoutSecrets(*text);
  }
  return error;
}

}  // namespace stoker
