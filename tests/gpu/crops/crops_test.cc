// Crops decoded by the kernels' templates have the pixels of the CPU's decoder and resampler.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include "core/memory/buffer.h"
#include "gpu/crops/crop_kernels-inl.h"
#include "gpu/crops/decode_crops.h"
#include "tests/gpu/crops/forged_crops.h"
#include "tests/gpu/crops/made_crops.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"

namespace stoker::testing {
namespace {

constexpr ImageSize kOutput{224, 224};

std::vector<uint8_t> Padded(std::vector<uint8_t> bytes) {
  bytes.resize(bytes.size() + kBufferPadding);
  return bytes;
}
std::span<const uint8_t> Unpadded(const std::vector<uint8_t>& padded) {
  return std::span(padded).first(padded.size() - kBufferPadding);
}

class Crops : public ::testing::Test {
 protected:
  void TearDown() override {
    RecordProperty("compared", std::to_string(compared_));
    RecordProperty("plain", std::to_string(plain_));
    RecordProperty("refused", std::to_string(refused_));
    std::cout << compared_ << " crops compared, " << plain_ << " of them of plain JPEGs, and "
              << refused_ << " left to the CPU\n";
  }

  int RandomInterval() {
    constexpr int kIntervals[] = {1, 3, 4, 8, 255};
    return kIntervals[random_.Between(0, 4)];
  }

  // Compares so many random crops of a JPEG, packed or with a crop index, in one batch. Those of
  // wide images often begin just before an entry point.
  void Compare(const std::vector<uint8_t>& jpeg, ImageSize output, int crops, int interval) {
    const Result<std::vector<uint8_t>> packed = packer_.Pack(Unpadded(jpeg));
    ASSERT_TRUE(packed.ok() || packed.error().code == Code::kUnimplemented);
    const std::vector<uint8_t> file = packed.ok() ? Padded(*packed) : std::vector<uint8_t>();
    std::vector<uint8_t> index;
    jpeg::CropIndexMaker maker(interval);
    if (maker.Make(Unpadded(jpeg), index) != Fallback::kNone) index.clear();
    ImageDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(Unpadded(jpeg));
    ASSERT_TRUE(info.ok());
    std::vector<Resampling> tasks;
    MadeCrops made(output);
    for (int i = 0; i < crops; ++i) {
      const bool plain = random_.OneIn(2);
      if (plain ? index.empty() : file.empty()) continue;
      Resampling task = RandomCrop(random_, info->size, output);
      const int stride = 8 * info->chroma_columns * interval;  // pixels
      if (random_.OneIn(2) && info->size.width > 2 * stride) {
        const int entry_point = stride * random_.Between(1, info->size.width / stride - 1);
        task.box.x = entry_point - random_.Between(1, 50);
        task.box.width = std::min(task.box.width, info->size.width - task.box.x);
      }
      const Status status =
          plain ? made.Add(Unpadded(jpeg), task, index) : made.Add(Unpadded(file), task);
      ASSERT_TRUE(status.ok() || status.error().code == Code::kUnimplemented)
          << status.error().ToString();
      if (status.ok()) tasks.push_back(task);
      if (status.ok() && plain) Count(made.last());
      if (!status.ok()) ++refused_;
    }
    DecodeCropsOnHost(made.Batch());
    for (size_t i = 0; i < tasks.size(); ++i) {
      const Result<std::vector<uint8_t>> want = cpu_.Of(Unpadded(jpeg), tasks[i]);
      ASSERT_TRUE(want.ok()) << want.error().ToString();
      const auto got = made.row(i);
      const auto differs = std::mismatch(want->begin(), want->end(), got.begin());
      ASSERT_EQ(differs.first - want->begin(), static_cast<ptrdiff_t>(want->size()))
          << "the first byte of crop " << i << " that differs";
      ++compared_;
    }
  }

  void Count(const uint8_t* bytes) {
    ++plain_;
    const auto& crop = *decode::At<decode::DeviceCrop>(bytes, 0);
    for (uint32_t i = 0; i < crop.intervals; ++i) {
      const auto& interval = decode::At<decode::CropInterval>(bytes, crop.intervals_at)[i];
      most_.skipped = std::max(most_.skipped, interval.skipped);
      most_.wanted = std::max(most_.wanted, interval.wanted);
      most_.column = std::max(most_.column, interval.column);
    }
  }

