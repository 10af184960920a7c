// decode_bench DIR [ROUNDS [NAME]]: what decoding costs, phase by phase and as a whole, ours and
// libjpeg-turbo's, on the photographs of a directory; file bytes are in memory.
//
// Every round measures each thing once, on all photographs, one after the other: what disturbs the
// machine disturbs all alike. Printed are medians of CPU microseconds a photograph, and the ratio
// to libjpeg-turbo, or of the types and layouts to bytes of NHWC, within a round with its smallest
// and largest value. With NAME only what has it in its name is run (for a profiler).
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define HWY_WANT_AVX3_DL 1  // as the library is built
#include <hwy/targets.h>

#include "bench/decode_phases.h"
#include "engine/core/buffer.h"
#include "transforms/draw.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/crop_index_maker.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/reference_decoder.h"
#include "transforms/resize/resampler.h"

namespace stoker {
namespace {

constexpr ImageSize kOutput{224, 224};
constexpr std::array<int, 3> kIntervals = {4, 8, 16};  // MCUs between the places of a crop index

struct Photo {
  std::vector<uint8_t> padded;
  jpeg::FrameHeader header;
  Fallback why = Fallback::kNone;
  ImageSize size;
  Rect box;                                                   // what RandomResizedCrop draws
  std::array<std::vector<uint8_t>, kIntervals.size()> index;  // empty where there can be none

  std::span<const uint8_t> bytes() const {
    return std::span(padded).first(padded.size() - kBufferPadding);
  }
  // Entropy-coded data without restart markers: what the phases are measured on.
  bool plain() const { return why == Fallback::kNone && header.restart_interval == 0; }
};

void MakeIndexes(std::vector<Photo>& photos) {
  uint64_t bytes = 0;
  for (const Photo& photo : photos) bytes += photo.bytes().size();
  for (size_t i = 0; i < kIntervals.size(); ++i) {
    jpeg::CropIndexMaker maker(kIntervals[i]);
    uint64_t index_bytes = 0;
    for (Photo& photo : photos) {
      if (maker.Make(photo.bytes(), photo.index[i]) != Fallback::kNone) photo.index[i].clear();
      index_bytes += photo.index[i].size();
    }
    const auto total = static_cast<double>(index_bytes);
    std::printf("crop index every %2d MCUs: %.0f bytes a photograph, %.2f %% of the files\n",
                kIntervals[i], total / static_cast<double>(photos.size()),
                100 * total / static_cast<double>(bytes));
  }
}

std::vector<Photo> ReadPhotos(const char* folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Photo> photos;
  JpegDecoder decoder;
  for (const auto& path : paths) {
    Photo photo;
    std::ifstream stream(path, std::ios::binary);
    photo.padded.assign(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
    photo.padded.resize(photo.padded.size() + kBufferPadding);
    const Result<ImageInfo> info = decoder.Open(photo.bytes());
    if (!info.ok()) continue;
    photo.size = info->size;
    RandomStream random({1, 0, photos.size()}, 0);
    photo.box = DrawResizedBox({224, 224}, photo.size, random);
    photos.push_back(std::move(photo));
    Photo& kept = photos.back();
    kept.why = jpeg::ParseHeader(kept.bytes(), kept.header);
  }
  return photos;
}

// Rows that nobody wants.
class Discard : public RowSink {
 public:
  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    const auto bytes = static_cast<size_t>(region.covered.width * BytesPerPixel(region.layout));
    stride_ = bytes + kBufferPadding;
    rows_.resize(16 * 3 * stride_);
    return {};
  }
  MutableImageView Reserve(int rows) override {
    MutableImageView view;
    view.layout = region_.layout;
    view.size = {region_.covered.width, std::min(rows, 16)};
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(region_.layout)); ++p) {
      view.plane[p] = rows_.data() + p * 16 * stride_;
      view.stride[p] = static_cast<ptrdiff_t>(stride_);
    }
    return view;
  }
  void Commit(int) override {}

 private:
  DecodedRegion region_;
  size_t stride_ = 0;
  std::vector<uint8_t> rows_;
};

// Three ways from file bytes to a row of a batch.
class Whole {
 public:
  explicit Whole(JpegDecoder::Way way) : decoder_({}, nullptr, way) {}

  void Rows(const Photo& photo, const Rect& region) {
    if (!decoder_.Open(photo.bytes()).ok() || !decoder_.Decode(region, discard_).ok()) std::abort();
  }

  void Batch(const Photo& photo, uint8_t* row, std::span<const uint8_t> index = {},
             DType dtype = DType::kU8, Layout layout = Layout::kNhwc) {
    Begin(photo, {row, dtype, kScale, kBias, layout, true}, index);
    while (decoder_.decoding()) decoder_.Advance();
    Finish();
  }

  void Begin(const Photo& photo, const PixelOutput& output, std::span<const uint8_t> index) {
    const Rect region = Start(photo, output);
    if (!decoder_.Open(photo.bytes()).ok()) std::abort();
    decoder_.Start(region, resampler_, index);
  }
  void Finish() {
    if (!decoder_.Finish().ok()) std::abort();
  }
  JpegDecoder& decoder() { return decoder_; }

