#include "transforms/jpeg/fast/entropy/huffman.h"

namespace stoker::jpeg {

namespace {

struct Symbol {
  int value = -1;  // -1: no code of at most `bits` bits
  int length = 0;
};

// Finds the code at the start of `bits` bits.
Symbol Find(HuffmanSpec spec, unsigned window, int bits) {
  unsigned code = 0;
  int index = 0;
  for (int length = 1; length <= bits; ++length) {
    const unsigned top = window >> (bits - length), count = spec[length - 1];
    if (top >= code && top < code + count) {
      return {spec[16 + index + static_cast<int>(top - code)], length};
    }
    index += static_cast<int>(count);
    code = (code + count) << 1;
  }
  return {};
}

unsigned Low(unsigned window, int bits) { return window & ((1u << bits) - 1); }

int StepOf(int symbol) { return symbol == 0 ? kEndOfBlock : (symbol >> 4) + 1; }

// T.81, F.2.2.1, EXTEND.
int Extend(int bits, int size) {
  if (size == 0) return 0;
  return bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
}

AcEntry AcEntryOf(HuffmanSpec spec, unsigned window) {
  AcEntry e{};
  const Symbol first = Find(spec, window, kAcWindow);
  if (first.value < 0) return {0, kLongCode, kLongCode, 0, 64, 0};
  const int size = first.value & 15, left = kAcWindow - first.length - size;
  e.bits = static_cast<uint8_t>(first.length + size);
  e.first_step = e.step = static_cast<uint8_t>(StepOf(first.value));
  e.place = static_cast<uint16_t>(64 - e.bits + 256 * size);
  e.bias = static_cast<int16_t>(1 - (1 << size));
  if (first.value == 0 || left < 0 || size > kMaxFirstSize) return e;
  const Symbol second = Find(spec, Low(window, left), left);
  if (second.value < 0) return e;
  const int second_size = second.value & 15;
  e.bits = static_cast<uint8_t>(e.bits + second.length + second_size);
  e.step = static_cast<uint8_t>(e.step + StepOf(second.value));
  e.place = static_cast<uint16_t>(64 - e.bits + 256 * second_size);
  e.bias = static_cast<int16_t>(1 - (1 << second_size));
  e.first_value = static_cast<int8_t>(
      Extend(static_cast<int>(Low(window, kAcWindow - first.length) >> left), size));
  return e;
}

SkipEntry SkipEntryOf(HuffmanSpec spec, unsigned window) {
  // The same rule as in the table: the symbols after the first are added as a whole or not at all.
  const auto parse = [&](const auto& self, unsigned bits, int count) -> SkipEntry {
    const Symbol symbol = Find(spec, bits, count);
    if (symbol.value < 0) return {0, 0};
    const int used = symbol.length + (symbol.value & 15), step = StepOf(symbol.value);
    SkipEntry e{static_cast<uint8_t>(used), static_cast<uint8_t>(step)};
    if (symbol.value == 0 || used >= count) return e;
    const SkipEntry rest = self(self, Low(bits, count - used), count - used);
    const int run = rest.step >= kEndOfBlock ? rest.step - kEndOfBlock : rest.step;
    if (run + step > 63) return e;
    e.bits = static_cast<uint8_t>(e.bits + rest.bits);
    e.step = static_cast<uint8_t>(e.step + rest.step);
    return e;
  };
  const SkipEntry e = parse(parse, window, kSkipWindow);
  return e.step == 0 ? SkipEntry{0, kLongCode} : e;
}

}  // namespace

void PlainTables::FillDc(HuffmanSpec spec, DcTable& table) {
  for (unsigned window = 0; window < table.entry.size() - kTableSlack; ++window) {
    const Symbol symbol = Find(spec, window, kDcWindow);
    table.entry[window] = {};
    if (symbol.value < 0) continue;
    table.entry[window] = {static_cast<uint8_t>(symbol.length + symbol.value),
                           static_cast<uint8_t>(symbol.value), static_cast<uint8_t>(symbol.length),
                           0};
  }
}

void PlainTables::FillAc(HuffmanSpec spec, AcTable& table) {
  for (unsigned window = 0; window < table.entry.size() - kTableSlack; ++window) {
    table.entry[window] = AcEntryOf(spec, window);
  }
}

void PlainTables::FillSkip(HuffmanSpec spec, SkipTable& table) {
  for (unsigned window = 0; window < table.entry.size() - kTableSlack; ++window) {
    table.entry[window] = SkipEntryOf(spec, window);
  }
}

}  // namespace stoker::jpeg
