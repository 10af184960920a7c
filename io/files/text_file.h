// TextFile: reads a file of text from front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result/result.h"
#include "io/files/input_file.h"

namespace stoker {

// A position in a text, for messages.
struct TextPosition {
  uint64_t line = 1;    // from 1
  uint64_t offset = 0;  // in bytes from the start of the file
};

// Returns an InvalidArgument like "train.csv at byte 120: line 7: …".
Error RefuseText(const std::string& path, const TextPosition& position, const std::string& cause,
                 std::string advice = "");

// Holds the bytes that are being parsed, and reads more on request. Memory: the longest part that
// is parsed at once, plus `block` bytes. Move-only; for one thread.
class TextFile {
 public:
  static constexpr size_t kBlock = size_t{1} << 18;

  // Skips a byte order mark of UTF-8. InvalidArgument: not a file, or a byte order mark of UTF-16;
  // NotFound and other errors of InputFile::Open.
  static Result<TextFile> Open(const std::string& path, size_t block = kBlock);
  // Makes a text in memory, whose name in messages is `path`.
  TextFile(std::string path, std::string text);

  TextFile(TextFile&& other) noexcept = default;
  TextFile& operator=(TextFile&&) = delete;
  ~TextFile() = default;

  const std::string& path() const { return path_; }
  // The bytes in memory, from the position on. Grow invalidates the view.
  std::string_view bytes() const { return {buffer_.data() + begin_, end_ - begin_}; }
  uint64_t offset() const { return offset_; }  // of bytes() in the file

  // Moves the position. Precondition: bytes <= bytes().size().
  void Skip(size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }

  // Makes bytes() longer; returns false at the end of the file. A failed read is an error that
  // names the file, as is ResourceExhausted if more than 16 MiB would be held.
  Result<bool> Grow();
  // Grows until bytes() has the rest of the file, and returns true; or until it has `most` bytes
  // and the file may have more, and returns false. Precondition: most < 16 MiB.
  Result<bool> GrowToEnd(size_t most);

  // Skips to the end of the file, and calls `use` with each line on the way, without blanks at its
  // ends. Returns its first error.
  Status ForEachLine(const std::function<Status(const TextPosition&, std::string_view)>& use);

 private:
  TextFile() = default;
  Status SkipByteOrderMark();

  std::string path_;
  std::optional<InputFile> file_;  // nullopt if everything is in memory
  size_t block_ = kBlock;
  std::string buffer_;
  size_t begin_ = 0;  // of bytes() in the buffer
  size_t end_ = 0;
  uint64_t offset_ = 0;
};

}  // namespace stoker
