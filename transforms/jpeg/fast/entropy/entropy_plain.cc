#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/plain_reader.h"

namespace stoker::jpeg {

namespace {

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
