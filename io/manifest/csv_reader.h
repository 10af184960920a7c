// CsvReader: reads the records of a CSV file (RFC 4180).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"
#include "io/files/text_file.h"

namespace stoker {

// Lines end with LF or CR LF; the last one may end with the file. A quoted field may contain the
// delimiter, line ends, and quotes, which are doubled. Blanks belong to fields. Blank lines are
// skipped, as by pandas.
//
// Text that RFC 4180 does not allow is InvalidArgument with file, line and byte: a quote in a field
// that does not begin with one, text after a closing quote, a quote that is not closed, CR without
// LF, NUL, more than 4096 fields. For one thread.
class CsvReader {
 public:
  static constexpr size_t kMostFields = 4096;  // of a record

  CsvReader(TextFile file, char delimiter);

  // Replaces `fields` by those of the next record; returns false at the end of the file. The fields
  // are valid until the next call.
  Result<bool> Next(std::vector<std::string_view>& fields);

  // The beginning of the record that Next returned last.
  const TextPosition& position() const { return position_; }
  const std::string& path() const { return file_.path(); }

  // Returns an error that names that record.
  Error Refuse(const std::string& cause, std::string advice = "") const {
    return RefuseText(path(), position_, cause, std::move(advice));
  }

 private:
  // A field in the file's bytes: without the quotes around it, but with each quote in it doubled.
  struct Field {
    size_t begin = 0;
    size_t size = 0;
    bool doubled = false;  // whether there are quotes in it
  };

  Result<bool> Have(size_t at);
  bool IsBlank(char c) const;
  Result<bool> SkipBlankLines();
  Result<bool> ReadField(size_t& at);
  Status ReadPlain(size_t& at);
  Status ReadQuoted(size_t& at);
  Result<bool> EndField(size_t& at);
  Error RefuseAt(size_t at, const std::string& cause, std::string advice = "") const;
  std::string_view Undoubled(const Field& field);

  TextFile file_;
  char delimiter_;
  std::array<bool, 256> ends_plain_{};  // bytes that no plain field contains
  uint64_t line_ = 1;                   // at the position of reading
  TextPosition position_;
  std::vector<Field> found_;  // of the record
  std::string undoubled_;     // the fields of the record that had doubled quotes
};

}  // namespace stoker
