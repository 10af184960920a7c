#include "io/memory/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "core/result/utf8.h"

namespace stoker {

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMostElements = int64_t{1} << 40;  // so that no size overflows

Error Damaged(size_t offset, std::string cause) {
  return {.code = Code::kDataLoss,
          .cause = std::move(cause),
          .offset = offset,
          .advice = "Write the array again, by numpy.save"};
}

Error CutOff(size_t offset, std::string cause) {
  Error error = Damaged(offset, std::move(cause));
  error.detail = Error::Detail::kTruncated;
  return error;
}

Error Unsupported(size_t offset, std::string cause, std::string advice) {
  return {.code = Code::kUnimplemented,
          .cause = std::move(cause),
          .offset = offset,
          .advice = std::move(advice)};
}

// The element types of a batch, by NumPy's kind and size. A byte has no order ('|').
std::optional<DType> DTypeNamed(std::string_view kind) {
  constexpr std::pair<std::string_view, DType> kNames[] = {
      {"b1", DType::kBool}, {"u1", DType::kU8},  {"i1", DType::kI8},  {"u2", DType::kU16},
      {"i2", DType::kI16},  {"u4", DType::kU32}, {"i4", DType::kI32}, {"u8", DType::kU64},
      {"i8", DType::kI64},  {"f2", DType::kF16}, {"f4", DType::kF32}, {"f8", DType::kF64}};
  for (const auto& [name, dtype] : kNames) {
    if (name == kind) return dtype;
  }
  return std::nullopt;
}

// Parses the dictionary of a header, from its beginning to its end.
class Dictionary {
 public:
  // `text` is in the file at `offset`.
  Dictionary(std::string_view text, size_t offset) : text_(text), offset_(offset) {}

  Status Parse(NpyHeader& header) {
    if (!Take('{')) return Wrong("it does not begin with a dictionary");
    while (!Take('}')) {
      TRY(ParseEntry(header));
      if (Take(',')) continue;
      if (!Take('}')) return Wrong("an entry has no end");
      break;
    }
    SkipBlanks();
    if (at_ != text_.size()) return Wrong("something follows its dictionary");
    if (!has_type_ || !has_order_ || !has_shape_) {
      return Wrong("its dictionary does not have the keys descr, fortran_order and shape");
    }
    if (is_fortran_ && header.dimension_count > 1) {
      return Unsupported(offset_, "the array is in Fortran order",
                         "Save it in C order: numpy.ascontiguousarray(array)");
    }
    return {};
  }

 private:
  Error Wrong(const std::string& what) const {
    return Damaged(offset_ + at_, "the .npy header is damaged: " + what);
  }

  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }

  bool Take(char letter) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }

  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  // Takes a string without escapes, in either quotes.
  std::optional<std::string_view> TakeString() {
    SkipBlanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return std::nullopt;
    const size_t end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view string = text_.substr(at_ + 1, end - at_ - 1);
    if (string.find('\\') != std::string_view::npos) return std::nullopt;
    at_ = end + 1;
    return string;
  }

  Status ParseEntry(NpyHeader& header) {
    const std::optional<std::string_view> key = TakeString();
    if (!key || !Take(':')) return Wrong("a key is missing");
    if (*key == "descr" && !std::exchange(has_type_, true)) return ParseType(header);
    if (*key == "fortran_order" && !std::exchange(has_order_, true)) return ParseOrder();
    if (*key == "shape" && !std::exchange(has_shape_, true)) return ParseShape(header);
    return Wrong("it has the key '" + Printable(key->substr(0, 40)) +
                 "', which is unknown or there twice");
  }

  Status ParseType(NpyHeader& header) {
    SkipBlanks();
    const size_t at = offset_ + at_;
    if (at_ < text_.size() && text_[at_] == '[') {
      return Unsupported(at, "the array has elements of several fields",
                         "Save each field as an array of its own");
    }
    const std::optional<std::string_view> type = TakeString();
    if (!type || type->size() < 2) return Wrong("descr is not a type");
    const std::string shown = "'" + Printable(type->substr(0, 40)) + "'";
    const char order = type->front();
    if ((*type)[1] == 'O') {
      return Unsupported(at,
                         "the array has Python objects (" + shown +
                             "), which would be read by running what the file says",
                         "Save numbers of one type and one shape");
    }
    const std::optional<DType> dtype = DTypeNamed(type->substr(1));
    if (!dtype) {
      return Unsupported(at, "the array has elements of type " + shown,
                         "Save bool, integers of 8 to 64 bits, float16, float32 or float64");
    }
    if (order == '>' && SizeOf(*dtype) > 1) {
      return Unsupported(at, "the array's numbers are big-endian (" + shown + ")",
                         "Save them in this order: array.astype(array.dtype.newbyteorder(\"<\"))");
    }
    if (order != '<' && order != '|' && order != '=' && order != '>') {
      return Wrong("descr is " + shown);
    }
    header.dtype = *dtype;
    return {};
  }

  Status ParseOrder() {
    if (TakeWord("False")) return {};
    is_fortran_ = TakeWord("True");
    return is_fortran_ ? Status() : Wrong("fortran_order is neither True nor False");
  }

  Status ParseShape(NpyHeader& header) {
    if (!Take('(')) return Wrong("shape is not a tuple");
    int64_t elements = 1;
    while (!Take(')')) {
      ASSIGN_OR_RETURN(const int64_t dimension, ParseDimension());
      if (header.dimension_count == NpyHeader::kMostDimensions) {
        return Unsupported(offset_ + at_, "the array has more than seven dimensions",
                           "Reshape it to at most seven dimensions");
      }
      header.dimensions[header.dimension_count++] = dimension;
      if (dimension > kMostElements / elements) {
        return Damaged(offset_ + at_, "the array has more elements than any memory");
      }
      elements *= dimension;
      const bool comma = Take(',');
      if (Take(')')) {
        if (header.dimension_count == 1 && !comma) return Wrong("shape is not a tuple");
        break;
      }
      if (!comma) return Wrong("shape is not a tuple of integers");
    }
    return {};
  }

  Result<int64_t> ParseDimension() {
    SkipBlanks();
    int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, failed] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (failed != std::errc() || value < 0) return Wrong("shape is not a tuple of integers");
    if (value == 0) {
      return Unsupported(offset_ + at_, "the array has no elements", "Leave the sample out");
    }
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  const std::string_view text_;
  const size_t offset_;
  size_t at_ = 0;
  bool has_type_ = false, has_order_ = false, has_shape_ = false;
  bool is_fortran_ = false;
};

}  // namespace

