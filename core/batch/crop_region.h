// CropRegion: the part of a slot that workers fill with crops (core/batch/device_crop.h), one
// after the other, and that a device copies. A batch that is split among several devices has one
// region for each device.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/batch/device_crop.h"

namespace stoker {

// The room for the crops of a batch.
struct CropRoom {
  uint64_t bytes = 0;  // of memory, on the host and on the device; 0 means a device decodes nothing
  uint64_t samples = 0;  // of the device's scratch memory, × decode::kGroupSamples
  uint32_t regions = 1;  // of this size, one for each device
};

class CropRegion {
 public:
  // The slice of one crop; it begins `at` bytes after memory().
  struct Slice {
    uint64_t at = 0;
    uint64_t samples = 0;  // where its samples begin in the device's scratch memory
  };

  // Sets the memory: room.bytes, from `begin` bytes into `memory`, which all regions of the batch
  // share. Both are multiples of kCropAlignment.
  void Use(uint8_t* memory, const CropRoom& room, uint64_t begin = 0) {
    memory_ = memory;
    begin_ = begin;
    units_ = std::min(room.bytes / decode::kCropAlignment, kMost);
    samples_ = std::min(room.samples, kMost);
    Clear();
  }
  // Gives up all slices. Must be called before the rows of another batch are claimed.
  void Clear() { taken_.store(0, std::memory_order_relaxed); }

  // Takes a slice for a crop of CropMaker's sizes; returns nullopt if there is no room. Any thread;
  // takes no lock.
  std::optional<Slice> Take(size_t bytes, uint64_t samples) {
    const uint64_t units = bytes / decode::kCropAlignment;
    uint64_t taken = taken_.load(std::memory_order_relaxed);
    while (units <= units_ - UnitsOf(taken) && samples <= samples_ - SamplesOf(taken)) {
      if (!taken_.compare_exchange_weak(taken, taken + (samples << 32 | units),
                                        std::memory_order_relaxed)) {
        continue;
      }
      return Slice{begin_ + UnitsOf(taken) * decode::kCropAlignment, SamplesOf(taken)};
    }
    return std::nullopt;
  }

  // Until Clear, a crop larger than this will not fit.
  uint64_t bytes_left() const { return units_ * decode::kCropAlignment - bytes(); }

  uint8_t* memory() const { return memory_; }  // of all regions of the batch
  uint64_t begin() const { return begin_; }
  // Returns the bytes in use.
  uint64_t bytes() const {
    return UnitsOf(taken_.load(std::memory_order_relaxed)) * decode::kCropAlignment;
  }

 private:
  // Both counts are in one number, so that a crop takes from both or from neither.
  static constexpr uint64_t kMost = 0xffff'ffff;
  static uint64_t UnitsOf(uint64_t taken) { return taken & kMost; }
  static uint64_t SamplesOf(uint64_t taken) { return taken >> 32; }

  uint8_t* memory_ = nullptr;
  uint64_t begin_ = 0;
  uint64_t units_ = 0, samples_ = 0;  // the room; units of kCropAlignment
  std::atomic<uint64_t> taken_{0};
};

}  // namespace stoker
