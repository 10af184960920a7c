#include "transforms/whole/av1_frame.h"

#include <algorithm>
#include <string>

#include "core/result/try.h"
#include "transforms/whole/bit_reader.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

using Bytes = std::span<const uint8_t>;

Error Wrong(const char* what) { return Damaged(ImageFormat::kAvif, what); }

// 5.5.1, from timing_info_present_flag on, to the operating points.
void SkipOperatingPoints(BitReader& reader) {
  int delay_bits = 0;
  bool decoder_model = false;
  if (reader.TakeFlag()) {  // timing_info
    reader.Skip(64);
    if (reader.TakeFlag()) (void)reader.TakeCode();
    decoder_model = reader.TakeFlag();
    if (decoder_model) {
      delay_bits = static_cast<int>(reader.Take(5)) + 1;
      reader.Skip(32 + 5 + 5);
    }
  }
  const bool display_delay = reader.TakeFlag();
  for (uint32_t points = reader.Take(5) + 1; points > 0; --points) {
    reader.Skip(12);
    if (reader.Take(5) > 7) reader.Skip(1);
    if (decoder_model && reader.TakeFlag()) reader.Skip(2 * static_cast<size_t>(delay_bits) + 1);
    if (display_delay && reader.TakeFlag()) reader.Skip(4);
  }
}

// 5.5.1, from frame_id_numbers_present_flag on, to film_grain's predecessors.
void SkipTools(BitReader& reader, bool reduced) {
  if (!reduced && reader.TakeFlag()) reader.Skip(4 + 3);  // numbers of frames
  reader.Skip(3);
  if (!reduced) {
    reader.Skip(4);
    const bool order_hint = reader.TakeFlag();
    if (order_hint) reader.Skip(2);
    const bool screen_content = reader.TakeFlag() || reader.TakeFlag();
    if (screen_content && !reader.TakeFlag()) reader.Skip(1);
    if (order_hint) reader.Skip(3);
  }
  reader.Skip(3);
}

// 5.5.2: twice the bytes of a pixel.
uint64_t ReadColour(BitReader& reader, uint32_t profile) {
  const bool high = reader.TakeFlag();
  const bool twelve = profile == 2 && high && reader.TakeFlag();
  const uint64_t bytes = high ? 2 : 1;
  if (profile != 1 && reader.TakeFlag()) return 2 * bytes;  // gray
  constexpr uint32_t kSrgb = 1 << 16 | 13 << 8;             // BT.709, sRGB, identity
  if (reader.TakeFlag() && reader.Take(24) == kSrgb) return 6 * bytes;
  reader.Skip(1);
  const bool half_width = profile == 0 || (profile == 2 && (!twelve || reader.TakeFlag()));
  const bool half_height = profile == 0 || (twelve && half_width && reader.TakeFlag());
  return (half_width ? half_height ? 3 : 4 : 6) * bytes;
}

// 5.5.1. The frame may have another size than the largest one that it says, within its number of
// bits.
Status ReadSequence(Bytes obu, Av1Frame& frame) {
  BitReader reader(obu);
  const uint32_t profile = reader.Take(3);
  reader.Skip(1);
  const bool reduced = reader.TakeFlag();
  if (reduced) {
    reader.Skip(5);
  } else {
    SkipOperatingPoints(reader);
  }
  const int width_bits = static_cast<int>(reader.Take(4)) + 1;
  const int height_bits = static_cast<int>(reader.Take(4)) + 1;
  reader.Skip(static_cast<size_t>(width_bits + height_bits));
  SkipTools(reader, reduced);
  const uint64_t half_bytes = ReadColour(reader, profile);
  if (reader.failed()) return Wrong("its sequence header");
  frame.most_side = std::max(frame.most_side, uint64_t{1} << std::max(width_bits, height_bits));
  frame.half_bytes = std::max(frame.half_bytes, half_bytes);
  return {};
}

// Takes an OBU's size, leb128() (4.10.5).
Result<size_t> TakeSize(Bytes& bytes) {
  uint64_t size = 0;
  for (int shift = 0; shift < 56 && !bytes.empty(); shift += 7) {
    const uint8_t byte = bytes[0];
    bytes = bytes.subspan(1);
    size |= uint64_t{byte & 127U} << shift;
    if (byte < 128 && size <= bytes.size()) return static_cast<size_t>(size);
    if (byte < 128) break;
  }
  return Wrong("the size of an OBU");
}

}  // namespace

Result<Av1Frame> ReadAv1Frame(std::span<const uint8_t> data) {
  constexpr int kSequence = 1, kDelimiter = 2, kMetadata = 5, kFrame = 6, kPadding = 15,
                kHasSize = 2, kHasExtension = 4;
  Av1Frame frame;
  int frames = 0;
  while (!data.empty()) {
    const uint8_t header = data[0];
    const int type = header >> 3 & 15;
    const size_t header_bytes = (header & kHasExtension) != 0 ? 2 : 1;
    if (header_bytes > data.size()) return Wrong("an OBU without a header");
    data = data.subspan(header_bytes);
    size_t size = data.size();
    if ((header & kHasSize) != 0) {
      ASSIGN_OR_RETURN(size, TakeSize(data));
    }
    if (type == kSequence) {
      TRY(ReadSequence(data.first(size), frame));
    } else if (type == kFrame) {
      if (++frames > 1) return Unsupported(ImageFormat::kAvif, "several frames in an item");
    } else if (type != kDelimiter && type != kMetadata && type != kPadding) {
      return Unsupported(ImageFormat::kAvif, "OBUs of type " + std::to_string(type));
    }
    data = data.subspan(size);
  }
  if (frame.most_side == 0) return Wrong("no sequence header");
  return frame;
}

}  // namespace stoker::whole
