// Lanes as threads of the CPU, for the thread sanitizer: each thread of a block is one, and takes
// that thread of each block. Blocks have memory of their own, so a thread may be a block ahead.
//
// All threads of a warp must be active where they ask which are, and come to the same barriers.
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "tests/gpu/ptx/removed_barriers.h"
#include "tests/gpu/ptx/run_translated.h"

namespace stoker::testing::ptx {
namespace {

constexpr unsigned kWarp = 32;
constexpr uint8_t kGarbage = 0xb5;

// Of the launch that is under way.
struct Meetings {
  explicit Meetings(unsigned threads) : block(threads) {
    for (unsigned i = 0; i < threads / kWarp; ++i) {
      warps.push_back(std::make_unique<std::barrier<>>(kWarp));
    }
  }
  std::barrier<> block;
  std::vector<std::unique_ptr<std::barrier<>>> warps;
};

std::unique_ptr<Meetings>& TheMeetings() {
  static std::unique_ptr<Meetings> meetings;
  return meetings;
}

std::set<uint32_t>& Removed() {
  static std::set<uint32_t> removed;
  return removed;
}

bool IsWanted(const TranslatedKernel& kernel) {
  const auto of_kernel = [&](uint32_t barrier) {
    return std::strcmp(Barriers()[barrier].kernel, kernel.title) == 0;
  };
  return Removed().empty() || std::any_of(Removed().begin(), Removed().end(), of_kernel);
}

struct SharedMemory {
  struct Free {
    void operator()(uint8_t* bytes) const { ::operator delete(bytes, kAlignment); }
  };
  static constexpr std::align_val_t kAlignment{256};

  SharedMemory(size_t of_block, size_t blocks)
      : of_block((of_block + 255) / 256 * 256),
        bytes(static_cast<uint8_t*>(::operator new(this->of_block* blocks, kAlignment))) {
    std::memset(bytes.get(), kGarbage, this->of_block * blocks);
  }
  const size_t of_block;
  const std::unique_ptr<uint8_t, Free> bytes;
};

}  // namespace

void RemoveBarriers(const std::set<uint32_t>& barriers) { Removed() = barriers; }

bool RunTranslated(const TranslatedKernel& kernel, Extent blocks, Extent threads,
                   void* const* parameters) {
  if (!IsWanted(kernel)) return true;
  const SharedMemory shared(kernel.shared_bytes, size_t{blocks.x} * blocks.y * blocks.z);
  TheMeetings() = std::make_unique<Meetings>(threads.x);
  const auto run = [&](unsigned thread) {
    uint8_t* of_block = shared.bytes.get();
    for (unsigned z = 0; z < blocks.z; ++z) {
      for (unsigned y = 0; y < blocks.y; ++y) {
        for (unsigned x = 0; x < blocks.x; ++x, of_block += shared.of_block) {
          Lane lane{.kernel = kernel,
                    .parameters = parameters,
                    .thread = {thread, 0, 0},
                    .block = {x, y, z},
                    .threads = threads,
                    .blocks = blocks,
                    .shared = of_block};
          kernel.run(lane);
        }
      }
    }
  };
  std::vector<std::thread> running;
  for (unsigned thread = 0; thread < threads.x; ++thread) running.emplace_back(run, thread);
  for (std::thread& each : running) each.join();
  return true;
}

void LoadTranslated(const TranslatedKernel& /*kernel*/) {}

void Lane::SyncBlock(uint32_t barrier) const {
  if (!Removed().contains(barrier)) TheMeetings()->block.arrive_and_wait();
}
void Lane::SyncWarp(uint32_t barrier) const {
  if (!Removed().contains(barrier)) TheMeetings()->warps[thread.x / kWarp]->arrive_and_wait();
}
uint32_t Lane::ActiveMask() const { return ~uint32_t{0}; }
uint64_t Lane::Clock() const { return 0; }
void Lane::Sleep(uint32_t /*nanoseconds*/) const {}

void Lane::Fail(Access access, uint64_t at, const char* why) const {
  std::fprintf(stderr, "%s:%u: an access of %u bytes at %#llx %s (%s)\n", kernel.file, access.line,
               access.bytes, static_cast<unsigned long long>(at), why, kernel.title);
  std::_Exit(1);
}

}  // namespace stoker::testing::ptx
