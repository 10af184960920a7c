// Packed JPEGs that were made once: later versions read them, and pack their JPEGs to the same
// bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/hash/crc32c.h"
#include "tests/testing/images/photos.h"
#include "tests/testing/images/sign_packed_jpeg.h"
#include "tests/transforms/whole.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"

namespace stoker::testing {
namespace {

struct KnownFile {
  const char* name;
  uint8_t version;
  uint32_t choices;
  uint32_t crc;  // CRC-32C of the JPEG
};

// The JPEGs are 420.jpg, progressive.jpg and jpegli.jpg of tests/fuzz/corpus/jpeg. The last is of
// jpegli (ajpegli 1.0.0): a pattern of 8 × 8 pixels in 64 × 64, with quality=60, progressive=1,
// subsampling="420".
constexpr KnownFile kFiles[] = {
    {"baseline", packed::kVersion, 0, 0xD0CC591C},
    {"progressive", packed::kProgressiveVersion, 0, 0x509B1620},
    {"jpegli", packed::kProgressiveVersion, packed::kJpegliRuns, 0x9C581F8B},
};

TEST(PackedFiles, StayAsTheyAre) {
  for (const KnownFile& known : kFiles) {
    SCOPED_TRACE(known.name);
    const std::vector<uint8_t> file =
        ReadFile(std::string(STOKER_PACKED_FILES "/") + known.name + ".packed");
    const PackedParts parts = PartsOf(file);
    ASSERT_TRUE(parts.sound);
    packed::FixedPart fixed;
    std::memcpy(&fixed, &file[parts.header_at], sizeof(fixed));
    EXPECT_EQ(fixed.start.version, known.version);
    EXPECT_EQ(fixed.choices, known.choices);
    const Result<std::vector<uint8_t>> jpeg = RestoreJpeg(Unpadded(Padded(file)));
    ASSERT_TRUE(jpeg.ok()) << jpeg.error().ToString();
    EXPECT_EQ(Crc32c(*jpeg), known.crc);
    EXPECT_EQ(PackJpeg(Unpadded(Padded(*jpeg))).value(), file);
  }
}

}  // namespace
}  // namespace stoker::testing
