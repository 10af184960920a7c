// Lanes as fibers of the grid of tests/gpu/kernels, one block after the other.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "tests/gpu/kernels/grid.h"
#include "tests/gpu/ptx/launches.h"
#include "tests/gpu/ptx/run_translated.h"

namespace stoker::testing::ptx {
namespace {

constexpr unsigned kWarp = 32;

Extent ExtentOf(dim3 all) { return {all.x, all.y, all.z}; }
Extent ExtentOf(uint3 index) { return {index.x, index.y, index.z}; }
dim3 Dim3Of(Extent extent) { return {extent.x, extent.y, extent.z}; }

std::map<std::string, LaunchTotals>& TheLaunches() {
  static std::map<std::string, LaunchTotals> launches;
  return launches;
}

// The block that is being run.
class Block {
 public:
  Block(const TranslatedKernel& kernel, void* const* parameters, unsigned threads,
        LaunchTotals& totals)
      : kernel_(kernel),
        parameters_(parameters),
        totals_(totals),
        shared_((kernel.shared_bytes + sizeof(Line) - 1) / sizeof(Line)),
        busiest_((threads + kWarp - 1) / kWarp) {}

  void RunLane() {
    if (left_ == 0) Begin();
    Lane lane{.kernel = kernel_,
              .parameters = parameters_,
              .thread = ExtentOf(threadIdx),
              .block = ExtentOf(blockIdx),
              .threads = ExtentOf(blockDim),
              .blocks = ExtentOf(gridDim),
              .shared = reinterpret_cast<uint8_t*>(shared_.data())};
    kernel_.run(lane);
    uint64_t& busiest = busiest_[lane.thread.x / kWarp];
    busiest = std::max(busiest, lane.instructions);
    totals_.of_all_threads += lane.instructions;
    totals_.stored += lane.stored;
    if (--left_ == 0) End();
  }

 private:
  struct alignas(16) Line {
    uint8_t bytes[16];
  };

  // Shared memory contains anything when a block begins: not what another one has left.
  void Begin() {
    left_ = blockDim.x;
    garbage_ = static_cast<uint8_t>(garbage_ * 5 + 1);
    auto* const bytes = reinterpret_cast<uint8_t*>(shared_.data());
    std::fill_n(bytes, kernel_.shared_bytes, garbage_);
  }
  void End() {
    for (uint64_t& busiest : busiest_) totals_.of_busiest_threads += std::exchange(busiest, 0);
  }

  const TranslatedKernel& kernel_;
  void* const* const parameters_;
  LaunchTotals& totals_;
  std::vector<Line> shared_;
  std::vector<uint64_t> busiest_;  // instructions of each warp's busiest thread
  unsigned left_ = 0;              // threads
  uint8_t garbage_ = 0xb5;
};

}  // namespace

const std::map<std::string, LaunchTotals>& Launches() { return TheLaunches(); }
void ForgetLaunches() { TheLaunches().clear(); }

bool RunTranslated(const TranslatedKernel& kernel, Extent blocks, Extent threads,
                   void* const* parameters) {
  LaunchTotals& totals = TheLaunches()[kernel.title];
  ++totals.launches;
  Block block(kernel, parameters, threads.x, totals);
  return RunGrid(&kernel, Dim3Of(blocks), Dim3Of(threads), [&] { block.RunLane(); });
}

void LoadTranslated(const TranslatedKernel& kernel) { LoadKernel(&kernel); }

void Lane::SyncBlock(uint32_t /*barrier*/) const { __syncthreads(); }
void Lane::SyncWarp(uint32_t /*barrier*/) const { __syncwarp(); }
uint32_t Lane::ActiveMask() const { return __activemask(); }
uint64_t Lane::Clock() const { return GridClock(); }
void Lane::Sleep(uint32_t nanoseconds) const { __nanosleep(nanoseconds); }

void Lane::Fail(Access access, uint64_t at, const char* why) const {
  std::fprintf(stderr, "%s:%u: an access of %u bytes at %#llx %s (%s)\n", kernel.file, access.line,
               access.bytes, static_cast<unsigned long long>(at), why, kernel.title);
  std::_Exit(1);
}

}  // namespace stoker::testing::ptx
