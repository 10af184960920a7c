// The reference for Augmenter.
#include <utility>

#include "transforms/augment/augmenter.h"
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

class PlainStep {
 public:
  PlainStep(ImageSize& size, std::vector<uint8_t>& pixels)
      : size_(size), pixels_(pixels), tile_{pixels.data(), size} {}

  template <HasTable One>
  void operator()(const One& step) {
    LookUpAll(TableOf(step));
  }
  template <IsRecolouring One>
  void operator()(const One& step) {
    RecolourPlain(step, tile_);
  }
  void operator()(const AdjustContrast& step) {
    const double mean =
        static_cast<double>(SumOfGrayPlain(tile_)) / static_cast<double>(tile_.plane_bytes());
    LookUpAll(ContrastTable(step.factor, static_cast<float>(mean)));
  }
  void operator()(const PermuteChannels& step) {
    ReplaceTile(size_, [&](const Tile& to) {
      for (size_t i = 0; i < to.plane_bytes(); ++i) {
        for (size_t c = 0; c < 3; ++c) to.plane(c)[i] = tile_.plane(step.from[c])[i];
      }
    });
  }
  void operator()(const AutoContrast&) {
    for (size_t c = 0; c < 3; ++c) {
      const size_t count = tile_.plane_bytes();
      LookUpPlain(AutoContrastTable(FindRangePlain(tile_.plane(c), count)), tile_.plane(c), count);
    }
  }
  void operator()(const Equalize&) {
    for (size_t c = 0; c < 3; ++c) {
      const size_t count = tile_.plane_bytes();
      LookUpPlain(EqualizeTable(CountValuesPlain(tile_.plane(c), count)), tile_.plane(c), count);
    }
  }
  void operator()(const AdjustSharpness& step) {
    ReplaceTile(size_, [&](const Tile& to) { SharpenPlain(tile_, step.factor, to); });
  }
  void operator()(const Blur& step) {
    ReplaceTile(size_, [&](const Tile& to) { BlurPlain(tile_, step, to); });
  }
  void operator()(const Affine& step) {
    ReplaceTile(step.size.value_or(size_), [&](const Tile& to) { MapPlain(tile_, step, to); });
  }
  void operator()(const Reframe& step) {
    ReplaceTile(step.window.size(), [&](const Tile& to) { ReframePlain(tile_, step, to); });
  }
  void operator()(const Mirror& step) {
    ReplaceTile(size_, [&](const Tile& to) { MirrorPlain(tile_, step, to); });
  }
  void operator()(const Paste& step) {
    const std::vector<uint8_t> image = pixels_;
    const auto width = static_cast<size_t>(size_.width);
    for (size_t i = 0; i < image.size(); ++i) {
      const size_t x = i % width;
      if (step.inside == nullptr || step.inside[i % tile_.plane_bytes()] == 0) continue;
      pixels_[i] = step.other != nullptr ? step.other[i] : image[i - x + (width - 1 - x)];
    }
  }
  void operator()(const Mix& mix) {
    std::vector<float> sums(pixels_.size());
    AddWeightedPlain(mix.weight, pixels_.data(), sums.size(), sums.data());
    for (const Mix::Chain& chain : mix.chains) {
      std::vector<uint8_t> copy = pixels_;
      for (const ChainedStep& chained : chain.steps) ApplyStepPlain(chained.step, size_, copy);
      AddWeightedPlain(chain.weight, copy.data(), sums.size(), sums.data());
    }
    CutSumsPlain(sums.data(), sums.size(), pixels_.data());
  }

 private:
  void LookUpAll(const ValueTable& table) {
    LookUpPlain(table, tile_.pixels, 3 * tile_.plane_bytes());
  }

  template <typename Write>
  void ReplaceTile(ImageSize size, Write write) {
    std::vector<uint8_t> written(3 * Tile{nullptr, size}.plane_bytes());
    write(Tile{written.data(), size});
    size_ = size;
    pixels_ = std::move(written);
  }

  ImageSize& size_;
  std::vector<uint8_t>& pixels_;
  Tile tile_;
};

}  // namespace

void ApplyStepPlain(const Step& step, ImageSize& size, std::vector<uint8_t>& pixels) {
  std::visit(PlainStep(size, pixels), step);
}

}  // namespace stoker
