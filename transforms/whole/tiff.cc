// TIFF by libtiff 4.5 or later, which has error handlers and limits of allocations for each file:
// the first page, of 1 to 16 bits, gray, RGB, CMYK or with a palette, in strips or tiles.
#include <tiffio.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <string>

#include "core/result/try.h"
#include "core/system/shared_library.h"
#include "transforms/decode/exif.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

struct Libtiff {
  decltype(&TIFFOpenOptionsAlloc) options_alloc;
  decltype(&TIFFOpenOptionsFree) options_free;
  decltype(&TIFFOpenOptionsSetMaxSingleMemAlloc) set_max_alloc;
  decltype(&TIFFOpenOptionsSetErrorHandlerExtR) set_error_handler;
  decltype(&TIFFOpenOptionsSetWarningHandlerExtR) set_warning_handler;
  decltype(&TIFFClientOpenExt) client_open;
  decltype(&TIFFClose) close;
  decltype(&TIFFGetFieldDefaulted) get;
  decltype(&TIFFSetField) set;
  decltype(&TIFFDataWidth) data_width;
  decltype(&TIFFIsTiled) is_tiled;
  decltype(&TIFFTileSize64) tile_size;
  decltype(&TIFFStripSize64) strip_size;
  decltype(&TIFFTileRowSize64) tile_row_size;
  decltype(&TIFFScanlineSize64) scanline_size;
  decltype(&TIFFComputeTile) compute_tile;
  decltype(&TIFFComputeStrip) compute_strip;
  decltype(&TIFFGetStrileByteCount) part_bytes;
  decltype(&TIFFReadEncodedTile) read_tile;
  decltype(&TIFFReadEncodedStrip) read_strip;
};

Result<Libtiff> Load() {
  constexpr const char* kFiles[] = {"libtiff.so.6"};
  SharedLibrary library(kFiles, "TIFF images are decoded by libtiff 4.5 or later",
                        "apt-get install libtiff6 (Debian 12, Ubuntu 24.04), dnf install libtiff "
                        "(Fedora) or conda install -c conda-forge libtiff");
  Libtiff tiff;
  library.Find("TIFFOpenOptionsAlloc", tiff.options_alloc);
  library.Find("TIFFOpenOptionsFree", tiff.options_free);
  library.Find("TIFFOpenOptionsSetMaxSingleMemAlloc", tiff.set_max_alloc);
  library.Find("TIFFOpenOptionsSetErrorHandlerExtR", tiff.set_error_handler);
  library.Find("TIFFOpenOptionsSetWarningHandlerExtR", tiff.set_warning_handler);
  library.Find("TIFFClientOpenExt", tiff.client_open);
  library.Find("TIFFClose", tiff.close);
  library.Find("TIFFGetFieldDefaulted", tiff.get);
  library.Find("TIFFSetField", tiff.set);
  library.Find("TIFFDataWidth", tiff.data_width);
  library.Find("TIFFIsTiled", tiff.is_tiled);
  library.Find("TIFFTileSize64", tiff.tile_size);
  library.Find("TIFFStripSize64", tiff.strip_size);
  library.Find("TIFFTileRowSize64", tiff.tile_row_size);
  library.Find("TIFFScanlineSize64", tiff.scanline_size);
  library.Find("TIFFComputeTile", tiff.compute_tile);
  library.Find("TIFFComputeStrip", tiff.compute_strip);
  library.Find("TIFFGetStrileByteCount", tiff.part_bytes);
  library.Find("TIFFReadEncodedTile", tiff.read_tile);
  library.Find("TIFFReadEncodedStrip", tiff.read_strip);
  TRY(library.status());
  return tiff;
}

