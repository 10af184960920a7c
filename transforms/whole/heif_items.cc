#include "transforms/whole/heif_items.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/result/try.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

using Bytes = std::span<const uint8_t>;

// Limits of what the libraries keep in lists that they search item by item.
constexpr size_t kMostBoxes = 4096, kMostItems = 2048, kMostLinks = 8192, kMostMetaBytes = 4 << 20,
                 kMostMovieBytes = 1 << 20;

// Numbers, the highest byte first. After the end there are zeros.
class Reader {
 public:
  explicit Reader(Bytes bytes) : left_(bytes) {}

  uint64_t Take(size_t count) {
    uint64_t value = 0;
    for (const uint8_t byte : TakeBytes(count)) value = value << 8 | byte;
    return value;
  }
  Bytes TakeBytes(size_t count) {
    failed_ = failed_ || count > left_.size();
    if (failed_) return {};
    const Bytes taken = left_.first(count);
    left_ = left_.subspan(count);
    return taken;
  }
  Bytes left() const { return left_; }
  bool failed() const { return failed_; }

 private:
  Bytes left_;
  bool failed_ = false;
};

// Two numbers of that many bytes. Larger ones than the limit of a side become one above it.
ImageSize TakeSize(Reader& reader, size_t bytes) {
  constexpr uint64_t kMost = kMaxSidePixels + 1;
  const auto width = static_cast<int>(std::min(reader.Take(bytes), kMost));
  return {width, static_cast<int>(std::min(reader.Take(bytes), kMost))};
}

struct Box {
  std::string_view kind;
  Bytes content;
};

struct Item {
  std::string_view kind;
  uint64_t method = 0;  // 0: the data are in the file, 1: in the idat box
  std::vector<std::pair<uint64_t, uint64_t>> extents;  // offsets and lengths
  std::vector<uint64_t> properties;                    // from 1
};

struct Link {
  std::string_view kind;
  uint64_t from, to;
};

struct Grid {
  int rows, columns;
  ImageSize size;

  // Whether all tiles of that size are needed.
  bool Needs(const ImageSize& tile) const {
    return int64_t{columns - 1} * tile.width < size.width &&
           int64_t{rows - 1} * tile.height < size.height;
  }
};

class Parser {
 public:
  Parser(ImageFormat format, Bytes file) : format_(format), file_(file) {}

  Result<HeifItems> Parse() {
    ASSIGN_OR_RETURN(const std::vector<Box> top, Boxes(file_));
    for (const Box& box : top) {
      if (box.kind != "mdat") boxes_ += box.content.size();
      if (box.kind != "moov") continue;
      TRY(CheckMovie(box.content));
      several_frames_ = several_frames_ || HasSeveralFrames(box.content);
    }
    ASSIGN_OR_RETURN(const Bytes meta, Only(top, "meta"));
    if (meta.size() > kMostMetaBytes) return More("bytes in its meta box");
    if (meta.size() < 4) return Wrong("its meta box");
    ASSIGN_OR_RETURN(const std::vector<Box> boxes, Boxes(meta.subspan(4)));
    TRY(ReadTypes(boxes));
    TRY(ReadLocations(boxes));
    TRY(ReadProperties(boxes));
    TRY(ReadLinks(boxes));
    ASSIGN_OR_RETURN(const Bytes pitm, Only(boxes, "pitm"));
    Reader reader(pitm);
    const uint64_t version = reader.Take(4) >> 24;
    const uint64_t primary = reader.Take(version == 0 ? 2 : 4);
    if (reader.failed()) return Wrong("its pitm box");
    return Collect(primary);
  }

 private:
  Error Wrong(const std::string& what) const { return Damaged(format_, what); }
  Error More(const std::string& what) const {
    return Unsupported(format_, "more " + what + " than usual");
  }

  Result<std::vector<Box>> Boxes(Bytes bytes) const {
    std::vector<Box> boxes;
    constexpr size_t kHeader = 8;
    while (bytes.size() >= kHeader) {
      Reader reader(bytes);
      uint64_t length = reader.Take(4);
      const Bytes kind = reader.TakeBytes(4);
      if (length == 1) length = reader.Take(8);
      if (length == 0) length = bytes.size();
      const size_t header = bytes.size() - reader.left().size();
      if (reader.failed() || length > bytes.size()) return Truncated(format_, file_.size());
      if (length < header) return Wrong("the length of a box");
      if (boxes.size() == kMostBoxes) return More("boxes");
      boxes.push_back({{reinterpret_cast<const char*>(kind.data()), kind.size()},
                       bytes.subspan(header, length - header)});
      bytes = bytes.subspan(length);
    }
    return boxes;
  }

