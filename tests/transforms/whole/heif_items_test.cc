// stoker knows what libheif and libavif will decode before it calls them. The files are made here:
// sound ones, and those that the libraries could understand in another way.
#include "transforms/whole/heif_items.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "transforms/whole/av1_frame.h"
#include "transforms/whole/hevc_picture.h"

namespace stoker::whole {
namespace {

std::string Number(uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Box(const std::string& kind, const std::string& content) {
  return Number(content.size() + 8, 4) + kind + content;
}

struct Item {
  int id;
  std::string kind;
  std::string data;
  std::vector<int> properties = {1, 2};
  int parts = 1;                                   // extents of the same bytes
  std::string information = std::string(1, '\0');  // in iinf: a name, and of metadata their type
};

// A file with an ispe box of width × height, an av1C box, an ispe box of 64 × 64 and an irot box as
// properties.
struct File {
  int width = 100, height = 80;
  int primary = 1;
  std::vector<Item> items = {{1, "av01", "coded"}};
  std::string links;           // boxes in iref
  std::string more_in_meta;    // boxes
  std::string more_after;      // boxes
  uint64_t offset_of_all = 0;  // added to where the data are

  static std::string Ispe(int width, int height) {
    return Box("ispe", Number(0, 4) + Number(static_cast<uint64_t>(width), 4) +
                           Number(static_cast<uint64_t>(height), 4));
  }

  std::string Meta(uint64_t data_at) const {
    std::string infe, iloc, ipma;
    for (const Item& item : items) {
      const std::string id = Number(static_cast<uint64_t>(item.id), 2);
      infe += Box("infe", Number(2 << 24, 4) + id + Number(0, 2) + item.kind + item.information);
      iloc += id + Number(0, 2) + Number(static_cast<uint64_t>(item.parts), 2);
      for (int i = 0; i < item.parts; ++i) {
        iloc += Number(data_at + offset_of_all, 4) + Number(item.data.size(), 4);
      }
      ipma += id + Number(item.properties.size(), 1);
      for (const int index : item.properties) ipma += Number(static_cast<uint64_t>(index), 1);
      data_at += item.data.size();
    }
    const std::string count = Number(items.size(), 2);
    return Box("meta",
               Number(0, 4) +
                   Box("pitm", Number(0, 4) + Number(static_cast<uint64_t>(primary), 2)) +
                   Box("iinf", Number(0, 4) + count + infe) +
                   Box("iloc", Number(0, 4) + Number(0x4400, 2) + count + iloc) +
                   Box("iprp", Box("ipco", Ispe(width, height) + Box("av1C", "setup") +
                                               Ispe(64, 64) + Box("irot", "\1")) +
                                   Box("ipma", Number(0, 4) + Number(items.size(), 4) + ipma)) +
                   (links.empty() ? "" : Box("iref", Number(0, 4) + links)) + more_in_meta);
  }

  std::vector<uint8_t> Bytes() const {
    const std::string ftyp = Box("ftyp", "avif" + Number(0, 4) + "avifmif1");
    std::string data;
    for (const Item& item : items) data += item.data;
    const std::string file =
        ftyp + Meta(ftyp.size() + Meta(0).size() + 8) + Box("mdat", data) + more_after;
    return {file.begin(), file.end()};
  }
};

std::string Link(const std::string& kind, int from, const std::vector<int>& to) {
  std::string content = Number(static_cast<uint64_t>(from), 2) + Number(to.size(), 2);
  for (const int id : to) content += Number(static_cast<uint64_t>(id), 2);
  return Box(kind, content);
}

std::string Grid(int rows, int columns, int width, int height) {
  return Number(0, 2) + Number(static_cast<uint64_t>(rows - 1), 1) +
         Number(static_cast<uint64_t>(columns - 1), 1) + Number(static_cast<uint64_t>(width), 2) +
         Number(static_cast<uint64_t>(height), 2);
}

std::string Cause(const File& file) {
  const std::vector<uint8_t> bytes = file.Bytes();
  const Result<HeifItems> items = ReadHeifItems(ImageFormat::kAvif, bytes);
  return items.ok() ? "" : items.error().cause;
}

File TwoTiles() {
  File file;
  file.items = {{1, "grid", Grid(1, 2, 100, 80), {1}},
                {2, "av01", "left", {2, 3}},
                {3, "av01", "right", {2, 3}}};
  file.links = Link("dimg", 1, {2, 3});
  return file;
}

TEST(HeifItems, AnImage) {
  const std::vector<uint8_t> bytes = File().Bytes();
  const HeifItems items = ReadHeifItems(ImageFormat::kAvif, bytes).value();
  EXPECT_EQ(items.size, (ImageSize{100, 80}));
  ASSERT_EQ(items.coded.size(), 1u);
  EXPECT_EQ(items.coded[0].size, items.size);
  EXPECT_EQ(std::string(items.coded[0].setup.begin(), items.coded[0].setup.end()), "setup");
  EXPECT_EQ(std::string(items.coded[0].data.begin(), items.coded[0].data.end()), "coded");
}

TEST(HeifItems, TilesAndAlpha) {
  File file = TwoTiles();
  file.items.push_back({7, "av01", "alpha"});
  file.items.push_back({8, "av01", "a thumbnail"});
  file.links += Link("auxl", 7, {1}) + Link("thmb", 8, {1});
  const std::vector<uint8_t> bytes = file.Bytes();
  const HeifItems items = ReadHeifItems(ImageFormat::kAvif, bytes).value();
  EXPECT_EQ(items.size, (ImageSize{100, 80}));
  ASSERT_EQ(items.coded.size(), 3u);
  EXPECT_EQ(items.coded[0].size, (ImageSize{64, 64}));
  EXPECT_EQ(items.coded[2].size, (ImageSize{100, 80}));
}

TEST(HeifItems, RefusesWhatTheLibrariesMayReadInAnotherWay) {
  File file;
  file.more_after = file.Meta(0);
  EXPECT_EQ(Cause(file), "an AVIF with several meta boxes is not decoded");
  file = {};
  file.more_in_meta = Box("iloc", Number(0, 8));
  EXPECT_EQ(Cause(file), "an AVIF with several iloc boxes is not decoded");
  file = {};
  file.items[0].properties = {1, 2, 3};
  EXPECT_EQ(Cause(file), "an AVIF with several ispe boxes is not decoded");
  file = {};
  file.items.push_back(file.items[0]);
  EXPECT_EQ(Cause(file), "damaged AVIF: two items of one number");
  file = {};
  file.items[0].kind = "hvc1";
  EXPECT_EQ(Cause(file), "an AVIF with an image that another codec coded is not decoded");
  file = {};
  file.items[0].kind = "iovl";
  file.links = Link("dimg", 1, {2});
  EXPECT_EQ(Cause(file), "an AVIF with an image that is derived from others is not decoded");
  file = {};
  file.items[0].parts = 2;
  file.more_after = std::string(10, '\0');
  EXPECT_EQ(Cause(file), "an AVIF with an image that is not in one piece is not decoded");
  file = {};
  file.items[0].properties = {1, 2, 4, 4};  // each turns all pixels
  EXPECT_EQ(Cause(file), "an AVIF with several irot boxes is not decoded");
  file = {};
  file.more_after = Box("moov", Box("meta", ""));
  EXPECT_EQ(Cause(file), "an AVIF with a meta box in its moov box is not decoded");
}

TEST(HeifItems, RefusesBombs) {
  File file;
  file.items.push_back({2, "Exif", std::string(2000, 'x'), {}});
  EXPECT_EQ(Cause(file), "");
  file.items[1].parts = 100;  // which libheif copies
  EXPECT_EQ(Cause(file), "truncated AVIF");
  file.items[1].parts = 1;
  for (int id = 3; id < 100; ++id) file.items.push_back({id, "Exif", "", {}});
  for (Item& item : file.items) item.data = std::string(1000, 'x');
  EXPECT_EQ(Cause(file), "");
  file = {};
  const std::string type("\0application/rdf+xml\0", 21);
  file.items.push_back({2, "mime", "x", {}, 1, type});
  EXPECT_EQ(Cause(file), "");
  file.items[1].information += "deflate";
  EXPECT_EQ(Cause(file), "an AVIF with compressed metadata is not decoded");
  file = {};
  file.offset_of_all = 1 << 30;
  EXPECT_EQ(Cause(file), "truncated AVIF");
  file = {};
  for (int id = 2; id < 3000; ++id) file.items.push_back({id, "Exif", "", {}});
  EXPECT_EQ(Cause(file), "an AVIF with more items than usual is not decoded");
  file = {};
  for (int i = 0; i < 5000; ++i) file.more_in_meta += Box("free", "");
  EXPECT_EQ(Cause(file), "an AVIF with more boxes than usual is not decoded");
  file = {};
  file.more_in_meta = Box("free", std::string(5 << 20, 'x'));
  EXPECT_EQ(Cause(file), "an AVIF with more bytes in its meta box than usual is not decoded");

  file = TwoTiles();  // 1,000 tiles that are one item
  file.items[0].data = Grid(25, 40, 100, 80);
  file.links = Link("dimg", 1, std::vector<int>(1000, 2));
  EXPECT_EQ(Cause(file), "damaged AVIF: tiles outside of its grid");
  file = TwoTiles();
  file.items[0].data = Grid(1, 2, 200, 80);
  EXPECT_EQ(Cause(file), "damaged AVIF: its grid");
  file = TwoTiles();
  file.links = Link("dimg", 1, {2});
  EXPECT_EQ(Cause(file), "damaged AVIF: its grid");
  file = TwoTiles();
  file.width = 16, file.height = 16;
  file.items[0].data = Grid(1, 1, 16, 16);
  file.items[1].properties = {2, 4};
  file.links = Link("dimg", 1, {2});
  EXPECT_EQ(Cause(file), "damaged AVIF: an image without a size");
}

TEST(HeifItems, RefusesPartsThatAreFarLargerThanTheImage) {
  File file;
  file.items.push_back({2, "av01", "alpha", {2, 3}});
  file.links = Link("auxl", 2, {1});
  EXPECT_EQ(Cause(file), "");
  file.width = 2000;  // of the alpha channel
  file.items[0].properties = {2, 3}, file.items[1].properties = {1, 2};
  EXPECT_EQ(Cause(file), "an AVIF with a part that is larger than the whole is not decoded");
}

TEST(HeifItems, SurvivesEveryCut) {
  const std::vector<uint8_t> bytes = File().Bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadHeifItems(ImageFormat::kAvif, std::span(bytes).first(size)).ok()) << size;
  }
}

class Bits {
 public:
  Bits& Put(uint64_t value, int count) {
    for (int i = count - 1; i >= 0; --i, ++count_) {
      if (count_ % 8 == 0) bytes_.push_back(0);
      bytes_.back() |= static_cast<uint8_t>((value >> i & 1) << (7 - count_ % 8));
    }
    return *this;
  }
  Bits& Code(uint64_t value) {  // Exp-Golomb
    int length = 0;
    while ((value + 1) >> (length + 1) != 0) ++length;
    return Put(value + 1, 2 * length + 1);
  }
  // The bytes, with emulation prevention.
  std::string Bytes() const {
    std::string text;
    int zeros = 0;
    for (const uint8_t byte : bytes_) {
      if (zeros >= 2 && byte <= 3) text += '\3', zeros = 0;
      zeros = byte == 0 ? zeros + 1 : 0;
      text += static_cast<char>(byte);
    }
    return text;
  }

