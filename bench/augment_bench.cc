// Measures the microseconds of one step on one image of 224 × 224, by instruction set, and of its
// reference.
//
// The image is synthetic, smooth and slightly noisy; with STOKER_PIXELS set to a file of raw planes
// (224 × 224 × 3 bytes per image) those images are used in rotation, because equal neighbors slow
// down counting. Each iteration begins with a copy into the tile; "copy" measures that copy alone.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <hwy/targets.h>

#include "transforms/augment/augmenter.h"
#include "transforms/augment/emit_tile.h"
#include "transforms/resize/emit.h"

namespace stoker {
namespace {

constexpr ImageSize kSize{224, 224};
constexpr size_t kBytes = 224 * 224 * 3;

std::vector<uint8_t> Pixels() {
  if (const char* path = std::getenv("STOKER_PIXELS")) {
    std::ifstream stream(path, std::ios::binary);
    std::vector<uint8_t> pixels(std::istreambuf_iterator<char>(stream), {});
    pixels.resize(pixels.size() / kBytes * kBytes);
    if (!pixels.empty()) return pixels;
  }
  std::vector<uint8_t> pixels(kBytes);
  uint32_t state = 1;
  for (size_t i = 0; i < kBytes; ++i) {
    state = state * 1664525 + 1013904223;
    const size_t x = i % 224, y = i / 224 % 224, c = i / (224 * 224);
    pixels[i] = static_cast<uint8_t>((x * (c + 1) + 2 * y) / 4 + (state >> 29));
  }
  return pixels;
}

const std::vector<uint8_t>& AllPixels() {
  static const std::vector<uint8_t> pixels = Pixels();
  return pixels;
}

const uint8_t* Image(uint64_t n) {
  return AllPixels().data() + n % (AllPixels().size() / kBytes) * kBytes;
}

void RunStep(benchmark::State& state, int64_t target, const Step* step) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  MemoryBudget budget(64 << 20);
  Augmenter augmenter(budget);
  uint64_t n = 0;
  for (auto _ : state) {
    if (!augmenter.Start(kSize)) std::abort();
    std::memcpy(augmenter.tile().pixels, Image(n++), kBytes);
    if (step != nullptr && !augmenter.Apply(*step)) std::abort();
    benchmark::DoNotOptimize(augmenter.tile().pixels);
    benchmark::ClobberMemory();
  }
  hwy::SetSupportedTargetsForTest(0);
}

void RunPlain(benchmark::State& state, const Step& step) {
  std::vector<uint8_t> pixels;
  uint64_t n = 0;
  for (auto _ : state) {
    pixels.assign(Image(n), Image(n) + kBytes);
    ++n;
    ImageSize size = kSize;
    ApplyStepPlain(step, size, pixels);
    benchmark::DoNotOptimize(pixels.data());
  }
}

void RunEmit(benchmark::State& state, int64_t target, DType dtype, Layout layout) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  std::vector<uint8_t> pixels(kBytes + kTileOverread);
  std::memcpy(pixels.data(), Image(0), kBytes);
  std::vector<float> row(kBytes + 16);
  constexpr float kScale[3] = {1 / 255.f, 1 / 255.f, 1 / 255.f}, kBias[3] = {};
  const RowFormat format({row.data(), dtype, kScale, kBias, layout}, kSize);
  for (auto _ : state) {
    EmitTile({pixels.data(), kSize}, format, reinterpret_cast<uint8_t*>(row.data()));
    FlushEmitted();
    benchmark::DoNotOptimize(row.data());
    benchmark::ClobberMemory();
  }
  hwy::SetSupportedTargetsForTest(0);
}

const std::vector<std::pair<const char*, Step>>& Steps() {
  static const Affine rotated{{0.9563, 0.2924, 0, -0.2924, 0.9563, 0}};
  static const Affine bilinear{rotated.matrix, Interpolation::kBilinear};
  static const std::vector<std::pair<const char*, Step>> steps = {
      {"brightness", AdjustBrightness{1.3F}},
      {"contrast", AdjustContrast{1.3F}},
      {"saturation", AdjustSaturation{1.3F}},
      {"hue", AdjustHue{0.1F}},
      {"sharpness", AdjustSharpness{1.3F}},
      {"grayscale", Grayscale{}},
      {"posterize", Posterize{4}},
      {"solarize", Solarize{128}},
      {"invert", Invert{}},
      {"autocontrast", AutoContrast{}},
      {"equalize", Equalize{}},
      {"blur_3", Blur{{3, 3}, 1, 1}},
      {"blur_9", Blur{{9, 9}, 2, 2}},
      {"blur_23", Blur{{23, 23}, 2, 2}},
      {"blur_23_wide", Blur{{23, 23}, 10, 10}},
      {"affine_nearest", rotated},
      {"affine_bilinear", bilinear},
      {"crop_padded", Reframe{{-3, 5, 224, 224}, Padding::kReflect}},
      {"crop_constant", Reframe{{-28, -28, 224, 224}, Padding::kConstant}},
      {"mirror", Mirror{true, false}},
      {"mirror_rows", Mirror{false, true}},
  };
  return steps;
}

void Register() {
  const auto add = [](const std::string& name, auto run) {
    benchmark::RegisterBenchmark(name.c_str(), run)->Unit(benchmark::kMicrosecond);
  };
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string suffix = std::string("/") + hwy::TargetName(target);
    add("copy" + suffix, [=](benchmark::State& state) { RunStep(state, target, nullptr); });
    for (const auto& [name, step] : Steps()) {
      add(name + suffix,
          [target, step = &step](benchmark::State& state) { RunStep(state, target, step); });
    }
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      for (const DType dtype : {DType::kU8, DType::kF32}) {
        add(std::string("emit_") + NameOf(dtype) + "_" + NameOf(layout) + suffix,
            [=](benchmark::State& state) { RunEmit(state, target, dtype, layout); });
      }
    }
  }
  for (const auto& [name, step] : Steps()) {
    add(std::string(name) + "/plain",
        [step = &step](benchmark::State& state) { RunPlain(state, *step); });
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::Register();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
