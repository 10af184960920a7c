#include "transforms/mask/decoder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "transforms/mask/format.h"

namespace stoker {

using packed_mask::Header;
using packed_mask::kBandRows;
using packed_mask::kNoValue;
using packed_mask::Run;
using packed_mask::StepCode;

namespace {

template <typename T>
T LoadMask(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

Error DamagedMask(const std::string& cause, uint64_t offset) {
  return {.code = Code::kDataLoss,
          .cause = "damaged packed mask: " + cause,
          .offset = offset,
          .advice = "Pack the masks again"};
}

int BandsOf(const Header& header) { return DivideUp(int{header.height}, kBandRows); }

// Writes the values of a row's columns [left, right) to `to`, and up to 31 bytes more.
template <typename Value>
void FillRow(const Run* run, int left, int right, uint8_t* to) {
  constexpr int kAtOnce = 32 / sizeof(Value);
  std::array<Value, kAtOnce> values;
  while (run[1].begin <= left) ++run;
  for (int x = left; x < right; ++run) {
    const int end = std::min(run[1].begin, right);
    values.fill(static_cast<Value>(run->value));
    for (; x < end; x += kAtOnce) {
      std::memcpy(to + ptrdiff_t{sizeof(Value)} * (x - left), values.data(), sizeof(values));
    }
    x = end;
  }
}

// Reads a band's bits. Bits after the band's end have any value; is_over tells that they were
// taken.
class Bits {
 public:
  // 8 bytes after `band` must be readable.
  explicit Bits(std::span<const uint8_t> band) : band_(band) {}

  // Makes 56 bits or more available.
  void Refill() {
    const uint64_t next = at_ < band_.size() ? LoadMask<uint64_t>(band_.data() + at_) : 0;
    bits_ |= next << count_;
    at_ += static_cast<size_t>(63 - count_) / 8;
    count_ |= 56;
  }
  // Preconditions: of the bits that Refill made available, as many are left; 0 <= count < 32.
  uint32_t Peek(int count) const {
    return static_cast<uint32_t>(bits_ & ((uint64_t{1} << count) - 1));
  }
  void Skip(int count) {
    bits_ >>= count;
    count_ -= count;
  }
  uint32_t Take(int count) {
    const uint32_t bits = Peek(count);
    Skip(count);
    return bits;
  }
  // Whether bits after the band's end were taken.
  bool is_over() const { return 8 * at_ > 8 * band_.size() + static_cast<size_t>(count_); }

 private:
  std::span<const uint8_t> band_;
  uint64_t bits_ = 0;
  int count_ = 0;  // of bits_
  size_t at_ = 0;  // the next byte; it may lie after the band
};

}  // namespace

struct PackedMaskDecoder::State {
  State(const DecodeLimits& given, MemoryBudget* budget)
      : limits(given), memory(budget != nullptr ? *budget : unlimited) {}

  Status Open(std::span<const uint8_t> file, PixelMeaning meaning);
  Status Reserve(const Rect& region, RowSink& sink);
  Status Decode(const Rect& region, RowSink& sink);
  Result<Bits> OpenBand(int band);
  bool ReadRow(Bits& bits);
  Run* ReadRuns(Bits& bits, Run* to) const;
  int32_t ReadValue(Bits& bits) const;
  uint32_t BandEnd(int band) const;

  DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<int64_t>::max()};
  GrowingBuffer memory;  // of two rows' runs
  Run* row = nullptr;
  Run* other = nullptr;  // for the next row

