#include "transforms/packed/pack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "core/hash/crc32c.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/try.h"
#include "transforms/jpeg/fast/entropy/coefficient_rows.h"
#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/entropy/mcu_parser.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/progressive/scan_decoder.h"
#include "transforms/jpeg/fast/progressive/scan_script.h"
#include "transforms/packed/format.h"
#include "transforms/packed/pack_run.h"
#include "transforms/packed/packed_file.h"
#include "transforms/packed/restorer.h"

namespace stoker {
namespace packed {
namespace {

// NameOf(Fallback::kProcess) names progressive JPEGs, too, which are packed.
constexpr char kOtherProcess[] = "arithmetic, lossless, or more than 8 bits";
constexpr char kNoEnd[] = "its data are not followed by an end-of-image marker";

template <typename T>
std::span<const uint8_t> BytesOf(const T& value) {
  return {reinterpret_cast<const uint8_t*>(&value), sizeof(T)};
}

Error StoredAsItIs(const std::string& why) {
  return {.code = Code::kUnimplemented,
          .cause = "this JPEG is not packed: " + why,
          .advice = "Store it as it is"};
}
Error StoredAsItIs(Fallback why) {
  return StoredAsItIs(why == Fallback::kProcess ? kOtherProcess : NameOf(why));
}

// The offset of the first marker after `from` that is not part of the entropy-coded data, or the
// end of the file.
size_t EndOfScan(std::span<const uint8_t> jpeg, size_t from) {
  for (size_t at = from; at + 1 < jpeg.size(); at += 2) {
    const void* const found = std::memchr(&jpeg[at], 0xFF, jpeg.size() - 1 - at);
    if (found == nullptr) break;
    at = static_cast<size_t>(static_cast<const uint8_t*>(found) - jpeg.data());
    const uint8_t marker = jpeg[at + 1];
    const bool in_scan = marker == 0 || (marker >= 0xD0 && marker <= 0xD7);
    if (!in_scan) return at;
  }
  return jpeg.size();
}

}  // namespace
}  // namespace packed

struct JpegPacker::State {
  State(MemoryBudget* budget, const DecodeLimits& l)
      : limits(l),
        scans(budget != nullptr ? *budget : unlimited),
        coefficients(budget != nullptr ? *budget : unlimited),
        packed(budget != nullptr ? *budget : unlimited) {}

  int max_scans() const { return std::min(limits.ScansOf(frame.size), packed::kMaxScans); }
  bool progressive() const { return frame.process == jpeg::Process::kProgressive; }
  Status ReadHeader(std::span<const uint8_t> jpeg);
  Result<size_t> ReadMarkers(std::span<const uint8_t> jpeg);
  Status PackAll(std::span<const uint8_t> jpeg);
  Status PackRows(std::span<const uint8_t> jpeg);
  Status StartParsing(std::span<const uint8_t> jpeg);
  Status DecodeScans(std::span<const uint8_t> jpeg);
  Fallback ParseRow(int row);
  Status PackRow();
  Status FillUnit();
  Status AppendHeader(std::span<const uint8_t> jpeg);
  void FillDirectory();
  void Sign();
  Result<bool> Restores(std::span<const uint8_t> jpeg);
  Status MakeRoom(size_t bytes);
  Status Append(std::span<const uint8_t> bytes);
  std::span<const uint8_t> file() const { return {packed.data(), size}; }
  size_t directory_bytes() const { return directory.size() * sizeof(packed::DirectoryEntry); }
  uint32_t RowBytes() const { return static_cast<uint32_t>(size - (rows_at - header_at)); }

  const DecodeLimits limits;
  MemoryBudget unlimited{std::numeric_limits<uint64_t>::max()};
  jpeg::McuParser parser;
  jpeg::ScanDecoder scans;  // instead of the parser, of a progressive JPEG
  jpeg::CoefficientRows coefficients;
  packed::JpegRestorer restorer;
  std::vector<uint8_t> restored;

