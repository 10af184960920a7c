#include "transforms/jpeg/reference_decoder.h"

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>

#include <array>

#include "transforms/decode/gray_rows.h"
#include "transforms/jpeg/cmyk.h"
#include "transforms/jpeg/errors.h"

namespace stoker {
namespace {

struct Session {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf escape;
  std::span<const uint8_t> bytes;
  Reduction reduction = 1;
  bool gray = false;
  uint8_t* row = nullptr;
  bool end_may_lack = false;  // missing MCUs give a different warning
  bool all_may_lack = false;
  boolean (*end_marker)(j_decompress_ptr) = nullptr;  // of libjpeg-turbo's source
  std::array<char, JMSG_LENGTH_MAX> text{};
};

void Fail(j_common_ptr jpeg) {
  auto& s = *static_cast<Session*>(jpeg->client_data);
  (*jpeg->err->format_message)(jpeg, s.text.data());
  std::longjmp(s.escape, 1);
}

void Warn(j_common_ptr jpeg, int level) {
  auto& s = *static_cast<Session*>(jpeg->client_data);
  if (level >= 0 || s.all_may_lack || !IsDamage(jpeg->err->msg_code)) return;
  if (jpeg->err->msg_code != JWRN_JPEG_EOF || !s.end_may_lack) Fail(jpeg);
}

// Steps own nothing, because Fail jumps over them.
bool Try(Session& s, void (*step)(Session&)) {
  if (setjmp(s.escape) != 0) return false;
  step(s);
  return true;
}

boolean AtEnd(j_decompress_ptr jpeg) {
  if (jpeg->unread_marker != 0) ERREXIT(jpeg, JERR_INPUT_EOF);
  return (*static_cast<Session*>(jpeg->client_data)->end_marker)(jpeg);
}

void Start(Session& s) {
  jpeg_create_decompress(&s.jpeg);
  jpeg_mem_src(&s.jpeg, s.bytes.data(), s.bytes.size());
  s.end_marker = s.jpeg.src->fill_input_buffer;
  if (s.all_may_lack) s.jpeg.src->fill_input_buffer = AtEnd;
  (void)jpeg_read_header(&s.jpeg, TRUE);
  // With several scans some may be missing; and arithmetic decoding continues with zeros without a
  // warning.
  s.end_may_lack = !s.jpeg.arith_code && jpeg_has_multiple_scans(&s.jpeg) == 0;
  s.jpeg.scale_denom = static_cast<unsigned>(s.reduction);
  if (s.gray && s.jpeg.num_components == 3) s.jpeg.out_color_space = JCS_GRAYSCALE;
  (void)jpeg_start_decompress(&s.jpeg);
}

void ReadRow(Session& s) { (void)jpeg_read_scanlines(&s.jpeg, &s.row, 1); }

void Destroy(Session& s) { jpeg_destroy_decompress(&s.jpeg); }

Error Failure(const Session& s) {
  return JpegError(s.errors.msg_code, s.text.data(),
                   s.jpeg.src == nullptr ? 0 : s.bytes.size() - s.jpeg.src->bytes_in_buffer);
}

Result<WholeImage> Decode(Session& s) {
  if (!Try(s, Start)) return Failure(s);
  WholeImage image;
  image.size = {static_cast<int>(s.jpeg.output_width), static_cast<int>(s.jpeg.output_height)};
  if (s.gray || s.jpeg.output_components == 1) image.layout = PixelLayout::kGray;
  const auto width = static_cast<size_t>(image.size.width);
  const size_t row_bytes = width * static_cast<size_t>(BytesPerPixel(image.layout));
  image.pixels.resize(row_bytes * static_cast<size_t>(image.size.height));
  std::vector<uint8_t> cmyk(width * 4);
  for (int y = 0; y < image.size.height; ++y) {
    uint8_t* const row = image.pixels.data() + static_cast<size_t>(y) * row_bytes;
    const bool is_cmyk = s.jpeg.out_color_space == JCS_CMYK;
    s.row = is_cmyk ? cmyk.data() : row;
    if (!Try(s, ReadRow)) return Failure(s);
    if (is_cmyk) ConvertInvertedCmyk(cmyk.data(), width, s.gray ? cmyk.data() : row);
    if (is_cmyk && s.gray) ToGray(cmyk.data(), width, row);
  }
  return image;
}

Result<WholeImage> DecodeBytes(std::span<const uint8_t> bytes, bool all_may_lack,
                               Reduction reduction, bool gray = false) {
  Session s;
  s.gray = gray;
  s.reduction = reduction;
  s.all_may_lack = all_may_lack;
  jpeg_std_error(&s.errors);
  s.errors.error_exit = Fail;
  s.errors.emit_message = Warn;
  s.jpeg.err = &s.errors;
  s.jpeg.client_data = &s;
  s.bytes = bytes;
  Result<WholeImage> image = Decode(s);
  Destroy(s);
  return image;
}

}  // namespace

Result<WholeImage> DecodeWhole(std::span<const uint8_t> bytes, Reduction reduction, bool gray) {
  return DecodeBytes(bytes, false, reduction, gray);
}

Result<WholeImage> DecodeTruncated(std::span<const uint8_t> bytes, Reduction reduction) {
  return DecodeBytes(bytes, true, reduction);
}

}  // namespace stoker