  // All of the image first, and what is needed from that.
  void BatchFromFull(const Photo& photo, uint8_t* row) {
    const Result<WholeImage> image = DecodeWhole(photo.bytes());
    if (!image.ok()) std::abort();
    const Rect region = Start(photo, {.row = row, .read_later = true});
    const auto pixel = static_cast<size_t>(BytesPerPixel(image->layout));
    if (!resampler_.Begin({image->layout, region}).ok()) std::abort();
    for (int y = 0; y < region.height; ++y) {
      const MutableImageView view = resampler_.Reserve(1);
      const size_t at =
          (static_cast<size_t>(region.y + y) * static_cast<size_t>(image->size.width) +
           static_cast<size_t>(region.x)) *
          pixel;
      std::memcpy(view.plane[0], &image->pixels[at], static_cast<size_t>(region.width) * pixel);
      resampler_.Commit(1);
    }
  }

 private:
  Rect Start(const Photo& photo, const PixelOutput& output) {
    Resampling task;
    task.image = photo.size;
    task.box = photo.box;
    task.resized = kOutput;
    task.window = {0, 0, kOutput.width, kOutput.height};
    resampler_.Reset();
    return resampler_.Start(task, output).value();
  }

  static constexpr float kScale[3] = {0.017F, 0.0175F, 0.0174F}, kBias[3] = {-2.1F, -2.0F, -1.8F};

  JpegDecoder decoder_;
  MemoryBudget budget_{uint64_t{1} << 30};
  Resampler resampler_{budget_};
  Discard discard_;
};

// Two photographs in turns. When one is done, the next call goes on with the other: what a round
// leaves behind is done in the next one.
class Turns {
 public:
  void Batch(const Photo& photo, uint8_t* row, std::span<const uint8_t> index = {}) {
    Whole& next = begun_[0] ? second_ : first_;
    next.Begin(photo, {.row = row, .read_later = true}, index);
    begun_[begun_[0] ? 1 : 0] = true;
    JpegDecoder &a = first_.decoder(), &b = second_.decoder();
    while (a.decoding() && b.decoding()) JpegDecoder::AdvanceBoth(a, b);
    if (begun_[0] && !a.decoding()) End(first_, begun_[0]);
    if (begun_[1] && !b.decoding()) End(second_, begun_[1]);
  }

 private:
  static void End(Whole& whole, bool& begun) {
    whole.Finish();
    begun = false;
  }

  Whole first_{JpegDecoder::Way::kFastest}, second_{JpegDecoder::Way::kFastest};
  bool begun_[2] = {};
};

// Uses one instruction set while it lives.
class With {
 public:
  explicit With(int64_t target) { Set(target); }
  ~With() { Set(0); }
  With(const With&) = delete;
  With& operator=(const With&) = delete;