  Random random_{21};
  JpegPacker packer_;
  CpuPixels cpu_;
  size_t compared_ = 0, plain_ = 0, refused_ = 0;
  decode::CropInterval most_;  // of each number, the largest
};

TEST_F(Crops, OfPhotographsAreThoseOfTheCpu) {
  const auto paths = Photos();
  if (paths.empty()) GTEST_SKIP() << "STOKER_PHOTOS names no directory of photographs";
  for (const auto& path : paths) {
    SCOPED_TRACE(path);
    Compare(Padded(ReadFile(path)), kOutput, 10, RandomInterval());
    if (HasFatalFailure()) return;
  }
  EXPECT_GE(compared_, 8 * paths.size());
  EXPECT_GE(plain_, 4 * paths.size());
}

TEST_F(Crops, OfAllKindsOfJpegsAreThoseOfTheCpu) {
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  for (int n = 0; n < Effort(600); ++n) {
    SCOPED_TRACE(n);
    const Sampling sampling = kSamplings[n % 4];
    JpegOptions options{.width = random_.Between(1, 200), .height = random_.Between(1, 200)};
    if (random_.OneIn(5)) options.color = JpegColor::kGray;
    options.sampling = Luma(sampling.columns, sampling.rows);
    options.quality = random_.Between(10, 100);
    options.restart_interval = random_.OneIn(4) ? random_.Between(1, 9) : 0;
    if (random_.OneIn(8)) options.scans = JpegScans::kProgressive;  // decoded if it is packed
    options.seed = static_cast<uint64_t>(n);
    const ImageSize output{random_.Between(1, 70), random_.Between(1, 70)};
    Compare(Padded(MakeJpeg(options)), output, 8, RandomInterval());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared_, 4 * refused_);
  EXPECT_GT(plain_, compared_ / 3);
}

// A tile then needs the pixels of a few outputs only.
TEST_F(Crops, OfLargeImagesAreThoseOfTheCpu) {
  for (int n = 0; n < Effort(10); ++n) {
    SCOPED_TRACE(n);
    Compare(Padded(MakeJpeg({.width = random_.Between(1000, 4000),
                             .height = random_.Between(1000, 3000),
                             .sampling = Luma(2, 2),
                             .seed = static_cast<uint64_t>(n)})),
            {random_.Between(20, 224), random_.Between(20, 224)}, 2, RandomInterval());
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared_, 4 * refused_);
}

// What the last kernel's memory must have room for.
struct TileUse {
  uint32_t pixels = 0, middle = 0;
  bool taps_fit = true;  // all taps lie in the pixels
};

bool TapsFit(const decode::TileTaps& taps, uint32_t outputs, uint32_t pixels) {
  for (uint32_t i = 0; i < outputs; ++i) {
    if (uint64_t{taps.FirstOf(i)} + 2 * taps.pairs > pixels) return false;
  }
  return true;
}

TileUse MostOfTiles(const uint8_t* bytes) {
  const auto& crop = *decode::At<decode::DeviceCrop>(bytes, 0);
  const decode::CropParts parts{&crop,
                                nullptr,
                                decode::At<int32_t>(bytes, crop.rows.starts_at),
                                decode::At<int32_t>(bytes, crop.columns.starts_at),
                                decode::At<decode::WeightPair>(bytes, crop.rows.weights_at),
                                decode::At<decode::WeightPair>(bytes, crop.columns.weights_at)};
  TileUse most;
  for (uint32_t i = 0; i < crop.tiles; ++i) {
    const auto& tile = decode::At<decode::CropTile>(bytes, crop.tiles_at)[i];
    const decode::TileSource source = decode::SourceOf(parts, tile);
    const uint32_t columns = 2 * source.columns, rows = 2 * source.rows;
    most.pixels = std::max(most.pixels, columns * rows);
    most.middle = std::max(most.middle, columns * tile.rows);
    most.taps_fit &= TapsFit(decode::ColumnTaps(parts, tile, source), tile.columns, columns) &&
                     TapsFit(decode::RowTaps(parts, tile, source), tile.rows, rows);
  }
  return most;
}

// TileHasRoom counts pixels, and tiles are converted in squares of two by two.
TEST_F(Crops, TilesHaveRoomInTheMemoryOfABlock) {
  constexpr ImageSize kLarge{1300, 1100};
  const std::vector<uint8_t> jpeg = Padded(MakeJpeg(
      {.width = kLarge.width, .height = kLarge.height, .sampling = Luma(2, 2), .quality = 10}));
  const std::vector<uint8_t> file = Padded(packer_.Pack(Unpadded(jpeg)).value());
  TileUse most;
  for (int n = 0; n < Effort(20000); ++n) {
    SCOPED_TRACE(n);
    // The pixels limit tiles of crops that are shrunk a lot, and the columns those of others.
    const int side = random_.OneIn(2) ? 100 : 800;
    const ImageSize output{random_.Between(1, side), random_.Between(1, side)};
    MadeCrops made(output);
    const Status status = made.Add(Unpadded(file), RandomCrop(random_, kLarge, output));
    refused_ += status.ok() ? 0 : 1;
    if (!status.ok()) continue;
    const TileUse use = MostOfTiles(made.last());
    ASSERT_LE(use.pixels, decode::kTilePixels);
    ASSERT_LE(use.middle, decode::kTileMiddle);
    ASSERT_TRUE(use.taps_fit);
    most = {std::max(most.pixels, use.pixels), std::max(most.middle, use.middle)};
  }
  EXPECT_GT(refused_, 0U);
  EXPECT_GT(most.pixels, decode::kTilePixels - 100) << "no tile comes close to the limit";
  EXPECT_GT(most.middle, decode::kTileMiddle - 100);
}

// An interval then skips and wants as many MCUs as it can, and lies far to the right.
TEST_F(Crops, OfWideImagesAreThoseOfTheCpu) {
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  // Fewer need not have an interval that skips that many.
  for (int n = 0; n < std::max(12, Effort(60)); ++n) {
    SCOPED_TRACE(n);
    const Sampling sampling = kSamplings[n % 4];
    JpegOptions options{.width = random_.Between(3000, 9000), .height = random_.Between(1, 40)};
    if (random_.OneIn(3)) options.color = JpegColor::kGray;
    options.sampling = Luma(sampling.columns, sampling.rows);
    options.restart_interval = random_.OneIn(2) ? random_.Between(256, 2000) : 0;
    options.seed = static_cast<uint64_t>(n);
    const ImageSize output{random_.Between(100, 300), random_.Between(1, 30)};
    Compare(Padded(MakeJpeg(options)), output, 8, jpeg::IndexShape::kMaxInterval);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(compared_, 4 * refused_);
  EXPECT_GT(plain_, compared_ / 3);
  EXPECT_GE(most_.skipped, 253);
  EXPECT_EQ(most_.wanted, 255);
  EXPECT_GT(most_.column, 600);
}

// Changes a few bytes, of the rows in most cases: of those before the header and of those after
// it.
void Damage(Random& random, std::vector<uint8_t>& file, const PackedParts& parts) {
  const size_t header_bytes = parts.rows_at - parts.header_at;
  const auto size = static_cast<int>(file.size());
  for (int n = random.Between(1, 30); n > 0; --n) {
    const bool in_rows = !random.OneIn(8);
    auto at = static_cast<size_t>(
        random.Between(0, size - 1 - (in_rows ? static_cast<int>(header_bytes) : 0)));
    if (in_rows && at >= parts.header_at) at += header_bytes;
    file[at] = static_cast<uint8_t>(random.Between(0, 255));
  }
}

// Whatever the bits of a run are, its samples are those of the CPU's decoder, and under the address
// sanitizer nothing else is read. (A run that is longer than its size says may be read beyond it,
// where the CPU finds other bytes than a device does; so not the pixels are compared.)
// --gtest_repeat=-1 --gtest_shuffle tries others each time.
TEST_F(Crops, OfForgedFilesHaveTheSamplesOfTheCpu) {
  Random random(static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed()));
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  size_t decoded = 0;
  for (int n = 0; n < Effort(1000); ++n) {
    const Sampling sampling = kSamplings[n % 4];
    const std::vector<uint8_t> jpeg =
        Padded(MakeJpeg({.width = random.Between(1, 150),
                         .height = random.Between(1, 150),
                         .sampling = Luma(sampling.columns, sampling.rows),
                         .quality = random.Between(10, 100),
                         .seed = static_cast<uint64_t>(random.Between(1, 1000))}));
    const Result<std::vector<uint8_t>> packed = packer_.Pack(Unpadded(jpeg));
    if (!packed.ok()) continue;
    for (int k = 0; k < 20; ++k) {
      std::vector<uint8_t> file = *packed;
      Damage(random, file, PartsOf(file));
      SignPackedJpeg(file);
      const std::vector<uint8_t> forged = Padded(std::move(file));
      decoded += DecodeForgedCrop(Unpadded(forged), random) ? 1 : 0;
    }
  }
  std::cout << decoded << " forged crops decoded\n";
  EXPECT_GT(decoded, 0U);
}

// The samples of any interval, with forged bits, tables and entry points too, are those of the
// reference, and under the address sanitizer nothing else is read. The index is that of the
// damaged file, so that CropMaker does not refuse it. --gtest_repeat=-1 --gtest_shuffle tries
// others each time.
TEST_F(Crops, OfForgedPlainJpegsHaveTheSamplesOfTheReference) {
  Random random(static_cast<uint32_t>(::testing::UnitTest::GetInstance()->random_seed()));
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  size_t decoded = 0;
  for (int n = 0; n < Effort(400); ++n) {
    const Sampling sampling = kSamplings[n % 4];
    std::vector<uint8_t> jpeg =
        Padded(MakeJpeg({.width = random.Between(1, 150),
                         .height = random.Between(1, 150),
                         .color = random.OneIn(5) ? JpegColor::kGray : JpegColor::kYCbCr,
                         .sampling = Luma(sampling.columns, sampling.rows),
                         .quality = random.Between(10, 100),
                         .restart_interval = random.OneIn(3) ? random.Between(1, 20) : 0,
                         .seed = static_cast<uint64_t>(random.Between(1, 1000))}));
    jpeg::FrameHeader frame;
    if (ParseHeader(Unpadded(jpeg), frame) != Fallback::kNone) continue;
    const jpeg::IndexShape shape(frame, random.Between(1, 9));
    std::vector<uint8_t> sound;
    jpeg::CropIndexMaker maker(static_cast<int>(shape.interval));
    ASSERT_EQ(maker.Make(Unpadded(jpeg), sound), Fallback::kNone);
    jpeg::CropIndex index;
    ASSERT_EQ(index.Open(sound, Unpadded(jpeg), frame), jpeg::CropIndex::Match::kUsable);
    std::vector<jpeg::EntryPoint> entry_points;
    for (int64_t i = 0; i < shape.entry_points(); ++i) entry_points.push_back(index.At(i));
    const auto last = static_cast<int>(entry_points.size()) - 1;
    const auto scan = static_cast<int>(frame.scan_offset);
    const auto end = static_cast<int>(Unpadded(jpeg).size()) - 3;
    for (int k = 0; k < 10; ++k) {
      for (int i = random.Between(0, 9); i > 0; --i) {
        const int value = random.OneIn(2) ? 255 : random.Between(0, 255);
        jpeg[random.Between(scan, end)] = static_cast<uint8_t>(value);
        jpeg::EntryPoint& changed = entry_points[random.Between(std::min(1, last), last)];
        changed.bit = std::max<int64_t>(0, changed.bit + random.Between(-20, 20));
        changed.dc[i % 3] = random.Between(-3000, 3000);
      }
      entry_points[0] = {};
      entry_points.back().bit = int64_t{8} * (end + 1 - scan);
      const std::vector<uint8_t> forged = PackCropIndex(Unpadded(jpeg), frame, shape, entry_points);
      decoded += DecodeForgedCrop(Unpadded(jpeg), forged, random) ? 1 : 0;
    }
  }
  std::cout << decoded << " forged crops decoded\n";
  EXPECT_GT(decoded, static_cast<size_t>(Effort(400)));
}

}  // namespace
}  // namespace stoker::testing
