// libFuzzer's entry point; see README.md for how to run it.
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/decode/decode_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::testing::DecodeFuzzedWhole({data, size});
  return 0;
}
