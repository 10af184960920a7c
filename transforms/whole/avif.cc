// AVIF by libavif with dav1d: the primary image.
#include <avif/avif.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "core/result/try.h"
#include "core/system/shared_library.h"
#include "transforms/whole/av1_frame.h"
#include "transforms/whole/format.h"
#include "transforms/whole/heif_items.h"

namespace stoker::whole {
namespace {

struct Libavif {
  decltype(&avifDecoderCreate) create;
  decltype(&avifDecoderDestroy) destroy;
  decltype(&avifDecoderSetSource) set_source;
  decltype(&avifDecoderSetIOMemory) set_memory;
  decltype(&avifDecoderParse) parse;
  decltype(&avifDecoderNextImage) next_image;
  decltype(&avifImageCreateEmpty) image_create;
  decltype(&avifImageDestroy) image_destroy;
  decltype(&avifImageSetViewRect) view;
  decltype(&avifRGBImageSetDefaults) rgb_defaults;
  decltype(&avifImageYUVToRGB) to_rgb;
  decltype(&avifResultToString) message;
};

// The library of the headers that this was built with: other versions have other structures.
constexpr bool kFirst = AVIF_VERSION_MAJOR == 0;

Result<Libavif> Load() {
  constexpr const char* kFiles[] = {kFirst ? "libavif.so.15" : "libavif.so.16"};
  SharedLibrary library(kFiles,
                        kFirst ? "AVIF images are decoded by libavif 0.11 (libavif.so.15)"
                               : "AVIF images are decoded by libavif 1 (libavif.so.16)",
                        kFirst ? "apt-get install libavif15 (Debian 12)"
                               : "apt-get install libavif16 (Debian 13, Ubuntu 24.04), dnf install "
                                 "libavif (Fedora) or conda install -c conda-forge libavif");
  Libavif avif;
  library.Find("avifDecoderCreate", avif.create);
  library.Find("avifDecoderDestroy", avif.destroy);
  library.Find("avifDecoderSetSource", avif.set_source);
  library.Find("avifDecoderSetIOMemory", avif.set_memory);
  library.Find("avifDecoderParse", avif.parse);
  library.Find("avifDecoderNextImage", avif.next_image);
  library.Find("avifImageCreateEmpty", avif.image_create);
  library.Find("avifImageDestroy", avif.image_destroy);
  library.Find("avifImageSetViewRect", avif.view);
  library.Find("avifRGBImageSetDefaults", avif.rgb_defaults);
  library.Find("avifImageYUVToRGB", avif.to_rgb);
  library.Find("avifResultToString", avif.message);
  TRY(library.status());
  return avif;
}

uint64_t PixelsOf(ImageSize size) {
  return static_cast<uint64_t>(size.width) * static_cast<uint64_t>(size.height);
}

// Upper bounds of what libavif and dav1d allocate.
struct Bounds {
  ImageSize size;             // of the image
  uint64_t tile_pixels = 0;   // of the largest coded image
  uint64_t whole_pixels = 0;  // of it and of the image
  uint64_t bytes = 0;
  bool several_frames = false;
};

// dav1d takes any shape of a frame that has no more pixels than the limit, and rounds its sides up
// to whole blocks.
uint64_t PaddedPixels(uint64_t limit, uint64_t most_side) {
  constexpr uint64_t kBlock = 128;
  const uint64_t side = std::min(limit, most_side);
  return (side + kBlock) * (limit / side + kBlock);
}

Result<Bounds> BoundsOf(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const HeifItems items, ReadHeifItems(ImageFormat::kAvif, bytes));
  Bounds bounds{.size = items.size, .several_frames = items.several_frames};
  for (const CodedImage& image : items.coded) {
    bounds.tile_pixels = std::max(bounds.tile_pixels, PixelsOf(image.size));
  }
  bounds.whole_pixels = std::max(bounds.tile_pixels, PixelsOf(items.size));
  // libavif keeps the frames of all tiles, copies them where they are scaled, and into the image if
  // that is a grid; then rows of RGBA.
  uint64_t most_half_bytes = 0;
  for (const CodedImage& image : items.coded) {
    ASSIGN_OR_RETURN(const Av1Frame frame, ReadAv1Frame(image.data));
    constexpr uint64_t kBytesOfDecoder = 1 << 20, kFrames = 2, kMoreHalfBytes = 4;
    bounds.bytes += kBytesOfDecoder + PaddedPixels(bounds.tile_pixels, frame.most_side) *
                                          (kFrames * frame.half_bytes + kMoreHalfBytes) / 2;
    most_half_bytes = std::max(most_half_bytes, frame.half_bytes);
  }
  constexpr uint64_t kRgba = 4, kAlpha = 2, kBytesOfBoxes = 64;
  bounds.bytes += bounds.whole_pixels * (most_half_bytes / 2 + kAlpha + kRgba) +
                  kBytesOfBoxes * items.boxes + 2 * bytes.size();
  return bounds;
}

// libavif 0.11 has `mode` instead of `axis`.
template <typename Mirror>
int AxisOf(const Mirror& mirror) {
  if constexpr (requires { mirror.axis; }) {
    return mirror.axis;
  } else {
    return mirror.mode;
  }
}

// An image is rotated counter-clockwise, then mirrored (ISO/IEC 23000-22, MIAF, 7.3.6.7).
Orientation OrientationOf(const avifImage& image) {
  const bool mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int angle = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3 : 0;
  constexpr Orientation kTurned[] = {Orientation::kNormal, Orientation::kRotate270,
                                     Orientation::kRotate180, Orientation::kRotate90};
  if (!mirrored) return kTurned[angle];
  constexpr Orientation kMirrored[2][4] = {{Orientation::kMirrorRows, Orientation::kTranspose,
                                            Orientation::kMirrorColumns, Orientation::kTransverse},
                                           {Orientation::kMirrorColumns, Orientation::kTransverse,
                                            Orientation::kMirrorRows, Orientation::kTranspose}};
  const int axis = AxisOf(image.imir);
  return kMirrored[axis & 1][angle];
}

class OpenAvif {
 public:
  OpenAvif(const Libavif& library, std::span<const uint8_t> bytes, const Bounds& bounds)
      : library_(library), decoder_(library.create(), library.destroy) {
    if (decoder_ == nullptr) return;
    decoder_->codecChoice = AVIF_CODEC_CHOICE_DAV1D;  // which heeds imageSizeLimit
    decoder_->ignoreExif = decoder_->ignoreXMP = AVIF_TRUE;
    decoder_->strictFlags &= ~AVIF_STRICT_CLAP_VALID & ~AVIF_STRICT_PIXI_REQUIRED;  // as Pillow
    decoder_->imageSizeLimit = Limit(bounds.whole_pixels);
    decoder_->imageDimensionLimit = kMaxSidePixels;
    result_ = library_.set_source(decoder_.get(), AVIF_DECODER_SOURCE_PRIMARY_ITEM);
    if (result_ == AVIF_RESULT_OK) {
      result_ = library_.set_memory(decoder_.get(), bytes.data(), bytes.size());
    }
    if (result_ == AVIF_RESULT_OK) result_ = library_.parse(decoder_.get());
    decoder_->imageSizeLimit = Limit(bounds.tile_pixels);
  }

