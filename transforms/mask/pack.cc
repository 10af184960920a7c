#include "transforms/mask/pack.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "core/memory/buffer.h"
#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "transforms/decode/row_sink.h"
#include "transforms/mask/decoder.h"
#include "transforms/mask/format.h"
#include "transforms/png/decoder.h"

namespace stoker {

using packed_mask::Header;
using packed_mask::kBandRows;
using packed_mask::kCodes;
using packed_mask::kLengthBits;
using packed_mask::kMaxShift;
using packed_mask::kNoValue;
using packed_mask::Run;
using packed_mask::StepCode;

namespace {

const StepCode& CodeOf(StepCode::Kind kind, int shift = 0) {
  return *std::ranges::find_if(
      kCodes, [&](const StepCode& code) { return code.kind == kind && code.shift == shift; });
}

class MaskBits {
 public:
  explicit MaskBits(std::vector<uint8_t>& to) : to_(to) {}

  void Put(uint32_t bits, int count) {
    for (; count > 0; --count, bits >>= 1) {
      if (used_ == 0) to_.push_back(0);
      to_.back() = static_cast<uint8_t>(to_.back() | (bits & 1) << used_);
      used_ = (used_ + 1) % 8;
    }
  }
  void Put(const StepCode& code) { Put(code.bits, code.length); }
  void EndByte() { used_ = 0; }

 private:
  std::vector<uint8_t>& to_;
  int used_ = 0;  // bits of the last byte; 0 means all
};

// Writes the rows of a mask one after another.
class RowPacker {
 public:
  RowPacker(std::vector<uint16_t> values, int width, std::vector<uint8_t>& to)
      : values_(std::move(values)), width_(width), bits_(to) {
    index_bits_ = packed_mask::IndexBits(static_cast<uint16_t>(values_.size() - 1));
    BeginBand();
  }

  // The next row refers to none.
  void BeginBand() {
    bits_.EndByte();
    above_.assign(1, {width_, kNoValue});
  }

  void Add(const uint16_t* row) {
    runs_.clear();
    for (int x = 0; x < width_; ++x) {
      if (x == 0 || row[x] != row[x - 1]) runs_.push_back({x, row[x]});
    }
    runs_.push_back({width_, kNoValue});
    const bool is_same = std::ranges::equal(runs_, above_, [](const Run& a, const Run& b) {
      return a.begin == b.begin && a.value == b.value;
    });
    bits_.Put(is_same ? 1 : 0, 1);
    if (is_same) return;
    const bool begins_alike = runs_[0].value == above_[0].value;
    bits_.Put(begins_alike ? 1 : 0, 1);
    if (!begins_alike) PutIndex(runs_[0]);
    const Run* above = above_.data();
    for (size_t i = 1; i < runs_.size(); ++i) above = PutStep(runs_[i - 1], runs_[i], above);
    std::swap(runs_, above_);
  }

 private:
  void PutIndex(const Run& run) {
    const auto found = std::ranges::lower_bound(values_, static_cast<uint16_t>(run.value));
    bits_.Put(static_cast<uint32_t>(found - values_.begin()), index_bits_);
  }

  // Moves `above` to the first run after `last`, and returns the one to which a step refers.
  static const Run* EdgeAbove(const Run& last, const Run*& above) {
    while (above->begin <= last.begin) ++above;
    return above->value == last.value ? above + 1 : above;
  }

  bool IsEdge(const Run& next, const Run& above) const {
    if (next.begin == width_) return above.begin >= width_ - kMaxShift;
    return above.value == next.value && std::abs(next.begin - above.begin) <= kMaxShift;
  }

  // Writes the step with the fewest bits, and returns where it leaves the runs above.
  const Run* PutStep(const Run& last, const Run& next, const Run* above) {
    const auto length = static_cast<uint32_t>(next.begin - last.begin);
    const int n = std::bit_width(length) - 1;
    const StepCode& by_length = CodeOf(StepCode::Kind::kLength);
    const StepCode& pass = CodeOf(StepCode::Kind::kPass);
    const int most = by_length.length + kLengthBits + n + (next.begin < width_ ? index_bits_ : 0);
    const Run* after_passes = above;
    for (int bits = 0; bits < most; bits += pass.length) {
      const Run* const edge = EdgeAbove(last, after_passes);
      if (IsEdge(next, *edge)) {
        const StepCode& code = CodeOf(StepCode::Kind::kEdge, next.begin - edge->begin);
        if (bits + code.length > most) break;
        for (int passed = 0; passed < bits; passed += pass.length) bits_.Put(pass);
        bits_.Put(code);
        return after_passes;
      }
      if (edge->value == kNoValue) break;
      after_passes = edge + 1;
    }
    bits_.Put(by_length);
    bits_.Put(static_cast<uint32_t>(n), kLengthBits);
    bits_.Put(length - (uint32_t{1} << n), n);
    if (next.begin < width_) PutIndex(next);
    return above;
  }