Result<NpyHeader> ParseNpyHeader(std::span<const uint8_t> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (!text.starts_with(kMagic)) {
    if (kMagic.starts_with(text)) return CutOff(text.size(), "the .npy header is cut off");
    return Damaged(0, "this is not an .npy file");
  }
  if (text.size() < 10) return CutOff(text.size(), "the .npy header is cut off");
  const int major = file[6], minor = file[7];
  if (major < 1 || major > 3 || minor != 0) {
    return Unsupported(6,
                       "the .npy file has version " + std::to_string(major) + "." +
                           std::to_string(minor) + ", and 1.0 to 3.0 are known",
                       "Save the array by numpy.save");
  }
  const size_t begin = major == 1 ? 10 : 12;
  if (text.size() < begin) return CutOff(text.size(), "the .npy header is cut off");
  size_t length = file[8] | size_t{file[9]} << 8;
  if (major > 1) length |= size_t{file[10]} << 16 | size_t{file[11]} << 24;
  if (length > kLongestNpyHeader) {
    return Damaged(8, "the .npy header is damaged: its length is " + std::to_string(length) +
                          ", and the longest is " + std::to_string(kLongestNpyHeader));
  }
  if (text.size() - begin < length) return CutOff(text.size(), "the .npy header is cut off");
  NpyHeader header{.data_begin = begin + length};
  TRY(Dictionary(text.substr(begin, length), begin).Parse(header));
  return header;
}

Status CopyNpy(std::span<const uint8_t> file, const Field& field, std::span<uint8_t> row) {
  ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(file));
  if (header.dtype != field.dtype || !std::ranges::equal(header.shape(), field.row_shape)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the array is " + DescribeRow(header.dtype, header.shape()) +
                          ", and that of the first sample " + DescribeRow(field),
                 .offset = 0,
                 .advice = "Give all arrays one type and shape, or pad them"};
  }
  const std::span<const uint8_t> data = file.subspan(header.data_begin);
  if (data.size() < row.size()) {
    return CutOff(file.size(), "the array is cut off: " + std::to_string(data.size()) + " of its " +
                                   std::to_string(row.size()) + " bytes are there");
  }
  if (const size_t more = data.size() - row.size(); more != 0) {
    return Damaged(
        file.size() - more,
        std::to_string(more) + Plural(more, " byte follows", " bytes follow") + " the array");
  }
  std::memcpy(row.data(), data.data(), row.size());
  if (field.dtype != DType::kBool) return {};
  const auto wrong = std::ranges::find_if(row, [](uint8_t byte) { return byte > 1; });
  if (wrong == row.end()) return {};
  const auto at = header.data_begin + static_cast<size_t>(wrong - row.begin());
  return Damaged(at, "a bool of the array is neither 0 nor 1");
}

}  // namespace stoker