// Returns whether another directory follows, which is that of a further page.
//
// libtiff 4.5 copies each value of a directory, and has a limit for each copy but none for all:
// thousands of entries may name the same bytes.
Result<bool> CheckDirectory(const Libtiff& library, std::span<const uint8_t> bytes) {
  const auto number = [&](uint64_t at, uint64_t count) {  // 0 outside of the file
    uint64_t value = 0;
    if (at > bytes.size() || count > bytes.size() - at) return value;
    for (uint64_t i = 0; i < count; ++i) {
      value = value << 8 | bytes[at + (bytes[0] == 'M' ? i : count - 1 - i)];
    }
    return value;
  };
  constexpr uint64_t kBigTiff = 43, kMostEntries = 4096;  // libtiff refuses more
  const bool big = number(2, 2) == kBigTiff;
  const uint64_t word = big ? 8 : 4, head = big ? 8 : 2;
  const uint64_t directory = number(word, word);
  const uint64_t entries = std::min(number(directory, head), kMostEntries);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < entries; ++i) {
    const uint64_t entry = directory + head + i * (4 + 2 * word);
    const uint64_t type = number(entry + 2, 2);
    const int width = type > TIFF_IFD8 ? 0 : library.data_width(static_cast<TIFFDataType>(type));
    sum += std::min<uint64_t>(number(entry + 4, word), bytes.size() + 1) *
           static_cast<uint64_t>(width);
  }
  constexpr uint64_t kShared = 1 << 16;  // some writers store equal values once
  if (sum > bytes.size() + kShared) {
    return Damaged(ImageFormat::kTiff, "a directory of more bytes than the file has", directory);
  }
  const uint64_t next = number(directory + head + entries * (4 + 2 * word), word);
  return next != 0 && next != directory && next < bytes.size();
}

// The tags that say how many samples a pixel has, of how many bits, and what they mean.
struct Samples {
  uint16_t bits = 1, count = 1;  // of a sample; of a pixel's samples
  uint16_t photometric = PHOTOMETRIC_MINISBLACK;
  bool separate = false;    // each sample has strips or tiles of its own
  bool alpha = false;       // follows the colours
  bool associated = false;  // colours are multiplied by alpha
  std::array<const uint16_t*, 3> palette{};

  int colours() const {
    if (photometric == PHOTOMETRIC_SEPARATED) return 4;
    return photometric == PHOTOMETRIC_RGB || photometric == PHOTOMETRIC_YCBCR ? 3 : 1;
  }
  int channels() const {
    const bool gray = colours() == 1 && photometric != PHOTOMETRIC_PALETTE;
    const bool keeps = alpha && colours() != 4 && photometric != PHOTOMETRIC_PALETTE;
    return (gray ? 1 : 3) + (keeps ? 1 : 0);
  }
  // Channels after these: bands of satellites, for example.
  int extra() const {
    const bool converted = colours() == 4 || photometric == PHOTOMETRIC_PALETTE;
    return converted ? 0 : count - channels();
  }
  int kept() const { return channels() + extra(); }
  int most() const { return bits == 16 ? 65535 : 255; }

  // Sample `i` of a row, of that channel, with 8 bits if it has fewer.
  int At(const uint8_t* row, int i, int channel) const {
    int value = 0;
    if (bits == 16) {
      uint16_t wide;
      std::memcpy(&wide, row + ptrdiff_t{2} * i, sizeof(wide));
      value = wide;
    } else {
      value = SampleAt(row, i, bits);
    }
    if (photometric == PHOTOMETRIC_PALETTE) return value;
    if (bits < 8) value = value * 255 / ((1 << bits) - 1);
    const bool inverted = photometric == PHOTOMETRIC_MINISWHITE && channel == 0;
    return inverted ? most() - value : value;
  }
  void Put(int value, int channel, uint8_t* pixel) const {
    if (bits != 16) {
      pixel[channel] = static_cast<uint8_t>(value);
      return;
    }
    const auto wide = static_cast<uint16_t>(value);
    std::memcpy(pixel + ptrdiff_t{2} * channel, &wide, sizeof(wide));
  }
};

class OpenTiff {
 public:
  OpenTiff(const Libtiff& library, std::span<const uint8_t> bytes)
      : library_(library), bytes_(bytes) {
    TIFFOpenOptions* const options = library_.options_alloc();
    if (options == nullptr) return;
    constexpr tmsize_t kCodecs = tmsize_t{4} << 20, kWidened = 4;  // strips' offsets, from SHORT
    library_.set_max_alloc(options, kCodecs + kWidened * static_cast<tmsize_t>(bytes.size()));
    library_.set_error_handler(options, &OnError, this);
    library_.set_warning_handler(options, &OnWarning, nullptr);
    file_ = library_.client_open("image", "r", this, &Read, &Write, &Seek, &Close, &Size, &Map,
                                 &Unmap, options);
    library_.options_free(options);
  }
  OpenTiff(const OpenTiff&) = delete;
  OpenTiff& operator=(const OpenTiff&) = delete;
  ~OpenTiff() {
    if (file_ != nullptr) library_.close(file_);
  }

