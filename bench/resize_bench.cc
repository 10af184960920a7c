// Measures the microseconds of resampling one photograph, including its weights, by layout and
// instruction set: the boxes that RandomResizedCrop(224) draws from a 500 × 375 photograph, and
// Resize(256) + CenterCrop(224). With STOKER_PHOTOS set to a directory of JPEGs it also measures
// the resize stage of whole plans on those, with cold caches; the counter decode_us is the decode
// stage of the same runs.
//
// The column Time is the resampling alone, Iterations are photographs. Run all instruction sets in
// one call with --benchmark_repetitions and --benchmark_enable_random_interleaving to compare.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <hwy/targets.h>

#include "core/memory/buffer.h"
#include "transforms/plan/draw.h"
#include "transforms/plan/plan.h"
#include "transforms/resize/resampler.h"

namespace stoker {
namespace {

constexpr ImageSize kPhoto{500, 375};
constexpr ImageSize kOutput{224, 224};
constexpr int kRowsAtATime = 16;  // as delivered by a decoder of 4:2:0

std::vector<uint8_t> Pixels(size_t bytes) {
  std::vector<uint8_t> pixels(bytes);
  uint32_t state = 1;
  for (uint8_t& p : pixels) p = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return pixels;
}

Resampling TrainTask(uint64_t position) {
  RandomStream random({1, 0, position}, 0);
  Resampling task;
  task.image = kPhoto;
  task.resized = kOutput;
  task.window = {0, 0, 224, 224};
  task.box = DrawResizedBox({224, 224}, kPhoto, random);
  task.turn.mirror_columns = position % 2 == 1;
  return task;
}

Resampling EvalTask(uint64_t) {
  Resampling task;
  task.image = kPhoto;
  task.box = {0, 0, 500, 375};
  task.resized = SizeAfter({.size = 256}, kPhoto);
  task.window = CenterBox(kOutput, task.resized);
  return task;
}

void Deliver(const std::vector<uint8_t>& pixels, PixelLayout layout, const Rect& region,
             RowSink& sink) {
  if (!sink.Begin({layout, region})) std::abort();
  const size_t bytes = static_cast<size_t>(region.width * BytesPerPixel(layout));
  for (int y = 0; y < region.height;) {
    const MutableImageView view = sink.Reserve(std::min(kRowsAtATime, region.height - y));
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(layout)); ++p) {
      for (int r = 0; r < view.size.height; ++r) {
        std::memcpy(view.plane[p] + r * view.stride[p],
                    pixels.data() + static_cast<size_t>(y + r) * bytes, bytes);
      }
    }
    sink.Commit(view.size.height);
    y += view.size.height;
  }
}

void Run(benchmark::State& state, int64_t target, Resampling (*make_task)(uint64_t),
         PixelLayout layout, DType dtype, bool antialias) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  MemoryBudget budget(64 << 20);
  Resampler resampler(budget);
  const std::vector<uint8_t> pixels = Pixels(500 * 375 * 3);
  std::vector<uint8_t> batch(16 * 224 * 224 * 3 * sizeof(float));
  constexpr float kScale[3] = {1 / 255.f, 1 / 255.f, 1 / 255.f}, kBias[3] = {};
  PixelOutput output{nullptr, dtype, kScale, kBias};
  uint64_t position = 0;
  for (auto _ : state) {
    Resampling task = make_task(position % 1000);
    task.antialias = antialias;
    output.row = batch.data() + (position++ % 16) * (batch.size() / 16);
    resampler.Reset();
    const Result<Rect> region = resampler.Start(task, output);
    Deliver(pixels, layout, *region, resampler);
    state.SetIterationTime(static_cast<double>(resampler.busy_ns()) * 1e-9);
  }
  hwy::SetSupportedTargetsForTest(0);
}

