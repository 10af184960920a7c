#include "tests/gpu/decode/forged_crops.h"

#include <array>
#include <cstring>

#include "gpu/decode/decode_crops.h"
#include "tests/fuzz/fuzzed_rows.h"
#include "tests/gpu/decode/made_crops.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/unpack.h"

namespace stoker::testing {
namespace {

using decode::CropRun;
using decode::DeviceCrop;

std::array<uint16_t, 64> TableOf(const DeviceCrop& crop, size_t component) {
  std::array<uint16_t, 64> table{};
  for (size_t i = 0; i < 64; ++i) table[i] = crop.factor[component][i % 8][i / 8];
  return table;
}

// The samples of a run are those of the CPU's decoder, whatever its bits are.
void RequireSamples(const DeviceCrop& crop, const uint8_t* bytes, const CropRun& run,
                    const uint8_t* samples) {
  constexpr ptrdiff_t kStride = 8 * packed::kRunBlocks;
  std::array<uint8_t, 8 * kStride> want{};
  packed::Quantiser quantiser;
  SetQuantiser(TableOf(crop, run.component), quantiser);
  packed::TransformRun(bytes + run.at, run.from, run.to, quantiser, want.data(), kStride);
  const size_t stride = crop.plane[run.component].stride;
  const size_t width = (run.to - run.from) * size_t{decode::kGroupSamples};
  const uint8_t* const got = samples + size_t{run.samples} * decode::kGroupSamples;
  for (size_t y = 0; y < 8; ++y) {
    Require(std::memcmp(got + y * stride, want.data() + y * kStride, width) == 0,
            "devices decode the samples that the CPU decodes");
  }
}

}  // namespace

bool DecodeForgedCrop(std::span<const uint8_t> file, Random& random) {
  const Result<packed::PackedFile> packed = packed::PackedFile::Open(file);
  if (!packed.ok()) return false;
  const ImageSize output{random.Between(1, 60), random.Between(1, 60)};
  MadeCrops made(output);
  if (!made.Add(file, RandomCrop(random, packed->frame().size, output)).ok()) {
    return false;
  }
  const decode::CropBatch batch = made.Batch();
  DecodeCropsOnHost(batch);
  DeviceCrop crop;
  std::memcpy(static_cast<void*>(&crop), batch.bytes, sizeof(crop));
  for (uint32_t i = 0; i < crop.runs; ++i) {
    CropRun run;
    std::memcpy(&run, batch.bytes + crop.runs_at + i * sizeof(run), sizeof(run));
    RequireSamples(crop, batch.bytes, run, batch.samples);
  }
  return true;
}

}  // namespace stoker::testing
