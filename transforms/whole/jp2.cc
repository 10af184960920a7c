// JPEG 2000 by OpenJPEG: JP2 files and bare codestreams of 1 to 4 components of one size.
#include <openjpeg.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "core/result/try.h"
#include "core/system/shared_library.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

struct Openjpeg {
  decltype(&opj_create_decompress) create;
  decltype(&opj_destroy_codec) destroy;
  decltype(&opj_set_default_decoder_parameters) default_parameters;
  decltype(&opj_setup_decoder) setup;
  decltype(&opj_read_header) read_header;
  decltype(&opj_set_decode_area) set_area;
  decltype(&opj_decode) decode;
  decltype(&opj_image_destroy) image_destroy;
  decltype(&opj_stream_create) stream_create;
  decltype(&opj_stream_destroy) stream_destroy;
  decltype(&opj_stream_set_read_function) set_read;
  decltype(&opj_stream_set_skip_function) set_skip;
  decltype(&opj_stream_set_seek_function) set_seek;
  decltype(&opj_stream_set_user_data) set_data;
  decltype(&opj_stream_set_user_data_length) set_length;
};

Result<Openjpeg> Load() {
  constexpr const char* kFiles[] = {"libopenjp2.so.7"};
  SharedLibrary library(kFiles, "JPEG 2000 images are decoded by OpenJPEG 2.3 or later",
                        "apt-get install libopenjp2-7 (Debian, Ubuntu), dnf install openjpeg "
                        "(Fedora) or conda install -c conda-forge openjpeg");
  Openjpeg jp2;
  library.Find("opj_create_decompress", jp2.create);
  library.Find("opj_destroy_codec", jp2.destroy);
  library.Find("opj_set_default_decoder_parameters", jp2.default_parameters);
  library.Find("opj_setup_decoder", jp2.setup);
  library.Find("opj_read_header", jp2.read_header);
  library.Find("opj_set_decode_area", jp2.set_area);
  library.Find("opj_decode", jp2.decode);
  library.Find("opj_image_destroy", jp2.image_destroy);
  library.Find("opj_stream_create", jp2.stream_create);
  library.Find("opj_stream_destroy", jp2.stream_destroy);
  library.Find("opj_stream_set_read_function", jp2.set_read);
  library.Find("opj_stream_set_skip_function", jp2.set_skip);
  library.Find("opj_stream_set_seek_function", jp2.set_seek);
  library.Find("opj_stream_set_user_data", jp2.set_data);
  library.Find("opj_stream_set_user_data_length", jp2.set_length);
  TRY(library.status());
  return jp2;
}

constexpr ImageFormat kFormat = ImageFormat::kJpeg2000;

uint64_t Number(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + i];
  return value;
}

// A colour specification box (ISO/IEC 15444-1, I.5.3.3): OpenJPEG converts no other colours.
Status CheckColours(std::span<const uint8_t> box, size_t at) {
  constexpr uint8_t kEnumerated = 1, kProfile = 2;
  constexpr uint64_t kSrgb = 16, kGray = 17;
  if (box.size() < 7) return Damaged(kFormat, "a colr box", at);
  if (box[0] == kProfile) return {};
  const uint64_t colours = Number(box, 3, 4);
  if (box[0] == kEnumerated && (colours == kSrgb || colours == kGray)) return {};
  return Unsupported(kFormat, "colours other than sRGB, gray or of a profile", at);
}

// Returns the offset of the codestream. OpenJPEG reads the boxes of the header outside of it, too,
// and makes up to 255 channels of a palette: other boxes than these are refused.
Result<size_t> FindCodestream(std::span<const uint8_t> bytes) {
  constexpr std::string_view kBoxes[] = {"jP  ", "ftyp", "rreq", "jp2i", "xml ",
                                         "uuid", "uinf", "asoc", "ihdr", "bpcc",
                                         "colr", "cdef", "res ", "jp2h", "jp2c"};
  constexpr size_t kHeader = 8;
  if (bytes[0] == 0xFF) return size_t{0};  // a bare one: SniffFormat saw its first 4 bytes
  size_t header_end = 0;
  for (size_t at = 0; bytes.size() - at >= kHeader;) {
    const uint64_t length = Number(bytes, at, 4);
    const std::string_view kind(reinterpret_cast<const char*>(&bytes[at + 4]), 4);
    if (std::ranges::find(kBoxes, kind) == std::end(kBoxes)) {
      return Unsupported(kFormat, kind == "pclr" ? "a palette" : "an unusual box", at);
    }
    if (kind == "jp2c" && at >= header_end) return at + (length == 1 ? 2 * kHeader : kHeader);
    if (kind == "jp2c" || length < kHeader) return Damaged(kFormat, "its boxes", at);
    if (length > bytes.size() - at) break;
    if (kind == "colr") TRY(CheckColours(bytes.subspan(at + kHeader, length - kHeader), at));
    if (kind == "jp2h") header_end = std::max(header_end, at + length);
    at += kind == "jp2h" ? kHeader : length;
  }
  return Truncated(kFormat, bytes.size());
}

