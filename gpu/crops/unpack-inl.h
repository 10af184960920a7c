// The first kernel of packed JPEGs: turns a run into samples. A team of 32 threads takes a run and
// goes through its groups; the coefficients of a group never leave the team's memory.
//
// Team: `Each(f)` calls f(thread) on each thread of the team, and returns when all have done so.
// `EachUnawaited(f)` does not wait. A thread may read memory that others wrote, or overwrite memory
// that others read, only after an Each has returned in between.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/device_crop.h"
#include "core/batch/packed_run.h"
#include "core/batch/packed_widths.h"
#include "gpu/crops/clamped.h"
#include "gpu/crops/inverse_dct-inl.h"

namespace stoker::decode {
namespace {

inline constexpr uint32_t kUnpackThreads = 32;

// A quad's widths, 4 bits each, and in the bits above them its size in bytes, or its offset.
using QuadWord = uint32_t;
constexpr uint32_t WidthOf(QuadWord quad, uint32_t i) { return quad >> (4 * i) & 15; }
constexpr uint32_t BytesOf(QuadWord quad) { return quad >> 16; }

// The QuadWord of each index in kWidths, with the quad's size.
using QuadTable = std::array<QuadWord, packed::kTuples>;
constexpr QuadTable MakeQuadTable() {
  QuadTable table{};
  for (size_t tuple = 0; tuple < table.size(); ++tuple) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < 4; ++i) {
      const uint32_t width = packed::kWidths[tuple][i];
      table[tuple] |= width << (4 * i);
      bits += packed::kGroupBlocks * width;
    }
    table[tuple] |= bits / 8 << 16;
  }
  return table;
}

// Returns the place of each quad in the order of a run, by the quad's number, in 4 bits each.
constexpr uint64_t MakeQuadPlaces() {
  uint64_t places = 0;
  for (uint64_t place = 0; place < packed::kQuads; ++place) {
    places |= place << (4 * packed::kQuadOrder[place]);
  }
  return places;
}

// The memory that the threads of a team share.
struct UnpackMemory {
  // Between the passes of the inverse DCT. The distances of rows and blocks are such that neither
  // pass has two threads in a bank of the memory.
  static constexpr uint32_t kRow = 9, kBlock = 72;

  std::array<QuadTable::value_type, packed::kQuads> size;  // in the order of the run
  std::array<QuadTable::value_type, packed::kQuads> begin;
  uint32_t group_bytes;  // of all quads
  std::array<int32_t, packed::kRunBlocks> difference, dc;
  std::array<int32_t, packed::kGroupBlocks * kBlock> middle;
};

// 32 bits from bit `bit` of byte `byte` on.
constexpr uint32_t BitsAt(const uint32_t* crop, uint32_t byte, uint32_t bit) {
  const uint32_t at = 8 * byte + bit;
  const uint64_t both = uint64_t{crop[at / 32 + 1]} << 32 | crop[at / 32];
  return static_cast<uint32_t>(both >> at % 32);
}
constexpr uint32_t ByteAt(const uint32_t* crop, uint32_t byte) {
  return crop[byte / 4] >> (8 * (byte % 4)) & 0xff;
}

// The lowest `width` bits, in two's complement. At most 12.
constexpr int32_t Signed(uint32_t bits, uint32_t width) {
  const uint32_t all = uint32_t{1} << width, sign = all / 2;
  return static_cast<int32_t>(((bits & (all - 1)) ^ sign) - sign);
}

// ---- The threads' work.

// Thread t < kRunBlocks: DC difference t; then, the DC coefficient of block t.
constexpr void TakeDifference(const uint32_t* crop, uint32_t run, uint32_t t,
                              UnpackMemory& memory) {
  const auto width = static_cast<uint32_t>(packed::DcWidth(ByteAt(crop, run) & 15));
  memory.difference[t] = Signed(BitsAt(crop, run + 3, t * width), width);
}
constexpr void AddDifferences(const uint32_t* crop, uint32_t run, uint32_t t,
                              UnpackMemory& memory) {
  auto sum = static_cast<int32_t>(BitsAt(crop, run + 1, 0) & 0xffff);
  for (uint32_t i = 0; i < packed::kRunBlocks; ++i) sum += i <= t ? memory.difference[i] : 0;
  memory.dc[t] = Wrapped16(sum);
}

// Thread t < kQuads: quad t of the group in the order of the run; then its offset, after those
// before it. One more thread: the end of the last quad.
constexpr void TakeWidths(const uint32_t* crop, uint32_t group, uint32_t t, const QuadWord* table,
                          UnpackMemory& memory) {
  const uint32_t quads = ByteAt(crop, group);  // more than exist, if forged
  memory.size[t] = t < quads ? table[ByteAt(crop, group + 1 + t)] : 0;
}
constexpr void AddSizes(uint32_t t, UnpackMemory& memory) {
  uint32_t bytes = 0;
  for (uint32_t i = 0; i < packed::kQuads; ++i) bytes += i < t ? BytesOf(memory.size[i]) : 0;
  if (t == packed::kQuads) {
    memory.group_bytes = bytes;
  } else {
    memory.begin[t] = (memory.size[t] & 0xffff) | bytes << 16;
  }
}