  // The content of the only box of the kind: of several, one library takes the first, another the
  // last.
  Result<Bytes> Only(const std::vector<Box>& boxes, std::string_view kind) const {
    const auto is = [&](const Box& box) { return box.kind == kind; };
    const auto count = std::count_if(boxes.begin(), boxes.end(), is);
    const std::string name(kind);
    if (count == 0) return Wrong("it has no " + name + " box");
    if (count > 1) return Unsupported(format_, "several " + name + " boxes");
    return std::find_if(boxes.begin(), boxes.end(), is)->content;
  }

  // An animation, of which libavif makes tables.
  Status CheckMovie(Bytes movie) const {
    if (movie.size() > kMostMovieBytes) return More("bytes in its moov box");
    const std::string_view text(reinterpret_cast<const char*>(movie.data()), movie.size());
    if (text.find("meta") == std::string_view::npos) return {};
    return Unsupported(format_, "a meta box in its moov box");
  }

  // A box stsz has the number of a track's frames, after its version and the size of all frames.
  static bool HasSeveralFrames(Bytes movie) {
    const std::string_view text(reinterpret_cast<const char*>(movie.data()), movie.size());
    const size_t at = text.find("stsz");
    if (at == std::string_view::npos) return false;
    Reader reader(movie.subspan(at + 4));
    (void)reader.Take(8);
    return reader.Take(4) > 1;
  }

  Status ReadTypes(const std::vector<Box>& boxes) {
    ASSIGN_OR_RETURN(const Bytes iinf, Only(boxes, "iinf"));
    Reader reader(iinf);
    (void)reader.Take(reader.Take(4) >> 24 == 0 ? 2 : 4);  // the number of entries
    ASSIGN_OR_RETURN(const std::vector<Box> entries, Boxes(reader.left()));
    if (entries.size() > kMostItems) return More("items");
    for (const Box& entry : entries) {
      Reader info(entry.content);
      const uint64_t version = info.Take(4) >> 24;
      const uint64_t id = info.Take(version == 2 ? 2 : 4);
      (void)info.Take(2);  // protection
      const Bytes kind = info.TakeBytes(4);
      if (entry.kind != "infe" || version < 2 || info.failed()) return Wrong("its iinf box");
      Item item;
      item.kind = {reinterpret_cast<const char*>(kind.data()), kind.size()};
      if (item.kind == "mime" && IsCompressed(info.left())) {
        return Unsupported(format_, "compressed metadata");
      }
      if (!items_.emplace(id, item).second) return Wrong("two items of one number");
    }
    return {};
  }

  // Whether a name and a content type are followed by an encoding, which libheif would undo.
  static bool IsCompressed(Bytes strings) {
    const std::string_view text(reinterpret_cast<const char*>(strings.data()), strings.size());
    const size_t type = text.find('\0') + 1, encoding = text.find('\0', type);
    return encoding != text.npos && text.find_first_not_of('\0', encoding) != text.npos;
  }

