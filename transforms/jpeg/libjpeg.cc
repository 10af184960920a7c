#include "transforms/jpeg/libjpeg.h"

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE

#include <jpeglib.h>

#include <jerror.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "transforms/decode/exif.h"
#include "transforms/decode/gray_rows.h"
#include "transforms/jpeg/cmyk.h"
#include "transforms/jpeg/errors.h"
#include "transforms/jpeg/library_bytes.h"

namespace stoker {

// Note [longjmp]: on errors libjpeg calls ErrorExit, which must not return. It jumps back into Try,
// over frames of libjpeg and of one of the steps below. Steps therefore own nothing: they contain
// no object with a destructor, and all state that they change is here, reached by a reference.
struct LibJpeg::State {
  jpeg_decompress_struct jpeg{};
  jpeg_compress_struct defaults{};  // used for its tables during construction
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf escape;

  // The image.
  const uint8_t* begin = nullptr;
  bool past_end = false;  // reading kEndOfImage
  size_t size = 0;
  App1Segments app1;

  // Arguments of steps.
  int max_scans = 0;
  JpegEnd end = JpegEnd::kError;
  Reduction reduction = 1;
  bool gray = false;
  Columns columns;
  JDIMENSION count = 0;  // rows
  std::array<JSAMPROW, kMaxRows> rows{};
  JSAMPARRAY cmyk = nullptr;  // kMaxRows rows; owned by libjpeg until the image ends

  // Result of a failed step.
  int message_code = 0;
  std::array<char, JMSG_LENGTH_MAX> text{};

  // The Huffman tables of K.3.3 of the standard, which a file may leave out (as motion JPEG does).
  std::array<JHUFF_TBL, 2> standard_dc{};
  std::array<JHUFF_TBL, 2> standard_ac{};

