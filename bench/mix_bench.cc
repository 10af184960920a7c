// Measures mixing a finished batch per row of 224 × 224 pixels, compared with reading and writing
// the same memory by memcpy. The batch lies in huge pages if available, like a loader's.
//
//   mix_bench [--benchmark_filter=f32]
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "core/memory/mapping.h"
#include "transforms/mix/draw_mix.h"
#include "transforms/mix/mix_rows.h"

namespace stoker {
namespace {

constexpr size_t kRows = 256, kSide = 224;

MixedRow RowOf(DType dtype, bool planes) {
  if (planes) return {dtype, 3, kSide, kSide, 1};
  return {dtype, 1, kSide, kSide, 3};
}

Mapping MakeBatch(size_t bytes) {
  Result<Mapping> batch = Mapping::Map(bytes, /*huge_pages=*/true);
  if (!batch.ok()) std::abort();
  std::memset(batch->data(), 0x3c, bytes);  // 60, 1.06, 0.0115: no subnormal numbers
  return *std::move(batch);
}

void Report(benchmark::State& state) {
  const auto rows = static_cast<double>(state.iterations()) * static_cast<double>(kRows);
  state.counters["us_per_row"] =
      benchmark::Counter(rows * 1e-6, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Mix(benchmark::State& state, DType dtype, bool planes, const DrawnMix& mix) {
  const MixedRow row = RowOf(dtype, planes);
  const Mapping batch = MakeBatch(kRows * row.bytes());
  for (auto _ : state) {
    MixRows(mix, row, kRows, batch.data());
    benchmark::ClobberMemory();
  }
  Report(state);
}

// Copies each row to another batch.
void Copy(benchmark::State& state, DType dtype) {
  const size_t bytes = RowOf(dtype, false).bytes();
  const Mapping from = MakeBatch(kRows * bytes), to = MakeBatch(kRows * bytes);
  for (auto _ : state) {
    for (size_t i = 0; i < kRows; ++i) {
      std::memcpy(to.data() + i * bytes, from.data() + i * bytes, bytes);
    }
    benchmark::ClobberMemory();
  }
  Report(state);
}

void Register() {
  constexpr int kMiddle = kSide / 2;
  const DrawnMix blend{false, 0.3, {}}, cut = CutAround(kMiddle, kMiddle, 0.5, {kSide, kSide});
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    const std::string name = NameOf(dtype);
    benchmark::RegisterBenchmark((name + "/memcpy").c_str(),
                                 [=](benchmark::State& s) { Copy(s, dtype); });
    benchmark::RegisterBenchmark((name + "/mixup").c_str(),
                                 [=](benchmark::State& s) { Mix(s, dtype, false, blend); });
    benchmark::RegisterBenchmark((name + "/cutmix_half").c_str(),
                                 [=](benchmark::State& s) { Mix(s, dtype, false, cut); });
    benchmark::RegisterBenchmark((name + "/cutmix_half_nchw").c_str(),
                                 [=](benchmark::State& s) { Mix(s, dtype, true, cut); });
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  stoker::Register();
  benchmark::RunSpecifiedBenchmarks();
}
