// PNM (PBM, PGM and PPM: P1 to P6 of Netpbm) by a parser of our own, with Pillow's rounding.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/result/try.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

bool IsSpace(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool IsDigit(uint8_t c) { return c >= '0' && c <= '9'; }

// Reads numbers that whitespace and comments separate.
class Text {
 public:
  Text(std::span<const uint8_t> bytes, size_t at) : bytes_(bytes), at_(at) {}

  size_t at() const { return at_; }

  Result<int> Number() {
    TRY(SkipSpace());
    constexpr int kMost = 99'999'999;
    int value = 0;
    const size_t first = at_;
    for (; at_ < bytes_.size() && IsDigit(bytes_[at_]); ++at_) {
      value = value * 10 + (bytes_[at_] - '0');
      if (value > kMost) return Damaged(ImageFormat::kPnm, "a number that is too large", first);
    }
    if (at_ == first) return Damaged(ImageFormat::kPnm, "no number where one must be", first);
    return value;
  }

  // A digit; the next one may follow at once.
  Result<int> Bit() {
    TRY(SkipSpace());
    if (bytes_[at_] != '0' && bytes_[at_] != '1') {
      return Damaged(ImageFormat::kPnm, "a pixel that is neither 0 nor 1", at_);
    }
    return bytes_[at_++] - '0';
  }

 private:
  Status SkipSpace() {
    while (at_ < bytes_.size() && (IsSpace(bytes_[at_]) || bytes_[at_] == '#')) {
      const bool comment = bytes_[at_] == '#';
      while (comment && at_ < bytes_.size() && bytes_[at_] != '\n' && bytes_[at_] != '\r') ++at_;
      if (at_ < bytes_.size()) ++at_;
    }
    if (at_ == bytes_.size()) return Truncated(ImageFormat::kPnm, at_);
    return {};
  }

  std::span<const uint8_t> bytes_;
  size_t at_;
};

struct Netpbm {
  Header header;
  char kind = '5';  // '1' to '6'
  int most = 1;     // the value of white
  size_t pixels_at = 0;

  bool bitmap() const { return kind == '1' || kind == '4'; }
  bool text() const { return kind < '4'; }
  size_t samples() const { return static_cast<size_t>(header.size.width * header.channels); }
  size_t RowBytes() const {
    if (bitmap()) return (samples() + 7) / 8;
    return samples() * (most > 255 ? 2 : 1);
  }
  int Scaled(int value) const {
    const double last = header.bits == 16 ? 65535 : 255;
    return static_cast<int>(std::nearbyint(std::min(value, most) / double(most) * last));
  }
};

Result<Netpbm> Read(std::span<const uint8_t> bytes) {
  if (bytes.size() < 3) return Truncated(ImageFormat::kPnm, bytes.size());
  Netpbm pnm;
  pnm.kind = static_cast<char>(bytes[1]);
  if (pnm.kind < '1' || pnm.kind > '6') {
    return Unsupported(ImageFormat::kPnm, std::string("the signature P") + pnm.kind, 1);
  }
  Text text(bytes, 2);
  ASSIGN_OR_RETURN(pnm.header.size.width, text.Number());
  ASSIGN_OR_RETURN(pnm.header.size.height, text.Number());
  if (pnm.header.size.width == 0 || pnm.header.size.height == 0) {
    return Damaged(ImageFormat::kPnm, "no pixels", 2);
  }
  if (!pnm.bitmap()) {
    ASSIGN_OR_RETURN(pnm.most, text.Number());
  }
  if (pnm.most < 1 || pnm.most > 65535) {
    return Damaged(ImageFormat::kPnm, "the largest value, which is " + std::to_string(pnm.most),
                   text.at());
  }
  pnm.header.channels = pnm.kind == '3' || pnm.kind == '6' ? 3 : 1;
  pnm.header.bits = pnm.most > 255 ? 16 : 8;
  pnm.pixels_at = text.at() + 1;  // after one character of whitespace
  const uint64_t rows = pnm.text() ? 0 : static_cast<uint64_t>(pnm.header.size.height);
  if (pnm.pixels_at > bytes.size() || rows > (bytes.size() - pnm.pixels_at) / pnm.RowBytes()) {
    return Truncated(ImageFormat::kPnm, bytes.size());
  }
  return pnm;
}

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Netpbm pnm, Read(bytes));
  return pnm.header;
}

void Put(int value, int bits, size_t i, uint8_t* row) {
  if (bits == 8) {
    row[i] = static_cast<uint8_t>(value);
    return;
  }
  const auto wide = static_cast<uint16_t>(value);
  std::memcpy(row + 2 * i, &wide, sizeof(wide));
}

Status DecodeText(std::span<const uint8_t> bytes, const Netpbm& pnm, const Rows& rows) {
  Text text(bytes, pnm.pixels_at);
  for (int y = 0; y < rows.end; ++y) {
    for (size_t i = 0; i < pnm.samples(); ++i) {
      ASSIGN_OR_RETURN(const int value, pnm.bitmap() ? text.Bit() : text.Number());
      if (!rows.Has(y)) continue;
      const int scaled = pnm.Scaled(pnm.bitmap() ? 1 - value : value);
      Put(scaled, pnm.header.bits, i, rows.Row(y));
    }
  }
  return {};
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Netpbm pnm, Read(bytes));
  TRY(CheckSame(ImageFormat::kPnm, header, pnm.header));
  if (pnm.text()) return DecodeText(bytes, pnm, rows);
  for (int y = rows.begin; y < rows.end; ++y) {
    const uint8_t* const from = &bytes[pnm.pixels_at + pnm.RowBytes() * static_cast<size_t>(y)];
    uint8_t* const to = rows.Row(y);
    if (pnm.most == 255) {
      std::memcpy(to, from, pnm.RowBytes());
      continue;
    }
    for (size_t i = 0; i < pnm.samples(); ++i) {
      int value = 0;
      if (pnm.bitmap()) {
        value = 1 - SampleAt(from, static_cast<int>(i), 1);
      } else {
        value = pnm.header.bits == 8 ? from[i] : from[2 * i] << 8 | from[2 * i + 1];
      }
      Put(pnm.Scaled(value), pnm.header.bits, i, to);
    }
  }
  return {};
}

}  // namespace

const Format kPnm{ReadHeader, Decode};

}  // namespace stoker::whole
