// HEIC by libheif with libde265: the primary image, as its crops, rotations and mirrors turn it,
// with 8 bits.
#include <libheif/heif.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "core/result/try.h"
#include "core/system/shared_library.h"
#include "transforms/whole/format.h"
#include "transforms/whole/heif_items.h"
#include "transforms/whole/hevc_picture.h"

namespace stoker::whole {
namespace {

struct Libheif {
  decltype(&heif_context_alloc) context_alloc;
  decltype(&heif_context_free) context_free;
  decltype(&heif_context_set_maximum_image_size_limit) set_size_limit;
  decltype(&heif_context_set_max_decoding_threads) set_threads;
  decltype(&heif_context_read_from_memory_without_copy) read;
  decltype(&heif_context_get_primary_image_handle) primary;
  decltype(&heif_image_handle_release) handle_release;
  decltype(&heif_image_handle_get_width) handle_width;
  decltype(&heif_image_handle_get_height) handle_height;
  decltype(&heif_image_handle_has_alpha_channel) has_alpha;
  decltype(&heif_decoding_options_alloc) options_alloc;
  decltype(&heif_decoding_options_free) options_free;
  decltype(&heif_decode_image) decode;
  decltype(&heif_image_release) image_release;
  decltype(&heif_image_get_width) image_width;
  decltype(&heif_image_get_height) image_height;
  decltype(&heif_image_get_plane_readonly) plane;
};

// libheif initialises itself since 1.13, and lets one choose the decoder since 1.15.
Result<Libheif> Load() {
  constexpr const char* kFiles[] = {"libheif.so.1"};
  SharedLibrary library(kFiles, "HEIC images are decoded by libheif 1.15 or later",
                        "apt-get install libheif1 (Debian 12), libheif1 and "
                        "libheif-plugin-libde265 (Debian 13, Ubuntu 24.04), or conda install -c "
                        "conda-forge libheif");
  Libheif heif;
  library.Find("heif_context_alloc", heif.context_alloc);
  library.Find("heif_context_free", heif.context_free);
  library.Find("heif_context_set_maximum_image_size_limit", heif.set_size_limit);
  library.Find("heif_context_set_max_decoding_threads", heif.set_threads);
  library.Find("heif_context_read_from_memory_without_copy", heif.read);
  library.Find("heif_context_get_primary_image_handle", heif.primary);
  library.Find("heif_image_handle_release", heif.handle_release);
  library.Find("heif_image_handle_get_width", heif.handle_width);
  library.Find("heif_image_handle_get_height", heif.handle_height);
  library.Find("heif_image_handle_has_alpha_channel", heif.has_alpha);
  library.Find("heif_decoding_options_alloc", heif.options_alloc);
  library.Find("heif_decoding_options_free", heif.options_free);
  library.Find("heif_decode_image", heif.decode);
  library.Find("heif_image_release", heif.image_release);
  library.Find("heif_image_get_width", heif.image_width);
  library.Find("heif_image_get_height", heif.image_height);
  library.Find("heif_image_get_plane_readonly", heif.plane);
  TRY(library.status());
  return heif;
}

struct Bounds {
  uint64_t bytes = 0;  // of memory that libheif takes at most
  bool several_frames = false;
};

// Checks that all that libheif will decode is as large as the boxes say.
Result<Bounds> BoundsOf(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const HeifItems items, ReadHeifItems(ImageFormat::kHeic, bytes));
  const auto pixels_of = [](ImageSize size, uint64_t more) {
    return (static_cast<uint64_t>(size.width) + more) * (static_cast<uint64_t>(size.height) + more);
  };
  uint64_t coded = 0;
  for (const CodedImage& image : items.coded) {
    TRY(CheckHevcPicture(image.setup, image.data, image.size));
    constexpr uint64_t kBlock = 64;
    coded = std::max(coded, pixels_of(image.size, kBlock));
  }
  // Measured for 4:4:4 with 10 bits: the decoder's frame, and libheif's planes, with alpha, as they
  // are and converted. Each box is an object.
  constexpr uint64_t kBytesPerCoded = 16, kBytesPerPixel = 16, kBytesOfBoxes = 32,
                     kBytesOfDecoder = 8 << 20;
  return Bounds{coded * kBytesPerCoded + pixels_of(items.size, 0) * kBytesPerPixel +
                    items.boxes * kBytesOfBoxes + 4 * bytes.size() + kBytesOfDecoder,
                items.several_frames};
}

Error NoMemory() {
  return Error{Code::kResourceExhausted, "no memory left to decode a HEIC", {}, 0};
}

// A file whose Bounds are known. The library throws std::bad_alloc where it has no memory.
class OpenHeif {
 public:
  OpenHeif(const Libheif& library, std::span<const uint8_t> bytes)
      : library_(library),
        context_(library.context_alloc(), library.context_free),
        handle_(nullptr, library.handle_release),
        image_(nullptr, library.image_release) {
    if (context_ == nullptr) throw std::bad_alloc();
    library_.set_size_limit(context_.get(), kMaxSidePixels);
    library_.set_threads(context_.get(), 0);
    error_ = library_.read(context_.get(), bytes.data(), bytes.size(), nullptr);
    heif_image_handle* handle = nullptr;
    if (error_.code == heif_error_Ok) error_ = library_.primary(context_.get(), &handle);
    handle_.reset(handle);
  }

