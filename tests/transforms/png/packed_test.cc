// Any region of a packed PNG has the pixels of the PNG, the PNG is restored, and damage is noticed.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/hash/crc32c.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/on_target.h"
#include "tests/testing/random.h"
#include "tests/transforms/whole.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/png/decoder.h"
#include "transforms/png/packed/pack.h"
#include "transforms/png/packed/packed_png.h"
#include "transforms/png/packed/recipe.h"
#include "transforms/png/packed/restore.h"
#include "transforms/png/packed/tiles.h"
#include "transforms/png/reference_decoder.h"

namespace stoker::testing {
namespace {

constexpr size_t kAnySize = 1'000'000;  // percent

struct Kind {
  int color, bits;
};
constexpr std::array<Kind, 9> kKinds = {
    {{0, 8}, {0, 16}, {2, 8}, {2, 16}, {3, 8}, {4, 8}, {4, 16}, {6, 8}, {6, 16}}};

std::vector<uint8_t> Pack(std::span<const uint8_t> png) {
  PngPacker packer(nullptr, {}, kAnySize);
  Result<PngPacker::Packed> packed = packer.Pack(Unpadded(Padded(png)));
  EXPECT_TRUE(packed.ok()) << (packed.ok() ? "" : packed.error().ToString());
  return packed.ok() ? std::move(packed->bytes) : std::vector<uint8_t>();
}

class PackedPngKinds : public ::testing::TestWithParam<Kind> {
 protected:
  void ExpectExact(PngOptions options, const std::vector<Rect>& regions) {
    options.color = GetParam().color;
    options.bit_depth = GetParam().bits;
    const std::vector<uint8_t> png = MakePng(options);
    const std::vector<uint8_t> packed = Padded(Pack(png));
    const WholeImage whole = DecodeWholePng(png).value();
    for (const Rect& region : regions) {
      ASSERT_EQ(Compare(decoder_, packed, region, whole), "")
          << options.width << " × " << options.height;
    }
  }