constexpr uint64_t kMostLayers = 32;

struct Codestream {
  std::span<const uint8_t> bytes;
  uint64_t tiles;
  uint64_t tile[2];  // the sides of the largest one
  uint64_t components;
};

// How a component is coded (SPcod, SPcoc; A.6.1, A.6.2).
struct Coding {
  uint64_t levels = 0;
  uint64_t block[2] = {};          // base-2 logarithms of the sides
  uint64_t precincts[33][2] = {};  // likewise, of each resolution
};

// Upper bounds for a component of a tile.
struct Parts {
  uint64_t layers = 1, resolutions = 1;
  uint64_t precincts[2] = {1, 1};  // of a resolution, side by side and one below the other
  uint64_t bytes = 0;              // of precincts and code-blocks

  void Add(const Coding& coding, const Codestream& stream) {
    // OpenJPEG 2.5's structures, with the nodes of their tag trees and the parts of a code-block in
    // kMostLayers layers.
    constexpr uint64_t kOfPrecinct = 160, kOfBlock = 2200;
    uint64_t sum = 0;
    for (uint64_t r = 0; r <= coding.levels; ++r) {
      const uint64_t halved = r > 0 ? 1 : 0;  // in the three bands that a resolution adds
      uint64_t all = 1, blocks = 1;
      for (size_t i = 0; i < 2; ++i) {
        const uint64_t side = (stream.tile[i] >> (coding.levels - r)) + 1;
        const uint64_t precinct = coding.precincts[r][i], count = (side >> precinct) + 2;
        all *= count;
        precincts[i] = std::max(precincts[i], count);
        blocks *= (side >> halved >> std::min(coding.block[i], precinct - halved)) + 2 * count;
      }
      sum += (2 * halved + 1) * (all * kOfPrecinct + blocks * kOfBlock);
    }
    bytes = std::max(bytes, sum);
    resolutions = std::max(resolutions, coding.levels + 1);
  }

  // Each of them is looked for in the data, at each place where a precinct may begin.
  uint64_t Packets() const { return layers * resolutions * precincts[0] * precincts[1]; }
};

// Reads the parameters that begin at `at` with the number of levels, and end at `end`.
Result<Coding> ReadCoding(std::span<const uint8_t> bytes, size_t at, size_t end, bool precincts) {
  constexpr size_t kFixed = 5;
  constexpr uint64_t kMostLevels = 32;
  if (end < at + kFixed || bytes[at] > kMostLevels) return Damaged(kFormat, "a COD segment", at);
  Coding coding;
  coding.levels = bytes[at];
  coding.block[0] = bytes[at + 1] % 16 + 2;
  coding.block[1] = bytes[at + 2] % 16 + 2;
  constexpr uint8_t kBypass = 1, kTerminate = 4;
  if ((bytes[at + 3] & (kBypass | kTerminate)) != 0) {
    return Unsupported(kFormat, "code-blocks in many parts", at);
  }
  for (uint64_t r = 0; r <= coding.levels; ++r) {
    if (precincts && end <= at + kFixed + r) return Damaged(kFormat, "a COD segment", at);
    const uint64_t sides = precincts ? bytes[at + kFixed + r] : 0xFF;
    coding.precincts[r][0] = sides % 16, coding.precincts[r][1] = sides / 16;
    if (r > 0 && (sides % 16 == 0 || sides / 16 == 0)) return Damaged(kFormat, "a COD segment", at);
  }
  return coding;
}

// Computes what OpenJPEG allocates for a tile, from the segments of the main header and of the
// tiles.
class CodingReader {
 public:
  explicit CodingReader(const Codestream& stream) : stream_(stream), bytes_(stream.bytes) {}

