#include "transforms/jpeg/fast/frame_header.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "transforms/decode/exif.h"

namespace stoker::jpeg {

namespace {

constexpr int kMaxPixels = 65500;  // per side: libjpeg-turbo's limit

using Segment = std::span<const uint8_t>;  // the bytes after a marker and its length

int U16(const uint8_t* at) { return at[0] << 8 | at[1]; }

class Parser {
 public:
  Parser(std::span<const uint8_t> bytes, FrameHeader& header, Process accepted)
      : bytes_(bytes), header_(header), accepted_(accepted) {}

  Fallback Run() {
    if (bytes_.size() < 2 || U16(bytes_.data()) != (0xFF00 | kSoi)) return Fallback::kHeader;
    size_t at = 2;
    while (bytes_.size() - at >= 4) {
      const uint8_t* const marker = bytes_.data() + at;
      const auto length = static_cast<size_t>(U16(marker + 2));
      if (marker[0] != 0xFF || length < 2 || length + 2 > bytes_.size() - at) break;
      const Segment segment = bytes_.subspan(at + 4, length - 2);
      at += length + 2;
      if (marker[1] == kSos) {
        header_.scan_marker = at - length - 2;
        header_.scan_offset = at;
        return ReadScan(segment);
      }
      if (Fallback why = Read(marker[1], segment); why != Fallback::kNone) return why;
    }
    return Fallback::kHeader;
  }

 private:
  Fallback Read(uint8_t marker, Segment segment) {
    switch (marker) {
      case kSof0:
      case kSof1:
        return ReadFrame(segment);
      case kSof2:
        header_.process = Process::kProgressive;
        return accepted_ == Process::kProgressive ? ReadFrame(segment) : Fallback::kProcess;
      case kDht:
        return ReadHuffman(segment, header_.dc, header_.ac) ? Fallback::kNone : Fallback::kHeader;
      case kDqt:
        return ReadQuantisation(segment);
      case kDri:
        if (segment.size() != 2) return Fallback::kHeader;
        header_.restart_interval = U16(segment.data());
        return Fallback::kNone;
      case kApp0:
        jfif_ |= segment.size() >= 14 && std::memcmp(segment.data(), "JFIF", 5) == 0;
        return Fallback::kNone;
      case kApp1:
        app1_.Take(segment);
        return Fallback::kNone;
      case kApp14:
        if (segment.size() >= 12 && std::memcmp(segment.data(), "Adobe", 5) == 0) {
          adobe_transform_ = segment[11];
        }
        return Fallback::kNone;
      default:
        if (marker == kComment || (marker >= kApp0 && marker <= kApp15)) return Fallback::kNone;
        if (marker >= kSof2 && marker <= kSof15) return Fallback::kProcess;
        return Fallback::kHeader;
    }
  }

  Fallback ReadFrame(Segment s) {
    if (header_.components != 0 || s.size() < 6) return Fallback::kHeader;
    if (s[0] != 8) return Fallback::kProcess;
    header_.size = {U16(&s[3]), U16(&s[1])};
    const int n = s[5];
    if (n != 1 && n != 3) return n == 0 ? Fallback::kHeader : Fallback::kColor;
    const int longest = std::max(header_.size.width, header_.size.height);
    if (std::min(header_.size.width, header_.size.height) == 0 || longest > kMaxPixels ||
        s.size() != 6 + 3 * static_cast<size_t>(n)) {
      return Fallback::kHeader;
    }
    header_.components = n;
    for (int i = 0; i < n; ++i) {
      const uint8_t* const at = &s[6 + 3 * static_cast<size_t>(i)];
      Component& c = header_.component[static_cast<size_t>(i)];
      c.id = at[0];
      c.columns = at[1] >> 4;
      c.rows = at[1] & 15;
      c.quantisation = at[2];
      if (c.columns == 0 || c.rows == 0 || std::max(c.columns, c.rows) > 4) {
        return Fallback::kHeader;
      }
    }
    return Fallback::kNone;
  }

  Fallback ReadQuantisation(Segment s) {
    while (!s.empty()) {
      const int precision = s[0] >> 4;  // 0: bytes, 1: two bytes
      const size_t table = s[0] & 15, bytes = precision == 0 ? 1 : 2;
      if (precision > 1 || table > 3 || s.size() < 1 + 64 * bytes) return Fallback::kHeader;
      for (size_t k = 0; k < 64; ++k) {
        const uint8_t* const at = &s[1 + k * bytes];
        header_.quantisation[table][kZigZag[k]] =
            static_cast<uint16_t>(precision == 0 ? at[0] : U16(at));
      }
      have_quantisation_ |= 1u << table;
      s = s.subspan(1 + 64 * bytes);
    }
    return Fallback::kNone;
  }