  Result<Header> ReadHeader() {
    if (file_ == nullptr) return Failure();
    uint32_t width = 0, height = 0;
    Get(TIFFTAG_IMAGEWIDTH, width);
    Get(TIFFTAG_IMAGELENGTH, height);
    constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
    size_ = {static_cast<int>(std::min(width, kMost)), static_cast<int>(std::min(height, kMost))};
    if (width == 0 || height == 0) return Damaged(ImageFormat::kTiff, "no pixels");
    TRY(ReadSamples());
    TRY(ReadTiling());
    uint16_t orientation = 1;
    Get(TIFFTAG_ORIENTATION, orientation);
    Header header{.size = size_,
                  .channels = samples_.channels(),
                  .extra = samples_.extra(),
                  .bits = samples_.bits == 16 ? 16 : 8,
                  .orientation = OrientationOf(orientation)};
    constexpr uint64_t kCodecs = 1 << 20, kCoefficients = 3;  // of a progressive JPEG
    header.library_bytes = part_bytes_ * (jpeg_ ? kCoefficients : 1) + kCodecs;
    return header;
  }

  // Precondition: the header was read.
  Status Decode(const Rows& rows) {
    std::unique_ptr<uint8_t[]> part(new (std::nothrow) uint8_t[part_bytes_]);  // NOLINT: C's array
    if (part == nullptr) {
      return Error{Code::kResourceExhausted, "no memory left to decode a TIFF", {}, 0};
    }
    const int planes = samples_.separate ? samples_.kept() : 1;
    const int first = rows.begin / part_.height * part_.height;
    for (int y = first; y < rows.end; y += part_.height) {
      for (int x = 0; x < size_.width; x += part_.width) {
        for (int plane = 0; plane < planes; ++plane) {
          TRY(ReadPart(x, y, plane, part.get()));
          Convert(part.get(), x, y, plane, rows);
        }
      }
    }
    return {};
  }

 private:
  template <typename T>
  bool Get(uint32_t tag, T& value) const {
    return library_.get(file_, tag, &value) != 0;
  }

  Status ReadSamples() {
    uint16_t compression = COMPRESSION_NONE, planes = PLANARCONFIG_CONTIG;
    uint16_t kind = SAMPLEFORMAT_UINT, extras = 0;
    const uint16_t* extra = nullptr;
    Get(TIFFTAG_COMPRESSION, compression);
    Get(TIFFTAG_PLANARCONFIG, planes);
    Get(TIFFTAG_SAMPLEFORMAT, kind);
    Get(TIFFTAG_BITSPERSAMPLE, samples_.bits);
    Get(TIFFTAG_SAMPLESPERPIXEL, samples_.count);
    if (!Get(TIFFTAG_PHOTOMETRIC, samples_.photometric)) {  // as Pillow
      samples_.photometric = PHOTOMETRIC_MINISWHITE;
      if (samples_.count > 1) {
        return Unsupported(ImageFormat::kTiff, std::to_string(samples_.count) +
                                                   " samples and no photometric interpretation");
      }
    }
    library_.get(file_, TIFFTAG_EXTRASAMPLES, &extras, &extra);
    samples_.separate = planes == PLANARCONFIG_SEPARATE && samples_.count > 1;
    const bool more = extras > 0 && samples_.count > samples_.colours();
    samples_.alpha = more && extra[0] != EXTRASAMPLE_UNSPECIFIED;
    samples_.associated = more && extra[0] == EXTRASAMPLE_ASSOCALPHA;
    jpeg_ = compression == COMPRESSION_JPEG;
    TRY(CheckCompression(compression));
    return CheckSamples(kind);
  }