  Result<Header> ReadHeader(const Bounds& bounds) const {
    TRY(status());
    const avifImage& image = *decoder_->image;
    const ImageSize size{static_cast<int>(image.width), static_cast<int>(image.height)};
    if (size != bounds.size) return Damaged(ImageFormat::kAvif, "its size");
    return Header{.size = size,
                  .channels = decoder_->alphaPresent != AVIF_FALSE ? 4 : 3,
                  .orientation = OrientationOf(image),
                  .library_bytes = bounds.bytes,
                  .several_frames = bounds.several_frames};
  }

  Status Decode(const Header& header, const Rows& rows) {
    result_ = library_.next_image(decoder_.get());
    TRY(status());
    const avifImage& image = *decoder_->image;
    if (ImageSize{static_cast<int>(image.width), static_cast<int>(image.height)} != header.size) {
      return Damaged(ImageFormat::kAvif, "its pixels have another size than its header says");
    }
    return ToRgb(header, rows);
  }

 private:
  // The largest limit that libavif takes is its default.
  static uint32_t Limit(uint64_t pixels) {
    return static_cast<uint32_t>(std::min<uint64_t>(pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT));
  }

  // Converts these rows and those next to them, whose chroma they share.
  Status ToRgb(const Header& header, const Rows& rows) {
    constexpr int kNext = 4;
    const int begin = std::max(0, rows.begin - kNext) / 2 * 2;
    const int end = std::min(header.size.height, rows.end + kNext);
    const std::unique_ptr<avifImage, decltype(library_.image_destroy)> part(library_.image_create(),
                                                                            library_.image_destroy);
    if (part == nullptr) return NoMemory();
    const avifCropRect rect{0, static_cast<uint32_t>(begin), decoder_->image->width,
                            static_cast<uint32_t>(end - begin)};
    result_ = library_.view(part.get(), decoder_->image, &rect);
    TRY(status());
    std::vector<uint8_t> pixels(rows.stride * static_cast<size_t>(end - begin));
    avifRGBImage rgb;
    library_.rgb_defaults(&rgb, part.get());
    rgb.depth = 8;
    rgb.format = header.channels == 4 ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
    rgb.pixels = pixels.data();
    rgb.rowBytes = static_cast<uint32_t>(rows.stride);
    result_ = library_.to_rgb(part.get(), &rgb);
    TRY(status());
    std::memcpy(rows.pixels, &pixels[static_cast<size_t>(rows.begin - begin) * rows.stride],
                rows.stride * static_cast<size_t>(rows.end - rows.begin));
    return {};
  }

  static Error NoMemory() {
    return Error{Code::kResourceExhausted, "no memory left to decode an AVIF", {}, 0};
  }

  Status status() const {
    if (decoder_ == nullptr || result_ == AVIF_RESULT_OUT_OF_MEMORY) return NoMemory();
    switch (result_) {
      case AVIF_RESULT_OK:
        return {};
      case AVIF_RESULT_TRUNCATED_DATA:
        return Truncated(ImageFormat::kAvif);
      case AVIF_RESULT_NO_CODEC_AVAILABLE:
      case AVIF_RESULT_NOT_IMPLEMENTED:
        return Unsupported(ImageFormat::kAvif, std::string("what libavif does not decode (") +
                                                   library_.message(result_) + ")");
      default:
        return Damaged(ImageFormat::kAvif, library_.message(result_));
    }
  }

  const Libavif& library_;
  std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)> decoder_;
  avifResult result_ = AVIF_RESULT_OK;
};

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Libavif* const library, (LoadOnce<Libavif, Load>()));
  ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(bytes));
  return OpenAvif(*library, bytes, bounds).ReadHeader(bounds);
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Libavif* const library, (LoadOnce<Libavif, Load>()));
  ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(bytes));
  OpenAvif avif(*library, bytes, bounds);
  ASSIGN_OR_RETURN(const Header again, avif.ReadHeader(bounds));
  TRY(CheckSame(ImageFormat::kAvif, header, again));
  return avif.Decode(header, rows);
}

}  // namespace

const Format kAvif{ReadHeader, Decode};

}  // namespace stoker::whole
