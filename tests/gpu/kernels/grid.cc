#include "tests/gpu/kernels/grid.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "tests/simulation/fiber.h"
#include "tests/testing/random.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace stoker::testing {

namespace {

constexpr unsigned kWarp = 32, kWholeWarp = ~0U, kMostThreads = 1024, kMostBlocksDown = 65535;

// A thread of the block that is being run.
struct Lane {
  unsigned index = 0;       // in the block
  unsigned mask = 0;        // what __activemask returns
  Fiber* paused = nullptr;  // where it goes on; null means it has not begun

  unsigned warp() const { return index / kWarp; }
  unsigned bit() const { return 1U << index % kWarp; }
};

// The threads of a warp, as bits. Those in no mask have ended.
struct Warp {
  unsigned ready = 0, at_mask = 0, at_sync = 0, at_block = 0;
};

// The device, which runs one block at a time.
class Processor {
 public:
  void Run(const std::function<void()>& thread, dim3 blocks, dim3 threads);

  // Called by a thread of the kernel.
  unsigned ActiveMask();
  void SyncWarp() { Pause(&Warp::at_sync); }
  void SyncBlock() { Pause(&Warp::at_block); }

  uint64_t clock = 0;
  std::set<const void*> loaded, launched;

 private:
  static void RunLanes(void* processor);
  void RunBlock();
  Lane* TakeReady();
  void Pause(unsigned Warp::*where);
  void Leave(const Lane& lane);
  void SwitchTo(Fiber& fiber);
  void SwitchToFree();
  void Meet(unsigned warp);
  bool MeetBlock();
  void Continue(unsigned warp, unsigned mask);
  unsigned SomeOf(unsigned mask);

  StackPool stacks_;
  Fiber own_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<Fiber*> free_;  // of fibers_; each is in RunLanes
  Fiber* current_ = &own_;
  std::vector<Lane> lanes_ = std::vector<Lane>(kMostThreads);
  std::vector<Warp> warps_ = std::vector<Warp>(kMostThreads / kWarp);
  std::vector<unsigned> ready_;  // lanes
  Lane* running_ = nullptr;
  const std::function<void()>* thread_ = nullptr;
  Random random_{1};
};

// As CUDA has one for a process.
Processor& TheProcessor() {
  static Processor processor;
  return processor;
}

void Processor::Run(const std::function<void()>& thread, dim3 blocks, dim3 threads) {
  thread_ = &thread;
  gridDim = blocks;
  blockDim = threads;
  for (blockIdx.z = 0; blockIdx.z < blocks.z; ++blockIdx.z) {
    for (blockIdx.y = 0; blockIdx.y < blocks.y; ++blockIdx.y) {
      for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x) RunBlock();
    }
  }
}

void Processor::RunBlock() {
  for (unsigned i = 0; i < blockDim.x; ++i) Continue(i / kWarp, 1U << i % kWarp);
  do {
    SwitchToFree();
  } while (MeetBlock());
}

// Returns a random one of the lanes that can run; null if there is none.
Lane* Processor::TakeReady() {
  if (ready_.empty()) return nullptr;
  const int last = static_cast<int>(ready_.size()) - 1;
  std::swap(ready_[random_.Between(0, last)], ready_[last]);
  Lane& lane = lanes_[ready_.back()];
  lane.index = ready_.back();
  ready_.pop_back();
  running_ = &lane;
  threadIdx.x = lane.index;
  return &lane;
}

// A fiber that runs one lane after the other. One that pauses keeps the fiber until it ends.
void Processor::RunLanes(void* processor) {
  Processor& self = *static_cast<Processor*>(processor);
  while (true) {
    Lane* const lane = self.TakeReady();
    if (lane != nullptr && lane->paused == nullptr) {
      (*self.thread_)();
      self.Leave(*lane);
    } else {
      self.free_.push_back(self.current_);
      self.SwitchTo(lane != nullptr ? *std::exchange(lane->paused, nullptr) : self.own_);
    }
  }
}

void Processor::Pause(unsigned Warp::*where) {
  Lane& lane = *running_;
  warps_[lane.warp()].*where |= lane.bit();
  lane.paused = current_;
  Leave(lane);
  SwitchToFree();
}

