#include "transforms/jpeg/fast/entropy/entropy.h"

namespace stoker::jpeg {

namespace {

// Decodes bit by bit, as in T.81, F.2.2.
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

// Returns k of the last coefficient. `block` may be null.
int ParseBlock(PlainReader& r, const McuBlock& b, int32_t& predictor, int16_t* block,
               bool& damaged) {
  const int size = r.Symbol(b.dc->codes);
  if (size < 0) damaged = true;
  if (size > 0) predictor += r.Value(size);
  if (block != nullptr) block[0] = static_cast<int16_t>(predictor);
  int k = 0;
  while (k < 63) {
    const int symbol = r.Symbol(b.ac->codes);
    if (symbol == 0) break;
    if (symbol < 0 || k + (symbol >> 4) + 1 > 63) {
      damaged = true;
      break;
    }
    k += (symbol >> 4) + 1;
    const int value = r.Value(symbol & 15), index = kZigZag[static_cast<size_t>(k)];
    if (block != nullptr) block[index / 8 * kGroupRow + index % 8] = static_cast<int16_t>(value);
  }
  return k;
}

void ParseMcu(EntropyState& state, bool store, int column) {
  PlainReader r(state.reader);
  for (int i = 0; i < state.blocks; ++i) {
    const McuBlock& b = state.block[static_cast<size_t>(i)];
    const int at = column * b.columns + b.column;
    int16_t* const block =
        store ? b.groups + at / kGroupBlocks * kGroupStride + at % kGroupBlocks * 8 : nullptr;
    const int last =
        ParseBlock(r, b, state.dc[static_cast<size_t>(b.component)], block, state.damaged);
    if (store) b.last[at] = static_cast<uint8_t>(last);
  }
  state.reader = r.ToBitReader();
}

}  // namespace

void ParsePlain(McuRun& run) {
  EntropyState& state = *run.state;
  do {
    ParseMcu(state, run.store, run.column++);
    --run.count;
  } while (run.count != 0 && (run.column % kRoundMcus != 0 || !state.reader.Beyond(state.stop)));
}

}  // namespace stoker::jpeg
