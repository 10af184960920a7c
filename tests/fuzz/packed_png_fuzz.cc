// libFuzzer's entry point; see README.md for how to run it.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/decode/decode_packed_png.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::testing::DecodeFuzzedPackedPng({data, size});
  return 0;
}