  bool tolerates_damage() const { return past_end && end == JpegEnd::kTruncated; }
  size_t offset() const {
    return past_end ? size : static_cast<size_t>(source.next_input_byte - begin);
  }
};

namespace {

using State = LibJpeg::State;

// In addition to libjpeg's own message codes.
constexpr int kTooManyScans = -1;
constexpr int kNoScan = -2;
constexpr int kNotScaled = -3;

State& StateOf(j_common_ptr jpeg) { return *static_cast<State*>(jpeg->client_data); }
State& StateOf(j_decompress_ptr jpeg) { return *static_cast<State*>(jpeg->client_data); }

[[noreturn]] void GiveUp(State& s, int message_code) {
  s.message_code = message_code;
  std::longjmp(s.escape, 1);
}

// Runs one step. Returns false on errors of libjpeg; Failure() then returns the error.
bool Try(State& s, void (*step)(State&)) {
  if (setjmp(s.escape) != 0) return false;
  step(s);
  return true;
}

Error Failure(const State& s) {
  if (s.message_code == kTooManyScans) {
    return Error{
        .code = Code::kResourceExhausted,
        .cause = "more than " + std::to_string(s.max_scans) + " scans in a JPEG of this size",
        .offset = s.offset(),
        .advice = "Re-create the file with fewer scans (a large image may need both limits raised)",
        .changes = {{OptionChange::How::kRaise, "max_scans"},
                    {OptionChange::How::kRaise, "max_pixels"}},
        .detail = Error::Detail::kOverLimits};
  }
  if (s.message_code == kNoScan) {
    return Error{Code::kDataLoss,
                 "damaged JPEG: a colour component has no scan",
                 {},
                 s.offset(),
                 "Remove or re-create the image"};
  }
  if (s.message_code == kNotScaled) {
    return Error{Code::kUnimplemented,
                 "libjpeg-turbo does not decode this kind of JPEG scaled",
                 {},
                 s.offset(),
                 "Use decode=\"full\""};
  }
  return JpegError(s.message_code, s.text.data(), s.offset());
}

Status Run(State& s, void (*step)(State&)) {
  if (Try(s, step)) return {};
  return Failure(s);
}

// ---- Callbacks of libjpeg

[[noreturn]] void ErrorExit(j_common_ptr jpeg) {
  State& s = StateOf(jpeg);
  (*jpeg->err->format_message)(jpeg, s.text.data());
  GiveUp(s, jpeg->err->msg_code);
}

void EmitMessage(j_common_ptr jpeg, int level) {
  if (level < 0 && IsDamage(jpeg->err->msg_code) && !StateOf(jpeg).tolerates_damage())
    ErrorExit(jpeg);
}

void OutputMessage(j_common_ptr) {}

void InitSource(j_decompress_ptr) {}

constexpr std::array<JOCTET, 2> kEndOfImage = {0xFF, JPEG_EOI};

// The whole file is in memory from the start: there is no more data to read.
[[noreturn]] void GiveUpAtEnd(State& s) {
  s.source.next_input_byte = s.begin + s.size;
  s.source.bytes_in_buffer = 0;
  GiveUp(s, JERR_INPUT_EOF);
}

// Handles the end of the bytes: an end-of-image marker comes next, if that is allowed.
void TakeEnd(State& s) {
  if (s.end == JpegEnd::kError || s.past_end) GiveUpAtEnd(s);
  s.past_end = true;
  s.source.next_input_byte = kEndOfImage.data();
  s.source.bytes_in_buffer = kEndOfImage.size();
}

// Returns FALSE, which makes libjpeg return to Begin, if the bytes end in a marker's segment: the
// end-of-image marker must not be read as a part of that segment.
boolean FillInputBuffer(j_decompress_ptr jpeg) {
  TakeEnd(StateOf(jpeg));
  return jpeg->unread_marker == 0 ? TRUE : FALSE;
}

void SkipInputData(j_decompress_ptr jpeg, long bytes) {  // NOLINT: libjpeg's type
  if (bytes <= 0) return;
  jpeg_source_mgr& source = *jpeg->src;
  if (static_cast<size_t>(bytes) > source.bytes_in_buffer) return TakeEnd(StateOf(jpeg));
  source.next_input_byte += bytes;
  source.bytes_in_buffer -= static_cast<size_t>(bytes);
}

// Called between the parts of a file with several scans.
void CountScans(j_common_ptr jpeg) {
  State& s = StateOf(jpeg);
  if (s.jpeg.input_scan_number > s.max_scans) GiveUp(s, kTooManyScans);
}

// Called after each APP1 marker, at its length field.
boolean ReadApp1(j_decompress_ptr jpeg) {
  State& s = StateOf(jpeg);
  if (s.source.bytes_in_buffer < 2) return FillInputBuffer(jpeg);
  const JOCTET* const at = s.source.next_input_byte;
  const size_t length = std::max<size_t>(static_cast<size_t>(at[0] << 8 | at[1]), 2);
  if (length <= s.source.bytes_in_buffer) s.app1.Take({at + 2, length - 2});
  SkipInputData(jpeg, static_cast<long>(length));  // NOLINT: libjpeg's type
  return TRUE;
}

// ---- steps; see Note [longjmp]

void Create(State& s) {
  jpeg_create_decompress(&s.jpeg);
  s.jpeg.mem->max_memory_to_use = 0;  // overrides the environment variable JPEGMEM
  jpeg_set_marker_processor(&s.jpeg, JPEG_APP0 + 1, ReadApp1);
  const auto common = reinterpret_cast<j_common_ptr>(&s.jpeg);
  for (int i = 0; i < NUM_HUFF_TBLS; ++i) {
    s.jpeg.dc_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
    s.jpeg.ac_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
  }
  for (int i = 0; i < NUM_QUANT_TBLS; ++i)
    s.jpeg.quant_tbl_ptrs[i] = jpeg_alloc_quant_table(common);
  jpeg_create_compress(&s.defaults);
  s.defaults.in_color_space = JCS_YCbCr;
  s.defaults.input_components = 3;
  jpeg_set_defaults(&s.defaults);
  for (size_t i = 0; i < 2; ++i) {
    s.standard_dc[i] = *s.defaults.dc_huff_tbl_ptrs[i];
    s.standard_ac[i] = *s.defaults.ac_huff_tbl_ptrs[i];
  }
}

// libjpeg keeps tables from image to image (for abbreviated files). In stoker a file's pixels must
// not depend on the previous file, so each file starts with the standard's Huffman tables only.
void ResetTables(jpeg_decompress_struct& jpeg, const State& s) {
  for (size_t i = 0; i < NUM_HUFF_TBLS; ++i) {
    if (i < 2) {
      *jpeg.dc_huff_tbl_ptrs[i] = s.standard_dc[i];
      *jpeg.ac_huff_tbl_ptrs[i] = s.standard_ac[i];
    } else {  // a table without codes: data that use it are damaged
      *jpeg.dc_huff_tbl_ptrs[i] = JHUFF_TBL{};
      *jpeg.ac_huff_tbl_ptrs[i] = JHUFF_TBL{};
    }
  }
  for (JQUANT_TBL* table : jpeg.quant_tbl_ptrs)
    *table = JQUANT_TBL{};  // zeros, which Begin refuses
}

void ReadHeaderStep(State& s) {
  jpeg_abort_decompress(&s.jpeg);
  ResetTables(s.jpeg, s);
  (void)jpeg_read_header(&s.jpeg, TRUE);
}

// Every component must have had a scan, and a quantization table by then. In a truncated file scans
// may be missing; libjpeg sets the samples of a component without a scan to the middle value.
void CheckComponents(State& s) {
  for (int i = 0; i < s.jpeg.num_components; ++i) {
    const jpeg_component_info& component = s.jpeg.comp_info[i];
    if (component.quant_table == nullptr && s.tolerates_damage()) continue;
    if (component.quant_table == nullptr) GiveUp(s, kNoScan);
    if (component.quant_table->quantval[0] == 0) {
      ERREXIT1(&s.jpeg, JERR_NO_QUANT_TABLE, component.quant_tbl_no);
    }
  }
}

void Begin(State& s) {
  s.jpeg.dct_method = JDCT_ISLOW;
  s.jpeg.do_fancy_upsampling = TRUE;
  const bool converts = s.jpeg.jpeg_color_space == JCS_YCbCr || s.jpeg.jpeg_color_space == JCS_RGB;
  if (s.gray && converts) s.jpeg.out_color_space = JCS_GRAYSCALE;
  s.jpeg.scale_num = 1;
  s.jpeg.scale_denom = static_cast<unsigned>(s.reduction);
  if (jpeg_start_decompress(&s.jpeg) == FALSE) {
    s.jpeg.unread_marker = 0;  // forgets the incomplete segment
    (void)jpeg_start_decompress(&s.jpeg);
  }
  CheckComponents(s);
  const ImageSize stored = {static_cast<int>(s.jpeg.image_width),
                            static_cast<int>(s.jpeg.image_height)};
  const ImageSize output = {static_cast<int>(s.jpeg.output_width),
                            static_cast<int>(s.jpeg.output_height)};
  if (output != Reduced(stored, s.reduction)) GiveUp(s, kNotScaled);  // lossless, from 3.0 on
  if (s.jpeg.out_color_space == JCS_CMYK) {
    s.cmyk = (*s.jpeg.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&s.jpeg), JPOOL_IMAGE,
                                         s.jpeg.image_width * 4, LibJpeg::kMaxRows);
  }
}

void CropStep(State& s) {
  auto x = static_cast<JDIMENSION>(s.columns.x);
  auto width = static_cast<JDIMENSION>(s.columns.width);
  jpeg_crop_scanline(&s.jpeg, &x, &width);
}

void SkipStep(State& s) { (void)jpeg_skip_scanlines(&s.jpeg, s.count); }

// libjpeg delivers an upsampling group (1, 2 or 4 rows) at a time.
void ReadStep(State& s) {
  for (JDIMENSION done = 0; done < s.count;) {
    const JDIMENSION got = jpeg_read_scanlines(&s.jpeg, s.rows.data() + done, s.count - done);
    if (got == 0) GiveUp(s, JERR_INPUT_EOF);
    done += got;
  }
}

// ---- The header

jpeg::Frame FrameOf(jpeg_decompress_struct& jpeg) {
  jpeg::Frame frame;
  frame.width = static_cast<int>(jpeg.image_width);
  frame.max_columns = jpeg.max_h_samp_factor;
  frame.max_rows = jpeg.max_v_samp_factor;
  frame.components = std::min(jpeg.num_components, 4);  // files with more are refused
  for (int i = 0; i < frame.components; ++i) {
    const jpeg_component_info& c = jpeg.comp_info[i];
    frame.component[static_cast<size_t>(i)] = {c.h_samp_factor, c.v_samp_factor, c.width_in_blocks,
                                               c.height_in_blocks};
  }
  frame.several_scans = jpeg_has_multiple_scans(&jpeg) != 0;
  return frame;
}

// A Huffman code has at least one bit, and a block of a first scan at least one code: that of its
// DC coefficient, and in a sequential scan that of the end of block. Arithmetic coding and AC scans
// have no such bound.
uint64_t MinScanBits(const jpeg_decompress_struct& jpeg) {
  if (jpeg.arith_code || (jpeg.progressive_mode && (jpeg.Ss != 0 || jpeg.Ah != 0))) return 0;
  uint64_t blocks = 0;
  for (int i = 0; i < jpeg.comps_in_scan; ++i) {
    const jpeg_component_info& c = *jpeg.cur_comp_info[i];
    blocks += uint64_t{c.width_in_blocks} * c.height_in_blocks;
  }
  return blocks * (jpeg.progressive_mode ? 1 : 2);
}

ImageInfo InfoOf(const jpeg_decompress_struct& jpeg, const State& s) {
  ImageInfo info;
  info.size = {static_cast<int>(jpeg.image_width), static_cast<int>(jpeg.image_height)};
  info.orientation = s.app1.orientation();
  info.components = jpeg.num_components;
  if (jpeg.num_components >= 3) {
    info.chroma_columns = jpeg.max_h_samp_factor / jpeg.comp_info[1].h_samp_factor;
    info.chroma_rows = jpeg.max_v_samp_factor / jpeg.comp_info[1].v_samp_factor;
  }
  info.progressive = jpeg.progressive_mode != 0;
  return info;
}

JpegHeader HeaderOf(State& s) {
  jpeg_decompress_struct& jpeg = s.jpeg;
  JpegHeader header;
  header.info = InfoOf(jpeg, s);
  header.imcu_width = DCTSIZE * (jpeg.num_components == 1 ? 1 : jpeg.max_h_samp_factor);
  for (int i = 0; i < jpeg.num_components; ++i) {
    header.fancy_columns |= jpeg.comp_info[i].h_samp_factor * 2 == jpeg.max_h_samp_factor;
  }
  const jpeg::Frame frame = FrameOf(jpeg);
  header.coefficient_bytes = jpeg::CoefficientBytes(frame);
  header.library_bytes = jpeg::LibraryBytes(frame);
  header.min_scan_bits = MinScanBits(jpeg);
  header.scan_offset = s.offset();
  return header;
}

}  // namespace

