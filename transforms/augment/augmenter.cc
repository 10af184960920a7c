#include "transforms/augment/augmenter.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/result/try.h"
#include "transforms/augment/blur/blur.h"
#include "transforms/augment/colour/colour.h"
#include "transforms/augment/colour/lookup.h"
#include "transforms/augment/colour/sharpen.h"
#include "transforms/augment/colour/weighted.h"
#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/geometry/mirror.h"
#include "transforms/augment/geometry/reframe.h"

namespace stoker {

namespace {

// ---- Steps executed in place.

void LookUpAll(const ValueTable& table, const Tile& tile) {
  LookUp(table, tile.pixels, 3 * tile.plane_bytes());
}

// table_of(values, count): returns the table of a channel.
template <typename TableOf>
void LookUpEach(const Tile& tile, TableOf table_of) {
  const size_t count = tile.plane_bytes();
  for (size_t c = 0; c < 3; ++c) LookUp(table_of(tile.plane(c), count), tile.plane(c), count);
}

template <HasTable One>
void ApplyInPlace(const One& step, const Tile& tile) {
  LookUpAll(TableOf(step), tile);
}

template <IsRecolouring One>
void ApplyInPlace(const One& step, const Tile& tile) {
  Recolour(step, tile);
}

void ApplyInPlace(const AdjustContrast& step, const Tile& tile) {
  const double mean =
      static_cast<double>(SumOfGray(tile)) / static_cast<double>(tile.plane_bytes());
  LookUpAll(ContrastTable(step.factor, static_cast<float>(mean)), tile);
}

void ApplyInPlace(const AutoContrast&, const Tile& tile) {
  LookUpEach(tile, [](const uint8_t* values, size_t count) {
    return AutoContrastTable(FindRange(values, count));
  });
}

void ApplyInPlace(const Equalize&, const Tile& tile) {
  LookUpEach(tile, [](const uint8_t* values, size_t count) {
    return EqualizeTable(CountValues(values, count));
  });
}

// Swaps at most two pairs of planes.
void ApplyInPlace(const PermuteChannels& step, const Tile& tile) {
  std::array<uint8_t, 3> held{0, 1, 2};  // the channel that each plane has
  for (size_t c = 0; c < 2; ++c) {
    size_t at = c;
    while (held[at] != step.from[c]) ++at;
    if (at == c) continue;
    std::swap(held[c], held[at]);
    std::swap_ranges(tile.plane(c), tile.plane(c) + tile.plane_bytes(), tile.plane(at));
  }
}

Result<Tile> TileIn(GrowingBuffer& buffer, ImageSize size, size_t channels) {
  TRY(buffer.Grow(channels * Tile{nullptr, size}.plane_bytes() + kTileOverread));
  return Tile{buffer.data(), size, channels};
}

}  // namespace

Augmenter::Augmenter(MemoryBudget& budget, Displacements* displacements)
    : displacements_(displacements),
      current_(budget),
      other_(budget),
      scratch_(budget),
      mixed_(budget) {}

Status Augmenter::Start(ImageSize size, size_t channels) {
  tile_ = Tile();
  ASSIGN_OR_RETURN(tile_, TileIn(current_, size, channels));
  return {};
}

Status Augmenter::Apply(const Step& step) {
  return std::visit([this](const auto& one) { return Do(one); }, step);
}

template <typename InPlace>
Status Augmenter::Do(const InPlace& step) {
  ApplyInPlace(step, tile_);
  return {};
}

// ---- Steps that write to the other buffer.

template <typename Write>
Status Augmenter::ReplaceTile(ImageSize size, Write write) {
  ASSIGN_OR_RETURN(Tile to, TileIn(other_, size, tile_.channels));
  write(to);
  std::swap(current_, other_);
  tile_ = to;
  return {};
}

Status Augmenter::Do(const AdjustSharpness& step) {
  return ReplaceTile(tile_.size, [&](const Tile& to) { Sharpen(tile_, step.factor, to); });
}

Status Augmenter::Do(const Blur& step) {
  TRY(scratch_.Grow(BlurScratchBytes(step, tile_.size)));
  return ReplaceTile(tile_.size, [&](const Tile& to) { BlurTo(tile_, step, scratch_.data(), to); });
}

Status Augmenter::Do(const Affine& step) {
  ASSIGN_OR_RETURN(const size_t bytes, AffineScratchBytes(tile_.size));
  TRY(scratch_.Grow(bytes));
  Displacement moved;
  if (step.noise) {
    ASSIGN_OR_RETURN(moved, displacements_->Get(*step.noise, tile_.size));
  }
  return ReplaceTile(step.size.value_or(tile_.size),
                     [&](const Tile& to) { MapTo(tile_, step, moved, scratch_.data(), to); });
}

Status Augmenter::Do(const Reframe& step) {
  return ReplaceTile(step.window.size(), [&](const Tile& to) { ReframeTo(tile_, step, to); });
}

Status Augmenter::Do(const Mirror& step) {
  return ReplaceTile(tile_.size, [&](const Tile& to) { MirrorTo(tile_, step, to); });
}

Status Augmenter::Do(const Paste& step) {
  const auto put = [&step](const uint8_t* from, bool inside, const Tile& to) {
    for (size_t c = 0; c < to.channels; ++c, from += to.plane_bytes()) {
      uint8_t* const pixels = to.plane(c);
      for (size_t i = 0; i < to.plane_bytes(); ++i) {
        pixels[i] = (step.inside[i] != 0) == inside ? from[i] : pixels[i];
      }
    }
  };
  if (step.inside == nullptr) return {};
  if (step.other != nullptr) {
    put(step.other, true, tile_);
    return {};
  }
  return ReplaceTile(tile_.size, [&](const Tile& to) {
    MirrorTo(tile_, {.columns = true}, to);
    put(tile_.pixels, false, to);
  });
}

// ---- Steps of steps.

uint64_t Augmenter::MixBytes(ImageSize size) {
  const uint64_t count = 3 * uint64_t{Tile{nullptr, size}.plane_bytes()};
  return (count + kSumsOverread) * sizeof(float) + count + kTileOverread;
}

Status Augmenter::Do(const Mix& mix) {
  const size_t count = 3 * tile_.plane_bytes();
  TRY(mixed_.Grow(MixBytes(tile_.size)));
  auto* const sums = reinterpret_cast<float*>(mixed_.data());
  uint8_t* const image = reinterpret_cast<uint8_t*>(sums + count + kSumsOverread);
  std::fill_n(sums, count, 0.0F);
  std::copy_n(tile_.pixels, count, image);
  AddWeighted(mix.weight, image, count, sums);
  for (const Mix::Chain& chain : mix.chains) {
    std::copy_n(image, count, tile_.pixels);
    for (const ChainedStep& chained : chain.steps) TRY(Apply(chained.step));
    AddWeighted(chain.weight, tile_.pixels, count, sums);
  }
  CutSums(sums, count, tile_.pixels);
  return {};
}

}  // namespace stoker