  // Others may take any amount of memory.
  Status CheckCompression(uint16_t compression) {
    constexpr std::array kDecoded = {
        COMPRESSION_NONE,     COMPRESSION_LZW,       COMPRESSION_ADOBE_DEFLATE,
        COMPRESSION_DEFLATE,  COMPRESSION_PACKBITS,  COMPRESSION_JPEG,
        COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3, COMPRESSION_CCITTFAX4};
    if (std::ranges::find(kDecoded, compression) == kDecoded.end()) {
      return Unsupported(ImageFormat::kTiff, "compression " + std::to_string(compression));
    }
    if (samples_.photometric != PHOTOMETRIC_YCBCR) return {};
    if (!jpeg_ || samples_.separate) {
      return Unsupported(ImageFormat::kTiff, "YCbCr that is not compressed as JPEG");
    }
    library_.set(file_, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    return {};
  }

  Status CheckSamples(uint16_t kind) {
    const uint16_t bits = samples_.bits;
    if (kind != SAMPLEFORMAT_UINT && kind != SAMPLEFORMAT_VOID) {
      return Unsupported(ImageFormat::kTiff, "samples that are signed, floating or complex");
    }
    if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16) {
      return Unsupported(ImageFormat::kTiff, std::to_string(bits) + " bits a sample");
    }
    const int colours = samples_.colours();
    const bool wide = bits == 16, palette = samples_.photometric == PHOTOMETRIC_PALETTE;
    const bool sound = samples_.photometric <= PHOTOMETRIC_PALETTE ||
                       samples_.photometric == PHOTOMETRIC_SEPARATED ||
                       samples_.photometric == PHOTOMETRIC_YCBCR;
    constexpr int kMost = 64;
    if (!sound || (samples_.photometric == PHOTOMETRIC_MINISWHITE && samples_.alpha) ||
        samples_.count < colours || samples_.count > kMost || (bits < 8 && samples_.count > 1) ||
        (wide && (palette || colours == 4)) ||
        (samples_.separate && (palette || colours == 4 || samples_.associated))) {
      return Unsupported(ImageFormat::kTiff, std::to_string(samples_.count) + " samples of " +
                                                 std::to_string(bits) +
                                                 " bits, of photometric interpretation " +
                                                 std::to_string(samples_.photometric));
    }
    if (!palette) return {};
    auto& [red, green, blue] = samples_.palette;
    if (library_.get(file_, TIFFTAG_COLORMAP, &red, &green, &blue) != 0) return {};
    return Damaged(ImageFormat::kTiff, "no palette");
  }

  Status ReadTiling() {
    tiled_ = library_.is_tiled(file_) != 0;
    uint32_t width = static_cast<uint32_t>(size_.width), height = 0;
    if (tiled_) Get(TIFFTAG_TILEWIDTH, width);
    Get(tiled_ ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, height);
    if (!tiled_) height = std::min(height, static_cast<uint32_t>(size_.height));
    part_bytes_ = tiled_ ? library_.tile_size(file_) : library_.strip_size(file_);
    row_bytes_ = tiled_ ? library_.tile_row_size(file_) : library_.scanline_size(file_);
    constexpr uint32_t kMostSide = 1 << 16;  // of a tile; CheckSize has limits of the image
    const uint64_t samples = samples_.separate ? 1 : samples_.count;
    const uint64_t least = (uint64_t{width} * samples * samples_.bits + 7) / 8;
    if (width == 0 || height == 0 || (tiled_ && std::max(width, height) > kMostSide) ||
        row_bytes_ < least || part_bytes_ / height < row_bytes_) {
      return Damaged(ImageFormat::kTiff, "the size of its strips or tiles");
    }
    constexpr uint32_t kLeastSide = 8;  // TIFF demands 16; each tile takes time
    if (tiled_ && std::min(width, height) < kLeastSide) {
      return Unsupported(ImageFormat::kTiff,
                         "tiles of " + std::to_string(width) + " x " + std::to_string(height));
    }
    // Tiles may reach beyond the image, but not so far that a small image takes much time or
    // memory.
    constexpr uint64_t kBeyond = uint64_t{64} << 20;
    const auto columns = static_cast<uint64_t>(size_.width),
               rows = static_cast<uint64_t>(size_.height);
    const uint64_t parts = ((columns + width - 1) / width) * ((rows + height - 1) / height);
    if (parts * part_bytes_ > columns * rows * samples * 4 + kBeyond) {
      return Damaged(ImageFormat::kTiff, "strips or tiles that are far larger than the image");
    }
    part_ = {static_cast<int>(width), static_cast<int>(height)};
    return {};
  }