  Result<uint64_t> Read() {
    for (size_t at = 2; at < bytes_.size();) {
      if (bytes_.size() - at < 2) return Truncated(kFormat, bytes_.size());
      const uint64_t marker = Number(bytes_, at, 2);
      if (marker == kEnd) break;
      if (marker == kData) {
        if (tile_end_ < at + 2) return Damaged(kFormat, "the length of a tile", at);
        at = std::exchange(tile_end_, 0);
        in_tiles_ = true;
        continue;
      }
      if (in_tiles_ && tile_end_ == 0 && marker != kTile)
        return Damaged(kFormat, "the length of a tile", at);
      if (!IsKnown(marker)) return Unsupported(kFormat, "an unusual marker segment", at);
      if (bytes_.size() - at < 4) return Truncated(kFormat, bytes_.size());
      const uint64_t length = Number(bytes_, at + 2, 2);
      if (length < 2) return Damaged(kFormat, "the length of a segment", at);
      if (length > bytes_.size() - at - 2) return Truncated(kFormat, bytes_.size());
      TRY(ReadSegment(marker, at, at + 2 + length));
      at += 2 + length;
    }
    if (parts_.bytes == 0) return Damaged(kFormat, "no COD segment");
    // A packet has a byte or more.
    constexpr uint64_t kMostPacketsPerByte = 16, kMostPackets = 1 << 16, kOfPacket = 4;
    const uint64_t packets = stream_.tiles * stream_.components * parts_.Packets();
    if (packets > kMostPacketsPerByte * bytes_.size() + kMostPackets) {
      return Unsupported(kFormat, "far more packets than its data have");
    }
    return stream_.components * parts_.bytes + kOfPacket * packets + 4 * bytes_.size();
  }

 private:
  static constexpr uint64_t kTile = 0xFF90, kData = 0xFF93, kEnd = 0xFFD9, kSize = 0xFF51,
                            kCod = 0xFF52, kCoc = 0xFF53;

  // OpenJPEG ignores the length of a segment that it does not know. Changes of the order of packets
  // would count them again, and packed headers of packets are not bytes of the tile.
  static bool IsKnown(uint64_t marker) {
    constexpr uint64_t kTileLengths = 0xFF55, kPacketLengths = 0xFF58, kQcd = 0xFF5C, kQcc = 0xFF5D,
                       kComment = 0xFF64;
    constexpr uint64_t kAll[] = {kTile, kCod,         kCoc,           kSize,   kQcd,
                                 kQcc,  kTileLengths, kPacketLengths, kComment};
    return std::ranges::find(kAll, marker) != std::end(kAll);
  }

  Status ReadSegment(uint64_t marker, size_t at, size_t end) {
    if (marker == kTile) return ReadTile(at, end);
    if (marker == kCod) {
      if (end < at + 9) return Damaged(kFormat, "a COD segment", at);
      parts_.layers = std::max(parts_.layers, Number(bytes_, at + 6, 2));
      if (parts_.layers > kMostLayers) return Unsupported(kFormat, "more than 32 layers", at);
      return Add(ReadCoding(bytes_, at + 9, end, (bytes_[at + 4] & 1) != 0));
    }
    if (marker == kCoc) {
      if (end < at + 6) return Damaged(kFormat, "a COC segment", at);
      return Add(ReadCoding(bytes_, at + 6, end, (bytes_[at + 5] & 1) != 0));
    }
    return {};
  }

  Status ReadTile(size_t at, size_t end) {
    constexpr size_t kLength = 10;
    if (end != at + 2 + kLength || tile_end_ != 0) return Damaged(kFormat, "a SOT segment", at);
    const uint64_t length = Number(bytes_, at + 6, 4);
    tile_end_ = length == 0 ? bytes_.size() : at + length;
    if (tile_end_ < end + 2) return Damaged(kFormat, "a SOT segment", at);
    return tile_end_ > bytes_.size() ? Status(Truncated(kFormat, bytes_.size())) : Status();
  }

  Status Add(Result<Coding> coding) {
    if (!coding.ok()) return coding.error();
    parts_.Add(*coding, stream_);
    return {};
  }

  const Codestream& stream_;
  const std::span<const uint8_t> bytes_;
  size_t tile_end_ = 0;  // of the open one; none: 0
  bool in_tiles_ = false;
  Parts parts_;
};

