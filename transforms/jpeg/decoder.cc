#include "transforms/jpeg/decoder.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/numbers/divide_up.h"
#include "core/result/try.h"
#include "transforms/decode/format.h"
#include "transforms/jpeg/columns.h"
#include "transforms/jpeg/errors.h"
#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_index.h"
#include "transforms/jpeg/fast/progressive/scan_script.h"
#include "transforms/jpeg/fast/region_decoder.h"
#include "transforms/jpeg/libjpeg.h"
#include "transforms/jpeg/library_bytes.h"

namespace stoker {
namespace {

Status CheckFormat(std::span<const uint8_t> bytes) {
  if (SniffFormat(bytes) == ImageFormat::kJpeg) return {};
  return Error{Code::kDataLoss, "not a JPEG", {}, 0, "Remove or re-create the image"};
}

Status CheckLimits(const JpegHeader& header, const DecodeLimits& limits) {
  const ImageSize size = header.info.size;
  TRY(CheckSize(size, limits, header.scan_offset));
  const auto coefficients = static_cast<int64_t>(header.coefficient_bytes);
  if (const int64_t most = limits.CoefficientBytes(); coefficients > most) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "a JPEG with several scans and " + SizeText(size) + " pixels needs " +
                          std::to_string(coefficients) +
                          " bytes to decode, more than the limit of " + std::to_string(most),
                 .offset = header.scan_offset,
                 .advice = "Convert the file to a baseline JPEG",
                 .changes = {{OptionChange::How::kRaise, "max_pixels"}},
                 .detail = Error::Detail::kOverLimits};
  }
  const int n = header.info.components;
  if (n != 1 && n != 3 && n != 4) {
    return Error{Code::kUnimplemented,
                 "a JPEG of " + std::to_string(n) + " components",
                 {},
                 header.scan_offset,
                 "Convert it to RGB"};
  }
  return {};
}

// Whether there is an end-of-image marker after `from`. Searches from the end, where it usually is;
// markers of thumbnails lie before the first scan. Inside a scan 0xFF is never followed by 0xD9.
bool HasEndOfImage(std::span<const uint8_t> bytes, size_t from) {
  const uint8_t* const first = bytes.data() + from;
  for (size_t n = bytes.size() - from; n > 1;) {
    const void* const found = memrchr(first + 1, 0xD9, n - 1);
    if (found == nullptr) return false;
    const auto* const at = static_cast<const uint8_t*>(found);
    if (at[-1] == 0xFF) return true;
    n = static_cast<size_t>(at - first);
  }
  return false;
}

bool EndsInZeros(std::span<const uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[bytes.size() - 1] == 0 && bytes[bytes.size() - 2] == 0;
}

// A cheap test for an incomplete file, before time or memory is spent on it.
Status CheckRoom(std::span<const uint8_t> bytes, const JpegHeader& header) {
  const uint64_t left = bytes.size() - header.scan_offset;
  if (left * 8 < header.min_scan_bits) {
    return DamagedJpeg(std::to_string(left) + " bytes cannot hold an image of " +
                           SizeText(header.info.size) + " pixels",
                       bytes.size());
  }
  return {};
}

}  // namespace

struct JpegDecoder::State {
  State(const DecodeLimits& l, MemoryBudget* budget, Backend w)
      : limits(l), backend(w), charged(budget != nullptr), fast(budget, l) {
    if (charged) librarys = Reservation(*budget);
  }

  bool sequential() const {  // and decoded by the fast decoder
    return why == Fallback::kNone && frame.process == jpeg::Process::kSequential;
  }
  Fallback ReadFrame();
  Status ReadHeader();
  Status CheckEnd();
  jpeg::CropIndex::Match MatchOf(std::span<const uint8_t> packed);
  const jpeg::CropIndex* OpenIndex(std::span<const uint8_t> packed);
  Status CheckRegion() const;
  Status ReserveForLibrary();
  void StartFast(std::span<const uint8_t> crop_index);
  void TakeNext();
  void EndFast();
  Status FallBack();

