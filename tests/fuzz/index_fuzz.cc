// libFuzzer's entry point; see README.md for how to run it.
#include <cstddef>
#include <cstdint>
#include <span>

#include "tests/fuzz/decode/decode_indexed.h"
#include "tests/fuzz/open/open_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  if (stoker::testing::IsIndexFile(bytes)) {
    stoker::testing::OpenFuzzedIndex(bytes);
  } else {
    stoker::testing::DecodeFuzzedIndex(bytes);
  }
  return 0;
}
