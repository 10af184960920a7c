// The first kernel of plain JPEGs: decodes the intervals of a crop to samples. A team takes several
// intervals, and each of its threads decodes one, block by block: Huffman codes to coefficients in
// the team's memory, and from there the inverse DCT. No coefficient leaves that memory.
//
// Any bits are accepted. An invalid code is skipped as 16 bits and ends the block, as does a
// coefficient beyond the last one. Zeros follow the crop.
//
// Team: as in unpack-inl.h, with kEntropyThreads threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "gpu/crops/entropy_threads.h"
#include "gpu/crops/inverse_dct-inl.h"

namespace stoker::decode {
namespace {

// Bits that are looked up at once. Longer codes, which are rare, are searched for.
inline constexpr uint32_t kCodeWindow = 10;

// The order in which a block's coefficients are coded (jpeg::kZigZag).
using CoefficientOrder = std::array<uint8_t, 64>;
constexpr CoefficientOrder MakeCoefficientOrder() {
  CoefficientOrder order{};
  size_t k = 0;
  for (int sum = 0; sum < 15; ++sum) {  // of row and column: a diagonal
    const int first = sum < 8 ? 0 : sum - 7, last = sum < 8 ? sum : 7;
    for (int i = first; i <= last; ++i) {
      const int row = sum % 2 == 0 ? last + first - i : i;
      order[k++] = static_cast<uint8_t>(8 * row + sum - row);
    }
  }
  return order;
}

// The codes of a Huffman table. Those of one length are consecutive numbers (T.81, C.2).
struct CodesMemory {
  // Indexed by the next bits: the length of their code × 256 + its symbol; 0 if the code is longer.
  std::array<uint16_t, 1 << kCodeWindow> entry;
  // Indexed by length: the first 16-bit value after the codes of this length, and the offset from a
  // code to its symbol.
  std::array<uint32_t, 17> limit, offset;
};

// Each thread of a team prepares at most one table.
static_assert(kMostCodes <= kEntropyThreads);

// The memory that the threads of a team share. The memory of one thread is in one bank.
struct EntropyMemory {
  std::array<CodesMemory, kMostCodes> codes;
  CoefficientOrder order;
  // The block that each thread decodes, as pairs of neighbours in a row, and its predictors.
  std::array<uint32_t, 32 * kEntropyThreads> pair;
  std::array<int32_t, 3 * kEntropyThreads> dc;
};

// ---- Bits

// Reads the crop's words from the highest bit on, without the bytes that are stuffed after 0xFF.
struct EntropyReader {
  const uint32_t* words = nullptr;
  uint32_t next = 0, end = 0;  // words
  uint32_t count = 0;          // the highest bits of `window` that are valid
  uint64_t window = 0;         // the others are 0
  bool stuffed = false;        // the next byte is
};

constexpr bool HasStuffing(uint32_t word) {  // whether a byte is 0xFF
  return ((~word - 0x01010101) & word & 0x80808080) != 0;
}

constexpr uint32_t Reversed(uint32_t word) {  // its bytes
  return word << 24 | (word & 0xff00) << 8 | (word >> 8 & 0xff00) | word >> 24;
}

// Takes the bytes of a word from byte `from` on.
constexpr void TakeBytes(uint32_t word, uint32_t from, EntropyReader& reader) {
  for (uint32_t i = from; i < 4; ++i) {
    const uint32_t byte = word >> (24 - 8 * i) & 0xff;
    if (reader.stuffed) {
      reader.stuffed = false;
      continue;
    }
    reader.window |= uint64_t{byte} << (56 - reader.count);
    reader.count += 8;
    reader.stuffed = byte == 0xff;
  }
}

constexpr uint32_t NextWord(EntropyReader& reader) {
  return reader.next < reader.end ? Reversed(reader.words[reader.next++]) : 0;
}

// Afterwards more than 32 bits are valid.
constexpr void Refill(EntropyReader& reader) {
  while (reader.count <= 32) {
    const uint32_t word = NextWord(reader);
    if (reader.stuffed || HasStuffing(word)) {
      TakeBytes(word, 0, reader);
    } else {
      reader.window |= uint64_t{word} << (32 - reader.count);
      reader.count += 32;
    }
  }
}

constexpr void Drop(uint32_t bits, EntropyReader& reader) {
  reader.window <<= bits;
  reader.count -= bits;
}

constexpr EntropyReader ReaderAt(const uint32_t* words, uint32_t bit, uint32_t end) {
  EntropyReader reader{.words = words, .next = bit / 32, .end = end};
  TakeBytes(NextWord(reader), bit / 8 % 4, reader);
  Refill(reader);
  Drop(bit % 8, reader);
  return reader;
}

// ---- Codes

// The first part of a table, for one thread.
constexpr void TakeLengths(const CropCodes& from, CodesMemory& codes) {
  uint32_t code = 0, index = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    codes.offset[length] = index - code;
    code += from.count[length - 1];
    index += from.count[length - 1];
    codes.limit[length] = code << (16 - length);
    code *= 2;
  }
}

// Returns the length × 256 + the symbol of the code at the beginning of 16 bits, which has more
// than `shorter` and at most `longest` bits; 0 if there is none.
constexpr uint32_t FindCode(const CropCodes& from, const CodesMemory& codes, uint32_t bits,
                            uint32_t shorter, uint32_t longest) {
  for (uint32_t length = shorter + 1; length <= longest; ++length) {
    if (bits >= codes.limit[length]) continue;
    const uint32_t index = (bits >> (16 - length)) + codes.offset[length];
    return length << 8 | from.symbol[index & 0xff];
  }
  return 0;
}

// Takes a symbol. Afterwards at least 17 bits are valid.
constexpr uint32_t TakeSymbol(const CropCodes& from, const CodesMemory& codes,
                              EntropyReader& reader) {
  Refill(reader);
  const auto bits = static_cast<uint32_t>(reader.window >> 48);
  uint32_t found = codes.entry[bits >> (16 - kCodeWindow)];
  if (found == 0) found = FindCode(from, codes, bits, kCodeWindow, 16);
  if (found == 0) found = 16 << 8;
  Drop(found >> 8, reader);
  return found & 0xff;
}

// Takes a value of at most 15 bits. Those that begin with a 0 are negative (T.81, F.2.2.1).
constexpr int32_t TakeValue(uint32_t size, EntropyReader& reader) {
  const auto next = static_cast<uint32_t>(reader.window >> 32);
  const auto bits = static_cast<int32_t>(next >> 1 >> (31 - size));
  Drop(size, reader);
  const int32_t all = 1 << size;
  return bits < all >> 1 ? bits - all + 1 : bits;
}

// ---- A thread's work: one interval.

// The tables of a component.
struct BlockCodes {
  const CropCodes *dc_from, *ac_from;
  const CodesMemory *dc, *ac;
};

// Decodes a block. Returns a bit for each pair of columns that has coefficients. `pair`: the
// thread's, all 0; null means that the block is only parsed.
constexpr uint32_t DecodeBlock(const BlockCodes& codes, const CoefficientOrder& order,
                               EntropyReader& reader, int32_t& dc, uint32_t* pair) {
  dc += TakeValue(TakeSymbol(*codes.dc_from, *codes.dc, reader) & 15, reader);
  if (pair != nullptr) pair[0] = static_cast<uint32_t>(dc) & 0xffff;
  uint32_t columns = 1;
  for (uint32_t k = 0; k < 63;) {
    const uint32_t symbol = TakeSymbol(*codes.ac_from, *codes.ac, reader);
    k += (symbol >> 4) + 1;
    if (symbol == 0 || k > 63) break;
    const auto value = static_cast<uint32_t>(TakeValue(symbol & 15, reader));
    if (pair == nullptr) continue;
    const uint32_t at = order[k];
    pair[at / 2 * kEntropyThreads] |= (value & 0xffff) << (16 * (at % 2));
    columns |= 1U << at % 8 / 2;
  }
  return columns;
}

// The halves of a pair.
constexpr int32_t LeftOf(uint32_t pair) { return Wrapped16(static_cast<int32_t>(pair)); }
constexpr int32_t RightOf(uint32_t pair) { return static_cast<int32_t>(pair) >> 16; }
constexpr uint32_t PairOf(int32_t left, int32_t right) {
  return (static_cast<uint32_t>(left) & 0xffff) | static_cast<uint32_t>(right) << 16;
}

// Columns 2 × `x` and the next one of the thread's block.
constexpr void TransformColumns(const std::array<std::array<uint16_t, 8>, 8>& factors, uint32_t x,
                                uint32_t* pair) {
  std::array<int32_t, 8> left{}, right{};
  for (uint32_t y = 0; y < 8; ++y) {
    const uint32_t both = pair[(4 * y + x) * kEntropyThreads];
    left[y] = Wrapped16(LeftOf(both) * factors[2 * x][y]);
    right[y] = Wrapped16(RightOf(both) * factors[2 * x + 1][y]);
  }
  InverseDctColumn(left);
  InverseDctColumn(right);
  for (uint32_t y = 0; y < 8; ++y) {
    pair[(4 * y + x) * kEntropyThreads] = PairOf(left[y], right[y]);
  }
}

// Makes the samples of the thread's block, and sets it to 0. `columns`: as DecodeBlock returns
// them; the others are all zero. `stride` in blocks.
constexpr void TransformBlock(const std::array<std::array<uint16_t, 8>, 8>& factors,
                              uint32_t columns, uint32_t* pair, RowOfBlock* to, uint32_t stride) {
  for (uint32_t x = 0; x < 4; ++x) {
    if ((columns >> x & 1) != 0) TransformColumns(factors, x, pair);
  }
  for (uint32_t y = 0; y < 8; ++y) {
    std::array<int32_t, 8> line{};
    for (uint32_t x = 0; x < 4; ++x) {
      uint32_t& both = pair[(4 * y + x) * kEntropyThreads];
      line[2 * x] = LeftOf(both);
      line[2 * x + 1] = RightOf(both);
      both = 0;
    }
    to[size_t{y} * stride] = InverseDctRow(line);
  }
}

// A block of an MCU.
struct BlockPosition {
  uint32_t component;
  uint32_t column, row;    // among the component's blocks of the MCU
  uint32_t columns, rows;  // their number
};
constexpr uint32_t BlocksOfMcu(const DeviceCrop& crop) {
  return crop.gray != 0 ? 1 : (1U << crop.wide << crop.tall) + 2;
}
constexpr BlockPosition PositionOf(const DeviceCrop& crop, uint32_t block) {
  const uint32_t columns = 1U << crop.wide, luma = columns << crop.tall;
  if (block >= luma) return {block - luma + 1, 0, 0, 1, 1};
  return {0, block % columns, block / columns, columns, 1U << crop.tall};
}

// A crop and its parts.
struct EntropyParts {
  const DeviceCrop* crop;
  const uint32_t* words;
  const CropInterval* intervals;
  const CropCodes* codes;
  RowOfBlock* samples;
};

// Returns where a block of the MCU in this column and row of the crop's samples begins.
constexpr RowOfBlock* SamplesOf(const EntropyParts& parts, const BlockPosition& block,
                                uint32_t column, uint32_t row) {
  const CropPlane& plane = parts.crop->plane[block.component];
  const uint32_t x = column * block.columns + block.column, y = row * block.rows + block.row;
  return parts.samples + size_t{plane.first} * (kGroupSamples / 8) + size_t{y} * plane.stride + x;
}

constexpr void DecodeInterval(const EntropyParts& parts, const CropInterval& interval, uint32_t t,
                              EntropyMemory& memory) {
  const DeviceCrop& crop = *parts.crop;
  EntropyReader reader = ReaderAt(parts.words, interval.bit, crop.bytes / 4);
  uint32_t* const pair = &memory.pair[t];
  for (uint32_t i = 0; i < 32; ++i) pair[size_t{i} * kEntropyThreads] = 0;
  for (uint32_t c = 0; c < 3; ++c) memory.dc[c * kEntropyThreads + t] = interval.dc[c];
  const uint32_t blocks = BlocksOfMcu(crop);
  const uint32_t skipped = interval.skipped, mcus = skipped + interval.wanted;
  for (uint32_t mcu = 0; mcu < mcus; ++mcu) {
    const bool wanted = mcu >= skipped;
    for (uint32_t i = 0; i < blocks; ++i) {
      const BlockPosition block = PositionOf(crop, i);
      const uint32_t c = block.component, dc = crop.dc_codes[c], ac = crop.ac_codes[c];
      const uint32_t columns = DecodeBlock(
          {&parts.codes[dc], &parts.codes[ac], &memory.codes[dc], &memory.codes[ac]}, memory.order,
          reader, memory.dc[c * kEntropyThreads + t], wanted ? pair : nullptr);
      if (!wanted) continue;
      TransformBlock(crop.factor[c], columns, pair,
                     SamplesOf(parts, block, interval.column + mcu - skipped, interval.row),
                     crop.plane[c].stride / 8);
    }
  }
}

// ---- A team's work: up to kEntropyThreads intervals, from `first` on. `order`:
// MakeCoefficientOrder's.

template <class Team>
constexpr void DecodeIntervals(const Team& team, const EntropyParts& parts, uint32_t first,
                               const uint8_t* order, EntropyMemory& memory) {
  const DeviceCrop& crop = *parts.crop;
  team.Each([&](uint32_t t) {
    for (uint32_t i = t; i < memory.order.size(); i += kEntropyThreads) memory.order[i] = order[i];
    if (t < crop.codes) TakeLengths(parts.codes[t], memory.codes[t]);
  });
  team.Each([&](uint32_t t) {
    for (uint32_t table = 0; table < crop.codes; ++table) {
      CodesMemory& codes = memory.codes[table];
      for (uint32_t i = t; i < codes.entry.size(); i += kEntropyThreads) {
        codes.entry[i] = static_cast<uint16_t>(
            FindCode(parts.codes[table], codes, i << (16 - kCodeWindow), 0, kCodeWindow));
      }
    }
  });
  team.EachUnawaited([&](uint32_t t) {
    const uint32_t interval = first + t;
    if (interval < crop.intervals) DecodeInterval(parts, parts.intervals[interval], t, memory);
  });
}

}  // namespace
}  // namespace stoker::decode
