#include "tests/torture/option_sets.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

#include "core/memory/buffer.h"
#include "core/numbers/random.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/samples/indexed_photos.h"
#include "tests/testing/threads/executors.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::testing {
namespace {

class Draws {
 public:
  Draws(uint64_t seed, uint64_t number) : random_({seed, 0, number}, 0) {}
  bool Chance(double p) { return random_.Uniform() < p; }
  template <typename T, size_t kCount>
  T OneOf(const T (&values)[kCount]) {
    return values[random_.Below(kCount)];
  }
  uint64_t Below(uint64_t n) { return random_.Below(n); }
  double Uniform(double low, double high) { return random_.Uniform(low, high); }

 private:
  RandomStream random_;
};

// Very many rows of a small output are made at a time; then `ordinary` photographs are not used.
Transform DrawGeometry(Draws& draw, bool& ordinary) {
  const int sides[] = {7, 9, 32, 64, 96, 160, 224, 224, 384};
  const int width = draw.OneOf(sides), height = draw.OneOf(sides);
  ordinary = ordinary && std::min(width, height) >= 32;
  switch (draw.Below(4)) {
    case 0:
      return RandomResizedCrop{.height = height, .width = width};
    case 1:
      return Resize{.height = height, .width = width, .antialias = draw.Chance(0.5)};
    case 2:
      return RandomCrop{.height = height, .width = width, .pad_if_needed = true};
    default:
      return CenterCrop{height, width};
  }
}

std::vector<Transform> DrawTransforms(Draws& draw, DType dtype, bool& ordinary) {
  std::vector<Transform> all = {DrawGeometry(draw, ordinary)};
  if (draw.Chance(0.5)) all.push_back(RandomHorizontalFlip{});
  if (draw.Chance(0.1)) all.push_back(RandomVerticalFlip{});
  if (draw.Chance(0.2)) all.push_back(ColorJitter{.brightness = {0.6, 1.4}, .hue = {-0.1, 0.1}});
  if (draw.Chance(0.2)) all.push_back(GaussianBlur{.kernel_height = 7, .kernel_width = 5});
  if (draw.Chance(0.2)) all.push_back(TrivialAugmentWide{});
  if (dtype != DType::kU8 && draw.Chance(0.5)) {
    all.push_back(Normalize{{0.5F, 0.4F, 0.3F}, {0.2F, 0.2F, 0.2F}});
  }
  if (draw.Chance(0.2)) all.push_back(RandomErasing{});
  return all;
}

// The photographs with crop indexes; useless ones have as many bytes as their files.
std::shared_ptr<const SampleSource> WithIndexes(std::vector<Photograph> photographs, bool useless) {
  jpeg::CropIndexMaker maker;
  std::vector<std::vector<uint8_t>> records;
  for (const Photograph& photograph : photographs) {
    std::vector<uint8_t> file = ReadFile(photograph.path), &record = records.emplace_back();
    const size_t size = file.size();
    file.resize(size + kBufferPadding);
    if (useless) {
      record.assign(size, 1);
    } else if (maker.Make(std::span(file).first(size), record) != Fallback::kNone) {
      record.clear();
    }
  }
  return std::make_shared<IndexedPhotos>(SourceOf(std::move(photographs)), std::move(records));
}

RuntimeOptions DrawRuntime(Draws& draw, uint64_t seed) {
  const std::vector<TestedExecutor> executors = ExecutorsUnderTest();
  const ReaderKind readers[] = {ReaderKind::kAuto, ReaderKind::kPread};
  const uint32_t reads[] = {1, 2, 8, 32, 200};
  RuntimeOptions runtime;
  runtime.threads = 1 + static_cast<int>(draw.Below(4));
  SetExecutor(executors[draw.Below(executors.size())], runtime, seed);
  runtime.reader = draw.OneOf(readers);
  runtime.reader_threads = 1 + static_cast<int>(draw.Below(2));
  runtime.reads_in_flight = draw.OneOf(reads);
  return runtime;
}

}  // namespace

OptionSet DrawSet(uint64_t seed, uint64_t number, const std::vector<Photograph>& photographs) {
  Draws draw(seed, number);
  OptionSet set;
  // Larger photographs are rarer; a third of the sets has ordinary ones alone.
  const bool ordinary = draw.Chance(0.3);
  std::vector<Photograph> some;
  const size_t count = 4 + draw.Below(40);
  while (some.size() < count) {
    const Photograph& one = photographs[draw.Below(photographs.size())];
    if (ordinary && !one.ordinary) continue;
    if (one.megapixels > 0.5 && !draw.Chance(1 / (1 + one.megapixels / 8))) continue;
    some.push_back(one);
  }
  set.huge = std::ranges::any_of(some, [](const Photograph& p) { return p.megapixels >= 50; });
  set.all_ordinary = std::ranges::all_of(some, &Photograph::ordinary);
  LoaderOptions& loader = set.loader;
  loader.source = SourceOf(some);
  const DType dtypes[] = {DType::kU8, DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  loader.dtype = draw.OneOf(dtypes);
  loader.layout = draw.Chance(0.3) ? Layout::kNchw : Layout::kNhwc;
  loader.transforms = DrawTransforms(draw, loader.dtype, set.all_ordinary);
  const uint32_t batches[] = {1, 2, 3, 4, 8, 16, 32};
  loader.batch_size = draw.OneOf(batches);
  const int depths[] = {0, 0, 0, 1, 2, 3, 6};
  loader.depth = draw.OneOf(depths);
  loader.lent_batches = 1;
  loader.shuffle = draw.Chance(0.5);
  loader.seed = draw.Below(1000);
  loader.epochs = 1;
  if (draw.Chance(0.2)) {  // several views instead of the one
    loader.views = {std::exchange(loader.transforms, {})};
    while (loader.views.size() < 2 + draw.Below(3)) {
      loader.views.push_back(DrawTransforms(draw, loader.dtype, set.all_ordinary));
    }
  } else if (draw.Chance(0.15) && loader.batch_size > 1) {
    loader.mix = BatchMix{.choices = {MixUp{}}};
  }
  set.runtime = DrawRuntime(draw, number);
  set.second = draw.Chance(0.2);
  const double budgets[] = {1, 1, 1.02, 1.2, 2, 5, 20, 100};
  set.budget = draw.OneOf(budgets);
  if (set.budget > 1) set.budget *= draw.Uniform(1, 1.3);
  if (draw.Chance(0.4)) loader.source = WithIndexes(std::move(some), draw.Chance(0.3));
  set.for_device = loader.views.empty() && !loader.mix && draw.Chance(0.3);
  if (set.for_device) loader.transforms = {RandomResizedCrop{.height = 64, .width = 48}};
  return set;
}

RuntimeOptions OtherMeans(const RuntimeOptions& runtime, uint64_t number) {
  Draws draw(~uint64_t{0}, number);
  RuntimeOptions other = DrawRuntime(draw, 0);
  other.threads = runtime.threads;
  other.memory_budget = runtime.memory_budget;
  return other;
}

}  // namespace stoker::testing
