#include "transforms/png/packed/recipe.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "core/result/try.h"
#include "transforms/png/inflater.h"
#include "transforms/png/unfilter.h"

namespace stoker::packed_png {
namespace {

using png::Inflater;

// Bytes of zlib's header. Encoders change the size of the window in it.
constexpr size_t kZlibHeader = 2;
// Bytes that are decompressed or compressed at a time.
constexpr size_t kPiece = 16384;

// Compresses by zlib. Thread-compatible.
class Deflater {
 public:
  // Precondition: parameters that ReadRecipe accepts. std::bad_alloc if there is no memory.
  explicit Deflater(const Compression& by) {
    if (deflateInit2(&stream_, by.level, Z_DEFLATED, by.window_bits, by.memory_level,
                     by.strategy) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;
  ~Deflater() { deflateEnd(&stream_); }

  // Passes the output to `take` until that returns false, which it returns.
  template <typename Take>
  bool Add(std::span<const uint8_t> bytes, bool is_last, const Take& take) {
    stream_.next_in = const_cast<uint8_t*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = out_.data();
      stream_.avail_out = static_cast<uInt>(out_.size());
      deflate(&stream_, is_last ? Z_FINISH : Z_NO_FLUSH);
      if (!take(std::span(out_).first(out_.size() - stream_.avail_out))) return false;
    } while (stream_.avail_out == 0);
    return true;
  }

 private:
  z_stream stream_{};
  std::array<uint8_t, kPiece> out_;
};

// The strategies of most encoders; zlib's header tells the range of the level.
constexpr std::array<int, 2> kUsual = {Z_FILTERED, Z_DEFAULT_STRATEGY};

// `rows`: bytes of the rows, filtered.
std::vector<Compression> GuessesFrom(std::span<const uint8_t> data, uint64_t rows) {
  std::vector<Compression> guesses;
  const int window = (data[0] >> 4) + 8, speed = data[1] >> 6;
  const auto add = [&](int level, int strategy, int memory, int bits) {
    guesses.push_back({.is_exact = 1,
                       .level = static_cast<uint8_t>(level),
                       .strategy = static_cast<uint8_t>(strategy),
                       .memory_level = static_cast<uint8_t>(memory),
                       .window_bits = static_cast<uint8_t>(bits),
                       .first = {data[0], data[1]}});
  };
  // libpng writes a smaller window than it used if all rows fit in that.
  const bool may_be_smaller = window < MAX_WBITS && rows <= uint64_t{1} << window;
  const auto guess = [&](int level, int strategy) {
    for (const int memory : {8, 9}) {
      add(level, strategy, memory, std::max(window, 9));
      if (may_be_smaller) add(level, strategy, memory, MAX_WBITS);
    }
  };
  constexpr std::array<std::array<int, 2>, 4> kLevels = {{{1, 1}, {2, 5}, {6, 6}, {7, 9}}};
  const auto [least, most] = kLevels[static_cast<size_t>(speed)];
  for (int level = most; level >= least; --level) {
    for (const int strategy : kUsual) guess(level, strategy);
  }
  if (speed == 0) {
    for (const int strategy : {Z_RLE, Z_HUFFMAN_ONLY}) guess(1, strategy);
    for (int level = 9; level >= 1; --level) guess(level, Z_FIXED);
  }
  return guesses;
}

uint64_t BytesOfRows(const png::Header& header) {
  return static_cast<uint64_t>(header.size.height) * (header.RowBytes(header.size.width) + 1);
}

// The compressed data in a file's chunks.
std::vector<uint8_t> DataOf(std::span<const uint8_t> png, const png::Layout& layout,
                            std::vector<ChunkRun>& runs) {
  std::vector<uint8_t> data;
  constexpr size_t kBefore = 8, kAfter = 4;
  for (size_t at = layout.data.begin; at < layout.data.end;) {
    const uint32_t bytes = uint32_t{png[at]} << 24 | uint32_t{png[at + 1]} << 16 |
                           uint32_t{png[at + 2]} << 8 | png[at + 3];
    data.insert(data.end(), png.begin() + static_cast<ptrdiff_t>(at + kBefore),
                png.begin() + static_cast<ptrdiff_t>(at + kBefore + bytes));
    if (runs.empty() || runs.back().bytes != bytes) runs.push_back({.bytes = bytes});
    ++runs.back().count;
    at += kBefore + bytes + kAfter;
  }
  return data;
}

// The rows of a file, decompressed and filtered, piece by piece.
class FileRows {
 public:
  FileRows(std::span<const uint8_t> png, const png::Header& header, const png::Layout& layout)
      : png_(png), layout_(layout), total_(BytesOfRows(header)) {
    Restart();
  }
  void Restart() {
    inflater_->Start(png_, layout_.data, total_);
    left_ = total_;
  }
  bool is_over() const { return left_ == 0; }
  Result<std::span<const uint8_t>> Next(size_t most) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, inflater_->Next(most));
    left_ -= bytes.size();
    return bytes;
  }