// Reads the codestream's first segment (SIZ; ISO/IEC 15444-1, A.5.1), before OpenJPEG allocates by
// what it says.
Result<Header> ReadSize(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const size_t at, FindCodestream(bytes));
  constexpr size_t kSides = 8, kComponents = 40, kFixed = 42, kEach = 3;
  if (bytes.size() < at + kFixed) return Truncated(kFormat, bytes.size());
  if (Number(bytes, at, 4) != 0xFF4FFF51) return Damaged(kFormat, "no SIZ segment", at);
  uint64_t fields[8];  // of X and Y: the end, the begin; of the tiles: the size, the begin
  for (size_t i = 0; i < 8; ++i) fields[i] = Number(bytes, at + kSides + 4 * i, 4);
  const uint64_t components = Number(bytes, at + kComponents, 2);
  if (components < 1 || components > 4) {
    return Unsupported(kFormat, std::to_string(components) + " components", at);
  }
  if (bytes.size() < at + kFixed + kEach * components) return Truncated(kFormat, bytes.size());
  const uint8_t precision = bytes[at + kFixed];
  for (size_t i = 0; i < components; ++i) {
    const uint8_t* const component = &bytes[at + kFixed + kEach * i];
    if (component[0] != precision || component[1] != 1 || component[2] != 1) {
      return Unsupported(kFormat, "components of different sizes or depths", at);
    }
  }
  if (precision > 15) return Unsupported(kFormat, "signed samples, or of more than 16 bits", at);
  uint64_t sides[2], tiles = 1;
  for (size_t i = 0; i < 2; ++i) {
    const uint64_t end = fields[i], begin = fields[2 + i], tile = fields[4 + i],
                   first = fields[6 + i];
    if (end <= begin || tile == 0 || first > begin || begin - first >= tile || end > INT32_MAX) {
      return Damaged(kFormat, "the size in its header", at);
    }
    sides[i] = end - begin;
    tiles *= (end - first + tile - 1) / tile;
    if (tiles > 65535) return Damaged(kFormat, "more tiles than its format allows", at);
  }
  const ImageSize size{static_cast<int>(sides[0]), static_cast<int>(sides[1])};
  if (std::max(sides[0], sides[1]) > kMaxSidePixels) return Header{.size = size};  // over the limit
  const Codestream stream{.bytes = bytes.subspan(at),
                          .tiles = tiles,
                          .tile = {std::min(sides[0], fields[4]), std::min(sides[1], fields[5])},
                          .components = components};
  ASSIGN_OR_RETURN(const uint64_t coding_bytes, CodingReader(stream).Read());
  const uint64_t samples = sides[0] * sides[1] * components;
  constexpr uint64_t kCodingBytesPerSample = 64, kMostCodingBytes = 32 << 20;
  if (coding_bytes > kCodingBytesPerSample * samples + kMostCodingBytes) {
    return Unsupported(kFormat, "far smaller precincts or code-blocks than usual", at);
  }
  // OpenJPEG 2.5: parameters of each tile; the samples of a tile and of the image, each of 4 bytes.
  constexpr uint64_t kBytesOfTile = 8 << 10, kBytesOfTilesComponent = 2 << 10, kBytesPerSample = 9;
  return Header{.size = size,
                .channels = static_cast<int>(components),
                .bits = precision > 7 ? 16 : 8,
                .library_bytes = tiles * (kBytesOfTile + components * kBytesOfTilesComponent) +
                                 samples * kBytesPerSample + coding_bytes + (2 << 20)};
}

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  const Result<const Openjpeg*> library = (LoadOnce<Openjpeg, Load>());
  if (!library.ok()) return library.error();
  return ReadSize(bytes);
}

// A file in memory.
struct Source {
  std::span<const uint8_t> bytes;
  size_t at = 0;

  static OPJ_SIZE_T Read(void* to, OPJ_SIZE_T count, void* data) {
    Source& self = *static_cast<Source*>(data);
    const size_t got = std::min<size_t>(count, self.bytes.size() - self.at);
    if (got == 0) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, self.bytes.data() + self.at, got);
    self.at += got;
    return got;
  }
  static OPJ_OFF_T Skip(OPJ_OFF_T count, void* data) {
    Source& self = *static_cast<Source*>(data);
    const size_t left = self.bytes.size() - self.at;
    if (count < 0) return -1;
    self.at += std::min<size_t>(left, static_cast<size_t>(count));
    return count;
  }
  static OPJ_BOOL Seek(OPJ_OFF_T at, void* data) {
    Source& self = *static_cast<Source*>(data);
    if (at < 0 || static_cast<size_t>(at) > self.bytes.size()) return OPJ_FALSE;
    self.at = static_cast<size_t>(at);
    return OPJ_TRUE;
  }
};

