#include "io/manifest/number_text.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <system_error>

namespace stoker {

namespace {

// Returns the text without blanks around it, and without a plus sign.
std::string_view Bare(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  text = text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
  const bool signs = text.size() > 1 && text[1] != '-';
  return text.substr(text[0] == '+' && signs ? 1 : 0);
}

// Whether std::from_chars knows this word, too.
bool IsWord(std::string_view bare) {
  if (bare.starts_with('-')) bare.remove_prefix(1);
  std::string word(bare.substr(0, 9));
  std::ranges::transform(word, word.begin(), [](char c) {
    return 'A' <= c && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return word == "nan" || word == "inf" || word == "infinity";
}

template <typename T>
std::optional<T> WholeTextAs(std::string_view bare) {
  T value{};
  const char* const begin = bare.data();
  const char* const end = begin + bare.size();
  const std::from_chars_result read = std::from_chars(begin, end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

}  // namespace

std::optional<int64_t> IntegerOf(std::string_view text) { return WholeTextAs<int64_t>(Bare(text)); }

std::optional<uint16_t> SmallNumberOf(std::string_view text) { return WholeTextAs<uint16_t>(text); }

std::optional<double> NumberOf(std::string_view text) {
  const std::string_view bare = Bare(text);
  if (bare.empty()) return std::nullopt;
  if (bare.find_first_not_of("0123456789.-+eE") != std::string_view::npos && !IsWord(bare)) {
    return std::nullopt;
  }
  if (bare.find_first_not_of("0123456789-") == std::string_view::npos) {
    const std::optional<int64_t> whole = WholeTextAs<int64_t>(bare);
    if (!whole) return std::nullopt;
    return static_cast<double>(*whole);
  }
  return WholeTextAs<double>(bare);
}

}  // namespace stoker
