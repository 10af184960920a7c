// gpu/crops/decode_crops_cuda.cu on the CPU: each row has the pixels of the CPU's decoder, and
// those that the host has decoded are not written.
#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "gpu/crops/decode_crops_cuda.h"
#include "gpu/crops/entropy-inl.h"
#include "tests/gpu/crops/made_crops.h"
#include "tests/gpu/kernels/grid.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"

namespace stoker::testing {
namespace {

class CropKernelsOnTheCpu : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(LoadDecodeCrops(), 0); }

  struct Prepared {
    std::vector<uint8_t> padded, crop_index;
    std::span<const uint8_t> file() const {
      return std::span(padded).first(padded.size() - kBufferPadding);
    }
  };

  // The file as CropMaker reads it: packed, or with a crop index; empty if it can be neither.
  Prepared Prepare(std::vector<uint8_t> jpeg) {
    Prepared plain{.padded = std::move(jpeg), .crop_index = {}};
    plain.padded.resize(plain.padded.size() + kBufferPadding);
    Result<std::vector<uint8_t>> packed = packer_.Pack(plain.file());
    if (!packed.ok()) return {};
    jpeg::CropIndexMaker maker(random_.OneIn(2) ? 1 : 4);
    if (maker.Make(plain.file(), plain.crop_index) != Fallback::kNone) return {};
    if (random_.OneIn(2)) return plain;
    packed->resize(packed->size() + kBufferPadding);
    return {.padded = *std::move(packed), .crop_index = {}};
  }

  // Adds a random crop, or none, to a batch of rows of this size.
  void Add(MadeCrops& made, const Prepared& photo, ImageSize output) {
    ImageDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(photo.file());
    ASSERT_TRUE(info.ok());
    const Resampling task = RandomCrop(random_, info->size, output);
    if (!random_.OneIn(5) && made.Add(photo.file(), task, photo.crop_index).ok()) {
      wanted_.push_back(cpu_.Of(photo.file(), task).value());
    } else {
      made.AddNone();
      wanted_.emplace_back(3 * static_cast<size_t>(output.width * output.height), kUnwritten);
    }
  }

  void ExpectWanted(MadeCrops& made) {
    most_intervals_ = std::max(most_intervals_, made.most_intervals());
    ASSERT_EQ(LaunchDecodeCrops(made.Batch(), nullptr), 0);
    for (size_t i = 0; i < wanted_.size(); ++i) {
      const auto got = made.row(i);
      ASSERT_TRUE(std::equal(wanted_[i].begin(), wanted_[i].end(), got.begin(), got.end()))
          << "row " << i;
    }
    wanted_.clear();
  }

  Random random_{22};
  uint32_t most_intervals_ = 0;  // of a crop

 private:
  JpegPacker packer_;
  CpuPixels cpu_;
  std::vector<std::vector<uint8_t>> wanted_;
};

TEST_F(CropKernelsOnTheCpu, GiveThePixelsOfTheCpu) {
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  for (int n = 0; n < Effort(150); ++n) {
    SCOPED_TRACE(n);
    const ImageSize output{random_.Between(1, 70), random_.Between(1, 70)};
    MadeCrops made(output);
    for (int row = 0; row < 3; ++row) {
      const Sampling sampling = kSamplings[(n + row) % 4];
      JpegOptions options{.width = random_.Between(1, 300), .height = random_.Between(1, 300)};
      if (random_.OneIn(5)) options.color = JpegColor::kGray;
      options.sampling = Luma(sampling.columns, sampling.rows);
      options.quality = random_.Between(10, 100);
      options.restart_interval = random_.OneIn(4) ? random_.Between(1, 9) : 0;
      options.seed = static_cast<uint64_t>(3 * n + row);
      const Prepared photo = Prepare(MakeJpeg(options));
      if (!photo.padded.empty()) Add(made, photo, output);
    }
    ExpectWanted(made);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(most_intervals_, 3 * decode::kEntropyThreads) << "more than one block takes";
}

TEST_F(CropKernelsOnTheCpu, GiveThePixelsOfPhotographs) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  const auto photos = std::min<size_t>(paths.size(), static_cast<size_t>(Effort(50)));
  for (size_t i = 0; i < photos; ++i) {
    SCOPED_TRACE(paths[i]);
    const Prepared photo = Prepare(ReadFile(paths[i]));
    if (photo.padded.empty()) continue;
    MadeCrops made({224, 224});
    Add(made, photo, {224, 224});
    ExpectWanted(made);
    if (HasFatalFailure()) return;
  }
}

// A launch of no blocks is an error.
TEST_F(CropKernelsOnTheCpu, ABatchWithoutCropsLaunchesNothing) {
  MadeCrops made({2, 2});
  made.AddNone();
  EXPECT_EQ(LaunchDecodeCrops(made.Batch(), nullptr), 0);
  decode::CropBatch no_rows;
  no_rows.most_runs = no_rows.most_intervals = no_rows.most_tiles = 1;
  EXPECT_EQ(LaunchDecodeCrops(no_rows, nullptr), 0);
}

// A kernel that is loaded at its first launch may wait for all work of the device.
TEST_F(CropKernelsOnTheCpu, AllAreLoaded) { EXPECT_EQ(LoadedKernels().size(), 3U); }

}  // namespace
}  // namespace stoker::testing
