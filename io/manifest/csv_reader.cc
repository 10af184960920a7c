#include "io/manifest/csv_reader.h"

#include <algorithm>
#include <utility>

#include "core/result/try.h"

namespace stoker {

CsvReader::CsvReader(TextFile file, char delimiter)
    : file_(std::move(file)), delimiter_(delimiter) {
  for (const char c : {delimiter, '\n', '\r', '"', '\0'}) {
    ends_plain_[static_cast<uint8_t>(c)] = true;
  }
}

Result<bool> CsvReader::Next(std::vector<std::string_view>& fields) {
  ASSIGN_OR_RETURN(const bool there, SkipBlankLines());
  if (!there) return false;
  position_ = {.line = line_, .offset = file_.offset()};
  found_.clear();
  size_t at = 0;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(more, ReadField(at));
  }
  fields.clear();
  undoubled_.clear();
  undoubled_.reserve(at);  // so that the views stay valid
  for (const Field& field : found_) {
    fields.push_back(field.doubled ? Undoubled(field)
                                   : file_.bytes().substr(field.begin, field.size));
  }
  file_.Skip(at);
  return true;
}

// Returns whether the byte with this index exists; it is then in memory.
Result<bool> CsvReader::Have(size_t at) {
  while (at >= file_.bytes().size()) {
    ASSIGN_OR_RETURN(const bool more, file_.Grow());
    if (!more) return false;
  }
  return true;
}

bool CsvReader::IsBlank(char c) const { return c != delimiter_ && (c == ' ' || c == '\t'); }

// Returns false if no line follows that has more than blanks.
Result<bool> CsvReader::SkipBlankLines() {
  for (;;) {
    size_t at = 0;
    ASSIGN_OR_RETURN(bool there, Have(at));
    while (there && IsBlank(file_.bytes()[at])) {
      ASSIGN_OR_RETURN(there, Have(++at));
    }
    if (!there) return false;
    (void)Have(at + 1);  // an error comes again with the field
    const std::string_view rest = file_.bytes().substr(at);
    const size_t end = rest.starts_with('\n') ? 1 : rest.starts_with("\r\n") ? 2 : 0;
    if (end == 0) return true;
    file_.Skip(at + end);
    ++line_;
  }
}

// Returns false if the field was the last one of the record.
Result<bool> CsvReader::ReadField(size_t& at) {
  if (found_.size() == kMostFields) {
    return Refuse("more than " + std::to_string(kMostFields) + " fields");
  }
  ASSIGN_OR_RETURN(const bool there, Have(at));
  if (there && file_.bytes()[at] == '"') {
    TRY(ReadQuoted(at));
  } else {
    TRY(ReadPlain(at));
  }
  return EndField(at);
}

Status CsvReader::ReadPlain(size_t& at) {
  const size_t begin = at;
  for (bool there = true; there;) {
    const std::string_view bytes = file_.bytes();
    while (at < bytes.size() && !ends_plain_[static_cast<uint8_t>(bytes[at])]) ++at;
    if (at < bytes.size()) break;
    ASSIGN_OR_RETURN(there, Have(at));
  }
  if (at < file_.bytes().size() && file_.bytes()[at] == '"') {
    return RefuseAt(at, "a quote inside a field that does not begin with one",
                    "Put the field into quotes, and double those inside it");
  }
  found_.push_back({.begin = begin, .size = at - begin});
  return {};
}

Status CsvReader::ReadQuoted(size_t& at) {
  const size_t opening = at;
  const uint64_t line = line_;
  Field field{.begin = opening + 1};
  for (++at;; ++at) {
    const std::string_view bytes = file_.bytes();
    const size_t quote = bytes.find('"', at);
    const size_t end = std::min(quote, bytes.size());
    const std::string_view part = bytes.substr(at, end - at);
    const size_t nul = part.find('\0');
    line_ += static_cast<uint64_t>(std::ranges::count(part.substr(0, nul), '\n'));
    if (nul != std::string_view::npos) return RefuseAt(at + nul, "a NUL: this is not text");
    at = end;
    ASSIGN_OR_RETURN(const bool there, Have(at));
    if (!there) {
      line_ = line;
      return RefuseAt(opening, "the quote that opens here is not closed");
    }
    if (quote == std::string_view::npos) {
      --at;  // looks at the new bytes next
      continue;
    }
    ASSIGN_OR_RETURN(const bool behind, Have(at + 1));
    if (!behind || file_.bytes()[at + 1] != '"') break;
    field.doubled = true;
    ++at;
  }
  field.size = at - field.begin;
  found_.push_back(field);
  ++at;
  return {};
}

// Precondition: `at` is the byte after a field. Returns false if it ended the record.
Result<bool> CsvReader::EndField(size_t& at) {
  ASSIGN_OR_RETURN(const bool there, Have(at));
  if (!there) return false;
  const char c = file_.bytes()[at];
  if (c == delimiter_) {
    ++at;
    return true;
  }
  if (c == '\0') return RefuseAt(at, "a NUL: this is not text");
  if (c == '\r') {
    ASSIGN_OR_RETURN(const bool behind, Have(at + 1));
    if (!behind || file_.bytes()[at + 1] != '\n') {
      return RefuseAt(at, "a carriage return without a line feed",
                      "Lines end with LF or CR LF; put the field into quotes if it belongs to it");
    }
    ++at;
  } else if (c != '\n') {
    return RefuseAt(at, "text after the closing quote of a field",
                    "Double the quotes that belong to a field");
  }
  ++at;
  ++line_;
  return false;
}

Error CsvReader::RefuseAt(size_t at, const std::string& cause, std::string advice) const {
  return RefuseText(path(), {.line = line_, .offset = file_.offset() + at}, cause,
                    std::move(advice));
}

std::string_view CsvReader::Undoubled(const Field& field) {
  const size_t begin = undoubled_.size();
  const std::string_view text = file_.bytes().substr(field.begin, field.size);
  for (size_t i = 0; i < text.size(); ++i) {
    undoubled_ += text[i];
    if (text[i] == '"') ++i;
  }
  return std::string_view(undoubled_).substr(begin);
}

}  // namespace stoker
