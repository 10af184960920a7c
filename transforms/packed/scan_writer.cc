#include "transforms/packed/scan_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace stoker::packed {
namespace {

// The most bytes of an MCU: six blocks of 64 numbers with a code each.
constexpr size_t kMcuRoom = 2048;
static_assert(kMcuRoom >= 6 * 64 * (16 + 17) / 8 + 16);

constexpr int kZeros16 = 0xF0;  // the symbol for 16 zeros
constexpr int kEndOfBlock = 0;

constexpr unsigned kDcSizes = 31, kAcSizes = 15;  // the bits of symbols that are sizes

// The bits behind a symbol, and how many they are.
struct Number {
  uint16_t bits;
  uint16_t size;
};

constexpr Number NumberOf(int value) {
  const auto size = std::bit_width(static_cast<unsigned>(value < 0 ? -value : value));
  const int bits = value < 0 ? value - 1 : value;
  return {static_cast<uint16_t>(bits & ((1 << size) - 1)), static_cast<uint16_t>(size)};
}

// Those of all AC coefficients that 8-bit JPEGs can have, by their lowest bits.
constexpr std::array<Number, 2048> MakeNumbers() {
  std::array<Number, 2048> numbers{};
  for (int value = -1023; value < 1024; ++value) {
    numbers[static_cast<size_t>(value) % numbers.size()] = NumberOf(value);
  }
  return numbers;
}
constexpr std::array<Number, 2048> kNumbers = MakeNumbers();

// For a group's words: where the words of a block are, in zig-zag order, and which bits of that
// order four words of a quad are.
struct Order {
  std::array<uint16_t, 64> word;
  std::array<std::array<uint64_t, 16>, kQuads> bits;
};

constexpr Order MakeOrder() {
  std::array<int, 64> k_of{};  // by row × 8 + column
  for (size_t k = 0; k < 64; ++k) k_of[jpeg::kZigZag[k]] = static_cast<int>(k);
  Order order{};
  for (int quad = 0; quad < kQuads; ++quad) {
    for (int word = 0; word < 4; ++word) {
      const int k = k_of[static_cast<size_t>(CoefficientOf(quad, word))];
      order.word[static_cast<size_t>(k)] = static_cast<uint16_t>(quad * kQuadWords + word);
      for (size_t set = 0; set < 16; ++set) {
        if ((set >> word & 1) != 0) order.bits[static_cast<size_t>(quad)][set] |= uint64_t{1} << k;
      }
    }
  }
  return order;
}
constexpr Order kOrder = MakeOrder();

// The coefficients of a block that are not zero, as bits in zig-zag order, without the first.
uint64_t NonZero(const int16_t* words) {
  uint64_t found = 0;
  for (size_t quad = 0; quad < kQuads; ++quad) {
    uint64_t four = 0;
    std::memcpy(&four, words + quad * kQuadWords, sizeof(four));
    constexpr uint64_t kLow = 0x7FFF7FFF7FFF7FFF, kGather = 0x0001000200040008;
    const uint64_t high = ((four & kLow) + kLow) | four;  // the highest bits of words not zero
    const uint64_t set = ((high >> 15 & 0x0001000100010001) * kGather) >> 48;
    found |= kOrder.bits[quad][set & 15];
  }
  return found & ~uint64_t{1};
}

}  // namespace

ScanWriter::Codes ScanWriter::CodesOf(jpeg::HuffmanSpec spec, unsigned size_mask) {
  Codes codes{};
  const uint8_t* symbol = spec + 16;
  uint64_t code = 0;
  for (unsigned length = 1; length <= 16; ++length, code <<= 1) {
    for (int i = 0; i < spec[length - 1]; ++i, ++code, ++symbol) {
      const unsigned size = *symbol & size_mask;
      codes[*symbol] = (code & 0xFFFF) << (8 + size) | (length + size);
    }
  }
  return codes;
}