  Status ReadPart(int x, int y, int plane, uint8_t* to) {
    const auto column = static_cast<uint32_t>(x), row = static_cast<uint32_t>(y);
    const auto sample = static_cast<uint16_t>(plane);
    const auto bytes = static_cast<tmsize_t>(part_bytes_);
    std::memset(to, 0, part_bytes_);  // fax data that end early leave rows as they are
    message_[0] = '\0';
    const uint32_t index = tiled_ ? library_.compute_tile(file_, column, row, 0, sample)
                                  : library_.compute_strip(file_, row, sample);
    TRY(CheckShared(index));
    const tmsize_t got = tiled_ ? library_.read_tile(file_, index, to, bytes)
                                : library_.read_strip(file_, index, to, bytes);
    const auto rows = static_cast<uint64_t>(std::min(part_.height, size_.height - y));
    const bool all = got >= 0 && static_cast<uint64_t>(got) >= rows * row_bytes_;
    if (all && message_[0] == '\0') return {};  // damaged fax data are an error but decoded
    return Failure();
  }

  // All strips or tiles may name the same bytes, and those may take long but decode to little. Some
  // writers store equal tiles once, but those are short.
  Status CheckShared(uint32_t index) {
    constexpr uint64_t kShared = 64, kRatio = 16;
    read_bytes_ += std::min<uint64_t>(library_.part_bytes(file_, index), bytes_.size());
    allowed_bytes_ += kShared + part_bytes_ / kRatio;
    if (read_bytes_ <= allowed_bytes_) return {};
    return Damaged(ImageFormat::kTiff, "strips or tiles of more bytes than the file has");
  }

  // Converts the rows and columns of the image that are in a strip or tile.
  void Convert(const uint8_t* part, int x, int y, int plane, const Rows& rows) const {
    const int count = std::min(part_.width, size_.width - x);
    const int end = std::min(y + part_.height, rows.end);
    const int pixel = samples_.kept() * (samples_.bits == 16 ? 2 : 1);
    for (int row = std::max(y, rows.begin); row < end; ++row) {
      const uint8_t* const from = part + static_cast<size_t>(row - y) * row_bytes_;
      uint8_t* const to = rows.Row(row) + ptrdiff_t{pixel} * x;
      if (samples_.separate) {
        for (int i = 0; i < count; ++i) {
          samples_.Put(samples_.At(from, i, plane), plane, to + ptrdiff_t{pixel} * i);
        }
      } else if (IsCopied()) {
        std::memcpy(to, from, static_cast<size_t>(pixel * count));
      } else {
        for (int i = 0; i < count; ++i) ConvertPixel(from, i, to + ptrdiff_t{pixel} * i);
      }
    }
  }

  bool IsCopied() const {
    return samples_.bits >= 8 && samples_.count == samples_.kept() && !samples_.associated &&
           samples_.photometric != PHOTOMETRIC_MINISWHITE &&
           samples_.photometric != PHOTOMETRIC_PALETTE;
  }

  void ConvertPixel(const uint8_t* row, int i, uint8_t* to) const {
    const int first = i * samples_.count;
    if (samples_.photometric == PHOTOMETRIC_PALETTE) {
      const int index = samples_.At(row, first, 0);
      for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(samples_.palette[c][index] >> 8);
      return;
    }
    if (samples_.photometric == PHOTOMETRIC_SEPARATED) {
      const int white = 255 - samples_.At(row, first + 3, 3);
      for (int c = 0; c < 3; ++c) {
        const int product = samples_.At(row, first + c, c) * white + 128;  // Pillow's rounding
        to[c] = static_cast<uint8_t>(white - (((product >> 8) + product) >> 8));
      }
      return;
    }
    const int colours = samples_.colours();
    for (int c = 0; c < samples_.kept(); ++c) {
      int64_t value = samples_.At(row, first + c, c);
      if (samples_.associated && c < colours) {
        const int64_t alpha = samples_.At(row, first + colours, colours), most = samples_.most();
        value = alpha == 0 ? 0 : std::min(value * most / alpha, most);
      }
      samples_.Put(static_cast<int>(value), c, to);
    }
  }