  const std::vector<uint16_t> values_;  // sorted
  const int width_;
  int index_bits_ = 0;
  MaskBits bits_;
  std::vector<Run> runs_, above_;
};

template <typename T>
void AppendAs(const T& value, std::vector<uint8_t>& to) {
  const size_t at = to.size();
  to.resize(at + sizeof(value));
  std::memcpy(to.data() + at, &value, sizeof(value));
}

std::vector<uint16_t> DistinctValues(const MaskValues& mask) {
  const size_t pixels =
      static_cast<size_t>(mask.size.width) * static_cast<size_t>(mask.size.height);
  std::vector<bool> occurs(size_t{1} << 16);
  for (size_t i = 0; i < pixels; ++i) occurs[mask.values[i]] = true;
  std::vector<uint16_t> values;
  for (size_t value = 0; value < occurs.size(); ++value) {
    if (occurs[value]) values.push_back(static_cast<uint16_t>(value));
  }
  return values;
}

constexpr size_t kSlack = kBufferPadding / sizeof(uint16_t);

// Keeps the rows of a mask of 16 bits, without gaps.
class KeptRows final : public RowSink {
 public:
  PixelLayout wants() const override { return PixelLayout::kInterleaved; }
  Status Begin(const DecodedRegion& region) override {
    size_ = region.covered.size();
    const size_t pixels = static_cast<size_t>(size_.width) * static_cast<size_t>(size_.height);
    values.resize(pixels + kSlack);
    next_ = values.data();
    return {};
  }
  MutableImageView Reserve(int rows) override {
    const ptrdiff_t stride = ptrdiff_t{sizeof(uint16_t)} * size_.width;
    return {.layout = PixelLayout::kGray16,
            .size = {size_.width, rows},
            .plane = {reinterpret_cast<uint8_t*>(next_)},
            .stride = {stride}};
  }
  void Commit(int rows) override { next_ += ptrdiff_t{rows} * size_.width; }

  std::vector<uint16_t> values;

 private:
  ImageSize size_;
  uint16_t* next_ = nullptr;
};

struct DecodedMask {
  ImageInfo info;
  KeptRows rows;
};

template <typename Decoder>
Result<DecodedMask> DecodeMask(std::span<const uint8_t> file) {
  Decoder decoder;
  DecodedMask mask;
  ASSIGN_OR_RETURN(mask.info, decoder.Open(file, PixelMeaning::kMask16));
  TRY(decoder.Decode({0, 0, mask.info.size.width, mask.info.size.height}, mask.rows));
  return mask;
}

Status Compare(const DecodedMask& png, std::span<const uint8_t> packed) {
  ASSIGN_OR_RETURN(const DecodedMask other, DecodeMask<PackedMaskDecoder>(packed));
  const bool is_same = png.info.size == other.info.size && png.info.bits == other.info.bits &&
                       png.info.orientation == other.info.orientation &&
                       std::equal(png.rows.values.begin(), png.rows.values.end() - kSlack,
                                  other.rows.values.begin(), other.rows.values.end() - kSlack);
  if (is_same) return {};
  return Error{.code = Code::kDataLoss,
               .cause = "the packed mask has other values than its PNG",
               .advice = "Pack the masks again"};
}

// A packed mask may be larger than its PNG by a quarter, because it is decoded faster.
bool IsSmall(size_t packed, size_t png) {
  constexpr size_t kHardlyAny = 512;
  return packed <= std::max(png + png / 4, kHardlyAny);
}

}  // namespace

std::vector<uint8_t> PackValues(const MaskValues& mask) {
  const std::vector<uint16_t> values = DistinctValues(mask);
  std::vector<uint8_t> packed;
  AppendAs(Header{.magic = packed_mask::kMagic,
                  .version = packed_mask::kVersion,
                  .width = static_cast<uint16_t>(mask.size.width),
                  .height = static_cast<uint16_t>(mask.size.height),
                  .last_value = static_cast<uint16_t>(values.size() - 1),
                  .bits = static_cast<uint8_t>(mask.bits),
                  .orientation = static_cast<uint8_t>(mask.orientation)},
           packed);
  for (const uint16_t value : values) AppendAs(value, packed);
  std::vector<uint8_t> bands;
  RowPacker rows(values, mask.size.width, bands);
  for (int y = 0; y < mask.size.height; ++y) {
    rows.Add(mask.values + ptrdiff_t{y} * mask.size.width);
    if ((y + 1) % kBandRows != 0 && y + 1 != mask.size.height) continue;
    AppendAs(static_cast<uint32_t>(bands.size()), packed);
    rows.BeginBand();
  }
  packed.insert(packed.end(), bands.begin(), bands.end());
  return packed;
}

Status CompareMasks(std::span<const uint8_t> png, std::span<const uint8_t> packed) {
  try {
    ASSIGN_OR_RETURN(const DecodedMask mask, DecodeMask<PngDecoder>(png));
    return Compare(mask, packed);
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for a mask"};
  }
}

Result<std::vector<uint8_t>> PackMask(std::span<const uint8_t> png) {
  try {
    const Result<DecodedMask> mask = DecodeMask<PngDecoder>(png);
    if (!mask.ok()) return Error{Code::kUnimplemented, mask.error().cause};
    std::vector<uint8_t> packed =
        PackValues({.size = mask->info.size,
                    .bits = mask->info.bits,
                    .orientation = static_cast<int>(mask->info.orientation),
                    .values = mask->rows.values.data()});
    if (!IsSmall(packed.size(), png.size())) {
      return Error{Code::kUnimplemented, "packed it would be larger"};
    }
    const size_t size = packed.size();
    packed.resize(size + kBufferPadding);
    TRY(Compare(*mask, std::span(packed).first(size)));
    packed.resize(size);
    return packed;
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceExhausted, "out of memory for a mask"};
  }
}

}  // namespace stoker
