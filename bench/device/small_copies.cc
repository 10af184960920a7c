#include "bench/device/small_copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "gpu/staging/piece_copier.h"

namespace stoker {
namespace {

constexpr size_t kMib = size_t{1} << 20;
constexpr size_t kSmall = 4096;

struct Way {
  size_t piece = 0;  // bytes; 0 means no large copies
  bool turns = false;
};

// In microseconds.
struct Spread {
  double median = 0, most = 0;
};

// Memory on both sides, and a stream for each kind of copy.
class Copies {
 public:
  Copies(std::shared_ptr<Device> device, size_t large)
      : device_(std::move(device)), large_(large) {}
  ~Copies() {
    (void)device_->SynchronizeAll();
    if (host_ != nullptr) device_->FreePinned(host_);
    if (there_ != nullptr) device_->Free(there_);
    for (const DeviceStream stream : {large_stream_, small_stream_}) {
      if (stream.handle != nullptr) device_->Destroy(stream);
    }
    for (const DeviceEvent event : {begun_, ended_, done_}) {
      if (event.handle != nullptr) device_->Destroy(event);
    }
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  Status Prepare() {
    ASSIGN_OR_RETURN(host_, device_->AllocatePinned(large_ + kSmall));
    ASSIGN_OR_RETURN(there_, device_->Allocate(large_ + kSmall));
    ASSIGN_OR_RETURN(large_stream_, device_->MakeStream());
    ASSIGN_OR_RETURN(small_stream_, device_->MakeStream());
    ASSIGN_OR_RETURN(begun_, device_->MakeEvent(/*timed=*/true));
    ASSIGN_OR_RETURN(ended_, device_->MakeEvent(/*timed=*/true));
    ASSIGN_OR_RETURN(done_, device_->MakeEvent());
    return {};
  }

  // Issues a large copy and, somewhere in its course, a small one. Returns the time of the small
  // one in nanoseconds, and adds that of the large one.
  Result<uint64_t> CopyBoth(const Way& way, PieceCopier& copier, bool to_device, double at,
                            uint64_t& large_ns) {
    TRY(device_->Record(begun_, large_stream_));
    TRY(IssueLarge(way, copier));
    TRY(device_->Record(ended_, large_stream_));
    const auto delay = static_cast<uint64_t>(at * static_cast<double>(last_large_ns_));
    std::this_thread::sleep_for(std::chrono::nanoseconds(delay));
    const uint64_t issued = NowNanoseconds();
    auto* const host = static_cast<uint8_t*>(host_) + large_;
    auto* const there = static_cast<uint8_t*>(there_) + large_;
    TRY(device_->Copy(to_device ? there : host, to_device ? host : there, kSmall, small_stream_));
    TRY(device_->Record(done_, small_stream_));
    TRY(device_->Synchronize(done_));
    const uint64_t small_ns = NowNanoseconds() - issued;
    TRY(device_->Synchronize(ended_));
    ASSIGN_OR_RETURN(last_large_ns_, device_->Elapsed(begun_, ended_));
    large_ns += last_large_ns_;
    return small_ns;
  }

 private:
  Status IssueLarge(const Way& way, PieceCopier& copier) {
    if (way.piece == 0) return {};
    if (way.turns) return copier.Copy(there_, host_, large_, large_stream_);
    auto* const to = static_cast<uint8_t*>(there_);
    const auto* const from = static_cast<const uint8_t*>(host_);
    for (size_t begin = 0; begin < large_; begin += way.piece) {
      const size_t bytes = std::min(way.piece, large_ - begin);
      TRY(device_->Copy(to + begin, from + begin, bytes, large_stream_));
    }
    return {};
  }

  const std::shared_ptr<Device> device_;
  const size_t large_;
  void* host_ = nullptr;
  void* there_ = nullptr;
  DeviceStream large_stream_, small_stream_;
  DeviceEvent begun_, ended_, done_;
  uint64_t last_large_ns_ = 0;
};

Spread SpreadOf(std::vector<uint64_t> times) {
  std::ranges::sort(times);
  constexpr double kMicro = 1e-3;
  return {kMicro * static_cast<double>(times[times.size() / 2]),
          kMicro * static_cast<double>(times.back())};
}

Status Measure(const std::shared_ptr<Device>& device, size_t large, const Way& way, int times) {
  Copies copies(device, large);
  TRY(copies.Prepare());
  std::unique_ptr<PieceCopier> copier;
  ASSIGN_OR_RETURN(copier, PieceCopier::Make(device, std::max<size_t>(way.piece, 1)));
  uint64_t large_ns = 0;
  Spread spreads[2];
  for (const bool to_device : {false, true}) {
    TRY(copies.CopyBoth(way, *copier, to_device, 0, large_ns));  // the first one is not counted
    std::vector<uint64_t> small;
    for (int i = 0; i < times; ++i) {
      const double at =
          0.8 * (i + 0.5) / times;  // not at the end, when nothing is left to wait for
      ASSIGN_OR_RETURN(small.emplace_back(),
                       copies.CopyBoth(way, *copier, to_device, at, large_ns));
    }
    spreads[to_device ? 1 : 0] = SpreadOf(std::move(small));
  }
  const double bytes = 2.0 * (times + 1) * static_cast<double>(way.piece == 0 ? 0 : large);
  fmt::print(
      "{{\"large_mib\": {}, \"piece_mib\": {}, \"turns\": {}, \"large_gb_s\": {:.2f}, "
      "\"to_device_us\": {:.1f}, \"to_device_most_us\": {:.1f}, \"to_host_us\": {:.1f}, "
      "\"to_host_most_us\": {:.1f}}}\n",
      way.piece == 0 ? 0 : large / kMib, way.piece / kMib, way.turns,
      bytes / static_cast<double>(std::max<uint64_t>(large_ns, 1)), spreads[1].median,
      spreads[1].most, spreads[0].median, spreads[0].most);
  return {};
}

}  // namespace

Status MeasureSmallCopies(const std::shared_ptr<Device>& device, bool quick) {
  const size_t large = (quick ? 64 : 256) * kMib;
  const int times = quick ? 3 : 50;
  const Way ways[] = {{},
                      {.piece = large},
                      {.piece = PieceCopier::kPieceBytes},
                      {.piece = PieceCopier::kPieceBytes, .turns = true},
                      {.piece = 32 * kMib, .turns = true}};
  for (const Way& way : ways) TRY(Measure(device, large, way, times));
  return {};
}

}  // namespace stoker
