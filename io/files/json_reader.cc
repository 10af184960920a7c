#include "io/files/json_reader.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <charconv>
#include <cmath>
#include <system_error>
#include <utility>

#include "core/result/utf8.h"

namespace stoker {

namespace {

bool IsJsonBlank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsJsonDigit(char c) { return c >= '0' && c <= '9'; }

// Whether a byte may be part of a number or a literal, or of what programs write for one: NaN.
bool IsTokenByte(char c) {
  return IsJsonDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '+' || c == '.';
}

// Whether a token is a number as JSON's grammar has it.
bool IsNumber(std::string_view token) {
  size_t at = token.starts_with('-') ? 1 : 0;
  const auto digits = [&] {
    const size_t begin = at;
    while (at < token.size() && IsJsonDigit(token[at])) ++at;
    return at > begin;
  };
  const bool zero = at < token.size() && token[at] == '0';
  const size_t whole = at;
  if (!digits() || (zero && at > whole + 1)) return false;
  if (at < token.size() && token[at] == '.') {
    ++at;
    if (!digits()) return false;
  }
  if (at < token.size() && (token[at] == 'e' || token[at] == 'E')) {
    ++at;
    if (at < token.size() && (token[at] == '+' || token[at] == '-')) ++at;
    if (!digits()) return false;
  }
  return at == token.size();
}

// Whether the absolute value of a number is less than 1. Preconditions: IsNumber, and not 0.
bool IsBelowOne(std::string_view token) {
  const size_t exponent_at = std::min(token.find_first_of("eE"), token.size());
  const size_t first = token.find_first_of("123456789");
  const size_t point = std::min(token.find('.'), exponent_at);
  // The first digit's power of ten: 3 in 1000, -3 in 0.001.
  const int64_t place =
      static_cast<int64_t>(point) - static_cast<int64_t>(first) - (first < point ? 1 : 0);
  std::string_view exponent = token.substr(std::min(exponent_at + 1, token.size()));
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int64_t power = 0;
  const auto [end, error] =
      std::from_chars(exponent.data(), exponent.data() + exponent.size(), power);
  const bool is_huge = error == std::errc::result_out_of_range;
  return is_huge ? exponent.starts_with('-') : power < -place;
}

// The role of a byte in a value that is skipped.
enum class SkippedByte : uint8_t { kPlain, kQuote, kOpens, kCloses };

constexpr std::array<SkippedByte, 256> MakeSkippedBytes() {
  std::array<SkippedByte, 256> table{};
  table['"'] = SkippedByte::kQuote;
  table['['] = table['{'] = SkippedByte::kOpens;
  table[']'] = table['}'] = SkippedByte::kCloses;
  return table;
}
constexpr std::array<SkippedByte, 256> kSkippedBytes = MakeSkippedBytes();

// The bytes that are part of a string as they are.
constexpr std::array<bool, 256> MakeInText() {
  std::array<bool, 256> table{};
  for (size_t byte = 0x20; byte < table.size(); ++byte) table[byte] = byte != '"' && byte != '\\';
  return table;
}
constexpr std::array<bool, 256> kInText = MakeInText();

void AppendUtf8(uint32_t point, std::string& text) {
  const auto add = [&text](uint32_t byte) { text += static_cast<char>(byte); };
  if (point < 0x80) return add(point);
  if (point < 0x800) {
    add(0xC0 | point >> 6);
  } else {
    if (point < 0x10000) {
      add(0xE0 | point >> 12);
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
    }
    add(0x80 | (point >> 6 & 0x3F));
  }
  add(0x80 | (point & 0x3F));
}

}  // namespace

void JsonReader::TakeBytes() {
  begin_ = at_ = file_.bytes().data();
  end_ = begin_ + file_.bytes().size();
}

// Reads more bytes after those from at_ on, which stay; returns false at the end of the file.
Result<bool> JsonReader::Refill() {
  file_.Skip(static_cast<size_t>(at_ - begin_));
  begin_ = at_;  // for offset(), if this fails
  ASSIGN_OR_RETURN(const bool more, file_.Grow());
  TakeBytes();
  return more;
}

// Skips blanks; returns false at the end of the bytes in memory. A fast path without a Status.
bool JsonReader::FindByte() {
  while (at_ < end_ && IsJsonBlank(*at_)) ++at_;
  return at_ < end_;
}

// Returns false at the end of the file.
Result<bool> JsonReader::SkipBlanks() {
  for (;;) {
    if (FindByte()) return true;
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) return false;
  }
}