  // The libraries copy the metadata of all items, also those of images that are not decoded.
  Status ReadLocations(const std::vector<Box>& boxes) {
    ASSIGN_OR_RETURN(const Bytes iloc, Only(boxes, "iloc"));
    Reader reader(iloc);
    const uint64_t version = reader.Take(4) >> 24, sizes = reader.Take(2);
    const size_t offset_size = sizes >> 12 & 15, length_size = sizes >> 8 & 15,
                 base_size = sizes >> 4 & 15, index_size = version == 0 ? 0 : sizes & 15;
    for (const size_t size : {offset_size, length_size, base_size, index_size}) {
      if (version > 2 || (size != 0 && size != 4 && size != 8)) return Wrong("its iloc box");
    }
    const uint64_t count = reader.Take(version < 2 ? 2 : 4);
    if (count > kMostItems) return More("items");
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t id = reader.Take(version < 2 ? 2 : 4);
      Item& item = items_[id];
      item.method = version == 0 ? 0 : reader.Take(2) & 15;
      (void)reader.Take(2);  // of which file
      const uint64_t base = reader.Take(base_size), extents = reader.Take(2);
      if (!item.extents.empty()) return Wrong("an item that is in two places");
      for (uint64_t extent = 0; extent < extents && !reader.failed(); ++extent) {
        if (++links_ > kMostLinks) return More("parts of its items");
        (void)reader.Take(index_size);
        const uint64_t offset = reader.Take(offset_size), length = reader.Take(length_size);
        if (length == 0) return Wrong("an item without data");
        if (length > file_.size() - sum) return Truncated(format_, file_.size());
        sum += length;
        item.extents.emplace_back(base + offset, length);
      }
    }
    if (reader.failed()) return Wrong("its iloc box");
    const auto is_idat = [](const Box& box) { return box.kind == "idat"; };
    if (std::any_of(boxes.begin(), boxes.end(), is_idat)) {
      ASSIGN_OR_RETURN(idat_, Only(boxes, "idat"));
    }
    return {};
  }

  Status ReadProperties(const std::vector<Box>& boxes) {
    ASSIGN_OR_RETURN(const Bytes iprp, Only(boxes, "iprp"));
    ASSIGN_OR_RETURN(const std::vector<Box> inner, Boxes(iprp));
    ASSIGN_OR_RETURN(const Bytes ipco, Only(inner, "ipco"));
    ASSIGN_OR_RETURN(properties_, Boxes(ipco));
    ASSIGN_OR_RETURN(const Bytes ipma, Only(inner, "ipma"));
    Reader reader(ipma);
    const uint64_t head = reader.Take(4), count = reader.Take(4);
    const size_t size = (head & 1) != 0 ? 2 : 1;
    if (count > kMostItems) return More("items");
    for (uint64_t i = 0; i < count && !reader.failed(); ++i) {
      Item& item = items_[reader.Take(head >> 24 == 0 ? 2 : 4)];
      if (!item.properties.empty()) return Wrong("an item with two lists of properties");
      for (uint64_t left = reader.Take(1); left > 0; --left) {
        if (++links_ > kMostLinks) return More("properties of its items");
        item.properties.push_back(reader.Take(size) & ((uint64_t{1} << (8 * size - 1)) - 1));
      }
    }
    return reader.failed() ? Status(Wrong("its ipma box")) : Status();
  }

  Status ReadLinks(const std::vector<Box>& boxes) {
    const auto is_iref = [](const Box& box) { return box.kind == "iref"; };
    if (std::none_of(boxes.begin(), boxes.end(), is_iref)) return {};
    ASSIGN_OR_RETURN(const Bytes iref, Only(boxes, "iref"));
    Reader reader(iref);
    const size_t size = reader.Take(4) >> 24 == 0 ? 2 : 4;
    ASSIGN_OR_RETURN(const std::vector<Box> links, Boxes(reader.left()));
    for (const Box& box : links) {
      Reader link(box.content);
      const uint64_t from = link.Take(size);
      for (uint64_t left = link.Take(2); left > 0; --left) {
        if (++links_ > kMostLinks) return More("links between its items");
        graph_.push_back({box.kind, from, link.Take(size)});
      }
      if (link.failed()) return Wrong("its iref box");
    }
    return {};
  }

  // The content of the item's box of that kind, empty if it has none.
  Result<Bytes> Property(const Item& item, std::string_view kind) const {
    std::vector<Box> found;
    for (const uint64_t index : item.properties) {
      if (index == 0 || index > properties_.size()) continue;
      if (const Box& box = properties_[index - 1]; box.kind == kind) found.push_back(box);
    }
    if (found.empty()) return Bytes();
    return Only(found, kind);
  }

  Result<ImageSize> SizeOf(const Item& item) const {
    ASSIGN_OR_RETURN(const Bytes ispe, Property(item, "ispe"));
    Reader reader(ispe);
    (void)reader.Take(4);
    const ImageSize size = TakeSize(reader, 4);
    if (size.width == 0 || size.height == 0) return Wrong("an image without a size");
    return size;
  }

  Result<Bytes> DataOf(const Item& item) const {
    if (item.method > 1) return Unsupported(format_, "data in another item");
    if (item.extents.size() != 1) return Unsupported(format_, "an image that is not in one piece");
    const auto [offset, length] = item.extents[0];
    const Bytes whole = item.method == 0 ? file_ : idat_;
    if (offset > whole.size() || length > whole.size() - offset) {
      return Truncated(format_, file_.size());
    }
    return whole.subspan(offset, length);
  }

  Result<Grid> GridOf(const Item& item) const {
    ASSIGN_OR_RETURN(const Bytes data, DataOf(item));
    Reader reader(data);
    const size_t side = (reader.Take(2) & 1) != 0 ? 4 : 2;
    Grid grid;
    grid.rows = static_cast<int>(reader.Take(1)) + 1;
    grid.columns = static_cast<int>(reader.Take(1)) + 1;
    grid.size = TakeSize(reader, side);
    if (reader.failed()) return Wrong("its grid");
    return grid;
  }

  // The items that `id` is made of: the tiles of a grid, and alpha channels.
  std::vector<uint64_t> Linked(uint64_t id, std::string_view kind) const {
    std::vector<uint64_t> linked;
    for (const Link& link : graph_) {
      if (link.kind != kind) continue;
      if (kind == "dimg" && link.from == id) linked.push_back(link.to);
      if (kind == "auxl" && link.to == id) linked.push_back(link.from);
    }
    return linked;
  }

  Status CheckGrid(const Item& item, const std::vector<uint64_t>& tiles) {
    ASSIGN_OR_RETURN(const Grid grid, GridOf(item));
    ASSIGN_OR_RETURN(const ImageSize size, SizeOf(item));
    if (grid.size != size || tiles.size() != static_cast<size_t>(grid.rows * grid.columns)) {
      return Wrong("its grid");
    }
    for (const uint64_t tile : tiles) {
      ASSIGN_OR_RETURN(const ImageSize tile_size, SizeOf(items_[tile]));
      if (!grid.Needs(tile_size)) return Wrong("tiles outside of its grid");
      if (items_[tile].kind == "grid") return Unsupported(format_, "grids of grids");
    }
    return {};
  }

  // All coded images that `primary` is made of.
  Result<HeifItems> Collect(uint64_t primary) {
    HeifItems result;
    ASSIGN_OR_RETURN(result.size, SizeOf(items_[primary]));
    result.boxes = boxes_;
    result.several_frames = several_frames_;
    std::vector<uint64_t> wanted{primary};
    std::set<uint64_t> known{primary};
    for (size_t i = 0; i < wanted.size(); ++i) {  // `wanted` grows
      const uint64_t id = wanted[i];
      for (const char* const turn : {"clap", "imir", "irot"}) TRY(Property(items_[id], turn));
      const std::vector<uint64_t> tiles = Linked(id, "dimg");
      for (const auto& others : {tiles, Linked(id, "auxl")}) {
        for (const uint64_t other : others) {
          if (known.insert(other).second) wanted.push_back(other);
        }
      }
      if (items_[id].kind == "grid") {
        TRY(CheckGrid(items_[id], tiles));
      } else if (tiles.empty()) {
        TRY(AddCoded(items_[id], result));
      } else {
        return Unsupported(format_, "an image that is derived from others");
      }
    }
    return result;
  }

  Status AddCoded(const Item& item, HeifItems& result) const {
    ASSIGN_OR_RETURN(const ImageSize size, SizeOf(item));
    const bool hevc = format_ == ImageFormat::kHeic;
    if (item.kind != (hevc ? "hvc1" : "av01")) {
      return Unsupported(format_, "an image that another codec coded");
    }
    ASSIGN_OR_RETURN(const Bytes setup, Property(item, hevc ? "hvcC" : "av1C"));
    // Tiles may be larger than the image, but not by much: by a block, or of a small one.
    constexpr int kSmall = 1024, kBlock = 64;
    if (size.width > std::max(result.size.width + kBlock, kSmall) ||
        size.height > std::max(result.size.height + kBlock, kSmall)) {
      return Unsupported(format_, "a part that is larger than the whole");
    }
    ASSIGN_OR_RETURN(const Bytes data, DataOf(item));
    result.coded.push_back({size, setup, data});
    return {};
  }

  const ImageFormat format_;
  const Bytes file_;
  Bytes idat_;
  uint64_t boxes_ = 0, links_ = 0;
  bool several_frames_ = false;
  std::map<uint64_t, Item> items_;
  std::vector<Box> properties_;
  std::vector<Link> graph_;
};

}  // namespace

Result<HeifItems> ReadHeifItems(ImageFormat format, std::span<const uint8_t> bytes) {
  return Parser(format, bytes).Parse();
}

}  // namespace stoker::whole