  // State of the open image.
  bool opened = false;
  std::span<const uint8_t> bytes;
  Header header;
  bool wide = false;  // rows are kGray16
  const uint8_t* values = nullptr;
  const uint8_t* band_ends = nullptr;
  size_t bands_at = 0;  // in `bytes`
};

PackedMaskDecoder::PackedMaskDecoder(const DecodeLimits& limits, MemoryBudget* budget)
    : state_(std::make_unique<State>(limits, budget)) {}
PackedMaskDecoder::~PackedMaskDecoder() = default;
PackedMaskDecoder::PackedMaskDecoder(PackedMaskDecoder&&) noexcept = default;
PackedMaskDecoder& PackedMaskDecoder::operator=(PackedMaskDecoder&&) noexcept = default;

Status PackedMaskDecoder::State::Open(std::span<const uint8_t> file, PixelMeaning meaning) {
  if (!IsMask(meaning)) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "this is a packed mask, whose values are not colours",
                 .offset = 0,
                 .advice = "Read it as a mask"};
  }
  if (file.size() < sizeof(Header)) return DamagedMask("it ends in its header", file.size());
  header = LoadMask<Header>(file.data());
  if (header.version != packed_mask::kVersion) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "a packed mask of version " + std::to_string(header.version) +
                          "; this stoker reads " + std::to_string(packed_mask::kVersion),
                 .offset = offsetof(Header, version),
                 .advice = "Pack the masks again, or use a newer version of stoker"};
  }
  const bool is_sound = header.width != 0 && header.height != 0 && header.orientation >= 1 &&
                        header.orientation <= 8 && (header.bits == 8 || header.bits == 16);
  if (!is_sound) return DamagedMask("its header", offsetof(Header, width));
  if (header.bits == 16 && meaning == PixelMeaning::kMask) {
    return NoMask("has 16 bits", offsetof(Header, bits));
  }
  TRY(CheckSize({header.width, header.height}, limits, offsetof(Header, width)));
  const size_t value_bytes = size_t{2} * (header.last_value + size_t{1});
  const size_t ends = sizeof(uint32_t) * static_cast<size_t>(BandsOf(header));
  bands_at = sizeof(Header) + value_bytes + ends;
  if (file.size() < bands_at) return DamagedMask("it ends in its lists", file.size());
  const uint8_t* const listed = file.data() + sizeof(Header);
  for (size_t i = 0; header.bits == 8 && i < value_bytes; i += 2) {
    if (listed[i + 1] != 0) return DamagedMask("a value", sizeof(Header) + i);
  }
  bytes = file;
  wide = meaning == PixelMeaning::kMask16;
  values = listed;
  band_ends = listed + value_bytes;
  return {};
}

Result<ImageInfo> PackedMaskDecoder::Open(std::span<const uint8_t> bytes, PixelMeaning meaning) {
  State& s = *state_;
  s.opened = false;
  TRY(s.Open(bytes, meaning));
  s.opened = true;
  return ImageInfo{.size = {s.header.width, s.header.height},
                   .orientation = static_cast<Orientation>(s.header.orientation),
                   .components = 1,
                   .format = ImageFormat::kPackedMask,
                   .bits = s.header.bits};
}

uint32_t PackedMaskDecoder::State::BandEnd(int band) const {
  return band < 0 ? 0
                  : LoadMask<uint32_t>(band_ends + sizeof(uint32_t) * static_cast<size_t>(band));
}

// Begins a band. Above its first row there are no runs.
Result<Bits> PackedMaskDecoder::State::OpenBand(int band) {
  const size_t begin = BandEnd(band - 1), end = BandEnd(band);
  if (begin > end || end > bytes.size() - bands_at) {
    return DamagedMask("the end of a band", static_cast<uint64_t>(band_ends - bytes.data()) +
                                                sizeof(uint32_t) * static_cast<uint64_t>(band));
  }
  row[0] = {.begin = header.width, .value = kNoValue};
  return Bits(bytes.subspan(bands_at + begin, end - begin));
}

// Returns kNoValue for a wrong index.
int32_t PackedMaskDecoder::State::ReadValue(Bits& bits) const {
  const uint32_t index = bits.Take(packed_mask::IndexBits(header.last_value));
  if (index > header.last_value) return kNoValue;
  return LoadMask<uint16_t>(values + size_t{2} * index);
}