Status JsonReader::ToValue() {
  ASSIGN_OR_RETURN(const bool there, SkipBlanks());
  return there ? Status() : Truncated();
}

Error JsonReader::Refuse(std::string cause, std::string advice) const {
  return {.code = Code::kInvalidArgument,
          .cause = std::move(cause),
          .file = path(),
          .offset = offset(),
          .advice = std::move(advice)};
}

Error JsonReader::Truncated() const { return Refuse(words_.truncated, words_.write_again); }

Error JsonReader::NotJson() const {
  if (at_ == end_) return Truncated();
  constexpr size_t kMostShown = 30;
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  for (const std::string_view number : {"NaN", "Infinity", "-Infinity", "nan"}) {
    if (!rest.starts_with(number)) continue;
    const bool is_pythons = number != "nan";
    return Refuse(std::string(number) + " is not JSON" +
                      (is_pythons ? ", though Python's json writes it" : ""),
                  words_.write_number);
  }
  std::string_view shown = rest.substr(0, kMostShown);
  while (!shown.empty() && !IsUtf8(shown)) shown.remove_suffix(1);
  if (shown.empty()) shown = rest.substr(0, 1);
  return Refuse("this is not JSON: found " + Printable(shown), words_.write_json);
}

// `token`: as Token returned it; one that reaches the end of the bytes ends with the file.
Error JsonReader::WrongToken(std::string_view token) const {
  return token.data() + token.size() == end_ ? Truncated() : NotJson();
}

Error JsonReader::OtherType(const char* what, const char* wanted) {
  constexpr std::array kTypes = {"null",     "true or false", "a number",
                                 "a string", "an object",     "a list"};
  const Result<Type> found = Peek();
  if (!found.ok()) return found.error();
  return Refuse(std::string(what) + " is " + kTypes[static_cast<size_t>(*found)] + ", not " +
                wanted);
}

Result<JsonReader::Type> JsonReader::Peek() {
  if (!FindByte()) TRY(ToValue());
  switch (*at_) {
    case '"':
      return Type::kString;
    case '{':
      return Type::kObject;
    case '[':
      return Type::kList;
    case 't':
    case 'f':
    case 'n': {
      ASSIGN_OR_RETURN(const std::string_view token, Token());
      if (token == "null") return Type::kNull;
      if (token == "true" || token == "false") return Type::kBool;
      return WrongToken(token);
    }
    default:
      if (*at_ != '-' && !IsJsonDigit(*at_)) return NotJson();
      return Type::kNumber;
  }
}

Status JsonReader::Enter(char opening) {
  if (!FindByte()) TRY(ToValue());
  if (*at_ != opening) return OtherType("this", opening == '{' ? "an object" : "a list");
  ++at_;
  first_ = true;
  return {};
}

// Goes to the next member; returns false after the closing bracket.
Result<bool> JsonReader::Next(char closing) {
  const bool first = std::exchange(first_, false);
  if (!FindByte()) TRY(ToValue());
  if (*at_ == closing) {
    ++at_;
    return false;
  }
  if (first) return true;
  if (*at_ != ',') return NotJson();
  ++at_;
  if (!FindByte()) TRY(ToValue());
  return true;
}

// Reads the next key, and goes to its value; returns false after the closing bracket.
Result<bool> JsonReader::NextKey() {
  ASSIGN_OR_RETURN(const bool more, Next('}'));
  if (!more) return false;
  if (*at_ != '"') return NotJson();
  TRY(Text(key_));
  if (!FindByte()) TRY(ToValue());
  if (*at_ != ':') return NotJson();
  ++at_;
  return true;
}

