// JsonReader: reads a JSON document from front to back, without holding it in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/result/result.h"
#include "core/result/try.h"
#include "io/files/text_file.h"

namespace stoker {

// The words of errors that depend on the kind of document.
struct JsonWords {
  const char* truncated = "the JSON is truncated: it ends here";  // a cause; the others are advice
  const char* write_again = "Get the file again, or write it again";
  const char* write_json = "Write the file by a program, as Python's json does";
  const char* write_number = "Replace it with a number, or remove the value that has it";
};

// The caller walks through the document and takes or skips each value:
//
//   TRY(reader.ForEachMember([&]() -> Status {
//     if (reader.key() != "id") return reader.Skip();
//     ASSIGN_OR_RETURN(id, reader.Integer("'id'"));
//     return {};
//   }));
//
// Values that are taken are checked to be JSON. Of values that are skipped, only quotes and
// brackets are checked, which is fast: about 1 GB/s.
//
// Errors are InvalidArguments with the file and the offset of the value that is not as asked for,
// or of the byte that is not JSON; and those of TextFile. After an error the reader must not be
// used. For one thread.
class JsonReader {
 public:
  enum class Type : uint8_t { kNull, kBool, kNumber, kString, kObject, kList };
  static constexpr size_t kMostLevels = 1024;  // of lists and objects in a value that is skipped

  explicit JsonReader(TextFile file, const JsonWords& words = {})
      : file_(std::move(file)), words_(words) {
    TakeBytes();
  }
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  const std::string& path() const { return file_.path(); }
  // The offset in the file. After a call of Peek, it is that of the value.
  uint64_t offset() const { return file_.offset() + static_cast<size_t>(at_ - begin_); }

  // Returns the type of the next value, by its first byte; null, true and false are complete.
  Result<Type> Peek();

  // Calls `read` for each member of the object that comes next, whose key is key() until another
  // key is read. `read` takes or skips the member's value; its first error is returned.
  template <typename F>
  Status ForEachMember(const F& read);
  const std::string& key() const { return key_; }
  // Does the same for each value of the list that comes next.
  template <typename F>
  Status ForEachValue(const F& read);

  // `what`: the value's name in messages, like "'id'".
  Result<double> Number(const char* what);  // finite; 0 if it is too small
  Result<bool> IsInteger();  // whether the next value, a number, is written as an integer
  Result<int64_t> Integer(const char* what);  // also written as 7.0, if it is less than 2^53
  Result<bool> Bool(const char* what);
  // Replaces `text` by the string, which is UTF-8.
  Status String(const char* what, std::string& text);
  Status Skip();

  // Checks that the document ends here.
  Status End();

  // Returns an error at the offset.
  Error Refuse(std::string cause, std::string advice = "") const;

 private:
  Status Enter(char opening);
  Result<bool> NextKey();
  Result<bool> Next(char closing);
  void TakeBytes();
  Result<bool> Refill();
  bool FindByte();
  Result<bool> SkipBlanks();
  Status ToValue();
  Result<std::string_view> Token();
  Status Text(std::string& text);
  Status Escape(std::string& text);
  Result<uint32_t> FourDigits();
  Status SkipText();
  Status SkipNested();
  Error HalfOfPair(uint32_t half, uint64_t offset) const;
  Error Truncated() const;
  Error NotJson() const;
  Error WrongToken(std::string_view token) const;
  Error OtherType(const char* what, const char* wanted);

  TextFile file_;
  JsonWords words_;
  const char* begin_ = nullptr;  // of the bytes in memory
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  bool first_ = false;  // whether the last byte read was an opening bracket
  std::string key_;
};

template <typename F>
Status JsonReader::ForEachMember(const F& read) {
  TRY(Enter('{'));
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, NextKey());
    if (!more) return {};
    TRY(read());
  }
}

template <typename F>
Status JsonReader::ForEachValue(const F& read) {
  TRY(Enter('['));
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, Next(']'));
    if (!more) return {};
    TRY(read());
  }
}

}  // namespace stoker