void ScanWriter::Start(const jpeg::FrameHeader& header, bool pads_with_zeros,
                       std::vector<uint8_t>& out) {
  header_ = &header;
  pads_with_zeros_ = pads_with_zeros;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    dc_[i] = CodesOf(header.dc[static_cast<size_t>(header.component[i].dc)], kDcSizes);
    ac_[i] = CodesOf(header.ac[static_cast<size_t>(header.component[i].ac)], kAcSizes);
  }
  predictor_ = {};
  mcu_ = 0;
  out_ = &out;
  clean_.resize(std::max(clean_.size(), kMcuRoom));
  bits_ = {};
  bits_.MoveTo(clean_.data());
}

void ScanWriter::WriteRow(const BlockRows& rows, std::span<const int16_t* const> words) {
  const size_t most = static_cast<size_t>(rows.mcus + 1) * kMcuRoom;
  if (clean_.size() < most) {
    clean_.resize(most);
    bits_.MoveTo(clean_.data());
  }
  const int64_t interval = header_->restart_interval;
  for (int mcu = 0; mcu < rows.mcus;) {
    int64_t count = rows.mcus - mcu;
    if (interval != 0) {
      if (mcu_ != 0 && mcu_ % interval == 0) EndSegment();
      count = std::min(count, interval - mcu_ % interval);
    }
    WriteMcus(rows, words, mcu, mcu + static_cast<int>(count));
    mcu += static_cast<int>(count);
    mcu_ += count;
  }
  Flush();
}

void ScanWriter::WriteMcus(const BlockRows& rows, std::span<const int16_t* const> words, int from,
                           int to) {
  BitSink bits = bits_;  // a copy stays in registers
  for (int mcu = from; mcu < to; ++mcu) {
    for (size_t r = 0; r < static_cast<size_t>(rows.count); ++r) {
      const BlockRow& row = rows.row[r];
      for (int column = 0; column < row.columns; ++column) {
        const int block = mcu * row.columns + column;
        WriteBlock(static_cast<size_t>(row.component),
                   words[r] + block / kGroupBlocks * kGroupWords + block % kGroupBlocks * 4, bits);
      }
    }
  }
  bits_ = bits;
}

inline void ScanWriter::WriteBlock(size_t component, const int16_t* words, BitSink& bits) {
  const auto put = [&bits](uint64_t code, uint64_t number) {
    bits.Put(code >> 8 | number, static_cast<unsigned>(code & 0xFF));
  };
  const int dc = words[0], difference = dc - std::exchange(predictor_[component], dc);
  const Number first = NumberOf(difference);
  put(dc_[component][first.size], first.bits);
  const Codes& codes = ac_[component];
  int last = 0;
  for (uint64_t left = NonZero(words); left != 0; left &= left - 1) {
    const int k = std::countr_zero(left);
    int zeros = k - last - 1;
    last = k;
    for (; zeros > 15; zeros -= 16) put(codes[kZeros16], 0);
    const int value = words[kOrder.word[static_cast<size_t>(k)]];
    const Number number = kNumbers[static_cast<size_t>(value) % kNumbers.size()];
    put(codes[static_cast<size_t>(zeros << 4) | number.size], number.bits);
  }
  if (last < 63) put(codes[kEndOfBlock], 0);
}

// Writes the restart marker before the next MCU.
void ScanWriter::EndSegment() {
  bits_.Fill(pads_with_zeros_);
  Flush();
  const int64_t number = mcu_ / header_->restart_interval - 1;
  out_->push_back(0xFF);
  out_->push_back(static_cast<uint8_t>(0xD0 + number % 8));
  predictor_ = {};
}

// Moves the whole bytes to the scan, and stuffs a zero behind each that is 0xFF.
void ScanWriter::Flush() {
  const uint8_t* const end = bits_.next();
  for (const uint8_t* from = clean_.data(); from != end;) {
    const auto left = static_cast<size_t>(end - from);
    const auto* const stuffed = static_cast<const uint8_t*>(std::memchr(from, 0xFF, left));
    const uint8_t* const to = stuffed == nullptr ? end : stuffed + 1;
    out_->insert(out_->end(), from, to);
    if (stuffed != nullptr) out_->push_back(0);
    from = to;
  }
  bits_.MoveTo(clean_.data());
}

void ScanWriter::Finish() {
  bits_.Fill(pads_with_zeros_);
  Flush();
}

}  // namespace stoker::packed