  ImageDecoder decoder_;
};

TEST_P(PackedPngKinds, SmallImagesAreEqual) {
  for (int size = 1; size <= 70; size += size < 8 ? 1 : 9) {
    PngOptions options{.width = size, .height = 71 - size};
    options.seed = static_cast<uint64_t>(size);
    ExpectExact(options, EdgeRegions({options.width, options.height}));
  }
}

TEST_P(PackedPngKinds, RandomRegionsAreEqual) {
  RandomStream random({6, 0, static_cast<uint64_t>(GetParam().color * 20 + GetParam().bits)}, 0);
  for (int round = 0; round < Effort(30); ++round) {
    PngOptions options{.width = 1 + static_cast<int>(random.Below(300)),
                       .height = 1 + static_cast<int>(random.Below(100))};
    options.chunk_bytes = 1 + random.Below(5000);
    options.seed = random.Below(1 << 30);
    options.regions = random.Below(3) == 0;
    std::vector<Rect> regions;
    for (int i = 0; i < 8; ++i) {
      regions.push_back(RandomRegion({options.width, options.height}, random));
    }
    ExpectExact(options, regions);
  }
}

INSTANTIATE_TEST_SUITE_P(PackedPng, PackedPngKinds, ::testing::ValuesIn(kKinds),
                         [](const auto& info) {
                           return "Color" + std::to_string(info.param.color) + "Bits" +
                                  std::to_string(info.param.bits);
                         });

TEST(PackedPng, DamagedTransparencyHasItsOffset) {
  std::vector<uint8_t> chunk = PngChunk("tRNS", std::vector<uint8_t>(6));
  chunk.back() ^= 1;
  const std::vector<uint8_t> packed = Padded(Pack(WithChunk(MakePng(), "IDAT", chunk)));
  PngDecoder decoder;
  const Error error = decoder.Open(Unpadded(packed), PixelMeaning::kOnWhite).error();
  EXPECT_EQ(error.code, Code::kDataLoss);
  EXPECT_EQ(error.cause, "damaged PNG: its chunk tRNS has a wrong checksum");
  const auto at = std::ranges::search(packed, chunk).begin();
  ASSERT_NE(at, packed.end());
  EXPECT_EQ(error.offset, static_cast<uint64_t>(at - packed.begin()));
}

// ---- Unchanged pixels, masks, orientation.

TEST(PackedPng, UnchangedPixelsAreEqual) {
  for (const Kind kind : kKinds) {
    const std::vector<uint8_t> png =
        Padded(MakePng({.width = 100, .height = 50, .color = kind.color, .bit_depth = kind.bits}));
    const std::vector<uint8_t> packed = Padded(Pack(Unpadded(png)));
    const Rect region{7, 3, 90, 40};
    std::vector<uint8_t> pixels(size_t{8} * 90 * 40), expected = pixels;
    ImageDecoder decoder;
    ASSERT_TRUE(decoder.Open(Unpadded(png)).ok());
    ASSERT_TRUE(decoder.DecodeUnchanged(region, expected.data()).ok());
    ASSERT_TRUE(decoder.Open(Unpadded(packed)).ok());
    ASSERT_TRUE(decoder.DecodeUnchanged(region, pixels.data()).ok());
    EXPECT_TRUE(pixels == expected) << kind.color << ", " << kind.bits;
  }
}

TEST(PackedPng, IsReadAsAMask) {
  struct MaskDecoder {
    Result<ImageInfo> Open(std::span<const uint8_t> bytes) {
      return image.Open(bytes, PixelMeaning::kMask);
    }
    Status Decode(const Rect& region, RowSink& sink) { return image.Decode(region, sink); }
    ImageDecoder image;
  } decoder;
  for (const int color : {0, 3}) {
    const std::vector<uint8_t> png = MakePng({.width = 90, .height = 70, .color = color});
    const WholeImage whole = DecodeWholeMask(png).value();
    EXPECT_EQ(Compare(decoder, Padded(Pack(png)), {}, whole), "");
    EXPECT_EQ(Compare(decoder, Padded(Pack(png)), {70, 40, 20, 5}, whole), "");
  }
}

TEST(PackedPng, HasTheMetadataOfThePng) {
  const std::vector<uint8_t> exif = PngChunk("eXIf", OrientationTiff(6, true));
  for (const char* const before : {"IDAT", "IEND"}) {
    const std::vector<uint8_t> png =
        WithChunk(MakePng({.color = 6, .bit_depth = 16}), before, exif);
    ImageDecoder decoder;
    const Result<ImageInfo> info = decoder.Open(Unpadded(Padded(Pack(png))));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->orientation, static_cast<Orientation>(6));
    EXPECT_EQ(info->format, ImageFormat::kPackedPng);
    EXPECT_TRUE(info->alpha);
    EXPECT_EQ(info->bits, 16);
  }
}

// ---- Restoring.

// Changes compressed data.
using Change = std::function<void(std::vector<uint8_t>&)>;

// A PNG whose rows are compressed with these parameters.
std::vector<uint8_t> Compressed(int level, int strategy, int memory, int window,
                                const Change& change = {}, int height = 120) {
  constexpr int kWidth = 150;
  const std::vector<uint8_t> png = MakePng({.width = kWidth, .height = height});
  const WholeImage whole = DecodeWholePng(png).value();
  std::vector<uint8_t> rows;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    rows.push_back(0);
    const auto row = whole.pixels.begin() + static_cast<ptrdiff_t>(y * 3 * kWidth);
    rows.insert(rows.end(), row, row + 3 * kWidth);
  }
  z_stream stream{};
  deflateInit2(&stream, level, Z_DEFLATED, window, memory, strategy);
  std::vector<uint8_t> data(2 * rows.size() + 100);
  stream.next_in = rows.data();
  stream.avail_in = static_cast<uInt>(rows.size());
  stream.next_out = data.data();
  stream.avail_out = static_cast<uInt>(data.size());
  deflate(&stream, Z_FINISH);
  data.resize(data.size() - stream.avail_out);
  deflateEnd(&stream);
  if (change) change(data);
  std::vector<uint8_t> file(png.begin(), png.begin() + 33);
  const auto append = [&file](const std::vector<uint8_t>& chunk) {
    file.insert(file.end(), chunk.begin(), chunk.end());
  };
  for (size_t at = 0; at < data.size(); at += 8192) {
    append(PngChunk("IDAT", std::span(data).subspan(at, std::min<size_t>(8192, data.size() - at))));
  }
  append(PngChunk("tEXt", std::vector<uint8_t>{'a', 0, 'b'}));
  append(PngChunk("IEND", {}));
  file.push_back(7);  // after its end
  return file;
}