  jpeg::FrameHeader frame;
  std::vector<uint8_t> header;  // as packed::FixedPart::header_bytes
  std::optional<packed::BlockRows> rows;
  std::optional<jpeg::CropGeometry> geometry;  // of a progressive JPEG: the whole image
  packed::FixedPart fixed{};
  std::vector<packed::DirectoryEntry> directory;
  GrowingBuffer packed;  // its first `size` bytes
  size_t size = 0;
  size_t header_at = 0, rows_at = 0;  // of the lower half; the size so far in the upper one
};

JpegPacker::JpegPacker(MemoryBudget* budget, const DecodeLimits& limits)
    : state_(std::make_unique<State>(budget, limits)) {}
JpegPacker::~JpegPacker() = default;
JpegPacker::JpegPacker(JpegPacker&&) noexcept = default;
JpegPacker& JpegPacker::operator=(JpegPacker&&) noexcept = default;

Result<std::vector<uint8_t>> JpegPacker::Pack(std::span<const uint8_t> jpeg) {
  State& s = *state_;
  TRY(s.ReadHeader(jpeg));
  TRY(s.PackAll(jpeg));
  const uint32_t most = packed::MostChoices(s.fixed.start.version);
  for (s.fixed.choices = 0; s.fixed.choices <= most; ++s.fixed.choices) {
    s.Sign();
    ASSIGN_OR_RETURN(const bool restores, s.Restores(jpeg));
    if (restores) return std::vector<uint8_t>(s.file().begin(), s.file().end());
  }
  return packed::StoredAsItIs("it would not be restored to the byte");
}

Result<std::span<const uint8_t>> JpegPacker::PackPixels(std::span<const uint8_t> jpeg) {
  State& s = *state_;
  TRY(s.ReadHeader(jpeg));
  TRY(s.PackAll(jpeg));
  s.Sign();
  return s.file();
}

uint64_t JpegPacker::memory_bytes() const {
  return state_->scans.memory_bytes() + state_->coefficients.memory_bytes() +
         state_->packed.capacity();
}

void JpegPacker::FreeMemory() {
  state_->scans.FreeMemory();
  state_->coefficients.FreeMemory();
  state_->packed.Free();
}

// Prepares all that does not depend on coefficients.
Status JpegPacker::State::ReadHeader(std::span<const uint8_t> jpeg) {
  if (const Fallback why = jpeg::ParseHeader(jpeg, frame, jpeg::Process::kProgressive);
      why != Fallback::kNone) {
    return packed::StoredAsItIs(why);
  }
  ASSIGN_OR_RETURN(const size_t tail_at, ReadMarkers(jpeg));
  if (jpeg.size() > std::numeric_limits<uint32_t>::max()) {
    return packed::StoredAsItIs("the file is too large");
  }
  rows.emplace(frame);
  fixed = {.start = {.version = progressive() ? packed::kProgressiveVersion : packed::kVersion},
           .jpeg_bytes = static_cast<uint32_t>(jpeg.size()),
           .header_bytes = static_cast<uint32_t>(header.size()),
           .tail_bytes = static_cast<uint32_t>(jpeg.size() - tail_at),
           .choices = 0,
           .checksum = 0};
  directory.resize(static_cast<size_t>(packed::McuRowsOf(frame)));
  size = 0;
  return MakeRoom(jpeg.size() + jpeg.size() / 4);
}

// Collects what lies before and between the data of the scans. Returns where the tail begins.
Result<size_t> JpegPacker::State::ReadMarkers(std::span<const uint8_t> jpeg) {
  if (!progressive()) {
    header.assign(jpeg.begin(), jpeg.begin() + static_cast<ptrdiff_t>(frame.scan_offset));
    const size_t end = packed::EndOfScan(jpeg, frame.scan_offset);
    if (jpeg.size() - end < 2 || jpeg[end + 1] != jpeg::kEoi) {
      return packed::StoredAsItIs(packed::kNoEnd);
    }
    return end;
  }
  jpeg::ScanScript script(jpeg, frame, max_scans());
  size_t end = frame.scan_marker;
  header.assign(jpeg.begin(), jpeg.begin() + static_cast<ptrdiff_t>(end));
  for (;;) {
    if (const Fallback why = script.Next(end); why != Fallback::kNone) {
      return packed::StoredAsItIs(why);
    }
    if (script.scan() == nullptr) return end;
    const std::span<const uint8_t> markers = jpeg.first(script.data()).subspan(end);
    header.insert(header.end(), markers.begin(), markers.end());
    end = packed::EndOfScan(jpeg, script.data());
    if (jpeg.size() - end < 2) return packed::StoredAsItIs(packed::kNoEnd);
  }
}

// Makes room for this many bytes; the first `size` ones are kept.
Status JpegPacker::State::MakeRoom(size_t bytes) {
  if (bytes <= packed.capacity()) return {};
  return packed.Grow(std::max(bytes, packed.capacity() * 2), size);
}

Status JpegPacker::State::Append(std::span<const uint8_t> bytes) {
  TRY(MakeRoom(size + bytes.size()));
  std::ranges::copy(bytes, packed.data() + size);
  size += bytes.size();
  return {};
}

Status JpegPacker::State::StartParsing(std::span<const uint8_t> jpeg) {
  if (progressive()) return DecodeScans(jpeg);
  if (const Fallback why = parser.Open(jpeg, frame); why != Fallback::kNone) {
    return packed::StoredAsItIs(why);
  }
  if (const Fallback why = parser.Start(); why != Fallback::kNone) {
    return packed::StoredAsItIs(why);
  }
  return coefficients.Start(frame, parser);
}

// Decodes all coefficients of a progressive JPEG.
Status JpegPacker::State::DecodeScans(std::span<const uint8_t> jpeg) {
  geometry.emplace(frame, Rect{0, 0, frame.size.width, frame.size.height});
  scans.Begin(frame, *geometry);
  const std::array<Growth, 2> growths = scans.Growths();
  if (growths[0].bytes > static_cast<uint64_t>(limits.CoefficientBytes())) {
    return packed::StoredAsItIs("its coefficients need too much memory");
  }
  TRY(GrowAll(growths));
  TRY(coefficients.Start(frame));
  const Fallback why = scans.Decode(jpeg, max_scans());
  if (why != Fallback::kNone) return packed::StoredAsItIs(why);
  return {};
}

Status JpegPacker::State::PackAll(std::span<const uint8_t> jpeg) {
  Status packed = PackRows(jpeg);
  scans.FreeExcess();
  if (!packed.ok()) scans.Clear();
  return packed;
}

Status JpegPacker::State::PackRows(std::span<const uint8_t> jpeg) {
  TRY(StartParsing(jpeg));
  const int mcu_rows = packed::McuRowsOf(frame), middle = packed::MiddleRow(mcu_rows);
  header_at = rows_at = 0;
  for (int row = 0; row < mcu_rows; ++row) {
    const bool begins_part = packed::BeginsPart(row, mcu_rows);
    if (begins_part || row == middle) TRY(FillUnit());
    if (row > 0) directory[static_cast<size_t>(row - 1)].end = RowBytes();
    if (row == middle) TRY(AppendHeader(jpeg));
    if (begins_part) TRY(Append(packed::BytesOf(packed::Start())));
    if (const Fallback why = ParseRow(row); why != Fallback::kNone) {
      return packed::StoredAsItIs(why);
    }
    TRY(PackRow());
    if (!coefficients.Transform()) return packed::StoredAsItIs(Fallback::kCoefficient);
    if (size > std::numeric_limits<uint32_t>::max()) {
      return packed::StoredAsItIs("the packed file is too large");
    }
  }
  directory.back().end = RowBytes();
  FillDirectory();
  return {};
}

// Sets the coefficients of a row of MCUs, which is the next one.
Fallback JpegPacker::State::ParseRow(int row) {
  if (progressive()) {
    coefficients.Place(scans.Groups(row));
    scans.StoreLast(row, coefficients.last());
    return Fallback::kNone;
  }
  parser.Decode(0, rows->mcus);
  while (jpeg::McuRun* const run = parser.Next()) Parse(*run);
  return parser.why();
}

// Appends zeros, which belong to the last row.
Status JpegPacker::State::FillUnit() {
  constexpr std::array<uint8_t, RowParts::kUnit> kZeros{};
  return Append(
      std::span(kZeros).first((RowParts::kUnit - size % RowParts::kUnit) % RowParts::kUnit));
}

// Appends the header without what Sign and FillDirectory write.
Status JpegPacker::State::AppendHeader(std::span<const uint8_t> jpeg) {
  header_at = size;
  TRY(Append(packed::BytesOf(fixed)));
  TRY(Append(header));
  TRY(Append(jpeg.last(fixed.tail_bytes)));
  TRY(Append({reinterpret_cast<const uint8_t*>(directory.data()), directory_bytes()}));
  rows_at = size;
  return {};
}

// Writes where the header is to each part, and the rows' checksums to the directory.
void JpegPacker::State::FillDirectory() {
  const int mcu_rows = packed::McuRowsOf(frame), middle = packed::MiddleRow(mcu_rows);
  size_t begin = 0;
  for (int row = 0; row < mcu_rows; ++row) {
    packed::DirectoryEntry& entry = directory[static_cast<size_t>(row)];
    uint8_t* const at = packed.data() + begin + (row < middle ? 0 : rows_at - header_at);
    if (packed::BeginsPart(row, mcu_rows)) {
      const packed::Start start{.version = fixed.start.version,
                                .to_header = static_cast<uint32_t>(header_at - begin)};
      std::memcpy(at, &start, sizeof(start));
    }
    entry.checksum = Crc32c({at, entry.end - begin});
    begin = entry.end;
  }
  std::memcpy(packed.data() + rows_at - directory_bytes(), directory.data(), directory_bytes());
}

Status JpegPacker::State::PackRow() {
  const auto runs = static_cast<size_t>(rows->runs);
  TRY(MakeRoom(size + runs * (2 + packed::kRunBytes) + packed::kPackSlack));
  uint8_t* sizes = packed.data() + size;
  uint8_t* run = sizes + 2 * runs;
  for (int r = 0; r < rows->count; ++r) {
    const int blocks = rows->row[static_cast<size_t>(r)].blocks;
    const int16_t* groups = coefficients.groups(static_cast<size_t>(r));
    for (int b = 0; b < blocks; b += packed::kRunBlocks, sizes += 2) {
      uint8_t* const end = packed::PackRun(groups, std::min(blocks - b, packed::kRunBlocks), run);
      if (end == nullptr) return packed::StoredAsItIs(Fallback::kCoefficient);
      const auto bytes = static_cast<uint16_t>(end - run);
      std::memcpy(sizes, &bytes, sizeof(bytes));
      run = end;
      groups += ptrdiff_t{packed::kRunGroups} * jpeg::kGroupStride;
    }
  }
  size = static_cast<size_t>(run - packed.data());
  return {};
}

void JpegPacker::State::Sign() {
  const std::span<const uint8_t> header{packed.data() + header_at, rows_at - header_at};
  std::memcpy(packed.data() + header_at, &fixed, sizeof(fixed));
  fixed.checksum = Crc32c(header.subspan(sizeof(fixed)),
                          Crc32c(header.first(offsetof(packed::FixedPart, checksum))));
  std::memcpy(packed.data() + header_at, &fixed, sizeof(fixed));
}

Result<bool> JpegPacker::State::Restores(std::span<const uint8_t> jpeg) {
  ASSIGN_OR_RETURN(const packed::PackedFile packed_file, packed::PackedFile::Open(file()));
  const Status status = restorer.Restore(packed_file, restored);
  if (!status.ok() && status.error().code == Code::kResourceExhausted) return status.error();
  return status.ok() && std::equal(jpeg.begin(), jpeg.end(), restored.begin(), restored.end());
}

Result<std::vector<uint8_t>> PackJpeg(std::span<const uint8_t> jpeg) {
  return JpegPacker().Pack(jpeg);
}

}  // namespace stoker