// Sets a pixel's channels, with 8 or 16 bits.
void Put(const opj_image_t& image, const Header& header, size_t from, uint8_t* to) {
  for (int c = 0; c < header.channels; ++c) {
    const int most = (1 << image.comps[c].prec) - 1;
    const int value = std::clamp(image.comps[c].data[from], 0, most);
    if (header.bits == 8) {
      to[c] = static_cast<uint8_t>(most == 255 ? value : value * 255 / most);
    } else {
      const auto wide = static_cast<uint16_t>(int64_t{value} * 65535 / most);
      std::memcpy(to + ptrdiff_t{2} * c, &wide, sizeof(wide));
    }
  }
}

bool HasSize(const opj_image_t& image, const Header& header, const Rows& rows) {
  if (image.numcomps != static_cast<OPJ_UINT32>(header.channels)) return false;
  return std::all_of(image.comps, image.comps + image.numcomps, [&](const opj_image_comp_t& c) {
    return c.data != nullptr && c.w == static_cast<OPJ_UINT32>(header.size.width) &&
           c.h == static_cast<OPJ_UINT32>(rows.end - rows.begin) && c.prec >= 1 && c.prec <= 16;
  });
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Openjpeg* const library, (LoadOnce<Openjpeg, Load>()));
  Source source{bytes};
  ASSIGN_OR_RETURN(const Header again, ReadSize(bytes));
  TRY(CheckSame(kFormat, header, again));
  const auto kind = bytes[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2;
  const std::unique_ptr<opj_codec_t, decltype(library->destroy)> codec(library->create(kind),
                                                                       library->destroy);
  constexpr size_t kStreamBuffer = 64 << 10;
  const std::unique_ptr<opj_stream_t, decltype(library->stream_destroy)> stream(
      library->stream_create(kStreamBuffer, OPJ_TRUE), library->stream_destroy);
  if (codec == nullptr || stream == nullptr) {
    return Error{Code::kResourceExhausted, "no memory left to decode a JPEG 2000", {}, 0};
  }
  library->set_read(stream.get(), &Source::Read);
  library->set_skip(stream.get(), &Source::Skip);
  library->set_seek(stream.get(), &Source::Seek);
  library->set_data(stream.get(), &source, nullptr);
  library->set_length(stream.get(), bytes.size());
  opj_dparameters_t parameters;
  library->default_parameters(&parameters);
  opj_image_t* read = nullptr;
  const bool opened = library->setup(codec.get(), &parameters) != OPJ_FALSE &&
                      library->read_header(stream.get(), codec.get(), &read) != OPJ_FALSE;
  const std::unique_ptr<opj_image_t, decltype(library->image_destroy)> image(
      read, library->image_destroy);
  if (!opened || image == nullptr) return Damaged(kFormat, "OpenJPEG cannot read its header");
  const auto left = static_cast<OPJ_INT32>(image->x0), right = static_cast<OPJ_INT32>(image->x1);
  const auto top = static_cast<OPJ_INT32>(image->y0);
  const bool decoded = library->set_area(codec.get(), image.get(), left, top + rows.begin, right,
                                         top + rows.end) != OPJ_FALSE &&
                       library->decode(codec.get(), stream.get(), image.get()) != OPJ_FALSE;
  if (!decoded || !HasSize(*image, header, rows)) {
    return source.at == bytes.size() ? Truncated(kFormat, source.at)
                                     : Damaged(kFormat, "OpenJPEG cannot decode it");
  }
  size_t from = 0;
  for (int y = rows.begin; y < rows.end; ++y) {
    for (int x = 0; x < header.size.width; ++x, ++from) {
      Put(*image, header, from, rows.Row(y) + static_cast<size_t>(x) * header.pixel_bytes());
    }
  }
  return {};
}

}  // namespace

const Format kJp2{ReadHeader, Decode};

}  // namespace stoker::whole