// Thread t: column t % 8 of block t / 8 of the group, whose quads begin at `quads`. `dc` is the
// group's first block's.
constexpr void TransformColumn(const uint32_t* crop, uint32_t quads, const int32_t* dc,
                               const std::array<std::array<uint16_t, 8>, 8>& factors, uint32_t t,
                               UnpackMemory& memory) {
  constexpr uint64_t kPlaces = MakeQuadPlaces();
  const uint32_t block = t / 8, x = t % 8;
  const uint32_t pair = x / 4 * 2 + x % 2;  // of columns, and which of the two
  const uint32_t second = x / 2 % 2;
  const std::array<uint16_t, 8> factor = factors[x];
  std::array<int32_t, 8> line{};
  for (uint32_t rows = 0; rows < 4; ++rows) {  // pairs of rows, whose words lie side by side
    const QuadWord quad = memory.begin[kPlaces >> (4 * (4 * rows + pair)) & 15];
    const uint32_t w0 = WidthOf(quad, 0), w1 = WidthOf(quad, 1), w2 = WidthOf(quad, 2),
                   w3 = WidthOf(quad, 3);
    const uint32_t upper = second != 0 ? w2 : w0, lower = second != 0 ? w3 : w1;
    const uint32_t bit = block * (w0 + w1 + w2 + w3) + (second != 0 ? w0 + w1 : 0);
    const uint32_t words = BitsAt(crop, quads + BytesOf(quad), bit);
    const uint32_t y = rows / 2 * 4 + rows % 2;
    line[y] = Signed(words, upper);
    line[y + 2] = Signed(words >> upper, lower);
  }
  if (x == 0) line[0] |= dc[block];
  for (size_t y = 0; y < 8; ++y) line[y] = Wrapped16(line[y] * factor[y]);
  InverseDctColumn(line);
  for (uint32_t y = 0; y < 8; ++y) {
    memory.middle[block * UnpackMemory::kBlock + y * UnpackMemory::kRow + x] = line[y];
  }
}

// Thread t: row t % 8 of block t / 8. `to` is the group's first sample; `stride` is in blocks.
constexpr void TransformRow(uint32_t t, const UnpackMemory& memory, RowOfBlock* to,
                            uint32_t stride) {
  const uint32_t block = t / 8, y = t % 8;
  std::array<int32_t, 8> line{};
  for (uint32_t x = 0; x < 8; ++x) {
    line[x] = memory.middle[block * UnpackMemory::kBlock + y * UnpackMemory::kRow + x];
  }
  to[y * stride + block] = InverseDctRow(line);
}

// ---- A team's work: one run. `words`: the crop's bytes; `samples`: its samples.

template <class Team>
constexpr void UnpackRun(const Team& team, const DeviceCrop& crop, const CropRun& run,
                         const uint32_t* words, const QuadWord* table, UnpackMemory& memory,
                         RowOfBlock* samples) {
  team.Each([&](uint32_t t) {
    if (t < packed::kRunBlocks) TakeDifference(words, run.at, t, memory);
  });
  // TransformColumn reads the sums after two Each of its group.
  team.EachUnawaited([&](uint32_t t) {
    if (t < packed::kRunBlocks) AddDifferences(words, run.at, t, memory);
  });
  const auto dc_width = static_cast<uint32_t>(packed::DcWidth(ByteAt(words, run.at) & 15));
  uint32_t group = run.at + 3 + 2 * dc_width;
  RowOfBlock* to = samples + size_t{run.samples} * (kGroupSamples / 8);
  const uint32_t stride = crop.plane[run.component].stride / 8;
  for (uint32_t g = 0; g < run.to; ++g) {
    const uint32_t count = ByteAt(words, group);
    const uint32_t quads = group + 1 + (count < packed::kQuads ? count : packed::kQuads);
    team.Each([&](uint32_t t) {
      if (t < packed::kQuads) TakeWidths(words, group, t, table, memory);
    });
    team.Each([&](uint32_t t) {
      if (t <= packed::kQuads) AddSizes(t, memory);
    });
    group = quads + memory.group_bytes;
    if (g < run.from) continue;
    team.Each([&](uint32_t t) {
      TransformColumn(words, quads, &memory.dc[g * packed::kGroupBlocks],
                      crop.factor[run.component], t, memory);
    });
    // The next group's TransformColumn writes what this reads, after two Each of its own.
    team.EachUnawaited([&](uint32_t t) { TransformRow(t, memory, to, stride); });
    to += kGroupSamples / 8;
  }
}

}  // namespace
}  // namespace stoker::decode