// Returns files' bytes, with the padding that Apply may read.
std::vector<std::vector<uint8_t>> ReadPhotos(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::vector<uint8_t>> photos;
  for (const auto& path : paths) {
    std::ifstream stream(path, std::ios::binary);
    photos.emplace_back(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    photos.back().resize(photos.back().size() + kBufferPadding);
  }
  return photos;
}

void RunPlan(benchmark::State& state, int64_t target, const Plan& plan,
             const std::vector<std::vector<uint8_t>>& photos) {
  hwy::SetSupportedTargetsForTest(target);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  MemoryBudget budget(uint64_t{1} << 30);
  auto workspace = plan.MakeWorkspace(budget);
  GrowingBuffer batch(budget);  // aligned, as a loader's batches are
  if (!batch.Grow(64 * plan.row_bytes())) std::abort();
  std::memset(batch.data(), 0, 64 * plan.row_bytes());  // touches the pages, as in a loader
  StageTimes all;
  uint64_t position = 0;
  for (auto _ : state) {
    const std::vector<uint8_t>& photo = photos[position % photos.size()];
    StageTimes times;
    const Status status =
        plan.Apply({photo.data(), photo.size() - kBufferPadding}, {1, 0, position}, *workspace,
                   batch.data() + (position % 64) * plan.row_bytes(), times);
    if (!status) state.SkipWithError(status.error().cause.c_str());
    state.SetIterationTime(static_cast<double>(times.resize_ns) * 1e-9);
    all.decode_ns += times.decode_ns;
    ++position;
  }
  state.counters["decode_us"] =
      static_cast<double>(all.decode_ns) / 1e3 / static_cast<double>(position);
  hwy::SetSupportedTargetsForTest(0);
}

void RegisterPlans(const char* folder) {
  static const std::vector<std::vector<uint8_t>> photos = ReadPhotos(folder);
  static const Plan train =
      Plan::Compile({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}}).value();
  static const Plan eval = Plan::Compile({Resize{256}, CenterCrop{224, 224}}).value();
  const auto train_as = [](DType dtype, Layout layout) {
    return Plan::Compile({RandomResizedCrop{224, 224}, RandomHorizontalFlip{}},
                         {.dtype = dtype, .layout = layout})
        .value();
  };
  static const Plan planes = train_as(DType::kU8, Layout::kNchw);
  static const Plan f16 = train_as(DType::kF16, Layout::kNhwc);
  static const Plan f32 = train_as(DType::kF32, Layout::kNhwc);
  static const Plan f32_planes = train_as(DType::kF32, Layout::kNchw);
  for (const auto& [name, plan] : {std::pair("photos_train/", &train),
                                   {"photos_eval/", &eval},
                                   {"photos_train_nchw/", &planes},
                                   {"photos_train_f16/", &f16},
                                   {"photos_train_f32/", &f32},
                                   {"photos_train_f32_nchw/", &f32_planes}}) {
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
      benchmark::RegisterBenchmark(
          (std::string(name) + hwy::TargetName(target)).c_str(),
          [plan = plan, target](benchmark::State& state) { RunPlan(state, target, *plan, photos); })
          ->UseManualTime()
          ->Iterations(static_cast<int64_t>(photos.size()))
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

void Register() {
  struct Case {
    const char* name;
    Resampling (*task)(uint64_t);
    PixelLayout layout;
    DType dtype;
    bool antialias;
  };
  static constexpr Case kCases[] = {
      {"train", TrainTask, PixelLayout::kInterleaved, DType::kU8, true},
      {"train_planar", TrainTask, PixelLayout::kPlanar, DType::kU8, true},
      {"train_gray", TrainTask, PixelLayout::kGray, DType::kU8, true},
      {"train_f32", TrainTask, PixelLayout::kInterleaved, DType::kF32, true},
      {"train_plain_bilinear", TrainTask, PixelLayout::kInterleaved, DType::kU8, false},
      {"eval", EvalTask, PixelLayout::kInterleaved, DType::kU8, true},
  };
  for (const Case& c : kCases) {
    for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
      const std::string name = std::string(c.name) + "/" + hwy::TargetName(target);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [c, target](benchmark::State& state) {
                                     Run(state, target, c.task, c.layout, c.dtype, c.antialias);
                                   })
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
    }
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::Register();
  if (const char* folder = std::getenv("STOKER_PHOTOS")) stoker::RegisterPlans(folder);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