 private:
  std::vector<uint8_t> bytes_;
  int count_ = 0;
};

// A sequence parameter set, with profiles of `layers` more temporal layers.
std::string Parameters(uint64_t width, uint64_t height, int layers = 0) {
  Bits bits;
  bits.Put(33 << 9 | 1, 16).Put(0, 4).Put(static_cast<uint64_t>(layers), 3).Put(1, 1);
  bits.Put(0, 48).Put(0, 48);
  if (layers > 0) {
    for (int i = 0; i < 8; ++i) bits.Put(i < layers ? 3 : 0, 2);
    for (int i = 0; i < layers; ++i) bits.Put(0, 48).Put(0, 48);
  }
  return bits.Code(0).Code(1).Code(width).Code(height).Put(0xFFFF, 16).Bytes();
}

std::string Check(const std::vector<std::string>& setup_units,
                  const std::vector<std::string>& data_units, ImageSize size) {
  std::string setup = std::string(21, '\0') + "\xFF" + Number(1, 1) + "\x21";
  setup += Number(setup_units.size(), 2);
  for (const std::string& unit : setup_units) setup += Number(unit.size(), 2) + unit;
  std::string data;
  for (const std::string& unit : data_units) data += Number(unit.size(), 4) + unit;
  const std::vector<uint8_t> a(setup.begin(), setup.end()), b(data.begin(), data.end());
  const Status status = CheckHevcPicture(a, b, size);
  return status.ok() ? "" : status.error().cause;
}

constexpr const char* kLarger = "damaged HEIC: its pictures are larger than its header says";

TEST(HevcPicture, FindsTheSizeInTheSetupAndInTheData) {
  for (const int layers : {0, 1, 6}) {
    const std::string parameters = Parameters(4032, 3024, layers);
    EXPECT_EQ(Check({parameters}, {}, {4032, 3024}), "");
    EXPECT_EQ(Check({parameters}, {}, {3969, 3009}), "");  // rounded up to 64
    EXPECT_EQ(Check({parameters}, {}, {3968, 3024}), kLarger);
    EXPECT_EQ(Check({parameters}, {}, {4032, 3008}), kLarger);
    EXPECT_EQ(Check({Parameters(16, 16)}, {parameters}, {16, 16}), kLarger);
    EXPECT_EQ(Check({Parameters(16, 16), parameters}, {}, {16, 16}), kLarger);
  }
  EXPECT_EQ(Check({Parameters(1 << 16, 65535)}, {}, {16, 16}), kLarger);  // zeros: prevented
}

TEST(HevcPicture, RefusesWhatItCannotRead) {
  const std::string parameters = Parameters(64, 64);
  EXPECT_EQ(Check({parameters.substr(0, 16)}, {}, {64, 64}),
            "damaged HEIC: its sequence parameters");
  EXPECT_EQ(Check({std::string("\x42\x01") + std::string(40, '\0')}, {}, {64, 64}),
            "damaged HEIC: its sequence parameters");
  EXPECT_EQ(Check({parameters}, {"x"}, {64, 64}), "damaged HEIC: an empty NAL unit");
  EXPECT_EQ(CheckHevcPicture({}, {}, {64, 64}).error().cause, "damaged HEIC: its hvcC box");
  const std::array<uint8_t, 5> data = {0, 0, 0, 9, 1};
  const std::vector<uint8_t> setup(23, 0xFF);
  EXPECT_FALSE(CheckHevcPicture(setup, data, {64, 64}).ok());
}

// libde265 decodes a picture again for each slice, and allocates pictures that others refer to.
TEST(HevcPicture, RefusesMoreThanAPictureThatStandsAlone) {
  using Units = std::vector<std::string>;
  const std::string parameters = Parameters(64, 64), picture = "\x26\x01\x80",
                    slice = "\x26\x01\x10", info = "\x4E\x01\x05";
  const std::string set = "\x44\x01\xC0";
  const auto check = [&](const Units& setup, const Units& data) {
    return Check(setup, data, {64, 64});
  };
  const auto more = [](const std::string& what) {
    return "a HEIC with more " + what + " in an item than usual is not decoded";
  };
  const auto refused = [](int type) {
    return "a HEIC with NAL units of type " + std::to_string(type) + " is not decoded";
  };
  const Units canon = {parameters, set, picture, slice, "\x4C\x01\x80"};
  EXPECT_EQ(check({parameters, set}, canon), "");
  EXPECT_EQ(check({parameters}, {info, "\x28\x01\x80", slice, slice, slice}), "");
  EXPECT_EQ(check({parameters}, {picture, picture}), more("pictures"));
  EXPECT_EQ(check({parameters, picture}, {picture}), more("pictures"));
  EXPECT_EQ(check({parameters}, {picture, slice, slice, slice, slice}), more("slices"));
  EXPECT_EQ(check({parameters, parameters}, {picture, parameters}), more("parameter sets"));
  EXPECT_EQ(check({parameters}, {set, set, picture, set}), more("parameter sets"));
  EXPECT_EQ(check({parameters}, Units(64, info)), more("NAL units"));
  EXPECT_EQ(check({parameters}, {"\x26\x09\x80"}), more("layers"));
  EXPECT_EQ(check({parameters}, {"\x27\x01\x80"}), more("layers"));
  // Pictures that refer to others, and one whose first slice emulation prevention would hide.
  EXPECT_EQ(check({parameters}, {"\x02\x01\x80"}), refused(1));
  EXPECT_EQ(check({parameters}, {"\x2A\x01\x80"}), refused(21));
  EXPECT_EQ(check({parameters}, {std::string("\0\1\3\x80", 4)}), refused(0));
}

std::vector<uint8_t> Read(const std::string& name) {
  std::ifstream file(std::string(STOKER_WHOLE_IMAGES "/") + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Streams of avifenc, libaom and SVT-AV1, with and without a reduced header.
TEST(Av1Frame, ReadsTheHeadersOfEncoders) {
  struct Known {
    const char* name;
    uint64_t half_bytes;
  };
  for (const Known& known : {Known{"L.avif", 2},
                             {"RGB.avif", 3},
                             {"deep.avif", 8},
                             {"full.avif", 12},
                             {"frames.avif", 3}}) {
    const std::vector<uint8_t> bytes = Read(known.name);
    const HeifItems items = ReadHeifItems(ImageFormat::kAvif, bytes).value();
    ASSERT_EQ(items.coded.size(), 1u);
    const Av1Frame frame = ReadAv1Frame(items.coded[0].data).value();
    EXPECT_EQ(frame.most_side, 32u) << known.name;
    EXPECT_EQ(frame.half_bytes, known.half_bytes) << known.name;
  }
}

using Obu = std::vector<uint8_t>;

// The OBUs of a file's image, which have sizes.
std::vector<Obu> ObusOf(const std::string& name) {
  const std::vector<uint8_t> bytes = Read(name);
  auto data = ReadHeifItems(ImageFormat::kAvif, bytes).value().coded.at(0).data;
  std::vector<Obu> obus;
  while (!data.empty()) {
    size_t size = data[1] & 127U, header = 2;
    if (data[1] >= 128) size |= size_t{data[2]} << 7, ++header;
    obus.emplace_back(data.begin(), data.begin() + static_cast<ptrdiff_t>(header + size));
    data = data.subspan(header + size);
  }
  return obus;
}

Result<Av1Frame> FrameOf(const std::vector<Obu>& obus) {
  std::vector<uint8_t> data;
  for (const Obu& obu : obus) data.insert(data.end(), obu.begin(), obu.end());
  return ReadAv1Frame(data);
}

TEST(Av1Frame, TakesOneFrameAndTheLargestSequence) {
  const std::vector<Obu> obus = ObusOf("RGB.avif"), deep = ObusOf("deep.avif");
  const Obu frame = obus.back(), sequence = obus[obus.size() - 2], of_deep = deep[deep.size() - 2];
  ASSERT_EQ(frame[0] >> 3, 6);
  ASSERT_EQ(of_deep[0] >> 3, 1);
  EXPECT_EQ(FrameOf({sequence, of_deep, sequence, frame})->half_bytes, 8u);
  EXPECT_EQ(FrameOf({sequence, frame, frame}).error().cause,
            "an AVIF with several frames in an item is not decoded");
  for (const int type : {0, 3, 4, 7, 8, 9}) {  // headers and tiles of frames, and unknown ones
    Obu other = frame;
    other[0] = static_cast<uint8_t>(type << 3 | 2);
    EXPECT_EQ(FrameOf({sequence, other, frame}).error().cause,
              "an AVIF with OBUs of type " + std::to_string(type) + " is not decoded");
  }
  EXPECT_EQ(ReadAv1Frame({}).error().cause, "damaged AVIF: no sequence header");
  EXPECT_EQ(ReadAv1Frame(std::span(frame).first(frame.size() - 1)).error().cause,
            "damaged AVIF: the size of an OBU");
}

}  // namespace
}  // namespace stoker::whole
