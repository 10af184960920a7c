// Reads bits, the highest of each byte first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace stoker::whole {

// After the end there are zeros.
class BitReader {
 public:
  explicit BitReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  uint32_t Take(int count) {
    uint32_t value = 0;
    for (; count > 0; --count, ++at_) {
      value = value << 1 | (at_ / 8 < bytes_.size() ? bytes_[at_ / 8] >> (7 - at_ % 8) & 1 : 0);
    }
    return value;
  }
  bool TakeFlag() { return Take(1) != 0; }
  void Skip(size_t count) { at_ += count; }
  // An Exp-Golomb code: ue(v) of HEVC, uvlc() of AV1.
  uint32_t TakeCode() {
    int zeros = 0;
    while (zeros < 32 && !failed() && !TakeFlag()) ++zeros;
    if (zeros == 32) at_ = 8 * bytes_.size() + 1;
    return zeros == 32 ? 0 : (uint32_t{1} << zeros) - 1 + Take(zeros);
  }
  bool failed() const { return at_ > 8 * bytes_.size(); }

 private:
  std::span<const uint8_t> bytes_;
  size_t at_ = 0;
};

}  // namespace stoker::whole
