// apply_step STEP WIDTH HEIGHT COUNT [plain]: does one step on COUNT images of three planes, read
// from stdin one after the other, and writes them to stdout.
// tests/python/transforms/test_augment_steps.py compares them with torchvision.
//
// STEP: its name and parameters with commas between them, as in brightness,1.5 (see Parse).
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

#include "transforms/augment/augmenter.h"

namespace stoker {
namespace {

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "apply_step: %s\n", message.c_str());
  std::exit(2);
}

struct Words {
  explicit Words(const std::string& text) {
    std::istringstream stream(text);
    std::getline(stream, name, ',');
    for (std::string word; std::getline(stream, word, ',');) {
      numbers.push_back(std::strtod(word.c_str(), nullptr));
    }
  }
  double operator[](size_t i) const { return i < numbers.size() ? numbers[i] : 0; }
  float Float(size_t i) const { return static_cast<float>((*this)[i]); }
  int Int(size_t i) const { return static_cast<int>((*this)[i]); }
  Fill FillAt(size_t i) const {
    return {static_cast<uint8_t>(Int(i)), static_cast<uint8_t>(Int(i + 1)),
            static_cast<uint8_t>(Int(i + 2))};
  }
  std::string name;
  std::vector<double> numbers;
};

Step Parse(const Words& words) {
  const std::string& name = words.name;
  if (name == "brightness") return AdjustBrightness{words.Float(0)};
  if (name == "contrast") return AdjustContrast{words[0]};
  if (name == "saturation") return AdjustSaturation{words[0]};
  if (name == "sharpness") return AdjustSharpness{words[0]};
  if (name == "hue") return AdjustHue{words.Float(0)};
  if (name == "hsv") return AdjustHsv{words.Float(0), words.Float(1), words.Float(2)};
  if (name == "grayscale") return Grayscale{};
  if (name == "permute") {
    const Fill from = words.FillAt(0);
    return PermuteChannels{{from[0], from[1], from[2]}};
  }
  if (name == "posterize") return Posterize{words.Int(0)};
  if (name == "solarize") return Solarize{words.Float(0)};
  if (name == "invert") return Invert{};
  if (name == "autocontrast") return AutoContrast{};
  if (name == "equalize") return Equalize{};
  if (name == "blur") return Blur{{words.Int(0), words.Int(1)}, words[2], words[3]};
  if (name == "nearest" || name == "bilinear" || name == "faded") {  // matrix, fill
    Affine affine;
    for (size_t i = 0; i < 6; ++i) affine.matrix[i] = words[i];
    if (name != "nearest") affine.interpolation = Interpolation::kBilinear;
    affine.fade = name == "faded";
    affine.fill = words.FillAt(6);
    return affine;
  }
  if (name == "reframe") {  // x, y, width, height, padding, fill
    return Reframe{{words.Int(0), words.Int(1), words.Int(2), words.Int(3)},
                   static_cast<Padding>(words.Int(4)),
                   words.FillAt(5)};
  }
  if (name == "mirror") return Mirror{words.Int(0) != 0, words.Int(1) != 0};
  Fail("no step is called " + name);
}

void Run(const Step& step, ImageSize size, int count, bool plain) {
  MemoryBudget budget(uint64_t{1} << 32);
  Augmenter augmenter(budget);
  std::vector<uint8_t> pixels;
  for (int i = 0; i < count; ++i) {
    pixels.resize(3 * Tile{nullptr, size}.plane_bytes());
    if (std::fread(pixels.data(), 1, pixels.size(), stdin) != pixels.size()) Fail("input ends");
    if (plain) {
      ImageSize written = size;
      ApplyStepPlain(step, written, pixels);
    } else {
      if (Status status = augmenter.Start(size); !status) Fail(status.error().ToString());
      std::copy(pixels.begin(), pixels.end(), augmenter.tile().pixels);
      if (Status status = augmenter.Apply(step); !status) Fail(status.error().ToString());
      const Tile& tile = augmenter.tile();
      pixels.assign(tile.pixels, tile.pixels + 3 * tile.plane_bytes());
    }
    std::fwrite(pixels.data(), 1, pixels.size(), stdout);
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  using stoker::Fail;
  if (argc < 5) Fail("apply_step STEP WIDTH HEIGHT COUNT [plain]");
  stoker::Run(stoker::Parse(stoker::Words(argv[1])), {std::atoi(argv[2]), std::atoi(argv[3])},
              std::atoi(argv[4]), argc > 5 && std::string(argv[5]) == "plain");
  return 0;
}
