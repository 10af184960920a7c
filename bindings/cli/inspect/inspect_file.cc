#include "bindings/cli/inspect/inspect_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "transforms/packed/format.h"
#include "transforms/packed/packed_file.h"
#include "transforms/png/chunks.h"
#include "transforms/png/packed/format.h"
#include "transforms/webp/container.h"
#include "transforms/whole/decoder.h"

namespace stoker {
namespace {

// Most headers end within the first 4 KiB.
constexpr size_t kWindow = 8192;
constexpr DecodeLimits kAnySize{.max_pixels = int64_t{kMaxSidePixels} * kMaxSidePixels};

// A file open for reading, seen through a window that moves forward.
class OpenFile {
 public:
  OpenFile(const std::string& path, std::vector<uint8_t>& window)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), window_(window) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }

  Result<uint64_t> Size() const {
    struct stat info;
    if (descriptor_ < 0 || fstat(descriptor_, &info) != 0) return SystemError(errno, "cannot open");
    if (!S_ISREG(info.st_mode)) return Error{Code::kInvalidArgument, "this is not a file"};
    return static_cast<uint64_t>(info.st_size);
  }

  // Only headers are read: disables the system's read-ahead.
  void ExpectLittle() const { posix_fadvise(descriptor_, 0, 0, POSIX_FADV_RANDOM); }

  Result<std::span<const uint8_t>> At(uint64_t offset, size_t size) {
    if (offset < begin_ || offset + size > begin_ + filled_) {
      window_.resize(std::max({size, kWindow, window_.size()}));
      ASSIGN_OR_RETURN(size_t got, Fill(offset, window_.data(), window_.size()));
      begin_ = offset;
      filled_ = got;
    }
    const size_t from = static_cast<size_t>(offset - begin_);
    return std::span<const uint8_t>(window_).subspan(from, std::min(size, filled_ - from));
  }

  // Reads fewer than `size` bytes only at the end of the file.
  Result<size_t> Fill(uint64_t offset, uint8_t* bytes, size_t size) const {
    size_t done = 0;
    while (done < size) {
      const ssize_t got =
          pread(descriptor_, bytes + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return SystemError(errno, "cannot read");
      if (got == 0) break;
      done += static_cast<size_t>(got);
    }
    return done;
  }

 private:
  const int descriptor_;
  std::vector<uint8_t>& window_;
  uint64_t begin_ = 0;
  size_t filled_ = 0;
};

}  // namespace

struct FileInspector::State {
  std::vector<uint8_t> window;
};

namespace {

// More chunks than files have before their frames.
constexpr int kMostChunks = 4096;

uint64_t Number(std::span<const uint8_t> bytes, std::endian order) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    value = value << 8 | bytes[order == std::endian::big ? i : bytes.size() - 1 - i];
  }
  return value;
}

// Looks for acTL, as png::ReadLayout does, whose first number is that of the frames. `begin`: where
// the chunks after the header begin.
Result<bool> PngHasSeveralFrames(const ReadAt& at, uint64_t begin) {
  constexpr size_t kKind = 4, kData = 8, kFrames = 4, kSum = 4;
  for (int i = 0; i < kMostChunks; ++i) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> chunk, at(begin, kData + kFrames));
    if (chunk.size() < kData + kFrames) return false;
    const std::string_view kind(reinterpret_cast<const char*>(&chunk[kKind]), 4);
    if (kind == "acTL") return Number(chunk.subspan(kData), std::endian::big) > 1;
    if (kind == "IDAT" || kind == "IEND") return false;
    begin += kData + Number(chunk.first(kKind), std::endian::big) + kSum;
  }
  return false;
}

// Looks for a second ANMF, as webp::ReadContainer does.
Result<bool> WebpHasSeveralFrames(const ReadAt& at) {
  constexpr size_t kName = 4, kHeader = 8;
  uint64_t begin = 12;
  int frames = 0;
  for (int i = 0; i < kMostChunks; ++i) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> chunk, at(begin, kHeader));
    if (chunk.size() < kHeader) return false;
    const std::string_view name(reinterpret_cast<const char*>(chunk.data()), kName);
    if (i == 0 && name != "VP8X") return false;
    if (name == "ANMF" && ++frames == 2) return true;
    const uint64_t length = Number(chunk.subspan(kName), std::endian::little);
    begin += kHeader + length + length % 2;
  }
  return false;
}

