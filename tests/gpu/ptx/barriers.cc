// Runs the kernels under the thread sanitizer, which must report nothing; then once without each of
// their barriers, which it must report: no barrier is missing, and none is unneeded.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "gpu/crops/decode_crops_cuda.h"
#include "gpu/ops/deferred_ops_cuda.h"
#include "gpu/ops/deferred_ops_job.h"
#include "tests/gpu/ptx/crop_batch_maker.h"
#include "tests/gpu/ptx/removed_barriers.h"
#include "tests/gpu/ptx/translated_kernel.h"
#include "tests/testing/images/make_jpeg.h"

// NOLINTNEXTLINE(bugprone-reserved-identifier,readability-identifier-naming): the sanitizer's
extern "C" const char* __tsan_default_options() {
  return "halt_on_error=1 exitcode=66 report_thread_leaks=0";
}

namespace stoker::testing::ptx {
namespace {

constexpr int kReported = 66;

// Adds images that are small, and yet have runs of several groups and more intervals than a warp
// takes.
void AddSmall(CropBatchMaker& crops) {
  const bool added = crops.Add(MakeJpeg({.width = 272, .height = 32, .sampling = Luma(2, 2)})) &&
                     crops.Add(MakeJpeg({.width = 144, .height = 16, .color = JpegColor::kGray}));
  if (!added) std::abort();
}

// A job whose threads all come to the same barriers: no box is erased, and each row is mixed with
// the other one.
struct FullJob {
  std::vector<uint64_t> from, to, work;
  DeferredOpsJob job;

  FullJob(DType dtype, bool erases, bool mixes) {
    constexpr int kSide = 64;  // of an image: a block's groups of the smallest type
    constexpr int64_t kRows = 2;
    const size_t values = kRows * kSide * kSide * 3;
    from.resize(values / sizeof(uint64_t));
    to.resize(values);
    job = {.from = reinterpret_cast<const uint8_t*>(from.data()), .to = to.data(), .rows = kRows};
    job.height = job.width = kSide;
    job.dtype = dtype;
    job.layout = Layout::kNhwc;
    job.mixes = mixes;
    job.boxes = erases ? 1 : 0;
    const size_t words = DeferredOpsBytes(job.boxes) / sizeof(uint64_t);
    DeferredOps of_row;
    of_row.mixing = RowMixing::kBlend;
    work.resize(words * kRows);
    for (int64_t row = 0; row < kRows; ++row) {
      std::memcpy(work.data() + row * words, &of_row, sizeof(of_row));
    }
    if (erases || mixes) job.work = reinterpret_cast<const uint8_t*>(work.data());
  }
};

void LaunchAllDeferred() {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const auto& [erases, mixes] : {std::pair(false, false), {true, false}, {false, true}}) {
      FullJob made(dtype, erases, mixes);
      if (LaunchDeferredOps(made.job, nullptr) != 0) std::abort();
    }
  }
}

class Kernels {
 public:
  Kernels() {
    AddSmall(packed_);
    AddSmall(indexed_);
  }

  // Whether the sanitizer reports a race in a process that launches the kernels without these
  // barriers.
  bool AreReportedWithout(const std::set<uint32_t>& barriers) {
    const pid_t child = fork();
    if (child == 0) {
      if (!barriers.empty() && std::freopen("/dev/null", "w", stderr) == nullptr) std::abort();
      RemoveBarriers(barriers);
      LaunchAll();
      std::_Exit(0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) std::abort();
    if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != kReported) std::abort();
    return WEXITSTATUS(status) == kReported;
  }

 private:
  void LaunchAll() {
    for (CropBatchMaker* const crops : {&packed_, &indexed_}) {
      if (LaunchDecodeCrops(crops->made().Batch(), nullptr) != 0) std::abort();
    }
    LaunchAllDeferred();
  }

  static constexpr ImageSize kOutput{40, 20};
  CropBatchMaker packed_{CropFormat::kPacked, CropBoxes::kRight, kOutput};
  CropBatchMaker indexed_{CropFormat::kIndexed, CropBoxes::kRight, kOutput};
};

int Run() {
  Kernels kernels;
  if (kernels.AreReportedWithout({})) {
    std::puts("the kernels have a race");
    return 1;
  }
  std::set<uint32_t> unneeded;
  for (uint32_t i = 0; i < Barriers().size(); ++i) {
    const Barrier& barrier = Barriers()[i];
    const bool needed = kernels.AreReportedWithout({i});
    if (!needed) unneeded.insert(i);
    std::printf("%-8s %-14s %s: %s\n", needed ? "needed" : "UNNEEDED", barrier.opcode,
                barrier.kernel, barrier.source);
    std::fflush(stdout);
  }
  const size_t found = Barriers().size() - unneeded.size();
  std::printf("%zu of %zu removed barriers were found\n", found, Barriers().size());
  if (unneeded.empty()) return 0;
  const bool needed = kernels.AreReportedWithout(unneeded);
  std::printf("remove %s\n", needed ? "one of the unneeded ones" : "the unneeded ones");
  return 1;
}

}  // namespace
}  // namespace stoker::testing::ptx

int main() { return stoker::testing::ptx::Run(); }