  Error Failure() const {
    if (message_[0] == '\0') return Damaged(ImageFormat::kTiff, "libtiff cannot decode it");
    return Damaged(ImageFormat::kTiff, message_.data());
  }

  // Keeps the first message. Takes no memory: nothing may be thrown through libtiff.
  static int OnError(TIFF* /*file*/, void* self, const char* module, const char* format,
                     va_list values) {
    auto& message = static_cast<OpenTiff*>(self)->message_;
    if (message[0] != '\0') return 1;
    if (module != nullptr) std::snprintf(message.data(), message.size(), "%.60s: ", module);
    const size_t used = std::strlen(message.data());
    std::vsnprintf(message.data() + used, message.size() - used, format, values);
    for (char* c = message.data(); *c != '\0'; ++c) {
      if (*c < ' ' || *c > '~') *c = '?';
    }
    return 1;
  }
  static int OnWarning(TIFF* /*file*/, void* /*data*/, const char* /*module*/,
                       const char* /*format*/, va_list /*values*/) {
    return 1;
  }

  static OpenTiff& Self(thandle_t handle) { return *static_cast<OpenTiff*>(handle); }
  static tmsize_t Read(thandle_t handle, void* to, tmsize_t count) {
    OpenTiff& self = Self(handle);
    const uint64_t size = self.bytes_.size(), at = std::min<uint64_t>(self.at_, size);
    const uint64_t got = std::min<uint64_t>(size - at, static_cast<uint64_t>(count));
    std::memcpy(to, self.bytes_.data() + at, got);
    self.at_ = at + got;
    return static_cast<tmsize_t>(got);
  }
  static tmsize_t Write(thandle_t /*handle*/, void* /*from*/, tmsize_t /*count*/) { return -1; }
  static toff_t Seek(thandle_t handle, toff_t offset, int from) {
    OpenTiff& self = Self(handle);
    if (from == SEEK_SET) self.at_ = offset;
    if (from == SEEK_CUR) self.at_ += offset;
    if (from == SEEK_END) self.at_ = self.bytes_.size() + offset;
    return self.at_;
  }
  static int Close(thandle_t /*handle*/) { return 0; }
  static toff_t Size(thandle_t handle) { return Self(handle).bytes_.size(); }
  static int Map(thandle_t handle, void** base, toff_t* size) {  // libtiff only reads there
    *base = const_cast<uint8_t*>(Self(handle).bytes_.data());    // NOLINT
    *size = Self(handle).bytes_.size();
    return 1;
  }
  static void Unmap(thandle_t /*handle*/, void* /*base*/, toff_t /*size*/) {}

  const Libtiff& library_;
  const std::span<const uint8_t> bytes_;
  uint64_t at_ = 0;
  std::array<char, 260> message_{};
  TIFF* file_ = nullptr;
  ImageSize size_;
  Samples samples_;
  bool jpeg_ = false, tiled_ = false;
  ImageSize part_;  // a strip or a tile
  uint64_t part_bytes_ = 0, row_bytes_ = 0;
  uint64_t read_bytes_ = 0, allowed_bytes_ = bytes_.size();  // of compressed data
};

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Libtiff* const library, (LoadOnce<Libtiff, Load>()));
  ASSIGN_OR_RETURN(const bool pages, CheckDirectory(*library, bytes));
  ASSIGN_OR_RETURN(Header header, OpenTiff(*library, bytes).ReadHeader());
  header.several_frames = pages;
  return header;
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Libtiff* const library, (LoadOnce<Libtiff, Load>()));
  OpenTiff tiff(*library, bytes);
  ASSIGN_OR_RETURN(const Header again, tiff.ReadHeader());
  TRY(CheckSame(ImageFormat::kTiff, header, again));
  return tiff.Decode(rows);
}

}  // namespace

const Format kTiff{ReadHeader, Decode};

}  // namespace stoker::whole