// Returns the number or literal that begins here, without moving. The view is valid until at_
// moves to bytes that are not in memory.
Result<std::string_view> JsonReader::Token() {
  if (!FindByte()) TRY(ToValue());
  for (;;) {
    const char* end = at_;
    while (end < end_ && IsTokenByte(*end)) ++end;
    if (end < end_) return std::string_view(at_, static_cast<size_t>(end - at_));
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) break;
  }
  return std::string_view(at_, static_cast<size_t>(end_ - at_));
}

Result<double> JsonReader::Number(const char* what) {
  ASSIGN_OR_RETURN(const std::string_view token, Token());
  if (!IsNumber(token)) {
    const bool is_other = token.empty() || token == "null" || token == "true" || token == "false";
    return is_other ? OtherType(what, "a number") : WrongToken(token);
  }
  double value = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), value);
  if (error != std::errc() && !IsBelowOne(token)) {
    return Refuse(std::string(what) + " is a number that float64 cannot hold");
  }
  at_ += token.size();
  return value;
}

Result<bool> JsonReader::IsInteger() {
  ASSIGN_OR_RETURN(const std::string_view token, Token());
  return token.find_first_of(".eE") == std::string_view::npos;
}

Result<int64_t> JsonReader::Integer(const char* what) {
  ASSIGN_OR_RETURN(const std::string_view token, Token());
  int64_t value = 0;
  const char* const token_end = at_ + token.size();
  const auto [end, error] = std::from_chars(at_, token_end, value);
  if (error == std::errc() && end == token_end && IsNumber(token)) {
    at_ = token_end;
    return value;
  }
  const char* const begin = at_;
  ASSIGN_OR_RETURN(const double number, Number(what));
  constexpr double kExact = 9007199254740992;  // 2^53
  if (number == std::trunc(number) && std::abs(number) < kExact) {
    return static_cast<int64_t>(number);
  }
  at_ = begin;
  return Refuse(std::string(what) + " is not an integer that int64 can hold");
}

Result<bool> JsonReader::Bool(const char* what) {
  ASSIGN_OR_RETURN(const Type type, Peek());
  if (type != Type::kBool) return OtherType(what, "true or false");
  const bool value = *at_ == 't';
  at_ += std::string_view(value ? "true" : "false").size();
  return value;
}

Status JsonReader::String(const char* what, std::string& text) {
  if (!FindByte()) TRY(ToValue());
  if (*at_ != '"') return OtherType(what, "a string");
  return Text(text);
}

// Replaces `text` by the string that begins here.
Status JsonReader::Text(std::string& text) {
  text.clear();
  const uint64_t start = offset();
  ++at_;
  for (;;) {
    const char* const run = at_;
    while (at_ < end_ && kInText[static_cast<uint8_t>(*at_)]) ++at_;
    text.append(run, static_cast<size_t>(at_ - run));
    if (at_ == end_) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) return Truncated();
      constexpr size_t kMostText = size_t{1} << 24;
      if (text.size() > kMostText) return Refuse("a string is longer than 16 MiB");
    } else if (*at_ == '"') {
      break;
    } else if (*at_ == '\\') {
      TRY(Escape(text));
    } else {
      return Refuse("a string has a control character");
    }
  }
  ++at_;
  const bool is_ascii =
      std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; });
  if (is_ascii || IsUtf8(text)) return {};
  Error error = Refuse("a string is not UTF-8", "Save the file as UTF-8");
  error.offset = start;
  return error;
}

Result<uint32_t> JsonReader::FourDigits() {
  while (end_ - at_ < 4) {
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) return Truncated();
  }
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(at_, at_ + 4, number, 16);
  if (error != std::errc() || end != at_ + 4) return NotJson();
  at_ += 4;
  return number;
}