  Fallback ReadScan(Segment s) {
    const auto n = static_cast<size_t>(header_.components);
    if (n == 0 || s.empty()) return Fallback::kHeader;
    if (header_.process == Process::kProgressive) return CheckFrame();
    if (s[0] != n) return Fallback::kScan;
    if (s.size() != 4 + 2 * n) return Fallback::kHeader;
    // First coefficient, last coefficient and approximation must be those of a sequential scan.
    if (s[1 + 2 * n] != 0 || s[2 + 2 * n] != 63 || s[3 + 2 * n] != 0) return Fallback::kHeader;
    for (size_t i = 0; i < n; ++i) {
      Component& c = header_.component[i];
      if (s[1 + 2 * i] != c.id) return Fallback::kHeader;
      c.dc = s[2 + 2 * i] >> 4;
      c.ac = s[2 + 2 * i] & 15;
    }
    const Fallback why = CheckTables();
    return why == Fallback::kNone ? CheckFrame() : why;
  }

  Fallback CheckFrame() {
    header_.orientation = app1_.orientation();
    for (Fallback why : {CheckQuantisation(), CheckColor(), CheckSampling()}) {
      if (why != Fallback::kNone) return why;
    }
    return Fallback::kNone;
  }

  Fallback CheckTables() const {
    for (int i = 0; i < header_.components; ++i) {
      const Component& c = header_.component[static_cast<size_t>(i)];
      if (c.dc > 3 || c.ac > 3) return Fallback::kTables;
      const auto dc = static_cast<size_t>(c.dc), ac = static_cast<size_t>(c.ac);
      if (header_.dc[dc] == nullptr || header_.ac[ac] == nullptr) return Fallback::kTables;
    }
    return Fallback::kNone;
  }

  Fallback CheckQuantisation() const {
    for (int i = 0; i < header_.components; ++i) {
      const Component& c = header_.component[static_cast<size_t>(i)];
      if (c.quantisation > 3) return Fallback::kTables;
      const auto q = static_cast<size_t>(c.quantisation);
      if ((have_quantisation_ >> q & 1) == 0 || header_.quantisation[q][0] == 0) {
        return Fallback::kTables;
      }
    }
    return Fallback::kNone;
  }

  // Follows libjpeg's guess: JFIF's marker first, then Adobe's, then the components' names.
  Fallback CheckColor() const {
    const auto& c = header_.component;
    if (header_.components == 1 || jfif_) return CheckNames();
    if (adobe_transform_) return *adobe_transform_ == 1 ? CheckNames() : Fallback::kColor;
    if (c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B') return Fallback::kColor;
    return CheckNames();
  }

  Fallback CheckNames() const {
    const auto& c = header_.component;
    const bool unique =
        header_.components == 1 || (c[0].id != c[1].id && c[0].id != c[2].id && c[1].id != c[2].id);
    return unique ? Fallback::kNone : Fallback::kHeader;
  }

  Fallback CheckSampling() const {
    const auto& c = header_.component;
    if (header_.components == 1) return Fallback::kNone;
    for (size_t i : {1, 2}) {
      if (c[i].columns != 1 || c[i].rows != 1) return Fallback::kSampling;
    }
    if (c[0].columns > 2 || c[0].rows > 2) return Fallback::kSampling;
    if (c[0].columns == 2 && header_.size.width <= 4) return Fallback::kNarrow;
    return Fallback::kNone;
  }

  const std::span<const uint8_t> bytes_;
  FrameHeader& header_;
  const Process accepted_;
  unsigned have_quantisation_ = 0;  // a bit for each table
  bool jfif_ = false;
  std::optional<int> adobe_transform_;
  App1Segments app1_;
};

}  // namespace

bool ReadHuffman(std::span<const uint8_t> segment, std::array<HuffmanSpec, 4>& dc,
                 std::array<HuffmanSpec, 4>& ac) {
  while (!segment.empty()) {
    const size_t kind = segment[0] >> 4, table = segment[0] & 15;  // kind 0: DC, 1: AC
    if (kind > 1 || table > 3 || segment.size() < 17) return false;
    size_t symbols = 0;
    for (size_t i = 1; i <= 16; ++i) symbols += segment[i];
    if (symbols > 256 || segment.size() < 17 + symbols) return false;
    (kind == 0 ? dc : ac)[table] = &segment[1];
    segment = segment.subspan(17 + symbols);
  }
  return true;
}

Fallback ParseHeader(std::span<const uint8_t> bytes, FrameHeader& header, Process accepted) {
  header = {};
  return Parser(bytes, header, accepted).Run();
}

}  // namespace stoker::jpeg