 private:
  static void Set(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

struct Measured {
  std::string name;
  std::function<void(const Photo&)> run;
  bool phase = false;      // on photographs whose phases can be told apart
  std::string baseline;    // name of what it is compared with; none: nothing
  std::vector<double> us;  // of each round
};

void RunRound(std::vector<Measured>& all, const std::vector<Photo>& photos) {
  for (Measured& m : all) {
    int count = 0;
    const double start = CpuSeconds();
    for (const Photo& photo : photos) {
      if (m.phase && !photo.plain()) continue;
      m.run(photo);
      ++count;
    }
    m.us.push_back((CpuSeconds() - start) * 1e6 / std::max(count, 1));
  }
}

double Median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

void Print(const std::vector<Measured>& all) {
  for (const Measured& m : all) {
    std::printf("%-52s %8.1f us", m.name.c_str(), Median(m.us));
    const auto baseline = std::find_if(
        all.begin(), all.end(), [&m](const Measured& other) { return other.name == m.baseline; });
    if (baseline != all.end()) {
      std::vector<double> ratio;
      for (size_t r = 0; r < m.us.size(); ++r) ratio.push_back(baseline->us[r] / m.us[r]);
      const auto [least, most] = std::minmax_element(ratio.begin(), ratio.end());
      std::printf("   x %.2f (%.2f ... %.2f)", Median(ratio), *least, *most);
    }
    std::printf("\n");
  }
}

std::vector<Measured> Measurements(const std::vector<Photo>& photos) {
  auto phases = std::make_shared<DecodePhases>();
  auto ours = std::make_shared<Whole>(JpegDecoder::Way::kFastest);
  auto theirs = std::make_shared<Whole>(JpegDecoder::Way::kLibjpegOnly);
  constexpr size_t kRow = 224 * 224 * 3, kRows = 64;
  auto memory = std::make_shared<std::vector<uint8_t>>(kRows * kRow * sizeof(float) + 64);
  uint8_t* const batch = memory->data() + (64 - reinterpret_cast<uintptr_t>(memory->data()) % 64);
  const auto row = [memory, batch, &photos](const Photo& p, DType dtype = DType::kU8) {
    return batch + static_cast<size_t>(&p - photos.data()) % kRows * kRow * SizeOf(dtype);
  };
  const auto all = [](const Photo& p) { return Rect{0, 0, p.size.width, p.size.height}; };
  std::vector<Measured> list;
  const auto add = [&](const char* name, bool phase, int baseline, auto run) {
    const auto against = baseline < 0 ? "" : list[static_cast<size_t>(baseline)].name;
    list.push_back({name, run, phase, against, {}});
  };
  const auto phase = [&](const char* name, void (DecodePhases::*member)()) {
    add(name, true, -1, [phases, member](const Photo& p) {
      phases->Use(p.bytes(), p.header);
      (phases.get()->*member)();
    });
  };
  add("libjpeg-turbo: whole image to rows", false, -1,
      [=](const Photo& p) { theirs->Rows(p, all(p)); });
  add("ours: whole image to rows", false, 0, [=](const Photo& p) { ours->Rows(p, all(p)); });
  add("libjpeg-turbo: crop to rows", false, -1, [=](const Photo& p) { theirs->Rows(p, p.box); });
  add("ours: crop to rows", false, 2, [=](const Photo& p) { ours->Rows(p, p.box); });
  add("libjpeg-turbo: crop to batch row", false, -1,
      [=](const Photo& p) { theirs->Batch(p, row(p)); });
  add("libjpeg-turbo: whole image, crop, to batch row", false, 4,
      [=](const Photo& p) { theirs->BatchFromFull(p, row(p)); });
  add("ours: crop to batch row", false, 4, [=](const Photo& p) { ours->Batch(p, row(p)); });
  const size_t bytes = list.size() - 1;
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      if (dtype == DType::kU8 && layout == Layout::kNhwc) continue;
      const std::string name =
          std::string("ours: crop to batch row, ") + NameOf(dtype) + " " + NameOf(layout);
      add(name.c_str(), false, static_cast<int>(bytes),
          [=](const Photo& p) { ours->Batch(p, row(p, dtype), {}, dtype, layout); });
    }
  }
  for (size_t i = 0; i < kIntervals.size(); ++i) {
    const std::string name = "ours: the same, indexed every " + std::to_string(kIntervals[i]);
    add(name.c_str(), false, 4, [=](const Photo& p) { ours->Batch(p, row(p), p.index[i]); });
  }
  auto turns = std::make_shared<Turns>();
  add("ours: crop to batch row, two in turns", false, 4,
      [=](const Photo& p) { turns->Batch(p, row(p)); });
  for (size_t i = 0; i < kIntervals.size(); ++i) {
    const std::string name = "ours: in turns, indexed every " + std::to_string(kIntervals[i]);
    add(name.c_str(), false, 4, [=](const Photo& p) { turns->Batch(p, row(p), p.index[i]); });
  }
  auto maker = std::make_shared<jpeg::CropIndexMaker>();
  auto made = std::make_shared<std::vector<uint8_t>>();
  add("ours: making that index, every 8", false, -1,
      [=](const Photo& p) { (void)maker->Make(p.bytes(), *made); });
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    const std::string name = std::string("ours with ") + hwy::TargetName(target) + ": the same";
    add(name.c_str(), false, 4, [=](const Photo& p) {
      const With with(target);
      ours->Batch(p, row(p));
    });
  }
  phase("phase: header", &DecodePhases::Header);
  phase("phase: tables", &DecodePhases::Tables);
  phase("phase: destuff all", &DecodePhases::Destuff);
  phase("phase: tables, destuff, skip all", &DecodePhases::Skip);
  phase("phase: tables, destuff, decode all", &DecodePhases::Decode);
  phase("phase: tables, destuff, decode, inverse DCT of all", &DecodePhases::DecodeAndTransform);
  return list;
}

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_bench DIR [ROUNDS [NAME]]\n");
    return 2;
  }
  std::vector<Photo> photos = ReadPhotos(argv[1]);
  if (photos.empty()) {
    std::fprintf(stderr, "decode_bench: no JPEGs in %s\n", argv[1]);
    return 1;
  }
  DecodePaths paths;
  for (const Photo& p : photos) {
    if (p.why == Fallback::kNone) ++paths.fast;
    ++paths.fallback[static_cast<size_t>(p.why)];
  }
  std::printf("%zu photographs, %llu by our decoder", photos.size(),
              static_cast<unsigned long long>(paths.fast));
  for (size_t i = 1; i < kFallbacks; ++i) {
    if (paths.fallback[i] == 0) continue;
    std::printf(", %llu %s", static_cast<unsigned long long>(paths.fallback[i]),
                NameOf(static_cast<Fallback>(i)));
  }
  std::printf("\n");
  MakeIndexes(photos);
  std::vector<Measured> all = Measurements(photos);
  if (argc > 3) {
    std::erase_if(all, [argv](const Measured& m) { return m.name.find(argv[3]) == m.name.npos; });
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  for (int i = 0; i < rounds; ++i) RunRound(all, photos);
  Print(all);
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) { return stoker::Main(argc, argv); }
