// PlainReader: reads bits and codes one bit at a time, for the references.
#pragma once

#include <cstdint>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/huffman.h"

namespace stoker::jpeg {

// Follows T.81, F.2.2.
class PlainReader {
 public:
  explicit PlainReader(const BitReader& r) : next_(r.next), have_(static_cast<int>(r.count)) {}

  int Bit() {
    // The bits in the other reader's window lie before `next`.
    const int at = used_++ - have_;
    const uint8_t byte = next_[at >= 0 ? at / 8 : -((-at + 7) / 8)];
    return byte >> (7 - (at & 7)) & 1;
  }

  int Bits(int count) {
    int value = 0;
    for (int i = 0; i < count; ++i) value = value << 1 | Bit();
    return value;
  }

  int Value(int size) {
    if (size == 0) return 0;
    const int bits = Bits(size);
    return bits < 1 << (size - 1) ? bits - (1 << size) + 1 : bits;
  }

  // Returns -1 if there is no such code.
  int Symbol(const LongCodes& codes) {
    int code = 0;
    for (int length = 1; length <= 16; ++length) {
      code = code << 1 | Bit();
      const auto at = static_cast<size_t>(length);
      if (code << (16 - length) < codes.limit[at]) {
        return codes.symbol[static_cast<size_t>(code + codes.offset[at])];
      }
    }
    return -1;
  }

  // Converts to a reader whose window is empty except for the rest of a partly used byte.
  BitReader ToBitReader() const {
    const int at = used_ - have_;
    const int bytes = at >= 0 ? (at + 7) / 8 : -(-at / 8);
    BitReader r;
    r.next = next_ + bytes;
    r.count = bytes * 8 - at;
    if (r.count != 0) {
      r.window = static_cast<uint64_t>(r.next[-1]) << (64 - r.count);
    }
    return r;
  }

 private:
  const uint8_t* next_;
  int have_;
  int used_ = 0;
};

}  // namespace stoker::jpeg
