// GIF by giflib 5.1 or later: the first frame on its canvas, as Pillow shows it.
#include <gif_lib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "core/result/try.h"
#include "core/system/shared_library.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

struct Giflib {
  decltype(&DGifOpen) open;
  decltype(&DGifCloseFile) close;
  decltype(&DGifGetRecordType) record_type;
  decltype(&DGifGetImageDesc) image_desc;
  decltype(&DGifGetLine) line;
  decltype(&DGifGetExtension) extension;
  decltype(&DGifGetExtensionNext) extension_next;
};

Result<Giflib> Load() {
  constexpr const char* kFiles[] = {"libgif.so.7"};
  SharedLibrary library(kFiles, "GIF images are decoded by giflib",
                        "apt-get install libgif7 (Debian, Ubuntu), dnf install giflib (Fedora) or "
                        "conda install -c conda-forge giflib");
  Giflib gif;
  library.Find("DGifOpen", gif.open);
  library.Find("DGifCloseFile", gif.close);
  library.Find("DGifGetRecordType", gif.record_type);
  library.Find("DGifGetImageDesc", gif.image_desc);
  library.Find("DGifGetLine", gif.line);
  library.Find("DGifGetExtension", gif.extension);
  library.Find("DGifGetExtensionNext", gif.extension_next);
  TRY(library.status());
  return gif;
}

// A file up to the description of its first frame.
class OpenGif {
 public:
  OpenGif(const Giflib& library, std::span<const uint8_t> bytes)
      : library_(library), bytes_(bytes) {
    file_ = library_.open(this, &Read, &error_);
  }
  OpenGif(const OpenGif&) = delete;
  OpenGif& operator=(const OpenGif&) = delete;
  ~OpenGif() {
    if (file_ != nullptr) library_.close(file_, nullptr);
  }

  Status ToFirstFrame() {
    while (file_ != nullptr) {
      GifRecordType type = UNDEFINED_RECORD_TYPE;
      if (library_.record_type(file_, &type) != GIF_OK) break;
      if (type == TERMINATE_RECORD_TYPE) return Damaged(ImageFormat::kGif, "no image in it", at_);
      if (type == IMAGE_DESC_RECORD_TYPE) {
        if (library_.image_desc(file_) != GIF_OK) break;
        if (frame().Width <= 0 || frame().Height <= 0) {
          return Damaged(ImageFormat::kGif, "its first image has no pixels", at_);
        }
        LimitData();
        return {};
      }
      if (type == EXTENSION_RECORD_TYPE && !ReadExtension()) break;
    }
    return Failure();
  }

  // Pillow enlarges the canvas if the frame reaches outside.
  ImageSize Canvas() const {
    return {std::max(file_->SWidth, frame().Left + frame().Width),
            std::max(file_->SHeight, frame().Top + frame().Height)};
  }

  const GifImageDesc& frame() const { return file_->Image; }

  // Decodes the frame's next row of indices.
  Status Line(std::span<uint8_t> indices) {
    if (library_.line(file_, indices.data(), static_cast<int>(indices.size())) == GIF_OK) return {};
    return Failure();
  }

  // Indices beyond the palette are black; without one they are gray values.
  std::array<std::array<uint8_t, 3>, 256> Palette() const {
    std::array<std::array<uint8_t, 3>, 256> palette{};
    const ColorMapObject* const map =
        frame().ColorMap != nullptr ? frame().ColorMap : file_->SColorMap;
    for (size_t i = 0; i < palette.size(); ++i) {
      const auto gray = static_cast<uint8_t>(i);
      if (map == nullptr) palette[i] = {gray, gray, gray};
      if (map == nullptr || i >= static_cast<size_t>(map->ColorCount)) continue;
      palette[i] = {map->Colors[i].Red, map->Colors[i].Green, map->Colors[i].Blue};
    }
    return palette;
  }

  // The index outside the frame.
  uint8_t background() const { return transparent_; }
  bool has_transparent() const { return has_transparent_; }

 private:
  // Codes that clear the table take giflib 2 us for each byte, and no pixel needs them.
  void LimitData() {
    constexpr size_t kOfAPixel = 2, kMore = size_t{64} << 10;  // a code has 12 bits at most
    const size_t pixels = static_cast<size_t>(frame().Width) * static_cast<size_t>(frame().Height);
    end_ = at_ + std::min(bytes_.size() - at_, kOfAPixel * pixels + kMore);
  }