 private:
  const std::span<const uint8_t> png_;
  const png::Layout& layout_;
  const uint64_t total_;
  uint64_t left_ = 0;
  std::unique_ptr<Inflater> inflater_ = std::make_unique<Inflater>();
};

// Whether the parameters give the data.
Result<bool> Gives(std::span<const uint8_t> data, const Compression& guess, FileRows& rows) {
  Deflater deflater(guess);
  size_t at = 0;
  const auto compare = [&](std::span<const uint8_t> bytes) {
    const size_t skipped = std::min(bytes.size(), kZlibHeader - std::min(at, kZlibHeader));
    const bool same = bytes.size() <= data.size() - at &&
                      std::equal(bytes.begin() + static_cast<ptrdiff_t>(skipped), bytes.end(),
                                 data.begin() + static_cast<ptrdiff_t>(at + skipped));
    at += bytes.size();
    return same;
  };
  for (rows.Restart(); !rows.is_over();) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> piece, rows.Next(kPiece));
    if (!deflater.Add(piece, rows.is_over(), compare)) return false;
  }
  return at == data.size();
}

Result<std::vector<uint8_t>> FiltersOf(FileRows& rows, const png::Header& header) {
  std::vector<uint8_t> filters;
  rows.Restart();
  for (int y = 0; y < header.size.height; ++y) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> filter, rows.Next(1));
    filters.push_back(filter[0]);
    for (uint64_t left = header.RowBytes(header.size.width); left > 0;) {
      ASSIGN_OR_RETURN(const std::span<const uint8_t> bytes, rows.Next(static_cast<size_t>(left)));
      left -= bytes.size();
    }
  }
  return filters;
}

// Whether decoders take data that begin with these bytes (RFC 1950).
bool IsZlibHeader(std::span<const uint8_t> first) {
  constexpr int kDictionary = 0x20;
  return (first[0] & 15) == Z_DEFLATED && first[0] >> 4 <= MAX_WBITS - 8 &&
         (first[0] * 256 + first[1]) % 31 == 0 && (first[1] & kDictionary) == 0;
}

Error DamagedRecipe() { return {Code::kDataLoss, "its recipe is damaged"}; }

}  // namespace

void Append(const Recipe& recipe, std::vector<uint8_t>& bytes) {
  const auto append = [&](const auto& value) {
    const auto* const from = reinterpret_cast<const uint8_t*>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(value));
  };
  append(recipe.compression);
  bytes.insert(bytes.end(), recipe.filters.begin(), recipe.filters.end());
  for (const ChunkRun& run : recipe.chunks) append(run);
}

Result<Recipe> ReadRecipe(std::span<const uint8_t> bytes, int rows) {
  Recipe recipe;
  const size_t fixed = sizeof(Compression) + static_cast<size_t>(rows);
  if (bytes.size() < fixed || (bytes.size() - fixed) % sizeof(ChunkRun) != 0) {
    return DamagedRecipe();
  }
  std::memcpy(&recipe.compression, bytes.data(), sizeof(Compression));
  const std::span<const uint8_t> filters =
      bytes.subspan(sizeof(Compression), static_cast<size_t>(rows));
  recipe.filters.assign(filters.begin(), filters.end());
  const auto& [is_exact, level, strategy, memory, window, first] = recipe.compression;
  const bool is_sound =
      is_exact <= 1 && level <= 9 && strategy <= Z_FIXED && memory >= 1 &&
      memory <= MAX_MEM_LEVEL && window >= 9 && window <= MAX_WBITS && IsZlibHeader(first) &&
      std::ranges::all_of(recipe.filters, [](uint8_t f) { return f < png::kFilters; });
  if (!is_sound) return DamagedRecipe();
  recipe.chunks.resize((bytes.size() - fixed) / sizeof(ChunkRun));
  if (!recipe.chunks.empty()) {
    std::memcpy(recipe.chunks.data(), bytes.data() + fixed, bytes.size() - fixed);
  }
  return recipe;
}

Result<Recipe> FindRecipe(std::span<const uint8_t> png, const png::Header& header,
                          const png::Layout& layout) {
  Recipe recipe;
  const std::vector<uint8_t> data = DataOf(png, layout, recipe.chunks);
  FileRows rows(png, header, layout);
  ASSIGN_OR_RETURN(recipe.filters, FiltersOf(rows, header));
  const bool has_empty =
      std::ranges::any_of(recipe.chunks, [](ChunkRun r) { return r.bytes == 0; });
  for (const Compression& guess :
       has_empty ? std::vector<Compression>() : GuessesFrom(data, BytesOfRows(header))) {
    ASSIGN_OR_RETURN(const bool gives, Gives(data, guess, rows));
    if (!gives) continue;
    recipe.compression = guess;
    return recipe;
  }
  recipe.chunks.clear();
  return recipe;
}

Result<std::vector<uint8_t>> Compress(const Compression& by, const FilteredRows& next) {
  Deflater deflater(by);
  std::vector<uint8_t> data;
  const auto take = [&data](std::span<const uint8_t> bytes) {
    data.insert(data.end(), bytes.begin(), bytes.end());
    return true;
  };
  while (true) {
    ASSIGN_OR_RETURN(const std::span<const uint8_t> row, next());
    deflater.Add(row, row.empty(), take);
    if (row.empty()) break;
  }
  std::ranges::copy(by.first, data.begin());
  return data;
}

}  // namespace stoker::packed_png
