// Every input that was ever of interest to a fuzzer, again.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/decode_jpeg.h"

namespace stoker::testing {
namespace {

TEST(Replay, JpegCorpus) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_FUZZ_CORPUS "/jpeg")) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
    ASSERT_FALSE(bytes.empty());
    DecodeFuzzedJpeg({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ++files;
  }
  EXPECT_GE(files, 20);
}

}  // namespace
}  // namespace stoker::testing
