// Buckets: the lengths that the rows of batches may have.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result/result.h"

namespace stoker {

struct Buckets {
  struct Bucket {
    uint32_t length = 0;  // patches of each row, with padding; at least 1
    double weight = 1;    // how often it is drawn, relative to the others; not all 0
  };

  // Reads "128:0.5,256%8": lengths, weights that are not 1, and a multiple that is not 1.
  // InvalidArgument shows the text, and says what to give.
  static Result<Buckets> Parse(std::string_view text);
  std::string ToString() const;  // what Parse reads; empty without lengths

  // The rows of a batch of `tokens` and at most `most_rows`, as far as there are samples.
  uint32_t RowsOf(const Bucket& bucket, uint32_t tokens, uint32_t most_rows) const;
  uint32_t longest() const;
  bool empty() const { return all.empty(); }  // there are none

  std::vector<Bucket> all{};  // at most kMost
  uint32_t multiple = 1;      // of the rows of a batch; at least 1

  static constexpr size_t kMost = 256;
  static constexpr uint32_t kMostLength = 1 << 20;
};

}  // namespace stoker