// The lane has ended, or waits.
void Processor::Leave(const Lane& lane) {
  Warp& warp = warps_[lane.warp()];
  warp.ready &= ~lane.bit();
  if (warp.ready == 0) Meet(lane.warp());
}

void Processor::SwitchTo(Fiber& fiber) {
  Fiber& from = *std::exchange(current_, &fiber);
  Fiber::Switch(from, fiber);
}

void Processor::SwitchToFree() {
  if (free_.empty()) {
    fibers_.push_back(std::make_unique<Fiber>(stacks_.Take(), RunLanes, this));
    free_.push_back(fibers_.back().get());
  }
  Fiber& fiber = *free_.back();
  free_.pop_back();
  SwitchTo(fiber);
}

unsigned Processor::ActiveMask() {
  const Lane& lane = *running_;
  Pause(&Warp::at_mask);
  return lane.mask;
}

// All threads of the warp have ended or wait.
void Processor::Meet(unsigned warp) {
  Warp& met = warps_[warp];
  if (met.at_mask != 0) {
    const unsigned told = SomeOf(met.at_mask);
    for (unsigned i = 0; i < kWarp; ++i) lanes_[warp * kWarp + i].mask = told;
    met.at_mask &= ~told;
    Continue(warp, told);
  } else if (met.at_sync == kWholeWarp) {
    met.at_sync = 0;
    Continue(warp, kWholeWarp);
  } else if (met.at_sync != 0) {
    std::fprintf(stderr, "__syncwarp is reached by the threads %08x of a warp only\n", met.at_sync);
    std::_Exit(1);
  }
}

// All threads of the block have ended or wait. Returns whether they waited for each other.
bool Processor::MeetBlock() {
  unsigned waiting = 0;
  for (unsigned warp = 0; warp * kWarp < blockDim.x; ++warp) {
    const unsigned lanes = std::exchange(warps_[warp].at_block, 0);
    waiting += static_cast<unsigned>(std::popcount(lanes));
    Continue(warp, lanes);
  }
  if (waiting == 0) return false;
  if (waiting == blockDim.x) return true;
  std::fprintf(stderr, "__syncthreads is reached by %u of %u threads of a block only\n", waiting,
               blockDim.x);
  std::_Exit(1);
}

void Processor::Continue(unsigned warp, unsigned mask) {
  warps_[warp].ready |= mask;
  for (; mask != 0; mask &= mask - 1) ready_.push_back(warp * kWarp + std::countr_zero(mask));
}

// Three times in four all of them; never none.
unsigned Processor::SomeOf(unsigned mask) {
  if (!random_.OneIn(4)) return mask;
  unsigned some = 0;
  for (unsigned i = 0; i < kWarp; ++i) some |= random_.OneIn(2) ? 1U << i : 0;
  return (some & mask) != 0 ? some & mask : mask;
}

}  // namespace

bool RunGrid(const void* kernel, dim3 blocks, dim3 threads, const std::function<void()>& thread) {
  if (blocks.x < 1 || blocks.y < 1 || blocks.z < 1 || threads.x < 1) return false;
  if (blocks.y > kMostBlocksDown || blocks.z > kMostBlocksDown) return false;
  if (threads.x > kMostThreads || threads.y != 1 || threads.z != 1) return false;
  TheProcessor().launched.insert(kernel);
  TheProcessor().Run(thread, blocks, threads);
  return true;
}

void LoadKernel(const void* kernel) { TheProcessor().loaded.insert(kernel); }
const std::set<const void*>& LoadedKernels() { return TheProcessor().loaded; }
const std::set<const void*>& LaunchedKernels() { return TheProcessor().launched; }
uint64_t GridClock() { return TheProcessor().clock++; }

}  // namespace stoker::testing

unsigned __activemask() { return stoker::testing::TheProcessor().ActiveMask(); }
void __syncwarp() { stoker::testing::TheProcessor().SyncWarp(); }
void __syncthreads() { stoker::testing::TheProcessor().SyncBlock(); }
void __nanosleep(unsigned nanoseconds) { stoker::testing::TheProcessor().clock += nanoseconds; }