  static int Read(GifFileType* file, GifByteType* to, int count) {
    OpenGif& self = *static_cast<OpenGif*>(file->UserData);
    const size_t got = std::min(self.end_ - self.at_, static_cast<size_t>(count));
    std::memcpy(to, self.bytes_.data() + self.at_, got);
    self.at_ += got;
    return static_cast<int>(got);
  }

  bool ReadExtension() {
    int kind = 0;
    GifByteType* block = nullptr;
    if (library_.extension(file_, &kind, &block) != GIF_OK) return false;
    while (block != nullptr) {
      constexpr int kLength = 4, kHasTransparent = 1;
      if (kind == GRAPHICS_EXT_FUNC_CODE && block[0] >= kLength &&
          (block[1] & kHasTransparent) != 0) {
        transparent_ = block[4];
        has_transparent_ = true;
      }
      if (library_.extension_next(file_, &block) != GIF_OK) return false;
    }
    return true;
  }

  Error Failure() const {
    const int error = file_ == nullptr ? error_ : file_->Error;
    if (error == D_GIF_ERR_NOT_ENOUGH_MEM) {
      return Error{Code::kResourceExhausted, "no memory left to decode a GIF", {}, at_};
    }
    if (at_ == bytes_.size()) return Truncated(ImageFormat::kGif, at_);
    if (at_ == end_) {
      return Damaged(ImageFormat::kGif, "far more data than its pixels need", at_);
    }
    return Damaged(ImageFormat::kGif, "invalid data (giflib's error " + std::to_string(error) + ")",
                   at_);
  }

  const Giflib& library_;
  const std::span<const uint8_t> bytes_;
  size_t at_ = 0, end_ = bytes_.size();
  int error_ = 0;
  GifFileType* file_ = nullptr;
  uint8_t transparent_ = 0;
  bool has_transparent_ = false;
};

// Finds a second image without decoding the first.
bool HasSeveralFrames(std::span<const uint8_t> gif) {
  constexpr size_t kScreen = 13, kScreenFlags = 10, kImage = 10, kImageFlags = 9;
  const auto byte = [gif](size_t at) { return at < gif.size() ? gif[at] : uint8_t{0}; };
  const auto palette_bytes = [](uint8_t flags) {
    return (flags & 0x80) != 0 ? size_t{3} << ((flags & 7) + 1) : 0;
  };
  int images = 0;
  for (size_t at = kScreen + palette_bytes(byte(kScreenFlags)); at < gif.size(); ++at) {
    if (byte(at) == ',') {
      if (++images == 2) return true;
      at += kImage + palette_bytes(byte(at + kImageFlags)) + 1;
    } else if (byte(at) == '!') {
      at += 2;
    } else {
      return false;
    }
    while (byte(at) != 0) at += size_t{1} + byte(at);  // blocks of data
  }
  return false;
}

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Giflib* const library, (LoadOnce<Giflib, Load>()));
  OpenGif gif(*library, bytes);
  TRY(gif.ToFirstFrame());
  return Header{.size = gif.Canvas(),
                .transparent = gif.has_transparent(),
                .several_frames = HasSeveralFrames(bytes)};
}

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Giflib* const library, (LoadOnce<Giflib, Load>()));
  OpenGif gif(*library, bytes);
  TRY(gif.ToFirstFrame());
  TRY(CheckSame(ImageFormat::kGif, header, Header{.size = gif.Canvas()}));
  const auto palette = gif.Palette();
  for (int y = rows.begin; y < rows.end; ++y) {
    for (int x = 0; x < header.size.width; ++x) {
      std::memcpy(rows.Row(y) + ptrdiff_t{3} * x, palette[gif.background()].data(), 3);
    }
  }
  const GifImageDesc& frame = gif.frame();
  std::vector<uint8_t> line(static_cast<size_t>(frame.Width));
  struct Pass {
    int first, step;
  };
  constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}}, kAll[] = {{0, 1}};
  for (const Pass& pass : frame.Interlace ? std::span<const Pass>(kInterlaced) : kAll) {
    for (int y = pass.first; y < frame.Height; y += pass.step) {
      if (!frame.Interlace && frame.Top + y >= rows.end) return {};
      TRY(gif.Line(line));
      if (!rows.Has(frame.Top + y)) continue;
      uint8_t* to = rows.Row(frame.Top + y) + ptrdiff_t{3} * frame.Left;
      for (const uint8_t index : line) {
        std::memcpy(to, palette[index].data(), 3);
        to += 3;
      }
    }
  }
  return {};
}

}  // namespace

const Format kGif{ReadHeader, Decode};

}  // namespace stoker::whole
