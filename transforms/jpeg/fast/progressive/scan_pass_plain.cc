#include "transforms/jpeg/fast/entropy/plain_reader.h"
#include "transforms/jpeg/fast/progressive/scan_pass.h"

namespace stoker::jpeg {

namespace {

int16_t* BlockAt(const BlockSpan& blocks, int index) {
  const int at = blocks.first + index;
  return blocks.groups + at / kGroupBlocks * kGroupStride + at % kGroupBlocks * 8;
}

int16_t& At(int16_t* block, int k) {
  const int natural = kZigZag[static_cast<size_t>(k)];
  return block[natural / 8 * kGroupRow + natural % 8];
}

int16_t Shifted(int32_t value, int low) {
  return static_cast<int16_t>(static_cast<int64_t>(value) << low);
}

struct Symbol {
  int run = 0;
  int size = 0;
};

Symbol TakeSymbol(PlainReader& r, const AcScan& scan, bool& damaged) {
  const int symbol = r.Symbol(scan.table->codes);
  if (symbol < 0) {
    damaged = true;
    return {};
  }
  return {symbol >> 4, symbol & 15};
}

bool EndsBlock(const Symbol& s) { return s.size == 0 && s.run < 15; }

uint32_t TakeEndRun(PlainReader& r, int bits) {
  return (uint32_t{1} << bits) + static_cast<uint32_t>(r.Bits(bits));
}

// T.81, G.1.2.2.
void DecodeBlock(PlainReader& r, AcScan& scan, int16_t* block, bool& damaged) {
  for (int k = scan.first; k <= scan.last; ++k) {
    const Symbol s = TakeSymbol(r, scan, damaged);
    if (EndsBlock(s)) {
      scan.end_run = TakeEndRun(r, s.run);
      break;
    }
    k += s.run;
    damaged |= k > scan.last;
    if (damaged) return;
    if (s.size != 0) At(block, k) = Shifted(r.Value(s.size), scan.low);
  }
  if (scan.end_run != 0) --scan.end_run;
}

// T.81, G.1.2.3: reads a bit for a coefficient that is not zero.
void Correct(PlainReader& r, const AcScan& scan, int16_t& c) {
  if (r.Bit() == 1) c = static_cast<int16_t>(c + (c > 0 ? 1 : -1) * (1 << scan.low));
}

void RefineBlock(PlainReader& r, AcScan& scan, int16_t* block, bool& damaged) {
  int k = scan.first;
  while (scan.end_run == 0 && k <= scan.last) {
    const Symbol s = TakeSymbol(r, scan, damaged);
    if (EndsBlock(s)) {
      scan.end_run = TakeEndRun(r, s.run);
      break;
    }
    const int value = r.Value(s.size);
    damaged |= s.size > 1;
    int zeros = s.run;
    for (; k <= scan.last && !damaged; ++k) {
      int16_t& c = At(block, k);
      if (c != 0) {
        Correct(r, scan, c);
      } else if (zeros-- == 0) {
        break;
      }
    }
    damaged |= k > scan.last;
    if (damaged) return;
    At(block, k++) = Shifted(value, scan.low);
  }
  if (scan.end_run == 0) return;
  --scan.end_run;
  for (; k <= scan.last; ++k) {
    if (At(block, k) != 0) Correct(r, scan, At(block, k));
  }
}

// Calls decode(reader, index) for one after another; an index is a block's, or an MCU's.
template <class Decode>
int ForEach(EntropyState& state, int from, int to, const Decode& decode) {
  int i = from;
  for (; i < to && !state.damaged && !state.reader.Beyond(state.stop); ++i) {
    PlainReader r(state.reader);
    decode(r, i);
    state.reader = r.ToBitReader();
  }
  return i;
}

template <class Decode>
int ForEachBlock(EntropyState& state, const DcScan& scan, int from, int to, const Decode& decode) {
  return ForEach(state, from, to, [&](PlainReader& r, int mcu) {
    for (int s = 0; s < scan.spans; ++s) {
      const McuSpan& span = scan.span[static_cast<size_t>(s)];
      for (int i = 0; i < span.columns; ++i) {
        decode(r, span, BlockAt(span.blocks, mcu * span.columns + i)[0]);
      }
    }
  });
}

}  // namespace

int PlainPass::DecodeAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from,
                        int to) {
  return ForEach(state, from, to, [&](PlainReader& r, int i) {
    if (scan.end_run != 0) {
      --scan.end_run;
    } else {
      DecodeBlock(r, scan, BlockAt(blocks, i), state.damaged);
    }
  });
}

int PlainPass::RefineAc(EntropyState& state, AcScan& scan, const BlockSpan& blocks, int from,
                        int to) {
  return ForEach(state, from, to, [&](PlainReader& r, int i) {
    RefineBlock(r, scan, BlockAt(blocks, i), state.damaged);
  });
}

int PlainPass::DecodeDc(EntropyState& state, const DcScan& scan, int from, int to) {
  const auto decode = [&](PlainReader& r, const McuSpan& span, int16_t& c) {
    const int size = r.Symbol(span.dc->codes);
    state.damaged |= size < 0;
    int32_t& predictor = state.dc[static_cast<size_t>(span.predictor)];
    if (size > 0) predictor += r.Value(size);
    c = Shifted(predictor, scan.low);
  };
  return ForEachBlock(state, scan, from, to, decode);
}

int PlainPass::RefineDc(EntropyState& state, const DcScan& scan, int from, int to) {
  return ForEachBlock(state, scan, from, to, [&](PlainReader& r, const McuSpan&, int16_t& c) {
    c = static_cast<int16_t>(c | r.Bit() << scan.low);
  });
}

}  // namespace stoker::jpeg