LibJpeg::LibJpeg() : state_(std::make_unique<State>()) {
  State& s = *state_;
  jpeg_std_error(&s.errors);
  s.errors.error_exit = ErrorExit;
  s.errors.emit_message = EmitMessage;
  s.errors.output_message = OutputMessage;
  s.source.init_source = InitSource;
  s.source.fill_input_buffer = FillInputBuffer;
  s.source.skip_input_data = SkipInputData;
  s.source.resync_to_restart = jpeg_resync_to_restart;
  s.source.term_source = InitSource;
  s.progress.progress_monitor = CountScans;
  s.jpeg.err = s.defaults.err = &s.errors;
  s.jpeg.client_data = s.defaults.client_data = &s;
  const bool created = Try(s, Create);
  jpeg_destroy_compress(&s.defaults);
  if (!created) {
    jpeg_destroy_decompress(&s.jpeg);
    throw std::bad_alloc();
  }
  s.jpeg.src = &s.source;
  s.jpeg.progress = &s.progress;
}

LibJpeg::~LibJpeg() { jpeg_destroy_decompress(&state_->jpeg); }

Result<JpegHeader> LibJpeg::ReadHeader(std::span<const uint8_t> bytes) {
  State& s = *state_;
  s.begin = bytes.data();
  s.end = JpegEnd::kError;
  s.past_end = false;
  s.size = bytes.size();
  s.app1 = {};
  s.source.next_input_byte = bytes.data();
  s.source.bytes_in_buffer = bytes.size();
  if (!Try(s, ReadHeaderStep)) return Failure(s);
  return HeaderOf(s);
}