  DecodeLimits limits;
  Backend backend;
  bool charged;
  Reservation librarys;
  LibJpeg libjpeg;
  jpeg::RegionDecoder fast;
  jpeg::CropIndex index;
  DecodePaths paths;

  // State of the open image.
  bool opened = false;
  std::span<const uint8_t> bytes;
  Fallback why = Fallback::kNone;  // why the fast decoder is not used
  jpeg::FrameHeader frame;         // valid if `why` is kNone
  JpegHeader header;
  std::span<const uint8_t> matched;  // the crop index that was opened for it, and the result
  jpeg::CropIndex::Match match = jpeg::CropIndex::Match::kDamaged;
  bool padded = false;     // zeros replace the end-of-image marker
  bool truncated = false;  // it is missing, with data before it, and that is accepted

  // State of the region being decoded.
  Rect region;
  Reduction reduction = 1;
  RowSink* sink = nullptr;
  Status status;
  jpeg::McuRun* run = nullptr;  // to be parsed next; null means the fast decoder has ended
  bool done = false;            // it has delivered all rows
  bool found_damage = false;    // it has found damage; libjpeg-turbo has not read the header yet
  const jpeg::CropIndex* used_index = nullptr;
  Fallback without_index = Fallback::kNone;  // why the index was given up
};

JpegDecoder::JpegDecoder(const DecodeLimits& limits, MemoryBudget* budget, Backend backend)
    : state_(std::make_unique<State>(limits, budget, backend)) {}
JpegDecoder::~JpegDecoder() = default;
JpegDecoder::JpegDecoder(JpegDecoder&&) noexcept = default;
JpegDecoder& JpegDecoder::operator=(JpegDecoder&&) noexcept = default;

const DecodePaths& JpegDecoder::paths() const { return state_->paths; }

namespace {

// The header as libjpeg-turbo would return it, for a header that the fast parser has accepted.
JpegHeader HeaderOf(const jpeg::FrameHeader& frame) {
  JpegHeader header;
  const int columns = frame.mcu_columns(), rows = frame.mcu_rows();
  const bool progressive = frame.process == jpeg::Process::kProgressive;
  header.info = {.size = frame.size,
                 .orientation = frame.orientation,
                 .components = frame.components,
                 .chroma_columns = columns,
                 .chroma_rows = rows,
                 .progressive = progressive};
  header.imcu_width = 8 * columns;
  header.fancy_columns = columns == 2;
  header.scan_offset = frame.scan_offset;
  const auto blocks = [&](int each_columns, int each_rows) {
    const auto across = static_cast<uint64_t>((frame.size.width + each_columns - 1) / each_columns);
    const auto down = static_cast<uint64_t>((frame.size.height + each_rows - 1) / each_rows);
    return across * down;
  };
  const uint64_t luma = blocks(8, 8), chroma = blocks(8 * columns, 8 * rows);
  header.min_scan_bits = 2 * (frame.components == 1 ? luma : luma + 2 * chroma);
  return header;
}

// Adds what only a progressive image has: memory, and fewer codes in its first scan.
void AddProgressive(const jpeg::FrameHeader& frame, const jpeg::Scan& first, JpegHeader& header) {
  const int max_columns = frame.component[0].columns, max_rows = frame.component[0].rows;
  jpeg::Frame all{frame.size.width, max_columns, max_rows, frame.components, {}, true};
  for (size_t i = 0; i < static_cast<size_t>(frame.components); ++i) {
    const int columns = frame.component[i].columns, rows = frame.component[i].rows;
    all.component[i] = {
        columns, rows, static_cast<uint64_t>(DivideUp(frame.size.width * columns, 8 * max_columns)),
        static_cast<uint64_t>(DivideUp(frame.size.height * rows, 8 * max_rows))};
  }
  header.coefficient_bytes = jpeg::CoefficientBytes(all);
  header.library_bytes = jpeg::LibraryBytes(all);
  header.min_scan_bits = 0;
  for (size_t i = 0; i < static_cast<size_t>(first.components); ++i) {
    const jpeg::Frame::Component& c = all.component[static_cast<size_t>(first.component[i])];
    header.min_scan_bits += c.block_columns * c.block_rows;
  }
}

}  // namespace

