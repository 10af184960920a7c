#include "gpu/staging/piece_copier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "gpu/staging/device_ring.h"
#include "tests/gpu/staging/copier_setup.h"

namespace stoker {
namespace {

using ::stoker::testing::CopierSetupOptions;
using ::stoker::testing::DeviceCall;
using ::stoker::testing::DevicesUnderTest;
using ::stoker::testing::DeviceUnderTest;
using ::stoker::testing::ExpectRight;
using ::stoker::testing::HookedDevice;
using ::stoker::testing::PinnedBytes;
using ::stoker::testing::StreamReader;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kPiece = 4096;

class PieceCopierTest : public ::testing::TestWithParam<DeviceUnderTest> {
 protected:
  ~PieceCopierTest() override {
    device_->Free(there_);
    device_->Destroy(stream_);
  }

  std::unique_ptr<PieceCopier> Make() {
    std::unique_ptr<PieceCopier> copier = PieceCopier::Make(device_, kPiece).value();
    calls_.clear();
    return copier;
  }

  // Fails the `nth` call of this kind from now on.
  void Fail(DeviceCall call, int nth) {
    failing_ = call;
    fail_in_ = nth;
  }

  Status Before(DeviceCall call) {
    calls_.push_back(call);
    if (call != failing_ || --fail_in_ != 0) return {};
    return Error{Code::kUnavailable, "injected"};
  }

