#include "tests/gpu/crops/forged_crops.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gpu/crops/decode_crops.h"
#include "tests/fuzz/decode/fuzzed_rows.h"
#include "tests/gpu/crops/made_crops.h"
#include "tests/gpu/crops/plain_interval.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/unpack.h"

namespace stoker::testing {
namespace {

using decode::CropCodes;
using decode::CropInterval;
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

DeviceCrop CropAt(const uint8_t* bytes) {
  DeviceCrop crop;
  std::memcpy(static_cast<void*>(&crop), bytes, sizeof(crop));
  return crop;
}

// The samples of all intervals are those of the reference, whatever the crop's bits are.
void RequireIntervals(const uint8_t* bytes, const uint8_t* samples) {
  const DeviceCrop crop = CropAt(bytes);
  for (uint32_t i = 0; i < crop.intervals; ++i) {
    DecodeIntervalPlain(bytes, i, [&](const PlainBlock& block) {
      const decode::CropPlane& plane = crop.plane[block.component];
      const uint8_t* const got = samples + size_t{plane.first} * decode::kGroupSamples +
                                 size_t{8} * block.row * plane.stride + size_t{8} * block.column;
      for (size_t y = 0; y < 8; ++y) {
        Require(std::memcmp(got + y * plane.stride, &block.samples[8 * y], 8) == 0,
                "devices decode the samples that the reference decodes");
      }
    });
  }
}

// Replaces some of the bytes [from, to), now and then by 0xFF or 0.
void Forge(uint8_t* from, const uint8_t* to, Random& random) {
  const auto size = static_cast<int>(to - from);
  if (size == 0 || random.OneIn(3)) return;
  for (int n = random.Between(1, 20); n > 0; --n) {
    const int value = random.OneIn(2) ? random.Between(0, 255) : random.OneIn(2) ? 255 : 0;
    from[random.Between(0, size - 1)] = static_cast<uint8_t>(value);
  }
}

// Changes what a crop's maker has not checked.
void ForgeCrop(uint8_t* bytes, Random& random) {
  const DeviceCrop crop = CropAt(bytes);
  Forge(bytes + crop.codes_at, bytes + crop.codes_at + crop.codes * sizeof(CropCodes), random);
  CropInterval first;
  std::memcpy(&first, bytes + crop.intervals_at, sizeof(first));
  Forge(bytes + first.bit / 8, bytes + crop.bytes, random);
  for (uint32_t i = 0; i < crop.intervals; ++i) {
    uint8_t* const at = bytes + crop.intervals_at + i * sizeof(CropInterval);
    CropInterval interval;
    std::memcpy(&interval, at, sizeof(interval));
    if (random.OneIn(3)) {
      const int most = static_cast<int>(8 * crop.bytes) - 1;
      interval.bit =
          random.OneIn(9) ? ~uint32_t{0} : static_cast<uint32_t>(random.Between(0, most));
    }
    if (random.OneIn(9)) interval.dc[i % 3] = random.OneIn(2) ? INT16_MIN : INT16_MAX;
    std::memcpy(at, &interval, sizeof(interval));
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
  const DeviceCrop crop = CropAt(batch.bytes);
  for (uint32_t i = 0; i < crop.runs; ++i) {
    CropRun run;
    std::memcpy(&run, batch.bytes + crop.runs_at + i * sizeof(run), sizeof(run));
    RequireSamples(crop, batch.bytes, run, batch.samples);
  }
  return true;
}

bool DecodeForgedCrop(std::span<const uint8_t> file, std::span<const uint8_t> crop_index,
                      Random& random) {
  jpeg::FrameHeader frame;
  if (jpeg::ParseHeader(file, frame) != Fallback::kNone) return false;
  const ImageSize output{random.Between(1, 60), random.Between(1, 60)};
  MadeCrops made(output);
  if (!made.Add(file, RandomCrop(random, frame.size, output), crop_index).ok()) return false;
  const auto require = [&] {
    const decode::CropBatch batch = made.Batch();
    DecodeCropsOnHost(batch);
    RequireIntervals(batch.bytes, batch.samples);
  };
  require();
  ForgeCrop(made.last(), random);
  require();
  return true;
}

void RequirePixelsOfTheCpu(std::span<const uint8_t> file, std::span<const uint8_t> crop_index,
                           Random& random) {
  jpeg::FrameHeader frame;
  if (jpeg::ParseHeader(file, frame) != Fallback::kNone) return;
  const ImageSize output{random.Between(1, 60), random.Between(1, 60)};
  const Resampling task = RandomCrop(random, frame.size, output);
  MadeCrops made(output);
  const Status status = made.Add(file, task, crop_index);
  Require(status.ok() || status.error().code == Code::kUnimplemented,
          "a crop of what has an index is refused only if devices do not resample it");
  if (!status.ok()) return;
  DecodeCropsOnHost(made.Batch());
  CpuPixels cpu;
  const Result<std::vector<uint8_t>> want = cpu.Of(file, task);
  Require(want.ok(), "the CPU decodes what has an index");
  Require(cpu.paths().fast == 1, "stoker's own decoder decodes what has an index");
  Require(std::equal(want->begin(), want->end(), made.row(0).begin()),
          "devices make the pixels that the CPU makes");
}

}  // namespace stoker::testing