  Result<Header> ReadHeader(const Bounds& bounds) const {
    if (handle_ == nullptr) return Failure();
    const ImageSize size{library_.handle_width(handle_.get()),
                         library_.handle_height(handle_.get())};
    if (size.width < 1 || size.height < 1) return Damaged(kFormat, "no pixels");
    return Header{.size = size,
                  .channels = library_.has_alpha(handle_.get()) != 0 ? 4 : 3,
                  .library_bytes = bounds.bytes,
                  .several_frames = bounds.several_frames};
  }

  Status Decode(const Header& header, const Rows& rows) {
    const std::unique_ptr<heif_decoding_options, decltype(library_.options_free)> options(
        library_.options_alloc(), library_.options_free);
    if (options != nullptr) options->convert_hdr_to_8bit = 1;
    // The bounds are those of libde265.
    if (options != nullptr && options->version >= 4) options->decoder_id = "libde265";
    const auto chroma =
        header.channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB;
    heif_image* image = nullptr;
    error_ = library_.decode(handle_.get(), &image, heif_colorspace_RGB, chroma, options.get());
    image_.reset(image);
    if (error_.code != heif_error_Ok) return Failure();
    constexpr heif_channel kChannel = heif_channel_interleaved;
    int stride = 0;
    const uint8_t* const plane = library_.plane(image, kChannel, &stride);
    if (plane == nullptr || header.size != ImageSize{library_.image_width(image, kChannel),
                                                     library_.image_height(image, kChannel)}) {
      return Damaged(kFormat, "its pixels have another size than its header says");
    }
    for (int y = rows.begin; y < rows.end; ++y) {
      std::memcpy(rows.Row(y), plane + ptrdiff_t{stride} * y, rows.stride);
    }
    return {};
  }

 private:
  static constexpr ImageFormat kFormat = ImageFormat::kHeic;

  Error Failure() const {
    const std::string error = std::to_string(error_.code) + "." + std::to_string(error_.subcode);
    switch (error_.code) {
      case heif_error_Unsupported_filetype:
      case heif_error_Unsupported_feature:
        return Unsupported(kFormat, "what libheif does not decode here (its error " + error + ")");
      case heif_error_Memory_allocation_error:
        return NoMemory();
      default:
        return Damaged(kFormat, "invalid data (libheif's error " + error + ")");
    }
  }

  const Libheif& library_;
  std::unique_ptr<heif_context, decltype(&heif_context_free)> context_;
  heif_error error_{};
  std::unique_ptr<heif_image_handle, decltype(&heif_image_handle_release)> handle_;
  std::unique_ptr<heif_image, decltype(&heif_image_release)> image_;
};

Result<Header> ReadHeader(std::span<const uint8_t> bytes) try {
  ASSIGN_OR_RETURN(const Libheif* const library, (LoadOnce<Libheif, Load>()));
  ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(bytes));
  return OpenHeif(*library, bytes).ReadHeader(bounds);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) try {
  ASSIGN_OR_RETURN(const Libheif* const library, (LoadOnce<Libheif, Load>()));
  ASSIGN_OR_RETURN(const Bounds bounds, BoundsOf(bytes));
  OpenHeif heif(*library, bytes);
  ASSIGN_OR_RETURN(const Header again, heif.ReadHeader(bounds));
  TRY(CheckSame(ImageFormat::kHeic, header, again));
  return heif.Decode(header, rows);
} catch (const std::bad_alloc&) {
  return NoMemory();
}

}  // namespace

const Format kHeic{ReadHeader, Decode};

}  // namespace stoker::whole
