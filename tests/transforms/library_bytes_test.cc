// The libraries for JPEG and WebP allocate no more than what is charged for them, which is computed
// from the header, and the PNG decoder allocates nothing. The test is a program of its own, because
// it replaces malloc.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/memory_budget.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/images/make_webp.h"
#include "tests/transforms/whole.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/libjpeg.h"
#include "transforms/png/decoder.h"
#include "transforms/webp/container.h"
#include "transforms/webp/decoder.h"
#include "transforms/webp/library_bytes.h"
#include "transforms/whole/decoder.h"
#include "transforms/whole/format.h"

// glibc's own functions, under their other names.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming): glibc's
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
// NOLINTEND(readability-identifier-naming)
}

namespace {

std::atomic<int64_t> held{0}, peak{0};
std::atomic<size_t> largest{SIZE_MAX};  // beyond it, there is no memory

void* Counted(void* memory) {
  if (memory == nullptr) return nullptr;
  const auto bytes = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = held.fetch_add(bytes) + bytes;
  for (int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void Uncount(void* memory) {
  if (memory != nullptr) held -= static_cast<int64_t>(malloc_usable_size(memory));
}

}  // namespace

extern "C" {
void* malloc(size_t size) { return size > largest ? nullptr : Counted(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return Counted(__libc_calloc(count, size)); }
void* realloc(void* memory, size_t size) {
  Uncount(memory);
  return Counted(__libc_realloc(memory, size));
}
void* memalign(size_t alignment, size_t size) {
  return size > largest ? nullptr : Counted(__libc_memalign(alignment, size));
}
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  Uncount(memory);
  __libc_free(memory);
}
}

namespace stoker {
namespace {

using testing::MakePng;
using testing::MakeWebp;
using testing::Padded;
using testing::Unpadded;

// Decodes into the same row again and again, in memory that exists from the start.
class OneRow final : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    return {};
  }
  MutableImageView Reserve(int) override {
    return {region_.layout, {region_.covered.width, 1}, {row_.data()}, {0}};
  }
  void Commit(int) override {}

 private:
  DecodedRegion region_;
  std::vector<uint8_t> row_ = std::vector<uint8_t>(1 << 20);
};

// Returns the bytes of malloc while a region is decoded.
template <typename Decoder>
uint64_t PeakOf(Decoder& decoder, const std::vector<uint8_t>& file, const Rect& region,
                OneRow& sink) {
  const int64_t before = held;
  peak = before;
  EXPECT_TRUE(decoder.Open(Unpadded(file)).ok());
  const Status status = decoder.Decode(region, sink);
  EXPECT_TRUE(status.ok()) << status.error().ToString();
  EXPECT_LE(held, before + 4096);
  return static_cast<uint64_t>(peak - before);
}

TEST(LibraryBytes, PngNeedsNone) {
  OneRow sink;
  for (const int width : {1, 500, 20000}) {
    for (const int color : {0, 3, 6}) {
      for (const bool interlaced : {false, true}) {
        const std::vector<uint8_t> plain =
            MakePng({.width = width, .height = 40, .color = color, .interlaced = interlaced});
        // A bomb of text and a profile that claims to be large: not even looked at.
        const std::vector<uint8_t> text =
            testing::PngChunk("tEXt", std::vector<uint8_t>(3 << 20, 'a'));
        for (const std::vector<uint8_t>& png : {plain, testing::WithChunk(plain, "IDAT", text)}) {
          const std::vector<uint8_t> file = Padded(png);
          PngDecoder decoder;
          EXPECT_EQ(PeakOf(decoder, file, {0, 0, width, 40}, sink), 0u) << width << " " << color;
        }
      }
    }
  }
}

uint64_t ChargedFor(const std::vector<uint8_t>& jpeg) {
  LibJpeg libjpeg;
  return libjpeg.ReadHeader(jpeg).value().library_bytes;
}

// The whole image, and a crop: libjpeg-turbo takes more for that.
void CheckJpeg(const testing::JpegOptions& options) {
  OneRow sink;
  const std::vector<uint8_t> jpeg = testing::MakeJpeg(options), file = Padded(jpeg);
  const uint64_t charged = ChargedFor(jpeg);
  const int w = options.width, h = options.height;
  for (const Rect& region : {Rect{0, 0, w, h}, Rect{w / 3, h / 2, w - w / 3, h - h / 2}}) {
    JpegDecoder decoder({.max_scans = 2000}, nullptr, JpegDecoder::Backend::kLibjpegOnly);
    const uint64_t used = PeakOf(decoder, file, region, sink);
    EXPECT_LE(used, charged) << w << " × " << h << " scans " << static_cast<int>(options.scans);
    const uint64_t slack = charged > (1 << 20) ? 2 : 8;
    EXPECT_GT(used * slack, charged)
        << w << " × " << h << " scans " << static_cast<int>(options.scans);
  }
}

TEST(LibraryBytes, JpegStaysWithinItsCharge) {
  using testing::JpegColor, testing::JpegScans, testing::Luma;
  const std::vector<std::vector<testing::Sampling>> samplings = {
      {}, Luma(2, 2), Luma(2, 1), Luma(1, 2), Luma(4, 1), Luma(1, 4), Luma(4, 2)};
  for (const auto& [width, height] : {std::pair{1, 1}, {17, 2000}, {2000, 17}, {640, 481}}) {
    for (const JpegScans scans : {JpegScans::kOne, JpegScans::kOnePerComponent,
                                  JpegScans::kProgressive, JpegScans::kDcOnly}) {
      for (const auto& sampling : samplings) {
        CheckJpeg({.width = width, .height = height, .sampling = sampling, .scans = scans});
      }
      for (const JpegColor color : {JpegColor::kGray, JpegColor::kCmyk, JpegColor::kYcck}) {
        CheckJpeg({.width = width, .height = height, .color = color, .scans = scans});
      }
    }
  }
  CheckJpeg({.width = 20000, .height = 9});
  CheckJpeg({.width = 20000, .height = 9, .color = JpegColor::kCmyk});
  CheckJpeg({.width = 300, .height = 200, .scans = JpegScans::kMany});
  CheckJpeg({.width = 300, .height = 200, .arithmetic = true});
  CheckJpeg({.width = 300, .height = 200, .scans = JpegScans::kProgressive, .arithmetic = true});
}

webp::LosslessHeader HeaderOf(std::span<const uint8_t> webp, const webp::Container& container) {
  return webp::ReadLosslessHeader(webp.subspan(container.begin + 8 + 5), container.size);
}

// The charge for groups of codes follows from the header alone.
TEST(LibraryBytes, WebpWithManyCodesStaysWithinItsCharge) {
  OneRow sink;
  int most = 0;
  for (const int method : {0, 4}) {
    const testing::WebpOptions options{.width = 600,
                                       .height = 400,
                                       .lossless = true,
                                       .quality = 90,
                                       .method = method,
                                       .patches = 50};
    const std::vector<uint8_t> webp = MakeWebp(options), file = Padded(webp);
    const webp::Container container = webp::ReadContainer(webp).value();
    const webp::LosslessHeader header = HeaderOf(webp, container);
    WebpDecoder decoder;
    const uint64_t used = PeakOf(decoder, file, {0, 0, 600, 400}, sink);
    EXPECT_LE(used, webp::LosslessBytes(container.size, header));
    // All pixels are held, and so are a table of codes for each group, without room to spare.
    const uint64_t least =
        uint64_t{4} * 600 * 400 + static_cast<uint64_t>(header.groups) * (568 + uint64_t{4} * 2954);
    EXPECT_GE(used, least);
    most = std::max(most, header.groups);
  }
  EXPECT_GT(most, 20);
}

TEST(LibraryBytes, WebpStaysWithinItsCharge) {
  OneRow sink;
  for (const bool lossless : {false, true}) {
    for (const testing::WebpOptions& options : {testing::WebpOptions{.width = 1, .height = 1},
                                                {.width = 640, .height = 480},
                                                {.width = 3000, .height = 20},
                                                {.width = 700, .height = 500, .alpha = true},
                                                {.width = 700, .height = 500, .colors = 200},
                                                {.width = 900, .height = 700, .quality = 100}}) {
      testing::WebpOptions kind = options;
      kind.lossless = lossless;
      const std::vector<uint8_t> webp = MakeWebp(kind), file = Padded(webp);
      const webp::Container container = webp::ReadContainer(webp).value();
      const uint64_t charged = lossless
                                   ? webp::LosslessBytes(container.size, HeaderOf(webp, container))
                                   : webp::LossyBytes(container.size);
      WebpDecoder decoder;
      const uint64_t used = PeakOf(decoder, file, {0, 0, kind.width, kind.height}, sink);
      EXPECT_LE(used, charged) << kind.width << " × " << kind.height << " lossless " << lossless;
      EXPECT_GT(used * 8, charged)
          << kind.width << " × " << kind.height << " lossless " << lossless;
    }
  }
}

// Decodes the alpha, too.
struct UnchangedWebp {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) { return decoder.Open(bytes); }
  Status Decode(const Rect& region, RowSink& /*sink*/) {
    return decoder.DecodeUnchanged(region, pixels.data());
  }

  WebpDecoder decoder;
  std::vector<uint8_t>& pixels;
};

// A whole image is decoded to the caller's memory: only libwebp's own is charged.
TEST(LibraryBytes, TheAlphaOfAWebpStaysWithinItsCharge) {
  OneRow sink;
  for (const bool lossless : {false, true}) {
    for (const testing::WebpOptions& options : {testing::WebpOptions{.width = 1, .height = 1},
                                                {.width = 3000, .height = 20},
                                                {.width = 700, .height = 500},
                                                {.width = 700, .height = 500, .colors = 3},
                                                {.width = 600, .height = 400, .patches = 50}}) {
      testing::WebpOptions kind = options;
      kind.lossless = lossless;
      kind.alpha = true;
      const std::vector<uint8_t> file = Padded(MakeWebp(kind));
      std::vector<uint8_t> pixels(size_t{4} * static_cast<size_t>(kind.width) *
                                  static_cast<size_t>(kind.height));
      const Rect all{0, 0, kind.width, kind.height};
      MemoryBudget budget(1 << 30);
      UnchangedWebp charged{WebpDecoder({}, &budget), pixels}, decoder{WebpDecoder(), pixels};
      ASSERT_TRUE(charged.Open(Unpadded(file)).ok());
      ASSERT_TRUE(charged.Decode(all, sink).ok());
      EXPECT_EQ(budget.used(), 0u);
      const uint64_t used = PeakOf(decoder, file, all, sink);
      EXPECT_LE(used, budget.peak()) << kind.width << " × " << kind.height << " " << lossless;
      EXPECT_GT(used * 8, budget.peak()) << kind.width << " × " << kind.height << " " << lossless;
    }
  }
}

// Decodes a file whose format is known.
struct KnownFormat {
  Result<ImageInfo> Open(std::span<const uint8_t> bytes) { return decoder.Open(bytes, format); }
  Status Decode(const Rect& region, RowSink& sink) { return decoder.Decode(region, sink); }