Status LibJpeg::Start(int max_scans, JpegEnd end, Reduction reduction, bool gray) {
  state_->max_scans = max_scans;
  state_->end = end;
  state_->reduction = reduction;
  state_->gray = gray;
  return Run(*state_, Begin);
}

bool LibJpeg::past_end() const { return state_->past_end; }

bool LibJpeg::guesses() const {
  const jpeg_decompress_struct& jpeg = state_->jpeg;
  if (!jpeg.progressive_mode || jpeg.coef_bits == nullptr) return false;
  for (int i = 0; i < jpeg.num_components; ++i) {
    const int* const bits =
        jpeg.coef_bits[i];  // 0: known exactly; the first 9 AC coefficients can be estimated
    if (std::any_of(bits + 1, bits + 10, [](int b) { return b != 0; })) return true;
  }
  return false;
}

Status LibJpeg::Crop(Columns columns) {
  state_->columns = columns;
  return Run(*state_, CropStep);
}

Status LibJpeg::Skip(int rows) {
  state_->count = static_cast<JDIMENSION>(rows);
  return Run(*state_, SkipStep);
}

Status LibJpeg::Read(const MutableImageView& rows, int count) {
  State& s = *state_;
  s.count = static_cast<JDIMENSION>(count);
  for (int i = 0; i < count; ++i) {
    s.rows[static_cast<size_t>(i)] =
        s.cmyk != nullptr ? s.cmyk[i] : rows.plane[0] + i * rows.stride[0];
  }
  if (!Try(s, ReadStep)) return Failure(s);
  for (int i = 0; s.cmyk != nullptr && i < count; ++i) {
    uint8_t* const row = rows.plane[0] + i * rows.stride[0];
    ConvertInvertedCmyk(s.cmyk[i], s.jpeg.output_width, s.gray ? s.cmyk[i] : row);
    if (s.gray) ToGray(s.cmyk[i], s.jpeg.output_width, row);
  }
  return {};
}

void LibJpeg::Finish() {
  state_->cmyk = nullptr;
  jpeg_abort_decompress(&state_->jpeg);  // only frees, so it cannot fail
}

}  // namespace stoker