  std::vector<DeviceCall> calls_;
  DeviceCall failing_{};
  int fail_in_ = 0;
  const std::shared_ptr<HookedDevice> device_ = std::make_shared<HookedDevice>(
      GetParam().MakeDelayed(), [this](DeviceCall call) { return Before(call); });
  const DeviceStream stream_ = device_->MakeStream({}).value();
  void* const there_ = device_->Allocate(8 * kPiece).value();
  const PinnedBytes from_{device_->inner(), 8 * kPiece}, back_{device_->inner(), 8 * kPiece};
};
INSTANTIATE_TEST_SUITE_P(, PieceCopierTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

TEST_P(PieceCopierTest, PiecesCoverTheBytesInOrder) {
  const auto copier = Make();
  for (const size_t bytes :
       {size_t{1}, kPiece - 1, kPiece, kPiece + 1, 3 * kPiece, 7 * kPiece + 5}) {
    std::iota(from_.data(), from_.data() + bytes, static_cast<uint8_t>(bytes));
    const size_t before = device_->copies().size();
    copier->Copy(there_, from_.data(), bytes, stream_).value();
    const std::vector<HookedDevice::Copied> all = device_->copies();
    size_t covered = 0;
    for (size_t i = before; i < all.size(); ++i) {
      const HookedDevice::Copied wanted{static_cast<uint8_t*>(there_) + covered,
                                        from_.data() + covered, std::min(kPiece, bytes - covered),
                                        stream_};
      EXPECT_EQ(all[i], wanted) << i - before << " of " << bytes;
      covered += all[i].bytes;
    }
    EXPECT_EQ(covered, bytes);
    device_->inner()->Copy(back_.data(), there_, bytes, stream_).value();
    device_->SynchronizeAll().value();
    EXPECT_TRUE(std::equal(from_.data(), from_.data() + bytes, back_.data()));
  }
}

// One block of many pieces, and many blocks: what matters are the bytes since the last turn.
TEST_P(PieceCopierTest, WaitsForAnotherStreamWhereAPieceWouldBeExceeded) {
  const auto copier = Make();
  const auto copies = [&](size_t bytes) {
    calls_.clear();
    copier->Copy(there_, from_.data(), bytes, stream_).value();
    return calls_;
  };
  const std::vector<DeviceCall> turn = {DeviceCall::kRecord, DeviceCall::kWait, DeviceCall::kRecord,
                                        DeviceCall::kWait};
  std::vector<DeviceCall> after_turn = turn;
  after_turn.push_back(DeviceCall::kCopy);
  std::vector<DeviceCall> two = {DeviceCall::kCopy};
  two.insert(two.end(), after_turn.begin(), after_turn.end());
  EXPECT_EQ(copies(2 * kPiece), two);
  EXPECT_THAT(copies(0), IsEmpty());
  EXPECT_EQ(copies(kPiece - 2), after_turn);
  for (int i = 0; i < 2; ++i) EXPECT_THAT(copies(1), ElementsAre(DeviceCall::kCopy));
  EXPECT_EQ(copies(1), after_turn);
  EXPECT_EQ(copies(kPiece), after_turn);
}

TEST_P(PieceCopierTest, AFailureIsReportedAndNoPieceFollows) {
  const size_t before = device_->copies().size();
  for (const auto& [call, nth, issued] : {std::tuple(DeviceCall::kCopy, 1, 0),
                                          {DeviceCall::kCopy, 3, 2},
                                          {DeviceCall::kRecord, 1, 1},
                                          {DeviceCall::kRecord, 2, 1},
                                          {DeviceCall::kWait, 1, 1},
                                          {DeviceCall::kWait, 4, 2}}) {
    const auto copier = Make();
    const size_t already = device_->copies().size();
    Fail(call, nth);
    const Status status = copier->Copy(there_, from_.data(), 4 * kPiece, stream_);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.error().cause, HasSubstr("injected"));
    EXPECT_EQ(device_->copies().size() - already, static_cast<size_t>(issued));
  }
  EXPECT_GT(device_->copies().size(), before);
  device_->SynchronizeAll().value();
}

TEST_P(PieceCopierTest, LeavesNothingBehind) {
  const int alive = device_->alive();
  auto copier = PieceCopier::Make(device_, kPiece).value();
  EXPECT_EQ(device_->alive(), alive + 2);
  copier.reset();
  EXPECT_EQ(device_->alive(), alive);
  Fail(DeviceCall::kMakeEvent, 1);
  EXPECT_FALSE(PieceCopier::Make(device_, kPiece).ok());
  EXPECT_EQ(device_->alive(), alive);
}

class DeviceCopierPiecesTest : public ::testing::TestWithParam<DeviceUnderTest> {};
INSTANTIATE_TEST_SUITE_P(, DeviceCopierPiecesTest, ::testing::ValuesIn(DevicesUnderTest()),
                         ::testing::PrintToStringParamName());

// Batches of two pieces, with a column in the middle of the second.
CopierSetupOptions LargeBatches() {
  CopierSetupOptions options;
  options.host.columns = {{"image", DType::kU8, {600, 1200, 3}}, {"label", DType::kI64, {}}};
  options.host.batch_size = 5;
  options.host.epoch_rows = 5 * 2;
  return options;
}

TEST_P(DeviceCopierPiecesTest, LargeBatchesAreCopiedInPieces) {
  testing::CopierSetup setup(GetParam(), LargeBatches());
  StreamReader reader(setup.device);
  for (int i = 0; i < 2; ++i) ExpectRight(reader, setup.Next(), 0, i);
  setup.copier.reset();
  const std::vector<HookedDevice::Copied> copies = setup.device->copies();
  ASSERT_GE(copies.size(), 4U);
  for (size_t i = 0; i + 1 < copies.size(); i += 2) {
    EXPECT_EQ(copies[i].bytes, PieceCopier::kPieceBytes);
    EXPECT_EQ(copies[i + 1].from, static_cast<const uint8_t*>(copies[i].from) + copies[i].bytes);
    EXPECT_EQ(copies[i + 1].to, static_cast<const uint8_t*>(copies[i].to) + copies[i].bytes);
  }
}

TEST_P(DeviceCopierPiecesTest, PiecesMayHaveAnotherSizeOrBeWhole) {
  constexpr size_t kMib = size_t{1} << 20, kBytes = 10'801'152 + 5 * 8;  // the labels are aligned
  for (const auto& [piece, sizes] :
       {std::pair(3 * kMib, std::vector{3 * kMib, 3 * kMib, 3 * kMib, kBytes - 9 * kMib}),
        std::pair(PieceCopier::kWhole, std::vector{kBytes})}) {
    CopierSetupOptions options = LargeBatches();
    options.piece_bytes = piece;
    testing::CopierSetup setup(GetParam(), options);
    StreamReader reader(setup.device);
    for (int i = 0; i < 2; ++i) ExpectRight(reader, setup.Next(), 0, i);
    setup.copier.reset();
    const std::vector<HookedDevice::Copied> copies = setup.device->copies();
    ASSERT_GE(copies.size(), 2 * sizes.size());
    for (size_t i = 0; i < 2 * sizes.size(); ++i) {
      EXPECT_EQ(copies[i].bytes, sizes[i % sizes.size()]) << i;
    }
  }
}

TEST_P(DeviceCopierPiecesTest, AFailedPieceEndsTheDeviceCopierAndReturnsTheBatch) {
  for (int nth = 1; nth <= 4; ++nth) {
    std::atomic<int> left = nth;
    CopierSetupOptions options = LargeBatches();
    options.hook = [&left](DeviceCall call) -> Status {
      if (call != DeviceCall::kCopy || --left != 0) return {};
      return Error{Code::kUnavailable, "injected"};
    };
    testing::CopierSetup setup(GetParam(), options);
    Result<DeviceBatch> batch = setup.copier->Next();
    while (batch.ok()) batch = setup.copier->Next();
    EXPECT_THAT(batch.error().cause, HasSubstr("injected"));
    EXPECT_EQ(setup.source.lent(), 0);
  }
}

}  // namespace
}  // namespace stoker
