// Devices decode crops to the pixels of the host's templates. On a machine without a GPU it is
// skipped for CUDA, and only the host's device runs, which shows that the test itself works.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "gpu/backend/device.h"
#include "gpu/crops/decode_crops.h"
#include "tests/gpu/crops/made_crops.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/packed/pack.h"

namespace stoker::testing {
namespace {

class CropsOnDevice : public ::testing::TestWithParam<DeviceName> {
 protected:
  void SetUp() override {
    Result<std::shared_ptr<Device>> opened = Device::Open(GetParam());
    if (!opened.ok()) {
      GTEST_SKIP() << GetParam().ToString() << " is not there, so that nothing is shown about it: "
                   << opened.error().ToString();
    }
    device_ = *std::move(opened);
    stream_ = device_->MakeStream().value();
  }
  void TearDown() override {
    for (void* memory : memory_) device_->Free(memory);
    if (device_ != nullptr) device_->Destroy(stream_);
  }

  uint8_t* Take(size_t bytes) {
    memory_.push_back(device_->Allocate(bytes).value());
    return static_cast<uint8_t*>(memory_.back());
  }
  // Copies and waits.
  void Copy(void* to, const void* from, size_t bytes) {
    const DeviceEvent done = device_->MakeEvent().value();
    Status status = device_->Copy(to, from, bytes, stream_);
    if (status.ok()) status = device_->Record(done, stream_);
    if (status.ok()) status = device_->Synchronize(done);
    device_->Destroy(done);
    ASSERT_TRUE(status.ok()) << status.error().ToString();
  }

  // The rows that the device makes.
  std::vector<uint8_t> Decoded(const MadeCrops& made, const decode::CropBatch& batch) {
    decode::CropBatch there = batch;
    const size_t places = made.rows() * sizeof(uint64_t);
    uint8_t* const bytes = Take(made.bytes());
    uint8_t* const crop_at = Take(places);
    Copy(bytes, batch.bytes, made.bytes());
    Copy(crop_at, batch.crop_at, places);
    there.bytes = bytes;
    there.crop_at = reinterpret_cast<const uint64_t*>(crop_at);
    there.samples = Take(made.sample_bytes());
    there.to = Take(made.rows() * made.row_bytes());
    const Status status = device_->DecodeCrops(there, stream_);
    EXPECT_TRUE(status.ok()) << status.error().ToString();
    std::vector<uint8_t> rows(made.rows() * made.row_bytes());
    Copy(rows.data(), there.to, rows.size());
    return rows;
  }

 private:
  std::shared_ptr<Device> device_;
  DeviceStream stream_;
  std::vector<void*> memory_;
};

TEST_P(CropsOnDevice, AreThoseOfTheHost) {
  constexpr Sampling kSamplings[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
  Random random(24);
  JpegPacker packer;
  jpeg::CropIndexMaker maker;
  for (int n = 0; n < Effort(50); ++n) {
    SCOPED_TRACE(n);
    const ImageSize output{random.Between(1, 224), random.Between(1, 224)};
    MadeCrops made(output);
    for (int row = 0; row < 8; ++row) {
      const Sampling sampling = kSamplings[random.Between(0, 3)];
      const ImageSize size{random.Between(1, 500), random.Between(1, 500)};
      std::vector<uint8_t> jpeg =
          MakeJpeg({.width = size.width,
                    .height = size.height,
                    .color = random.OneIn(5) ? JpegColor::kGray : JpegColor::kYCbCr,
                    .sampling = Luma(sampling.columns, sampling.rows),
                    .quality = random.Between(10, 100),
                    .seed = static_cast<uint64_t>(8 * n + row)});
      jpeg.resize(jpeg.size() + kBufferPadding);
      const std::span<const uint8_t> file = std::span(jpeg).first(jpeg.size() - kBufferPadding);
      const Resampling task = RandomCrop(random, size, output);
      if (random.OneIn(2)) {
        std::vector<uint8_t> index;
        if (maker.Make(file, index) == Fallback::kNone) (void)made.Add(file, task, index);
        continue;
      }
      Result<std::vector<uint8_t>> packed = packer.Pack(file);
      if (!packed.ok()) continue;
      packed->resize(packed->size() + kBufferPadding);
      (void)made.Add(std::span(*packed).first(packed->size() - kBufferPadding), task);
    }
    const decode::CropBatch batch = made.Batch();
    DecodeCropsOnHost(batch);
    const std::vector<uint8_t> got = Decoded(made, batch);
    ASSERT_TRUE(std::equal(got.begin(), got.end(), batch.to));
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, CropsOnDevice,
                         ::testing::Values(DeviceName{DeviceName::Kind::kHost, 0},
                                           DeviceName{DeviceName::Kind::kCuda, 0}),
                         [](const auto& device) {
                           const bool host = device.param.kind == DeviceName::Kind::kHost;
                           return std::string(host ? "Host" : "Cuda");
                         });

}  // namespace
}  // namespace stoker::testing
