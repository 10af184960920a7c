// Makes an index the simple way: reads each segment's data as one piece, with the file position of
// each byte, one MCU at a time.
#include <algorithm>
#include <memory>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"

namespace stoker::jpeg {

namespace {

struct Tables {
  std::array<DcTable, 3> dc;
  std::array<AcTable, 3> ac;
  std::array<SkipTable, 3> skip;
};

// Returns false if a table cannot be used.
bool SetUp(const FrameHeader& header, Tables& tables, EntropyState& state) {
  state.blocks = 0;
  for (size_t i = 0; i < static_cast<size_t>(header.components); ++i) {
    const Component& c = header.component[i];
    if (!BuildDcTable(header.dc[static_cast<size_t>(c.dc)], tables.dc[i])) return false;
    if (!BuildAcTable(header.ac[static_cast<size_t>(c.ac)], tables.ac[i])) return false;
    BuildSkipTable(header.ac[static_cast<size_t>(c.ac)], tables.skip[i]);
    const int blocks = header.components == 1 ? 1 : c.columns * c.rows;
    for (int block = 0; block < blocks; ++block) {
      McuBlock& b = state.block[static_cast<size_t>(state.blocks++)];
      b.dc = &tables.dc[i];
      b.ac = &tables.ac[i];
      b.skip = &tables.skip[i];
      b.component = static_cast<int>(i);
    }
  }
  return true;
}

// One segment, from byte `from` of the scan to the marker that ends it.
struct Segment {
  Segment(std::span<const uint8_t> scan, size_t from) {
    while (from < scan.size() && (scan[from] != 0xFF || Stuffed(scan, from))) {
      bytes.push_back(scan[from]);
      offset.push_back(from);
      from += scan[from] == 0xFF ? 2 : 1;
    }
    offset.push_back(from);
    bytes.resize(bytes.size() + kMcuBytes + 8);
  }
  static bool Stuffed(std::span<const uint8_t> scan, size_t at) {
    return at + 1 < scan.size() && scan[at + 1] == 0;
  }

  std::vector<uint8_t> bytes;  // without stuffed zeros
  std::vector<size_t> offset;  // the offset of each of them in the scan, and of the marker
};

}  // namespace

std::vector<EntryPoint> FindEntryPointsPlain(std::span<const uint8_t> file,
                                             const FrameHeader& header, const IndexShape& shape) {
  const auto tables = std::make_unique<Tables>();
  EntropyState state;
  if (!SetUp(header, *tables, state)) return {};
  const std::span<const uint8_t> scan = file.subspan(header.scan_offset);
  std::vector<EntryPoint> entry_points;
  Segment segment(scan, 0);
  state.reader.next = segment.bytes.data();
  for (int64_t mcu = 0; mcu <= shape.mcus; ++mcu) {
    const int64_t used = 8 * (state.reader.next - segment.bytes.data()) - state.reader.count;
    if (static_cast<size_t>(used / 8) >= segment.offset.size()) return {};
    if (mcu == shape.mcus || mcu % shape.stride % shape.interval == 0) {
      const size_t byte = segment.offset[static_cast<size_t>(used / 8)];
      entry_points.push_back({8 * static_cast<int64_t>(byte) + used % 8, state.dc});
    }
    if (mcu == shape.mcus) break;
    if (header.restart_interval > 0 && mcu > 0 && mcu % header.restart_interval == 0) {
      if (static_cast<size_t>(used + 7) / 8 != segment.offset.size() - 1) return {};
      segment = Segment(scan, std::min(segment.offset.back() + 2, scan.size()));
      state.reader = {0, 0, segment.bytes.data()};
      state.dc = {};
    }
    state.stop = segment.bytes.data() + segment.bytes.size() - kMcuBytes - 8;
    McuRun run = StartRun(state, false, 0, 1);
    ParsePlain(run);
    if (state.damaged) return {};
  }
  return entry_points;
}

}  // namespace stoker::jpeg
