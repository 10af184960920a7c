// ApplyDeferredPlain: one step after the other for whole rows, in the order of their definitions.
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/batch/deferred_ops.h"
#include "core/numbers/half.h"
#include "core/numbers/normal.h"
#include "gpu/ops/deferred_ops_job.h"

namespace stoker {

namespace {

// A row's values, channel by channel: numbers that the job's type can represent.
using Values = std::vector<float>;

struct Task {
  const DeferredOpsJob& job;
  size_t height = static_cast<size_t>(job.height), width = static_cast<size_t>(job.width);

  size_t count() const { return 3 * height * width; }
  size_t At(size_t c, size_t y, size_t x) const { return (c * height + y) * width + x; }

  const uint8_t* WorkAt(size_t row) const { return job.work + row * DeferredOpsBytes(job.boxes); }
  DeferredOps WorkOf(size_t row) const {
    DeferredOps work;
    if (job.work != nullptr) std::memcpy(&work, WorkAt(row), sizeof(work));
    return work;
  }
  ErasedBox BoxOf(size_t row, size_t box) const {
    ErasedBox erased;
    const uint8_t* const boxes = WorkAt(row) + sizeof(DeferredOps);
    std::memcpy(&erased, boxes + box * sizeof(erased), sizeof(erased));
    return erased;
  }
};

float Rounded(DType dtype, float value) {
  switch (dtype) {
    case DType::kF16:
      return Float16Value(Float16Bits(value));
    case DType::kBF16:
      return BFloat16Value(BFloat16Bits(value));
    case DType::kF32:
      return value;
    default:
      return std::trunc(value);
  }
}

Values Converted(const Task& task, size_t row) {
  const DeferredOpsJob& job = task.job;
  const bool mirror = task.WorkOf(row).mirror != 0;
  const uint8_t* from = job.from + row * task.count();
  Values values(task.count());
  for (size_t y = 0; y < task.height; ++y) {
    for (size_t x = 0; x < task.width; ++x) {
      for (size_t c = 0; c < 3; ++c) {
        float value = *from++;
        if (job.dtype != DType::kU8) value *= job.scale[c];
        if (job.dtype != DType::kU8) value += job.bias[c];
        values[task.At(c, y, mirror ? task.width - 1 - x : x)] = Rounded(job.dtype, value);
      }
    }
  }
  return values;
}

void Erase(const Task& task, const ErasedBox& erased, Values& values) {
  const auto x = static_cast<size_t>(erased.box.x), y = static_cast<size_t>(erased.box.y);
  const auto width = static_cast<size_t>(erased.box.width);
  const auto height = static_cast<size_t>(erased.box.height);
  uint64_t next = 0;
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < height * width; ++i) {
      float value = erased.value[c];
      if (erased.noisy != 0) {
        value = NormalNumber(erased.noise_key, next++, [](double v) { return std::sqrt(v); });
      }
      values[task.At(c, y + i / width, x + i % width)] = Rounded(task.job.dtype, value);
    }
  }
}

Values Mixed(const Task& task, const DeferredOps& work, const Values& own, const Values& before) {
  Values mixed = own;
  for (size_t v = 0; v < own.size(); ++v) {
    if (work.mixing == RowMixing::kCut) {
      const auto x = static_cast<int32_t>(v % task.width);
      const auto y = static_cast<int32_t>(v / task.width % task.height);
      const WorkBox& box = work.cut;
      const bool inside =
          x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
      if (inside) mixed[v] = before[v];
    } else if (work.mixing == RowMixing::kBlend) {
      const float weighted = own[v] * work.own, weighted_before = before[v] * work.others;
      const float sum = weighted + weighted_before;
      mixed[v] = task.job.dtype == DType::kU8 ? std::nearbyint(sum) : Rounded(task.job.dtype, sum);
    }
  }
  return mixed;
}

void Put(DType dtype, float value, size_t at, void* row) {
  if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  const auto put = [&](auto bits) {
    std::memcpy(static_cast<uint8_t*>(row) + at * sizeof(bits), &bits, sizeof(bits));
  };
  if (dtype == DType::kF32) put(value);
  if (dtype == DType::kF16) put(Float16Bits(value));
  if (dtype == DType::kBF16) put(BFloat16Bits(value));
  if (dtype == DType::kU8) put(static_cast<uint8_t>(value));
}

void Store(const Task& task, const Values& values, size_t row) {
  const DeferredOpsJob& job = task.job;
  uint8_t* const to = static_cast<uint8_t*>(job.to) + row * task.count() * SizeOf(job.dtype);
  const size_t plane = task.height * task.width;
  for (size_t v = 0; v < values.size(); ++v) {
    const size_t at = job.layout == Layout::kNchw ? v : v % plane * 3 + v / plane;
    Put(job.dtype, values[v], at, to);
  }
}

}  // namespace

void ApplyDeferredPlain(const DeferredOpsJob& job) {
  const Task task{job};
  const auto rows = static_cast<size_t>(job.rows);
  std::vector<Values> finished;
  for (size_t row = 0; row < rows; ++row) {
    finished.push_back(Converted(task, row));
    for (size_t b = 0; job.work != nullptr && b < job.boxes; ++b) {
      Erase(task, task.BoxOf(row, b), finished.back());
    }
  }
  for (size_t row = 0; row < rows; ++row) {
    const DeferredOps work = job.mixes ? task.WorkOf(row) : DeferredOps{};
    Store(task, Mixed(task, work, finished[row], finished[(row + rows - 1) % rows]), row);
  }
}

}  // namespace stoker