void ExpectRestored(const std::vector<uint8_t>& png, bool exact) {
  PngPacker packer(nullptr, {}, kAnySize);
  const Result<PngPacker::Packed> packed = packer.Pack(Unpadded(Padded(png)));
  ASSERT_TRUE(packed.ok());
  const Result<RestoredPng> restored = RestorePng(Unpadded(Padded(packed->bytes)));
  ASSERT_TRUE(restored.ok()) << restored.error().ToString();
  EXPECT_EQ(packed->is_exact, exact);
  EXPECT_EQ(restored->is_exact, exact);
  EXPECT_EQ(restored->bytes == png, exact);
  EXPECT_TRUE(ComparePngs(png, Unpadded(Padded(packed->bytes))).ok());
  EXPECT_TRUE(DecodeWholePng(restored->bytes)->pixels == DecodeWholePng(png)->pixels);
}

TEST(PackedPng, IsRestoredToTheByteForUsualParametersOfZlib) {
  for (int level = 1; level <= 9; ++level) {
    for (const int strategy : {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED}) {
      ExpectRestored(Compressed(level, strategy, 8 + level % 2, level == 4 ? 12 : 15), true);
    }
  }
}

TEST(PackedPng, OtherCompressionsAreRestoredToEqualPixels) {
  ExpectRestored(Compressed(6, Z_DEFAULT_STRATEGY, 1, 15), false);
  ExpectRestored(Compressed(0, Z_DEFAULT_STRATEGY, 8, 15), false);
  const auto other_checksum = [](std::vector<uint8_t>& data) { data.back() ^= 1; };
  ExpectRestored(Compressed(6, Z_DEFAULT_STRATEGY, 8, 15, other_checksum), false);
  const auto longer = [](std::vector<uint8_t>& data) { data.push_back(7); };
  ExpectRestored(Compressed(6, Z_DEFAULT_STRATEGY, 8, 15, longer), false);
}

// As libpng does for small images.
TEST(PackedPng, AWindowThatIsSmallerInTheHeaderIsRestored) {
  const auto change = [](std::vector<uint8_t>& data) {
    data[0] = 0x58;  // 8 KiB
    data[1] &= 0xE0;
    data[1] += static_cast<uint8_t>(31 - (data[0] * 256 + data[1]) % 31);
  };
  ExpectRestored(Compressed(6, Z_FILTERED, 8, 15, change, 16), true);
}

TEST(PackedPng, AllChunksAreRestored) {
  for (const char* const type : {"gAMA", "iCCP", "zTXt", "tRNS", "acTL", "fdAT"}) {
    for (const char* const before : {"IDAT", "IEND"}) {
      SCOPED_TRACE(std::string(type) + " before " + before);
      std::vector<uint8_t> chunk = PngChunk(type, std::vector<uint8_t>(20, 1));
      ExpectRestored(WithChunk(MakePng({}), before, chunk), true);
      chunk.back() ^= 1;  // a checksum that decoders do not verify
      ExpectRestored(WithChunk(MakePng({}), before, chunk), true);
    }
  }
}

// A packed PNG with other bytes in its recipe, from `at`.
std::vector<uint8_t> WithRecipe(std::vector<uint8_t> packed, size_t at,
                                const std::vector<uint8_t>& bytes) {
  const std::vector<uint8_t> sound = Padded(packed);
  const size_t recipe = packed_png::PackedPng::Open(Unpadded(sound))->recipe().size();
  std::ranges::copy(bytes, packed.end() - static_cast<ptrdiff_t>(recipe - at));
  return Padded(packed);
}

// The other version is that of other parameters, which give data of another size.
TEST(PackedPng, AnotherVersionOfZlibRestoresEqualPixels) {
  const std::vector<uint8_t> png = Compressed(9, Z_DEFAULT_STRATEGY, 8, 15), packed = Pack(png);
  for (const uint8_t strategy : {Z_HUFFMAN_ONLY, Z_FIXED}) {
    const std::vector<uint8_t> other = WithRecipe(packed, 2, {strategy});
    const Result<RestoredPng> restored = RestorePng(Unpadded(other));
    ASSERT_TRUE(restored.ok());
    EXPECT_FALSE(restored->is_exact);
    EXPECT_TRUE(DecodeWholePng(restored->bytes)->pixels == DecodeWholePng(png)->pixels);
  }
}

