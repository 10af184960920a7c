#include "transforms/png/rows.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "core/result/try.h"
#include "transforms/png/errors.h"
#include "transforms/png/inflater.h"
#include "transforms/png/unfilter.h"

namespace stoker::png {
namespace {

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + kRowPadding - 1) / kRowPadding * kRowPadding;
}
constexpr size_t kInflaterBytes = RoundUp(sizeof(Inflater));
static_assert(alignof(Inflater) <= kRowPadding && std::is_trivially_destructible_v<Inflater>);

}  // namespace

Growth RowReader::Room(const Header& header) {
  return {memory_, kInflaterBytes + 2 * Stride(header)};
}

// Zeros lie before a row; they are the pixel before its first one.
size_t RowReader::Stride(const Header& header) {
  const auto bytes = static_cast<size_t>(header.RowBytes(header.size.width));
  return RoundUp(2 * kRowPadding + bytes);
}

void RowReader::Start(std::span<const uint8_t> file, const Header& header, const Layout& layout,
                      uint64_t total) {
  header_ = header;
  left_ = total;
  pixel_ = static_cast<size_t>(std::max(header.channels() * header.bit_depth / 8, 1));
  started_ = 0;
  inflater_ = new (memory_.data()) Inflater;
  row_ = memory_.data() + kInflaterBytes + kRowPadding;
  above_ = row_ + Stride(header);
  std::memset(row_ - kRowPadding, 0, kRowPadding);
  std::memset(above_ - kRowPadding, 0, kRowPadding);
  inflater_->Start(file, layout.data, total);
  StartPass(header.size.width);
}

void RowReader::StartPass(int columns) {
  row_bytes_ = static_cast<size_t>(header_.RowBytes(columns));
  std::memset(row_, 0, row_bytes_);
}

Result<const uint8_t*> RowReader::Next(int columns) {
  std::swap(row_, above_);
  ASSIGN_OR_RETURN(const std::span<const uint8_t> first, inflater_->Next(1));
  --left_;
  ++started_;
  if (first[0] >= kFilters) {
    return Damaged("the filter of its row " + std::to_string(started_) + ", as stored, is unknown",
                   inflater_->offset());
  }
  const auto filter = static_cast<Filter>(first[0]);
  const auto wanted = static_cast<size_t>(header_.RowBytes(columns));
  for (size_t at = 0; at < row_bytes_ && left_ > 0;) {
    const auto most = static_cast<size_t>(std::min<uint64_t>(left_, row_bytes_ - at));
    ASSIGN_OR_RETURN(const std::span<const uint8_t> part, inflater_->Next(most));
    if (at < wanted) {
      const size_t n = std::min(part.size(), wanted - at);
      Unfilter(filter, pixel_, part.first(n), above_ + at, row_ + at);
    }
    at += part.size();
    left_ -= part.size();
  }
  return row_;
}

}  // namespace stoker::png