  WholeDecoder decoder;
  ImageFormat format;
};

TEST(LibraryBytes, FormatsThatAreDecodedWholeStayWithinTheirCharge) {
  OneRow sink;
  for (const auto& entry : std::filesystem::directory_iterator(STOKER_WHOLE_FILES)) {
    std::ifstream stream(entry.path(), std::ios::binary);
    const std::vector<uint8_t> file = Padded(std::vector<uint8_t>(
        std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()));
    const ImageFormat format = SniffFormat(Unpadded(file));
    if (!WholeDecoder::Decodes(format) || entry.path().stem() == "larger_stream") continue;
    const Result<whole::Header> header = whole::FormatOf(format)->read_header(Unpadded(file));
    if (!header.ok() && header.error().code == Code::kUnimplemented) continue;  // no library
    ASSERT_TRUE(header.ok()) << entry.path() << header.error().ToString();
    const uint64_t rows = uint64_t{header->pixel_bytes()} * 2000 * 1500;
    for (const Rect& region : {Rect{0, 0, 2000, 1500}, Rect{500, 300, 700, 900}}) {
      KnownFormat decoder{WholeDecoder(), format};
      const uint64_t used = PeakOf(decoder, file, region, sink);
      EXPECT_GT(used * 8, header->library_bytes + rows) << entry.path();
      EXPECT_LE(used, header->library_bytes + rows) << entry.path();
    }
  }
}

// libheif throws.
TEST(LibraryBytes, AHeicWithoutMemoryIsAnError) {
  const std::filesystem::path path(STOKER_WHOLE_FILES "/large.heic");
  std::ifstream stream(path, std::ios::binary);
  const std::vector<uint8_t> file((std::istreambuf_iterator<char>(stream)),
                                  std::istreambuf_iterator<char>());
  const whole::Format* const heic = whole::FormatOf(ImageFormat::kHeic);
  if (heic == nullptr) GTEST_SKIP() << "built without libheif";
  const Result<whole::Header> header = heic->read_header(file);
  if (!header.ok()) GTEST_SKIP() << header.error().ToString();
  const size_t stride = header->pixel_bytes() * 2000;
  std::vector<uint8_t> pixels(stride * 1500);
  const whole::Rows rows{0, 1500, pixels.data(), stride};
  int refused = 0;
  for (const size_t most : {size_t{100}, size_t{1000}, size_t{100'000}, size_t{5'000'000}}) {
    largest = most;
    const bool read = heic->read_header(file).ok();
    const Status decoded = heic->decode(file, *header, rows);
    largest = SIZE_MAX;
    EXPECT_FALSE(decoded.ok()) << most << " " << read;
    if (!decoded.ok() && decoded.error().code == Code::kResourceExhausted) ++refused;
  }
  EXPECT_GT(refused, 0);
  EXPECT_TRUE(heic->decode(file, *header, rows).ok());
}

}  // namespace
}  // namespace stoker
