#include "transforms/jpeg/fast/index/crop_index.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/hash/hash.h"

namespace stoker::jpeg {

namespace {

// The header of a packed index.
struct Prefix {
  uint64_t checksum = 0;  // of all that follows it
  uint64_t content = 0;   // ContentHash of the photograph
  uint32_t file_bytes = 0;
  uint8_t interval = 0;
  uint8_t position_bits = 0;
  std::array<uint8_t, 3> dc_bits{};
  uint8_t format = 0;  // kFormat
  std::array<int16_t, 3> min_dc{};
};
static_assert(sizeof(Prefix) == 32 && std::endian::native == std::endian::little);

constexpr uint8_t kFormat = 1;

constexpr int kMaxBits = 40;  // bits per number: positions up to 4 GB, and room to shift by 7

// Identifies a file by its size, the last KB of its header (where the tables are) and sixteen
// pieces of its data, the last one at its end: recompressing, cropping or truncating a file changes
// them.
uint64_t ContentHash(std::span<const uint8_t> file, size_t scan_offset) {
  constexpr size_t kHeader = 1024, kPieces = 16, kPiece = 64;
  const size_t header = std::min(scan_offset, kHeader);
  uint64_t hash = Hash64(file.subspan(scan_offset - header, header), file.size());
  const std::span<const uint8_t> data = file.subspan(scan_offset);
  if (data.size() <= kPieces * kPiece) return Hash64(data, hash);
  const size_t room = data.size() - kPiece;
  for (size_t i = 0; i < kPieces; ++i) {
    hash = Hash64(data.subspan(room * i / (kPieces - 1), kPiece), hash);
  }
  return hash;
}

uint64_t Checksum(std::span<const uint8_t> packed) {
  return Hash64(packed.subspan(sizeof(Prefix::checksum)));
}

constexpr size_t kPieceBytes = CropIndex::kPieceBytes;

size_t PiecesOf(size_t file_bytes) { return (file_bytes + kPieceBytes - 1) / kPieceBytes; }

uint32_t PieceChecksum(std::span<const uint8_t> file, size_t piece) {
  const std::span<const uint8_t> from = file.subspan(piece * kPieceBytes);
  return static_cast<uint32_t>(Hash64(from.first(std::min(from.size(), kPieceBytes))));
}

void AppendPieceChecksums(std::span<const uint8_t> file, std::vector<uint8_t>& packed) {
  for (size_t piece = 0; piece < PiecesOf(file.size()); ++piece) {
    const uint32_t checksum = PieceChecksum(file, piece);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(&checksum);
    packed.insert(packed.end(), bytes, bytes + sizeof(checksum));
  }
}

int BitsFor(int64_t most) { return std::bit_width(static_cast<uint64_t>(most)); }

// Writes numbers one after another, the lowest bit first.
class BitWriter {
 public:
  explicit BitWriter(std::vector<uint8_t>& bytes) : bytes_(bytes) {}

  void Write(int64_t value, int bits) {
    waiting_ |= static_cast<uint64_t>(value) << count_;
    for (count_ += bits; count_ >= 8; count_ -= 8, waiting_ >>= 8) {
      bytes_.push_back(static_cast<uint8_t>(waiting_));
    }
  }
  void Flush() {
    if (count_ > 0) bytes_.push_back(static_cast<uint8_t>(waiting_));
  }