TEST(PackedPng, MaskOf16BitsHasAllBits) {
  const std::vector<uint8_t> png =
      MakePng({.width = 90, .height = 70, .color = 0, .bit_depth = 16});
  const auto values = [](const std::vector<uint8_t>& file) {
    ImageDecoder decoder;
    EXPECT_TRUE(decoder.Open(Unpadded(file), PixelMeaning::kMask16).ok());
    std::vector<uint8_t> pixels(size_t{2} * 80 * 60);
    EXPECT_TRUE(decoder.DecodeUnchanged({7, 9, 80, 60}, pixels.data()).ok());
    return pixels;
  };
  EXPECT_TRUE(values(Padded(Pack(png))) == values(Padded(png)));
}

TEST(PackedPng, AllFiltersAreRestored) {
  for (const Kind kind : kKinds) {
    for (const size_t chunk : {size_t{1}, size_t{8192}}) {
      PngOptions options{.width = 90, .height = 40, .color = kind.color, .bit_depth = kind.bits};
      options.chunk_bytes = chunk;
      ExpectRestored(MakePng(options), true);
    }
  }
}

TEST(PackedPng, OthersAreStoredAsTheyAre) {
  PngPacker packer;
  const auto why = [&](const std::vector<uint8_t>& file) {
    const Result<PngPacker::Packed> packed = packer.Pack(Unpadded(Padded(file)));
    EXPECT_FALSE(packed.ok());
    EXPECT_EQ(packed.error().code, Code::kUnimplemented);
    return packed.error().cause;
  };
  const std::string not_packed = "this PNG is not packed: ";
  EXPECT_EQ(why(MakePng({.interlaced = true})), not_packed + "it is interlaced");
  EXPECT_EQ(why(MakePng({.color = 3, .bit_depth = 4})), not_packed + "it has fewer than 8 bits");
  EXPECT_EQ(why(MakePng({.regions = true})), not_packed + "packed it would be too large");
  std::vector<uint8_t> cut = MakePng({});
  cut.resize(cut.size() - 20);
  EXPECT_EQ(why(cut), not_packed + "truncated PNG: a chunk reaches past the end of the file");
  const DecodeLimits few{.max_pixels = 100};
  EXPECT_FALSE(PngPacker(nullptr, few).PackPixels(MakePng({})).ok());
}

