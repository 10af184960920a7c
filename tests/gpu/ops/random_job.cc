#include "tests/gpu/ops/random_job.h"

#include <algorithm>
#include <cstring>

namespace stoker::testing {

namespace {

// Returns a box of the image, at an edge or a corner more often than not; or none.
WorkBox RandomBox(Random& random, int width, int height) {
  if (random.OneIn(6)) return {};
  WorkBox box;
  box.width = random.OneIn(4) ? width : random.Between(1, width);
  box.height = random.OneIn(4) ? height : random.Between(1, height);
  const auto place = [&](int room) {
    const int where = random.Between(0, 3);
    return where == 0 ? 0 : where == 1 ? room : random.Between(0, room);
  };
  box.x = place(width - box.width);
  box.y = place(height - box.height);
  return box;
}

float RandomValue(Random& random, const DeferredOpsJob& job) {
  const auto part = static_cast<float>(random.Between(0, 255000)) / 1000;
  if (job.dtype == DType::kU8) return part;
  if (random.OneIn(10)) return random.OneIn(2) ? 1e30F : -7e4F;  // beyond float16
  return (part - 127) / 100;
}

ErasedBox RandomErasure(Random& random, const DeferredOpsJob& job) {
  ErasedBox erased{.box = RandomBox(random, job.width, job.height)};
  for (float& value : erased.value) value = RandomValue(random, job);
  if (job.dtype != DType::kU8 && random.OneIn(2)) {
    erased.noisy = 1;
    const auto word = [&] { return static_cast<uint64_t>(random.Between(0, 0x3fffffff)); };
    erased.noise_key = word() << 34 | word() << 15 | word() >> 15;
  }
  return erased;
}

// Draws the mixing of one batch, which all of its rows have; now and then none have it.
DeferredOps RandomMixing(Random& random, const DeferredOpsJob& job) {
  DeferredOps work;
  if (random.OneIn(4)) return work;
  work.mixing = random.OneIn(2) ? RowMixing::kBlend : RowMixing::kCut;
  const double lam = random.OneIn(5) ? random.Between(0, 1) : random.Between(0, 1000) / 1000.0;
  work.own = static_cast<float>(lam);
  work.others = static_cast<float>(1 - lam);
  work.cut = RandomBox(random, job.width, job.height);
  return work;
}

void AddWork(Random& random, MadeJob& made) {
  DeferredOpsJob& job = made.job;
  job.boxes = static_cast<uint32_t>(random.OneIn(3) ? 0 : random.Between(1, 3));
  job.mixes = random.OneIn(2);
  const size_t words = DeferredOpsBytes(job.boxes) / sizeof(uint64_t);
  made.work.resize(static_cast<size_t>(job.rows) * words);
  DeferredOps mixing = RandomMixing(random, job);
  for (size_t row = 0; row < static_cast<size_t>(job.rows); ++row) {
    if (random.OneIn(5)) mixing = RandomMixing(random, job);
    DeferredOps work = mixing;  // set even where it must be ignored
    work.mirror = random.OneIn(2) ? 1 : 0;
    auto* at = reinterpret_cast<uint8_t*>(made.work.data() + row * words);
    std::memcpy(at, &work, sizeof(work));
    at += sizeof(work);
    for (uint32_t b = 0; b < job.boxes; ++b, at += sizeof(ErasedBox)) {
      const ErasedBox erased = RandomErasure(random, job);
      std::memcpy(at, &erased, sizeof(erased));
    }
  }
}

}  // namespace

std::string MadeJob::ToString() const {
  return std::to_string(job.rows) + " × " + std::to_string(job.height) + " × " +
         std::to_string(job.width) + " " + NameOf(job.dtype) + " " + NameOf(job.layout) +
         (work.empty() ? ", no work" : ", boxes: " + std::to_string(job.boxes)) +
         (job.mixes ? ", mixes" : "");
}

MadeJob RandomJob(Random& random) {
  JobSize size;
  size.rows = random.OneIn(4) ? 1 : random.Between(1, 5);
  size.height = random.Between(1, 9);
  size.width = random.OneIn(2) ? random.Between(1, 70) : 4 * random.Between(1, 40);
  return RandomJobOf(random, size);
}

MadeJob RandomJobOf(Random& random, JobSize size) {
  constexpr DType kDTypes[] = {DType::kU8, DType::kF16, DType::kBF16, DType::kF32};
  MadeJob made;
  DeferredOpsJob& job = made.job;
  job.rows = size.rows;
  job.height = size.height;
  job.width = size.width;
  job.dtype = kDTypes[random.Between(0, 3)];
  job.layout = random.OneIn(2) ? Layout::kNhwc : Layout::kNchw;
  const bool overflows = random.OneIn(4);  // float16, in some of its values
  for (int c = 0; c < 3 && job.dtype != DType::kU8; ++c) {
    job.scale[c] = static_cast<float>(random.Between(1, 1000)) / (overflows ? 1.5F : 25500.0F);
    job.bias[c] = static_cast<float>(random.Between(-2000, 2000)) / 1000;
    if (overflows && random.OneIn(2)) job.scale[c] *= -1000;
  }
  made.from.resize(static_cast<size_t>(job.rows * job.height * job.width) * 3);
  for (uint8_t& byte : made.from) byte = static_cast<uint8_t>(random.Between(0, 255));
  if (!random.OneIn(4)) AddWork(random, made);
  return made;
}

std::vector<uint8_t> ResultOf(const MadeJob& made, const ApplyDeferred& finish, size_t shift) {
  struct alignas(16) Sixteen {
    uint8_t bytes[16];
  };
  const auto room = [&](size_t bytes) { return std::vector<Sixteen>((bytes + shift) / 16 + 1); };
  std::vector<Sixteen> from = room(made.from.size()), to = room(made.result_bytes());
  DeferredOpsJob job = made.job;
  uint8_t* const first = from.data()->bytes + shift;
  std::copy(made.from.begin(), made.from.end(), first);
  job.from = first;
  job.to = to.data();
  if (!made.work.empty()) job.work = reinterpret_cast<const uint8_t*>(made.work.data());
  finish(job);
  const uint8_t* const result = to.data()->bytes;
  return {result, result + made.result_bytes()};
}

}  // namespace stoker::testing