// Reads the runs of a row that is not as the one above, `row`, and returns their end, or null if
// they are damaged. Each step takes bits and makes progress, so there are no more than two for each
// pixel of the row.
Run* PackedMaskDecoder::State::ReadRuns(Bits& bits, Run* to) const {
  const int32_t width = header.width;
  const Run* above = row;
  Run last{.begin = 0, .value = bits.Take(1) != 0 ? above->value : ReadValue(bits)};
  while (last.value != kNoValue) {
    *to++ = last;
    Run next;
    while (true) {
      bits.Refill();
      above += above->begin <= last.begin ? 1 : 0;  // usually all, and not predicted well
      while (above->begin <= last.begin) ++above;
      const Run* const edge = above + (above->value == last.value ? 1 : 0);
      const StepCode code = packed_mask::kCodeOf[bits.Peek(packed_mask::kMaxCodeBits)];
      bits.Skip(code.length);
      if (code.kind == StepCode::Kind::kEdge) {
        next = {.begin = edge->begin + code.shift, .value = edge->value};
        break;
      }
      if (code.kind == StepCode::Kind::kLength) {
        const auto n = static_cast<int>(bits.Take(packed_mask::kLengthBits));
        next.begin = last.begin + (1 << n) + static_cast<int32_t>(bits.Take(n));
        if (next.begin < width) next.value = ReadValue(bits);
        break;
      }
      if (edge->value == kNoValue) return nullptr;  // the end of the row cannot be passed
      above = edge + 1;
    }
    if (next.begin == width) {
      *to++ = {.begin = width, .value = kNoValue};
      return to;
    }
    if (next.begin > width || next.begin <= last.begin || next.value == last.value) return nullptr;
    last = next;
  }
  return nullptr;
}

// Replaces `row` by the next row.
bool PackedMaskDecoder::State::ReadRow(Bits& bits) {
  bits.Refill();
  if (bits.Take(1) != 0) return row->value != kNoValue && !bits.is_over();
  if (ReadRuns(bits, other) == nullptr || bits.is_over()) return false;
  std::swap(row, other);
  return true;
}

Status PackedMaskDecoder::Decode(const Rect& region, RowSink& sink) {
  if (!std::exchange(state_->opened, false)) {
    return Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
  }
  if (!Inside(region, {state_->header.width, state_->header.height})) {
    return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
  }
  TRY(state_->Reserve(region, sink));
  return state_->Decode(region, sink);
}

// Reserves all memory, including the sink's, before the first row.
Status PackedMaskDecoder::State::Reserve(const Rect& region, RowSink& sink) {
  const size_t runs = header.width + size_t{1}, needed = 2 * runs * sizeof(Run);
  const Growth growth{memory, needed};
  Status begun = sink.Begin({wide ? PixelLayout::kGray16 : PixelLayout::kGray, region});
  if (!begun.ok()) return AndMore(std::move(begun), MissingBytes({&growth, 1}));
  TRY(memory.Grow(needed));
  row = reinterpret_cast<Run*>(memory.data());
  other = row + runs;
  return {};
}

Status PackedMaskDecoder::State::Decode(const Rect& region, RowSink& sink) {
  const int bottom = region.y + region.height, right = region.x + region.width;
  MutableImageView room;
  int written = 0;  // rows of `room`
  for (int band = region.y / kBandRows; band * kBandRows < bottom; ++band) {
    ASSIGN_OR_RETURN(Bits bits, OpenBand(band));
    for (int y = band * kBandRows; y < std::min(bottom, (band + 1) * kBandRows); ++y) {
      if (!ReadRow(bits)) return DamagedMask("row " + std::to_string(y), bands_at + BandEnd(band));
      if (y < region.y) continue;
      if (written == 0) room = sink.Reserve(bottom - y);
      uint8_t* const to = room.plane[0] + written * room.stride[0];
      wide ? FillRow<uint16_t>(row, region.x, right, to)
           : FillRow<uint8_t>(row, region.x, right, to);
      if (++written == room.size.height) sink.Commit(std::exchange(written, 0));
    }
  }
  return {};
}

}  // namespace stoker