TEST(PackedPng, MemoryIsCharged) {
  const std::vector<uint8_t> png = Padded(MakePng({.width = 300, .height = 300}));
  MemoryBudget budget(100'000);
  PngPacker packer(&budget, {}, kAnySize);
  EXPECT_EQ(packer.PackPixels(Unpadded(png)).error().code, Code::kResourceExhausted);
  budget.SetLimit(10'000'000);
  const Result<std::span<const uint8_t>> packed = packer.PackPixels(Unpadded(png));
  ASSERT_TRUE(packed.ok());
  EXPECT_GE(budget.used(), packed->size());
  const std::vector<uint8_t> pixels = Padded(*packed);
  packer.FreeMemory();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_TRUE(packer.Pack(Unpadded(png)).ok());
  packer.FreeMemory();
  EXPECT_EQ(budget.used(), 0u);
  EXPECT_GT(budget.peak(), packed->size() + 3 * png.size());
  budget.SetLimit(20'000);
  PngDecoder decoder({}, &budget);
  EXPECT_EQ(ErrorOf(decoder, pixels).code, Code::kResourceExhausted);
}

// ---- Tiles.

class PackedPngTiles : public OnTarget {};
INSTANTIATE_TEST_SUITE_P(Cpu, PackedPngTiles, EachTarget(), NameOfTarget);

packed_png::Planes RandomPlanes(Random& random) {
  const Kind kind = kKinds[static_cast<size_t>(random.Between(0, 8))];
  png::Header header;
  header.color = static_cast<png::Color>(kind.color);
  header.bit_depth = kind.bits;
  return packed_png::Planes(header);
}

TEST_P(PackedPngTiles, AreUnpackedAsByTheReference) {
  Random random(7);
  constexpr size_t kPadding = 64;
  for (int round = 0; round < Effort(3000); ++round) {
    const packed_png::Planes planes = RandomPlanes(random);
    std::vector<uint8_t> tile(static_cast<size_t>(random.Between(0, 9000)) + kPadding);
    for (uint8_t& byte : tile) byte = static_cast<uint8_t>(random.Between(0, 255));
    const size_t size = tile.size() - kPadding;
    const int rows = random.Between(1, packed_png::kBandRows);
    const auto stride = static_cast<ptrdiff_t>(64 * planes.count + 5);
    std::vector<uint8_t> a(static_cast<size_t>(stride * rows)), b = a;
    const std::span<const uint8_t> bytes = std::span<const uint8_t>(tile).first(size);
    const bool fine = packed_png::UnpackTilePlain(bytes, planes, rows, a.data(), stride);
    ASSERT_EQ(packed_png::UnpackTile(bytes, planes, rows, b.data(), stride), fine) << round;
    ASSERT_TRUE(!fine || a == b) << round;
  }
}

TEST_P(PackedPngTiles, AreUnpackedToWhatWasPacked) {
  Random random(8);
  for (int round = 0; round < Effort(1000); ++round) {
    const packed_png::Planes planes = RandomPlanes(random);
    const int columns = random.Between(1, 64), rows = random.Between(1, packed_png::kBandRows);
    const size_t row = static_cast<size_t>(columns) * planes.count;
    std::vector<uint8_t> pixels(row * static_cast<size_t>(rows));
    const int noise = 1 << random.Between(0, 8), slope = random.Between(-3, 3);
    for (size_t i = 0; i < pixels.size(); ++i) {
      pixels[i] = static_cast<uint8_t>(random.Between(0, noise - 1) +
                                       slope * static_cast<int>(i / planes.count % 64));
    }
    std::vector<uint8_t> packed(packed_png::MostTileBytes(planes.count, packed_png::kBandRows) +
                                kBufferPadding);
    const uint8_t* const end = packed_png::PackTile(pixels.data(), static_cast<ptrdiff_t>(row),
                                                    columns, rows, planes, packed.data());
    ASSERT_LE(end, packed.data() + packed_png::MostTileBytes(planes.count, packed_png::kBandRows));
    const size_t stride = 64 * planes.count;
    std::vector<uint8_t> unpacked(stride * static_cast<size_t>(rows));
    ASSERT_TRUE(packed_png::UnpackTile({packed.data(), end}, planes, rows, unpacked.data(),
                                       static_cast<ptrdiff_t>(stride)));
    for (size_t y = 0; y < static_cast<size_t>(rows); ++y) {
      ASSERT_EQ(std::memcmp(unpacked.data() + y * stride, pixels.data() + y * row, row), 0)
          << round << ", row " << y;
    }
  }
}

// ---- Damage.

TEST(PackedPngDamage, EachByteIsCovered) {
  const std::vector<uint8_t> png = MakePng({.width = 70, .height = 40});
  const std::vector<uint8_t> packed = Pack(png), sound = Padded(packed);
  const packed_png::PackedPng file = packed_png::PackedPng::Open(Unpadded(sound)).value();
  const std::vector<uint8_t> pixels = DecodeWholePng(png)->pixels;
  const size_t recipe_at = packed.size() - file.recipe().size();
  PngDecoder decoder;
  for (size_t at = 0; at < packed.size(); ++at) {
    std::vector<uint8_t> bad = packed;
    bad[at] ^= static_cast<uint8_t>(1 << at % 8);
    const std::vector<uint8_t> padded = Padded(bad);
    const Error error = ErrorOf(decoder, padded);
    if (at < recipe_at) {
      ASSERT_NE(error.cause, "") << at;
      ASSERT_TRUE(error.offset.has_value() && *error.offset <= bad.size()) << at;
    } else {  // not read; its damage may change the file, but not the pixels
      ASSERT_EQ(error.cause, "") << at;
      const Result<RestoredPng> restored = RestorePng(Unpadded(padded));
      if (!restored.ok()) continue;
      const Result<WholeImage> whole = DecodeWholePng(restored->bytes);
      ASSERT_TRUE(!whole.ok() || whole->pixels == pixels) << at;
    }
  }
}

TEST(PackedPngDamage, TruncatedFilesAreRefused) {
  const std::vector<uint8_t> packed = Pack(MakePng({.width = 70, .height = 40}));
  PngDecoder decoder;
  for (size_t size = 0; size < packed.size(); ++size) {
    const Error error = ErrorOf(decoder, Padded(std::span<const uint8_t>(packed).first(size)));
    ASSERT_NE(error.cause, "") << size;
    ASSERT_TRUE(error.offset.has_value() && *error.offset <= size) << size;
  }
}

// A packed PNG whose header has another width or height.
std::vector<uint8_t> WithSide(size_t at, uint32_t side) {
  std::vector<uint8_t> packed = Pack(MakePng());
  constexpr size_t kHeaderAt = sizeof(packed_png::FixedPart) + 8, kBefore = 8, kBytes = 13;
  const auto data = packed.begin() + kHeaderAt + kBefore;
  for (size_t i = 0; i < 4; ++i) data[static_cast<ptrdiff_t>(at + i)] = side >> (24 - 8 * i) & 255;
  const std::vector<uint8_t> header = PngChunk("IHDR", std::vector<uint8_t>(data, data + kBytes));
  std::ranges::copy(header, packed.begin() + kHeaderAt);
  return Padded(packed);
}

TEST(PackedPngDamage, LargeSidesAreRefused) {
  for (const size_t at : {0, 4}) {
    for (const uint32_t side : {0x7FFFFFFFU, 0x7FFFFFE1U, 0x7FFFFFC0U}) {
      ImageDecoder decoder;
      const std::vector<uint8_t> packed = WithSide(at, side);
      EXPECT_EQ(decoder.Open(Unpadded(packed)).error().code, Code::kDataLoss);
      EXPECT_EQ(RestorePng(Unpadded(packed)).error().code, Code::kDataLoss);
    }
  }
}

TEST(PackedPngDamage, ForgedRecipesAreRefused) {
  const std::vector<uint8_t> png = MakePng({.width = 70, .height = 40}), packed = Pack(png);
  const auto restore = [&](size_t at, const std::vector<uint8_t>& bytes) {
    const std::vector<uint8_t> forged = WithRecipe(packed, at, bytes);
    return RestorePng(Unpadded(forged));
  };
  const std::vector<std::pair<size_t, uint8_t>> parameters = {
      {0, 2}, {1, 10}, {1, 99}, {2, 5}, {3, 0}, {3, 10}, {4, 8}, {4, 16}, {5, 0x79}, {7, 5}};
  for (const auto& [at, value] : parameters) {
    const Result<RestoredPng> restored = restore(at, {value});
    ASSERT_FALSE(restored.ok()) << at << ", " << value;
    EXPECT_EQ(restored.error().code, Code::kDataLoss);
    EXPECT_TRUE(restored.error().offset.has_value());
  }
  // Sums of sizes that wrap around, and runs of nothing.
  const std::vector<std::vector<uint8_t>> runs = {{0xF6, 255, 255, 255, 255, 255, 255, 255},
                                                  {0, 0, 0, 0, 255, 255, 255, 255},
                                                  {255, 255, 255, 255, 0, 0, 0, 0}};
  for (const std::vector<uint8_t>& run : runs) {
    const Result<RestoredPng> restored = restore(sizeof(packed_png::Compression) + 40, run);
    ASSERT_TRUE(restored.ok());
    EXPECT_FALSE(restored->is_exact);
    EXPECT_TRUE(DecodeWholePng(restored->bytes)->pixels == DecodeWholePng(png)->pixels);
  }
}

TEST(PackedPngDamage, AnotherVersionIsRefused) {
  std::vector<uint8_t> packed = Pack(MakePng());
  packed[7] = 2;
  ImageDecoder decoder;
  const Error error = decoder.Open(Unpadded(Padded(packed))).error();
  EXPECT_EQ(error.code, Code::kUnimplemented);
  EXPECT_EQ(error.cause, "a packed PNG of version 2");
}

}  // namespace
}  // namespace stoker::testing
