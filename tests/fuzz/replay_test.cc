// Replays every input that a fuzzer has found interesting.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <vector>

#include "tests/fuzz/decode/decode_formats.h"
#include "tests/fuzz/decode/decode_indexed.h"
#include "tests/fuzz/decode/decode_jpeg.h"
#include "tests/fuzz/decode/decode_mask.h"
#include "tests/fuzz/decode/decode_packed.h"
#include "tests/fuzz/decode/decode_packed_png.h"
#include "tests/fuzz/open/open_arrow.h"
#include "tests/fuzz/open/open_cache.h"
#include "tests/fuzz/open/open_index.h"
#include "tests/fuzz/open/open_packed_set.h"
#include "tests/fuzz/open/open_tar.h"
#include "tests/fuzz/open/open_tfrecord.h"
#include "tests/fuzz/parse/parse_http.h"
#include "tests/fuzz/parse/parse_npy.h"
#include "tests/fuzz/parse/parse_record.h"
#include "tests/fuzz/parse/parse_spec.h"
#include "tests/fuzz/parse/read_coco.h"
#include "tests/fuzz/parse/read_manifest.h"
#include "tests/fuzz/parse/read_state.h"
#include "tests/fuzz/parse/read_voc.h"
#include "tests/fuzz/parse/read_yolo.h"

namespace stoker::testing {
namespace {

void Replay(const char* corpus, void (*run)(std::span<const uint8_t>)) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    SCOPED_TRACE(entry.path());
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
    ASSERT_FALSE(bytes.empty());
    run({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    ++files;
  }
  EXPECT_GE(files, 20);
}

TEST(Replay, ArrowCorpus) { Replay(STOKER_FUZZ_CORPUS "/arrow", OpenFuzzedArrow); }
TEST(Replay, JpegCorpus) { Replay(STOKER_FUZZ_CORPUS "/jpeg", DecodeFuzzedJpeg); }
TEST(Replay, IndexCorpus) {
  Replay(STOKER_FUZZ_CORPUS "/index", [](std::span<const uint8_t> bytes) {
    IsIndexFile(bytes) ? OpenFuzzedIndex(bytes) : DecodeFuzzedIndex(bytes);
  });
}
TEST(Replay, CacheCorpus) { Replay(STOKER_FUZZ_CORPUS "/cache", OpenFuzzedCache); }
TEST(Replay, PackedCorpus) { Replay(STOKER_FUZZ_CORPUS "/packed", DecodeFuzzedPacked); }
TEST(Replay, JpegCorpusPacked) { Replay(STOKER_FUZZ_CORPUS "/jpeg", DecodeFuzzedPacked); }
TEST(Replay, PngCorpus) { Replay(STOKER_FUZZ_CORPUS "/png", DecodeFuzzedPng); }
TEST(Replay, PackedPngCorpus) {
  Replay(STOKER_FUZZ_CORPUS "/packed_png", DecodeFuzzedPackedPng);
  Replay(STOKER_FUZZ_CORPUS "/png", DecodeFuzzedPackedPng);
}
TEST(Replay, MaskCorpus) { Replay(STOKER_FUZZ_CORPUS "/mask", DecodeFuzzedMask); }
TEST(Replay, PngCorpusAsMasks) { Replay(STOKER_FUZZ_CORPUS "/png", DecodeFuzzedMask); }
TEST(Replay, WebpCorpus) { Replay(STOKER_FUZZ_CORPUS "/webp", DecodeFuzzedWebp); }
TEST(Replay, WholeCorpus) { Replay(STOKER_FUZZ_CORPUS "/whole", DecodeFuzzedWhole); }
TEST(Replay, ManifestCorpus) { Replay(STOKER_FUZZ_CORPUS "/manifest", ReadFuzzedManifest); }
TEST(Replay, CocoCorpus) { Replay(STOKER_FUZZ_CORPUS "/coco", ReadFuzzedCoco); }
TEST(Replay, HttpCorpus) { Replay(STOKER_FUZZ_CORPUS "/http", ParseFuzzedHttp); }
TEST(Replay, NpyCorpus) { Replay(STOKER_FUZZ_CORPUS "/npy", ParseFuzzedNpy); }
TEST(Replay, RecordCorpus) { Replay(STOKER_FUZZ_CORPUS "/record", ParseFuzzedRecord); }
TEST(Replay, PackedSetCorpus) { Replay(STOKER_FUZZ_CORPUS "/packed_set", OpenFuzzedPackedSet); }
TEST(Replay, TarCorpus) { Replay(STOKER_FUZZ_CORPUS "/tar", OpenFuzzedTar); }
TEST(Replay, TfRecordCorpus) { Replay(STOKER_FUZZ_CORPUS "/tfrecord", OpenFuzzedTfRecord); }
TEST(Replay, ShardsCorpus) { Replay(STOKER_FUZZ_CORPUS "/shards", ExpandFuzzedShards); }
TEST(Replay, SpecCorpus) { Replay(STOKER_FUZZ_CORPUS "/spec", ParseFuzzedSpec); }
TEST(Replay, VocCorpus) { Replay(STOKER_FUZZ_CORPUS "/voc", ReadFuzzedVoc); }
TEST(Replay, YoloCorpus) { Replay(STOKER_FUZZ_CORPUS "/yolo", ReadFuzzedYolo); }
TEST(Replay, StateCorpus) { Replay(STOKER_FUZZ_CORPUS "/state", ReadFuzzedState); }

}  // namespace
}  // namespace stoker::testing