// Reads the header with the fast parser, and of a progressive image that of the first scan.
Fallback JpegDecoder::State::ReadFrame() {
  const Fallback reason = jpeg::ParseHeader(bytes, frame, jpeg::Process::kProgressive);
  if (reason != Fallback::kNone) return reason;
  header = HeaderOf(frame);
  if (frame.process == jpeg::Process::kSequential) return Fallback::kNone;
  jpeg::ScanScript script(bytes, frame, 1);
  const Fallback scan = script.Next(frame.scan_marker);
  if (scan == Fallback::kNone) AddProgressive(frame, *script.scan(), header);
  return scan;
}

// Reads the header with libjpeg-turbo, if the fast parser did not accept it.
Status JpegDecoder::State::ReadHeader() {
  ASSIGN_OR_RETURN(header, libjpeg.ReadHeader(bytes));
  return {};
}

// A file without its end is refused for any region, unless its data are complete and zeros
// have replaced the marker, or the limits accept it. The former is known only for files that the
// fast parser accepts; for others missing data cannot be detected. The latter is libjpeg-turbo's to
// decode.
Status JpegDecoder::State::CheckEnd() {
  padded = truncated = false;
  if (HasEndOfImage(bytes, header.scan_offset)) return {};
  padded = sequential() && EndsInZeros(bytes) && CheckRoom(bytes, header).ok() &&
           fast.EndsInPadding(bytes, frame);
  if (padded) return {};
  Error error = TruncatedJpeg(bytes.size());
  if (bytes.size() <= header.scan_offset) return error;
  if (!limits.accept_truncated) {
    error.changes = {{OptionChange::How::kUse, "accept_truncated"}};
    return error;
  }
  truncated = true;
  if (why != Fallback::kNone) return {};
  why = Fallback::kBits;
  return ReadHeader();
}

Result<ImageInfo> JpegDecoder::Open(std::span<const uint8_t> bytes) {
  State& s = *state_;
  s.opened = false;
  s.bytes = bytes;
  s.matched = {};
  s.match = jpeg::CropIndex::Match::kDamaged;
  TRY(CheckFormat(bytes));
  s.why = s.ReadFrame();
  if (s.why != Fallback::kNone || s.backend != Backend::kFastest) {
    TRY(s.ReadHeader());
  }
  TRY(CheckLimits(s.header, s.limits));
  TRY(s.CheckEnd());
  if (!s.truncated) {
    TRY(CheckRoom(bytes, s.header));
  }
  s.opened = true;
  return s.header.info;
}