// A library reads the header, which may be anywhere in the file.
Status ReadWholeHeader(const ReadAt& at, FileFacts& facts) {
  constexpr uint64_t kLargest = uint64_t{1} << 30;
  if (*facts.bytes > kLargest) return {};
  ASSIGN_OR_RETURN(std::span<const uint8_t> file, at(0, static_cast<size_t>(*facts.bytes)));
  const Result<ImageInfo> info = WholeDecoder(kAnySize).Open(file, *facts.format);
  if (info.ok()) {
    facts.size = info->size;
    facts.sixteen_bits = info->bits == 16;
    facts.several_frames = info->several_frames;
  }
  if (info.ok() || info.error().code == Code::kUnimplemented) return {};
  return info.error();
}

// Does nothing for a format that stoker does not decode.
Status ReadImageHeader(const ReadAt& at, FileFacts& facts) {
  if (*facts.format == ImageFormat::kJpeg) {
    ASSIGN_OR_RETURN(JpegDescription header, ReadJpegHeader(at));
    facts.size = header.size;
    facts.header = std::move(header);
  }
  if (*facts.format == ImageFormat::kPackedJpeg) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> start, at(0, sizeof(packed::Start)));
    ASSIGN_OR_RETURN(const uint64_t header_at, packed::FindHeader(start));
    const uint64_t jpeg_at = header_at + sizeof(packed::FixedPart);
    ASSIGN_OR_RETURN(JpegDescription header, ReadJpegHeader([&](uint64_t offset, size_t n) {
                       return at(jpeg_at + offset, n);
                     }));
    facts.size = header.size;
  }
  if (IsPng(*facts.format)) {
    const bool is_packed = *facts.format == ImageFormat::kPackedPng;
    const uint64_t png_at = is_packed ? sizeof(packed_png::FixedPart) : 0;
    ASSIGN_OR_RETURN(std::span<const uint8_t> start, at(png_at, png::kHeaderBytes));
    ASSIGN_OR_RETURN(png::Header header, png::ReadHeader(start));
    facts.size = header.size;
    facts.sixteen_bits = header.bit_depth == 16;
    ASSIGN_OR_RETURN(facts.several_frames, PngHasSeveralFrames(at, png_at + png::kHeaderBytes));
  }
  if (*facts.format == ImageFormat::kWebp) {
    ASSIGN_OR_RETURN(std::span<const uint8_t> start, at(0, webp::kSizeBytes));
    ASSIGN_OR_RETURN(facts.size, webp::ReadSize(start));
    ASSIGN_OR_RETURN(facts.several_frames, WebpHasSeveralFrames(at));
  }
  if (WholeDecoder::Decodes(*facts.format)) return ReadWholeHeader(at, facts);
  return {};
}

Status ReadHeader(uint64_t size, const ReadAt& at, FileFacts& facts) {
  facts.bytes = size;
  if (size == 0) return Error{Code::kDataLoss, "the file is empty"};
  ASSIGN_OR_RETURN(std::span<const uint8_t> start, at(0, kSniffBytes));
  facts.format = SniffFormat(start);
  if (*facts.format == ImageFormat::kUnknown) return NoImage(start);
  return ReadImageHeader(at, facts);
}

Status ReadHeaderOfFile(OpenFile& file, FileFacts& facts) {
  ASSIGN_OR_RETURN(uint64_t size, file.Size());
  file.ExpectLittle();
  return ReadHeader(
      size, [&file](uint64_t offset, size_t n) { return file.At(offset, n); }, facts);
}

}  // namespace

FileInspector::FileInspector() : state_(std::make_unique<State>()) {}
FileInspector::~FileInspector() = default;

FileFacts FileInspector::Inspect(const std::string& path) {
  FileFacts facts;
  OpenFile file(path, state_->window);
  Status status = ReadHeaderOfFile(file, facts);
  if (!status.ok()) facts.error = std::move(status).error().WithFile(path);
  return facts;
}

FileFacts FileInspector::InspectBytes(std::span<const uint8_t> file) {
  FileFacts facts;
  Status status = ReadHeader(file.size(), InMemory(file), facts);
  if (!status.ok()) facts.error = std::move(status).error();
  return facts;
}

}  // namespace stoker
