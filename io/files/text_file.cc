#include "io/files/text_file.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/result/try.h"
#include "io/files/lfs_pointer.h"

namespace stoker {

namespace {

constexpr size_t kMostTogether = size_t{16} << 20;

}  // namespace

Error RefuseText(const std::string& path, const TextPosition& position, const std::string& cause,
                 std::string advice) {
  return {.code = Code::kInvalidArgument,
          .cause = "line " + std::to_string(position.line) + ": " + cause,
          .file = path,
          .offset = position.offset,
          .advice = std::move(advice)};
}

TextFile::TextFile(std::string path, std::string text)
    : path_(std::move(path)), buffer_(std::move(text)), end_(buffer_.size()) {}

Result<TextFile> TextFile::Open(const std::string& path, size_t block) {
  TextFile file;
  file.path_ = path;
  file.block_ = block;
  ASSIGN_OR_RETURN(InputFile opened, InputFile::Open(path));
  file.file_.emplace(std::move(opened));
  TRY(RefuseLfsPointer(*file.file_));  // text, too: parsers would blame its first line
  TRY(file.SkipByteOrderMark());
  return file;
}

Status TextFile::SkipByteOrderMark() {
  for (bool more = true; more && bytes().size() < 3;) {
    ASSIGN_OR_RETURN(more, Grow());
  }
  if (bytes().starts_with("\xFF\xFE") || bytes().starts_with("\xFE\xFF")) {
    return RefuseText(path_, {}, "the text is UTF-16", "Save it as UTF-8");
  }
  if (bytes().starts_with("\xEF\xBB\xBF")) Skip(3);
  return {};
}

Result<bool> TextFile::Grow() {
  if (!file_) return false;
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  if (end_ >= kMostTogether) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "more than 16 MiB belong together from here on",
                 .file = path_,
                 .offset = offset_,
                 .advice = "Look for a quote that is not closed, or for a file that is not text",
                 .detail = Error::Detail::kOverLimits};
  }
  if (buffer_.size() - end_ < block_) buffer_.resize(std::max(end_ + block_, end_ * 2));
  ASSIGN_OR_RETURN(
      const size_t got,
      file_->ReadAt(offset_ + end_, {reinterpret_cast<uint8_t*>(buffer_.data()) + end_, block_}));
  end_ += got;
  return got > 0;
}

Result<bool> TextFile::GrowToEnd(size_t most) {
  for (bool more = true; more;) {
    if (bytes().size() >= most) return false;
    ASSIGN_OR_RETURN(more, Grow());
  }
  return true;
}

Status TextFile::ForEachLine(
    const std::function<Status(const TextPosition&, std::string_view)>& use) {
  for (TextPosition position;; ++position.line) {
    size_t end = bytes().find('\n');
    for (bool more = true; more && end == std::string_view::npos;) {
      const size_t seen = bytes().size();
      ASSIGN_OR_RETURN(more, Grow());
      end = bytes().find('\n', seen);
    }
    if (bytes().empty()) return {};
    const std::string_view line = bytes().substr(0, end);
    constexpr std::string_view kBlanks = " \t\r";
    const size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
    position.offset = offset() + begin;
    TRY(use(position, line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin)));
    Skip(std::min(line.size() + 1, bytes().size()));
  }
}

}  // namespace stoker