namespace {

PixelLayout LayoutOf(const JpegHeader& header, const RowSink& sink) {
  const bool gray = header.info.components == 1 || sink.wants() == PixelLayout::kGray;
  return gray ? PixelLayout::kGray : PixelLayout::kInterleaved;
}

// The largest region that libjpeg-turbo may cover according to the header. Whether columns depend
// on distant ones is known only after a file of several scans has been decoded.
DecodedRegion MaxRegion(const JpegHeader& header, const Rect& region, Reduction reduction,
                        const RowSink& sink) {
  Columns columns{0, Reduced(header.info.size, reduction).width};
  if (header.coefficient_bytes == 0 && reduction == 1) {
    columns = ColumnsToDecode({region.x, region.width}, columns.width, header.imcu_width,
                              header.fancy_columns);
  }
  return {LayoutOf(header, sink), {columns.x, region.y, columns.width, region.height}};
}

// Decodes everything from the first scan to the region's first row, and returns which columns will
// follow. Of reduced images all rows and columns follow: jpeg_crop_scanline and jpeg_skip_scanlines
// are made for images of full size.
Result<Columns> Prepare(LibJpeg& libjpeg, const JpegHeader& header, const Rect& region,
                        Reduction reduction, int max_scans, JpegEnd end, bool gray) {
  TRY(libjpeg.Start(max_scans, end, reduction, gray));
  Columns columns{0, Reduced(header.info.size, reduction).width};
  if (reduction > 1) return columns;
  if (!libjpeg.guesses()) {
    columns = ColumnsToDecode({region.x, region.width}, header.info.size.width, header.imcu_width,
                              header.fancy_columns);
    TRY(libjpeg.Crop(columns));
  }
  // This is exact with fancy upsampling, too, if it is done once and before the first row: the row
  // without an upper neighbor is always among those that libjpeg-turbo reads and discards.
  if (region.y > 0) {
    TRY(libjpeg.Skip(region.y));
  }
  return columns;
}

// Delivers `rows` rows after `above` rows, which are dropped.
Status Deliver(LibJpeg& libjpeg, int above, int rows, RowSink& sink) {
  while (rows > 0) {
    const MutableImageView view = sink.Reserve(std::min(rows, LibJpeg::kMaxRows));
    const int count = std::min({view.size.height, rows, LibJpeg::kMaxRows});
    for (; above > 0; above -= std::min(above, count)) {
      TRY(libjpeg.Read(view, std::min(above, count)));
    }
    TRY(libjpeg.Read(view, count));
    sink.Commit(count);
    rows -= count;
  }
  return {};
}

Status DecodeRegion(LibJpeg& libjpeg, const JpegHeader& header, const Rect& region,
                    Reduction reduction, int max_scans, JpegEnd end, RowSink& sink) {
  const PixelLayout layout = LayoutOf(header, sink);
  ASSIGN_OR_RETURN(const Columns columns, Prepare(libjpeg, header, region, reduction, max_scans,
                                                  end, layout == PixelLayout::kGray));
  const Rect covered{columns.x, region.y, columns.width, region.height};
  if (Status status = sink.Begin({layout, covered}); !status.ok()) return status;
  return Deliver(libjpeg, reduction > 1 ? region.y : 0, region.height, sink);
}

}  // namespace

std::optional<IndexedJpeg> JpegDecoder::Indexed(std::span<const uint8_t> crop_index) {
  State& s = *state_;
  if (!s.opened || !s.sequential() || s.backend != Backend::kFastest) return std::nullopt;
  if (s.MatchOf(crop_index) != jpeg::CropIndex::Match::kUsable) return std::nullopt;
  return IndexedJpeg{s.bytes, s.frame, s.index, s.padded};
}

// Opens the index, unless that was done since the image was opened.
jpeg::CropIndex::Match JpegDecoder::State::MatchOf(std::span<const uint8_t> packed) {
  if (packed.data() != matched.data() || packed.size() != matched.size()) {
    match = index.Open(packed, bytes, frame);
    matched = packed;
  }
  return match;
}

// Returns null if the index must not be used.
const jpeg::CropIndex* JpegDecoder::State::OpenIndex(std::span<const uint8_t> packed) {
  if (packed.empty() || !sequential()) return nullptr;
  switch (MatchOf(packed)) {
    case jpeg::CropIndex::Match::kUsable:
      return &index;
    case jpeg::CropIndex::Match::kStale:
      ++paths.stale;
      return nullptr;
    case jpeg::CropIndex::Match::kDamaged:
      ++paths.contradicted;
      return nullptr;
  }
  return nullptr;
}

Status JpegDecoder::State::CheckRegion() const {
  if (reduction > MaxReduction(header.info)) {
    return Error{Code::kInvalidArgument, "the image cannot be decoded at so small a size"};
  }
  if (Inside(region, Reduced(header.info.size, reduction))) return {};
  return Error{Code::kInvalidArgument, "the region to decode is not inside the image"};
}

// Reserves all memory that libjpeg-turbo needs, and the sink's, before decoding begins.
Status JpegDecoder::State::ReserveForLibrary() {
  if (Status begun = sink->Begin(MaxRegion(header, region, reduction, *sink)); !begun.ok()) {
    return AndMore(std::move(begun), header.library_bytes);
  }
  if (!charged || librarys.Resize(header.library_bytes)) return {};
  Error error =
      NoRoomToDecode(header.coefficient_bytes != 0 ? "a JPEG with several scans" : "a JPEG",
                     header.info.size, header.library_bytes);
  if (header.coefficient_bytes != 0) error.advice = "Convert the file to a baseline JPEG";
  return error;
}