 private:
  std::vector<uint8_t>& bytes_;
  uint64_t waiting_ = 0;
  int count_ = 0;
};

struct Range {
  int32_t least = 0, most = 0;
};

Range RangeOf(std::span<const EntryPoint> entry_points, size_t component) {
  Range range{entry_points[0].dc[component], entry_points[0].dc[component]};
  for (const EntryPoint& entry_point : entry_points) {
    range.least = std::min(range.least, entry_point.dc[component]);
    range.most = std::max(range.most, entry_point.dc[component]);
  }
  return range;
}

}  // namespace

IndexShape::IndexShape(const FrameHeader& header, int each) : interval(each) {
  const auto units = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  const int64_t across = units(header.size.width, 8 * header.mcu_columns());
  mcus = across * units(header.size.height, 8 * header.mcu_rows());
  restarts = header.restart_interval != 0;
  stride = restarts ? header.restart_interval : across;
  per_stride = units(stride, interval);
}

std::vector<uint8_t> PackCropIndex(std::span<const uint8_t> file, const FrameHeader& header,
                                   const IndexShape& shape,
                                   std::span<const EntryPoint> entry_points) {
  if (file.size() > std::numeric_limits<uint32_t>::max()) return {};
  Prefix prefix;
  prefix.content = ContentHash(file, header.scan_offset);
  prefix.file_bytes = static_cast<uint32_t>(file.size());
  prefix.interval = static_cast<uint8_t>(shape.interval);
  prefix.format = kFormat;
  prefix.position_bits = static_cast<uint8_t>(BitsFor(entry_points.back().bit));
  for (size_t c = 0; c < 3; ++c) {
    const Range range = RangeOf(entry_points, c);
    if (range.least < std::numeric_limits<int16_t>::min() ||
        range.most > std::numeric_limits<int16_t>::max()) {
      return {};
    }
    prefix.min_dc[c] = static_cast<int16_t>(range.least);
    prefix.dc_bits[c] = static_cast<uint8_t>(BitsFor(range.most - range.least));
  }

  std::vector<uint8_t> packed(sizeof(Prefix));
  BitWriter bits(packed);
  for (const EntryPoint& entry_point : entry_points)
    bits.Write(entry_point.bit, prefix.position_bits);
  for (size_t c = 0; c < 3; ++c) {
    for (const EntryPoint& entry_point : entry_points) {
      bits.Write(entry_point.dc[c] - prefix.min_dc[c], prefix.dc_bits[c]);
    }
  }
  bits.Flush();
  AppendPieceChecksums(file, packed);
  std::memcpy(packed.data(), &prefix, sizeof(prefix));
  prefix.checksum = Checksum(packed);
  std::memcpy(packed.data(), &prefix, sizeof(prefix));
  return packed;
}

CropIndex::Match CropIndex::Open(std::span<const uint8_t> packed, std::span<const uint8_t> file,
                                 const FrameHeader& header) {
  Prefix prefix;
  checksums_ = {};
  // An MCU takes at least two bits, and an entry point at most 83: a longer index is not worth a
  // checksum.
  if (packed.size() < sizeof(prefix) || packed.size() / 64 > file.size()) return Match::kDamaged;
  std::memcpy(&prefix, packed.data(), sizeof(prefix));
  if (prefix.checksum != Checksum(packed)) return Match::kDamaged;
  if (prefix.file_bytes != file.size() || prefix.content != ContentHash(file, header.scan_offset)) {
    return Match::kStale;
  }
  if (prefix.interval == 0) return Match::kDamaged;
  packed_ = packed;
  shape_ = IndexShape(header, prefix.interval);
  int64_t end = 8 * int64_t{sizeof(prefix)};
  const auto take = [&](int bits) {
    const int64_t begin = end;
    end += bits * shape_.entry_points();
    return Field{begin, bits};
  };
  bit_ = take(prefix.position_bits);
  for (size_t c = 0; c < 3; ++c) {
    dc_[c] = take(prefix.dc_bits[c]);
    min_dc_[c] = prefix.min_dc[c];
  }
  const auto checksums = static_cast<size_t>((end + 7) / 8);
  const bool fits = prefix.position_bits <= kMaxBits && prefix.format == kFormat &&
                    *std::max_element(prefix.dc_bits.begin(), prefix.dc_bits.end()) <= 16 &&
                    checksums + PiecesOf(file.size()) * sizeof(uint32_t) == packed.size();
  // The first entry point is known, which determines `min_dc`, to which all are relative.
  if (!fits || At(0) != EntryPoint{}) return Match::kDamaged;
  checksums_ = packed.subspan(checksums);
  file_bytes_ = file.size();
  scan_offset_ = header.scan_offset;
  return Match::kUsable;
}

bool CropIndex::IsOpenFor(std::span<const uint8_t> file) const {
  return !checksums_.empty() && file.size() == file_bytes_;
}

bool CropIndex::PiecesAreIntact(std::span<const uint8_t> file, size_t first, size_t end) const {
  for (size_t piece = first; piece < end; ++piece) {
    uint32_t checksum = 0;
    std::memcpy(&checksum, checksums_.data() + piece * sizeof(checksum), sizeof(checksum));
    if (checksum != PieceChecksum(file, piece)) return false;
  }
  return true;
}

bool CropIndex::HeaderIntact(std::span<const uint8_t> file) const {
  return IsOpenFor(file) && PiecesAreIntact(file, 0, PiecesOf(scan_offset_));
}

bool CropIndex::Intact(std::span<const uint8_t> file, const EntryPoint& from,
                       const EntryPoint& until) const {
  if (!IsOpenFor(file)) return false;
  const auto data_bytes = static_cast<int64_t>(file_bytes_ - scan_offset_);
  if (from.bit < 0 || from.bit > until.bit || until.byte() > data_bytes) return false;
  const int64_t end = std::min(until.end_byte(), data_bytes);
  const size_t first = (scan_offset_ + static_cast<size_t>(from.byte())) / kPieceBytes;
  return PiecesAreIntact(file, std::max(first, PiecesOf(scan_offset_)),
                         PiecesOf(scan_offset_ + static_cast<size_t>(end)));
}

}  // namespace stoker::jpeg
