// Hash64 and BatchDigest: hash everything that a loader delivers. Equal digests mean equal runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "core/batch/batch.h"

namespace stoker {

// XXH64 (Yann Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), chosen
// because it hashes gigabytes a second and has a public definition: Python's `xxhash` package
// computes the same. Not cryptographic.
class Hash64 {
 public:
  explicit Hash64(uint64_t seed = 0);
  void Add(const void* data, size_t bytes);
  uint64_t value() const;  // of everything added so far

 private:
  static constexpr size_t kStripe = 32;  // bytes per round of the four lanes

  uint64_t seed_;
  uint64_t total_ = 0;  // bytes added
  std::array<uint64_t, 4> lanes_;
  std::array<uint8_t, kStripe> pending_{};  // the last total_ % 32 bytes
};

// The digest of a run. Numbers are hashed as 64-bit little endian. For each batch, in order: epoch,
// index, rows, the sample ids; then for each column the dtype's name, the shape, the offsets of a
// ragged one, and the elements: a string as its length and its bytes.
class BatchDigest {
 public:
  void Add(const Batch& batch) {
    Add(batch.epoch(), batch.index(), batch.sample_ids(), batch.columns());
  }
  // `columns`: in host memory.
  void Add(uint64_t epoch, uint64_t index, std::span<const uint64_t> sample_ids,
           std::span<const Column> columns);

  // 16 hexadecimal digits.
  std::string order_and_pixels() const;

  // A digest that does not depend on order and division into batches: the sum, modulo 2^64, of the
  // hash of (epoch, sample id) over all rows. The ranks' values add up to that of a single process.
  std::string samples() const;

 private:
  void AddNumber(uint64_t value) { hash_.Add(&value, sizeof value); }

  Hash64 hash_;
  uint64_t samples_ = 0;
};

}  // namespace stoker