// ---- With the fast decoder

// Uses the index if there is one.
void JpegDecoder::State::StartFast(std::span<const uint8_t> crop_index) {
  used_index = OpenIndex(crop_index);
  without_index = Fallback::kNone;
  status = fast.Start(bytes, frame, region, reduction, *sink, used_index);
  TakeNext();
}

void JpegDecoder::State::TakeNext() {
  while (status.ok()) {
    run = fast.Next();
    if (run != nullptr) return;
    const bool again = used_index != nullptr && fast.why() != Fallback::kNone;
    if (!again) return EndFast();
    // The index was wrong: decode without it.
    without_index = fast.why();
    used_index = nullptr;
    status = fast.Start(bytes, frame, region, reduction, *sink);
  }
}

void JpegDecoder::State::EndFast() {
  why = fast.why();
  done = why == Fallback::kNone;
  found_damage = !done;
  if (done) ++paths.fast;
  if (done && !sequential()) ++paths.progressive;
  if (done && padded) ++paths.no_end_marker;
  if (used_index != nullptr) ++paths.indexed;
  if (without_index == Fallback::kNone || without_index == Fallback::kTables) return;
  // Coefficients that are out of range with and without the index are not the index's fault.
  if (without_index != Fallback::kCoefficient || why != without_index) ++paths.contradicted;
}

Status JpegDecoder::Decode(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index,
                           Reduction reduction) {
  Start(region, sink, crop_index, reduction);
  while (decoding()) Advance();
  return Finish();
}

void JpegDecoder::Start(const Rect& region, RowSink& sink, std::span<const uint8_t> crop_index,
                        Reduction reduction) {
  State& s = *state_;
  s.run = nullptr;
  s.done = s.found_damage = false;
  s.status = {};
  if (!std::exchange(s.opened, false)) {
    s.status = Error{Code::kFailedPrecondition, "Decode was called without a successful Open"};
    return;
  }
  s.region = region;
  s.reduction = reduction;
  s.sink = &sink;
  s.status = s.CheckRegion();
  if (!s.status.ok() || s.backend != Backend::kFastest || s.why != Fallback::kNone) return;
  s.StartFast(crop_index);
}

bool JpegDecoder::decoding() const { return state_->run != nullptr; }

void JpegDecoder::Advance() {
  jpeg::Parse(*state_->run);
  state_->TakeNext();
}

void JpegDecoder::AdvanceBoth(JpegDecoder& a, JpegDecoder& b) {
  jpeg::ParseBoth(*a.state_->run, *b.state_->run);
  for (State* s : {a.state_.get(), b.state_.get()}) {
    if (s->run->at_stop()) s->TakeNext();
  }
}

Status JpegDecoder::Finish() {
  State& s = *state_;
  if (!s.status.ok() || s.done) return std::move(s.status);
  return s.FallBack();
}

// Decodes with libjpeg-turbo, from the start.
Status JpegDecoder::State::FallBack() {
  if (found_damage) {
    if (Status read = ReadHeader(); !read.ok()) return read;
  }
  ++paths.fallback[static_cast<size_t>(why)];
  if (padded) ++paths.no_end_marker;
  TRY(ReserveForLibrary());
  const JpegEnd end = padded                    ? JpegEnd::kMarker
                      : limits.accept_truncated ? JpegEnd::kTruncated
                                                : JpegEnd::kError;
  Status decoded = DecodeRegion(libjpeg, header, region, reduction,
                                limits.ScansOf(header.info.size), end, *sink);
  // The bytes that looked like an end-of-image marker may have been part of a table.
  const bool cut = truncated || (end == JpegEnd::kTruncated && libjpeg.past_end());
  if (cut && decoded.ok()) ++paths.accepted_truncated;
  libjpeg.Finish();
  // For fewer columns than were reserved for, the sink may choose to keep more rows.
  decoded = AndMore(std::move(decoded), librarys.bytes());
  (void)librarys.Resize(0);
  return decoded;
}

}  // namespace stoker