// Returns the error of an escape at `offset` that is half of a surrogate pair.
Error JsonReader::HalfOfPair(uint32_t half, uint64_t offset) const {
  char digits[4];
  std::to_chars(digits, digits + 4, half, 16);
  const bool is_byte = (half & 0xFF80) == 0xDC80;  // PEP 383
  Error error = Refuse(
      "'\\u" + std::string(digits, 4) + "' is half of a surrogate pair" +
          (is_byte ? "; Python's json writes bytes of a file name that are not UTF-8 this way"
                   : ""),
      is_byte ? "Rename the file to UTF-8, or give its name as bytes to stoker.files"
              : "Write the whole character, or leave it out");
  error.offset = offset;
  return error;
}

// Appends the character of the escape that begins here.
Status JsonReader::Escape(std::string& text) {
  while (end_ - at_ < 2) {
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) return Truncated();
  }
  constexpr std::string_view kNames = "\"\\/bfnrt", kCharacters = "\"\\/\b\f\n\r\t";
  const char name = at_[1];
  if (const size_t found = kNames.find(name); found != std::string_view::npos) {
    text += kCharacters[found];
    at_ += 2;
    return {};
  }
  if (name != 'u') return NotJson();
  const uint64_t start = offset();
  at_ += 2;
  ASSIGN_OR_RETURN(uint32_t point, FourDigits());
  const auto half = [&] { return HalfOfPair(point, start); };
  if ((point & 0xFC00) == 0xDC00) return half();
  if ((point & 0xFC00) == 0xD800) {
    while (end_ - at_ < 2) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) return Truncated();
    }
    if (at_[0] != '\\' || at_[1] != 'u') return half();
    at_ += 2;
    ASSIGN_OR_RETURN(const uint32_t other, FourDigits());
    if ((other & 0xFC00) != 0xDC00) return half();
    point = 0x10000 + ((point & 0x3FF) << 10) + (other & 0x3FF);
  }
  AppendUtf8(point, text);
  return {};
}

// Goes to the byte after the string that begins here.
Status JsonReader::SkipText() {
  ++at_;
  for (bool escaped = false;;) {
    for (; at_ < end_; ++at_) {
      if (escaped) {
        escaped = false;
      } else if (*at_ == '\\') {
        escaped = true;
      } else if (*at_ == '"') {
        ++at_;
        return {};
      }
    }
    ASSIGN_OR_RETURN(const bool more, Refill());
    if (!more) return Truncated();
  }
}

// Goes to the byte after the list or object that begins here.
Status JsonReader::SkipNested() {
  std::bitset<kMostLevels> is_list;
  size_t level = 0;
  for (;;) {
    while (at_ < end_ && kSkippedBytes[static_cast<uint8_t>(*at_)] == SkippedByte::kPlain) ++at_;
    if (at_ == end_) {
      ASSIGN_OR_RETURN(const bool more, Refill());
      if (!more) return Truncated();
      continue;
    }
    switch (kSkippedBytes[static_cast<uint8_t>(*at_)]) {
      case SkippedByte::kQuote:
        TRY(SkipText());
        break;
      case SkippedByte::kOpens:
        if (level == kMostLevels) {
          return Refuse("lists and objects are nested more than " + std::to_string(kMostLevels) +
                        " levels deep");
        }
        is_list[level++] = *at_++ == '[';
        break;
      default:
        if (is_list[level - 1] != (*at_ == ']')) return NotJson();
        ++at_;
        if (--level == 0) return {};
    }
  }
}

Status JsonReader::Skip() {
  ASSIGN_OR_RETURN(const Type type, Peek());
  if (type == Type::kString) return SkipText();
  if (type == Type::kObject || type == Type::kList) return SkipNested();
  ASSIGN_OR_RETURN(const std::string_view token, Token());
  const bool good = IsNumber(token) || token == "true" || token == "false" || token == "null";
  if (!good) return WrongToken(token);
  at_ += token.size();
  return {};
}

Status JsonReader::End() {
  ASSIGN_OR_RETURN(const bool there, SkipBlanks());
  return there ? Status(NotJson()) : Status();
}

}  // namespace stoker
