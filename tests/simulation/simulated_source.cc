#include "tests/simulation/simulated_source.h"

#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "io/source/loaded_sample.h"
#include "tests/simulation/scheduler.h"

namespace stoker::testing {

void SimulateWork(uint64_t most_ns) {
  if (most_ns == 0) return;
  const uint64_t ns = Scheduler::Running()->Below(most_ns);
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

SimulatedSource::SimulatedSource(Options options, std::shared_ptr<const FakeDisk> disk)
    : options_(std::move(options)), disk_(std::move(disk)) {
  fields_.assign(ImageFields(/*labels=*/true).begin(), ImageFields(/*labels=*/true).end());
  fields_[0].count = options_.count;
  if (options_.pairs) {
    fields_.insert(fields_.begin() + 1,
                   {.name = "second", .kind = Field::Kind::kImage, .count = options_.count});
  }
  if (options_.objects) {
    fields_.push_back({.name = "objects", .kind = Field::Kind::kObject, .dtype = DType::kI64});
    for (uint64_t i = 0; i < options_.size * kMostObjects; ++i) {
      objects_.push_back(static_cast<int64_t>(i / kMostObjects * 10 + i % kMostObjects));
    }
  }
  if (options_.kind != Kind::kMemory) return;
  fields_[0] = {.name = "data", .dtype = DType::kU8, .row_shape = {kRowBytes}};
  rows_.resize(options_.size * kRowBytes);
  for (size_t i = 0; i < rows_.size(); ++i) rows_[i] = static_cast<uint8_t>(i * 37 + i / kRowBytes);
}

Status SimulatedSource::Load(uint64_t id, LoadedSample& loaded) const {
  SimulateWork(options_.call_ns);
  const std::string path = PathIn(options_.name, id);
  const auto fault = disk_->faults.find(path);
  if (fault != disk_->faults.end()) {
    return SystemError(fault->second.error_number, "cannot load", path);
  }
  return loaded.SetBytes(disk_->files.at(path));
}

void SimulatedSource::FixedRows(size_t field, std::span<const uint64_t> ids, void* rows) const {
  SimulateWork(options_.work_ns);
  if (field == 0) {
    auto* row = static_cast<uint8_t*>(rows);
    for (const uint64_t id : ids) {
      std::memcpy(row, View(0, id).data(), kRowBytes);
      row += kRowBytes;
    }
    return;
  }
  auto* label = static_cast<int64_t*>(rows);
  for (const uint64_t id : ids) *label++ = static_cast<int64_t>(id);
}

std::span<const uint8_t> SimulatedSource::View(size_t field, uint64_t id) const {
  if (fields_[field].is_of_objects()) {
    const auto* const all = reinterpret_cast<const uint8_t*>(&objects_[id * kMostObjects]);
    return {all, ObjectsOf(id) * sizeof(int64_t)};
  }
  if (field != 0 || rows_.empty()) return {};
  return std::span(rows_).subspan(id * kRowBytes, kRowBytes);
}

}  // namespace stoker::testing
