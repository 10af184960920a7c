// DeviceDecodeTest: loaders of packed photographs whose devices decode, next to those whose workers
// do.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/batch_parts.h"
#include "core/memory/buffer.h"
#include "engine/loader/loader.h"
#include "tests/testing/devices/devices.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/batch_bytes.h"
#include "tests/testing/samples/indexed_photos.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/threads/executors.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"

namespace stoker::testing {

using Bytes = std::vector<uint8_t>;

constexpr int kPhotos = 29;
const Normalize kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

inline std::string Text(const Bytes& bytes) { return {bytes.begin(), bytes.end()}; }

inline Bytes Packed(Bytes jpeg) {
  const size_t size = jpeg.size();
  jpeg.resize(size + kBufferPadding);
  return PackJpeg(std::span(jpeg).first(size)).value();
}

inline Bytes Padded(Bytes bytes) {
  bytes.resize(bytes.size() + kBufferPadding);
  return bytes;
}

// The crop index of a JPEG; empty if there is none.
inline Bytes IndexOf(const Bytes& jpeg) {
  const Bytes padded = Padded(jpeg);
  Bytes record;
  const auto file = std::span(padded).first(jpeg.size());
  return jpeg::CropIndexMaker().Make(file, record) == Fallback::kNone ? record : Bytes();
}

// JPEGs of all kinds that can be packed.
inline Bytes RandomJpeg(Random& random) {
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  const Sampling sampling = kSamplings[random.Between(0, 3)];
  JpegOptions options{.width = random.Between(9, 300), .height = random.Between(9, 200)};
  if (random.OneIn(6)) options.color = JpegColor::kGray;
  options.sampling = Luma(sampling.columns, sampling.rows);
  options.quality = random.Between(20, 98);
  options.restart_interval = random.OneIn(5) ? random.Between(1, 9) : 0;
  options.orientation = random.OneIn(3) ? random.Between(1, 8) : 0;
  options.seed = static_cast<uint64_t>(random.Between(0, 1 << 20));
  return MakeJpeg(options);
}

class DeviceDecodeTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  // Packed photographs.
  void SetUp() override {
    for (uint64_t id = 0; id < kPhotos; ++id) {
      photos_.Overwrite(id, Text(Packed(RandomJpeg(random_))));
    }
  }

  // Options of a loader that makes images of (80, 64) from the photographs on disk.
  LoaderOptions Options() {
    LoaderOptions options;
    options.source = photos_.Source();
    options.transforms = {RandomResizedCrop{.height = 80, .width = 64},
                          RandomHorizontalFlip{.p = 0.5}, kImageNet};
    options.dtype = DType::kF16;
    options.layout = Layout::kNchw;
    options.batch_size = 7;
    options.shuffle = true;
    options.runtime = runtime_;
    return options;
  }

  std::shared_ptr<Loader> Open(LoaderOptions options, uint32_t crop_bytes = 128 << 10) {
    options.to_device = {
        .devices = std::vector(devices_, device_), .decodes = true, .crop_bytes = crop_bytes};
    return Loader::Open(std::move(options)).value();
  }

  // Expects the same batches and errors of both, and returns how photographs were decoded.
  DecodePaths ExpectSame(const LoaderOptions& options, int epochs = 1,
                         uint32_t crop_bytes = 128 << 10) {
    auto plain = Loader::Open(options).value(), loader = Open(options, crop_bytes);
    EXPECT_EQ(loader->columns().size(), plain->columns().size());
    for (int epoch = 0; epoch < epochs; ++epoch) {
      auto wanted = plain->Iterate(), got = loader->Iterate();
      bool more = true;
      for (int i = 0; more && !HasFailure(); ++i) {
        SCOPED_TRACE("batch " + std::to_string(i) + " of epoch " + std::to_string(epoch));
        more = ExpectSame(wanted->Next(), NextOf(*got));
      }
    }
    return loader->Stats().decoded;
  }
  Result<SplitBatch> NextOf(Iterator& iterator) const {
    if (devices_ > 1) return iterator.NextOnDevices();
    Result<DeviceBatch> batch = iterator.NextOnDevice();
    if (!batch.ok()) return batch.error();
    SplitBatch whole;
    if (*batch) whole.parts.push_back(*std::move(batch));
    return whole;
  }
  bool ExpectSame(const Result<Batch>& wanted, const Result<SplitBatch>& got) {
    EXPECT_EQ(got.ok(), wanted.ok()) << (got.ok() ? "" : got.error().ToString());
    if (got.ok() != wanted.ok()) return false;
    if (!wanted.ok()) {
      EXPECT_EQ(got.error().ToString(), wanted.error().ToString());
      return true;
    }
    EXPECT_EQ(static_cast<bool>(*got), static_cast<bool>(*wanted));
    if (!*got || !*wanted) return false;
    EXPECT_EQ(got->name(), wanted->name());
    ExpectSameRows(*wanted, *got);
    return true;
  }
  // Expects the rows of the batch in these parts.
  void ExpectSameRows(const Batch& wanted, const SplitBatch& got) {
    ASSERT_EQ(got.parts.size(), devices_);
    ColumnBytes bytes(wanted.columns().size());
    std::vector<uint64_t> ids;
    for (size_t i = 0; i < devices_; ++i) {
      const DeviceBatch& part = got.parts[i];
      const auto at = static_cast<int64_t>(i), count = static_cast<int64_t>(devices_);
      EXPECT_EQ(part.rows(), FirstRowOfPart(wanted.rows(), at + 1, count) -
                                 FirstRowOfPart(wanted.rows(), at, count));
      std::vector<int64_t> shape = part.images().shape;
      EXPECT_EQ(shape[0], part.rows());
      shape[0] = wanted.rows();
      EXPECT_EQ(shape, wanted.images().shape);
      ids.insert(ids.end(), part.sample_ids().begin(), part.sample_ids().end());
      const ColumnBytes more = BytesOf(part, *device_);
      ASSERT_EQ(more.size(), bytes.size());
      for (size_t c = 0; c < bytes.size(); ++c) {
        bytes[c].insert(bytes[c].end(), more[c].begin(), more[c].end());
      }
    }
    EXPECT_TRUE(std::ranges::equal(ids, wanted.sample_ids()));
    EXPECT_TRUE(bytes == BytesOf(wanted)) << "the bytes differ";
  }

  // The photographs on disk, with an index for each JPEG.
  std::vector<Bytes> Indexes() const {
    std::vector<Bytes> records;
    for (uint64_t id = 0; id < kPhotos; ++id) {
      std::ifstream file(photos_.FileOf(id), std::ios::binary);
      const Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
      records.push_back(IndexOf(bytes));
    }
    return records;
  }
  std::shared_ptr<const SampleSource> With(std::vector<Bytes> indexes) const {
    return std::make_shared<IndexedPhotos>(photos_.Source(), std::move(indexes));
  }

  static uint64_t Left(const DecodePaths& paths, OnWorker reason) {
    return paths.on_worker[static_cast<size_t>(reason)];
  }
  static uint64_t AllLeft(const DecodePaths& paths) {
    uint64_t all = 0;
    for (const uint64_t count : paths.on_worker) all += count;
    return all;
  }

  Random random_{31};
  PhotoFolder photos_{kPhotos, 3};
  const std::shared_ptr<Runtime> runtime_ = Runtime::Create(RuntimeUnderTest(2)).value();
  const std::shared_ptr<Device> device_ = GetParam().MakeDelayed();
  size_t devices_ = 1;  // each is device_
};

}  // namespace stoker::testing
