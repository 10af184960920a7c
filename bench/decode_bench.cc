// decode_bench DIR [ROUNDS [NAME...]]: measures decoding, phase by phase and as a whole, by stoker
// and by libjpeg-turbo, on the photographs of a directory; file bytes are in memory.
//
// Every round measures each item once, on all photographs, one after the other, so that
// disturbances of the machine affect all alike. It prints medians of CPU microseconds per
// photograph, and the ratio to libjpeg-turbo (or, for types and layouts, to bytes in NHWC) within a
// round with its smallest and largest value. With names only items whose name contains one of them
// are run.
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
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <hwy/targets.h>

#include "bench/decode_methods.h"
#include "bench/decode_phases.h"
#include "core/memory/buffer.h"
#include "transforms/jpeg/decoder.h"
#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_geometry.h"
#include "transforms/jpeg/fast/index/crop_index_maker.h"
#include "transforms/jpeg/reference_decoder.h"
#include "transforms/packed/pack.h"
#include "transforms/packed/restore.h"
#include "transforms/plan/draw.h"
#include "transforms/resize/resampler.h"

namespace stoker {
namespace {

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

void PackAll(std::vector<Photo>& photos) {
  JpegPacker packer;
  double jpeg_bytes = 0, packed_bytes = 0;
  int stored = 0;
  for (Photo& photo : photos) {
    Result<std::vector<uint8_t>> packed = packer.Pack(photo.bytes());
    if (!packed.ok()) {
      ++stored;
      continue;
    }
    jpeg_bytes += static_cast<double>(photo.bytes().size());
    packed_bytes += static_cast<double>(packed->size());
    photo.packed = *std::move(packed);
    photo.packed.resize(photo.packed.size() + kBufferPadding);
  }
  std::printf("packed: %.3f x the JPEGs' bytes; %d photographs are stored as they are\n",
              packed_bytes / jpeg_bytes, stored);
}

std::array<Resampling, 2> TasksOf(ImageSize size, uint64_t number) {
  RandomStream random({1, 0, number}, 0);
  Resampling crop, eval;
  crop.image = eval.image = size;
  crop.box = DrawResizedBox({224, 224}, size, random);
  crop.resized = kOutput;
  crop.window = {0, 0, kOutput.width, kOutput.height};
  eval.box = {0, 0, size.width, size.height};
  eval.resized = SizeAfter({.size = 256}, size);
  eval.window = CenterBox(kOutput, eval.resized);
  return {crop, eval};
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
    photo.task = TasksOf(photo.size, photos.size());
    photos.push_back(std::move(photo));
    Photo& kept = photos.back();
    kept.why = jpeg::ParseHeader(kept.bytes(), kept.header);
  }
  return photos;
}

// Selects one instruction set during its lifetime.
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
  std::string baseline;    // name of the item it is compared with; empty means none
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
      ratio.reserve(m.us.size());
      for (size_t r = 0; r < m.us.size(); ++r) ratio.push_back(baseline->us[r] / m.us[r]);
      const auto [least, most] = std::minmax_element(ratio.begin(), ratio.end());
      std::printf("   x %.2f (%.2f ... %.2f)", Median(ratio), *least, *most);
    }
    std::printf("\n");
  }
}

// The items to measure, and the photographs.
class Measurements {
 public:
  explicit Measurements(const std::vector<Photo>& photos)
      : photos_(photos), memory_(kRows * kRow * sizeof(float) + 64) {
    AddDecoding();
    AddBatches();
    AddTypes();
    AddTargets();
    AddPhases();
  }
  Measurements(const Measurements&) = delete;
  Measurements& operator=(const Measurements&) = delete;

  std::vector<Measured>& list() { return list_; }

  // Prints how much work the photographs' crops would be for the kernels.
  void PrintCounts() {
    ForDevice packed, plain;
    const std::span<uint8_t> to(for_device_to_.get(), kCropRoom);
    for (const Photo& p : photos_) {
      if (packed.PackedCrop(p, Box::kCrop, to)) packed.Count(to.data());
      if (plain.PlainCrop(p, Box::kCrop, p.index[0], to)) plain.Count(to.data());
    }
    packed.PrintCounts("a packed");
    plain.PrintCounts("an indexed");
  }

 private:
  static constexpr size_t kRow = 224 * 224 * 3, kRows = 64;
  static constexpr size_t kCrops = 64, kCropRoom = size_t{1} << 20;
  static constexpr float kScale[3] = {0.017F, 0.0175F, 0.0174F}, kBias[3] = {-2.1F, -2.0F, -1.8F};

  template <typename Run>
  void Add(const std::string& name, const std::string& baseline, Run run) {
    list_.push_back({name, run, false, baseline, {}});
  }

  // Returns rows of a batch, one after the other.
  PixelOutput Row(const Photo& p, DType dtype = DType::kU8, Layout layout = Layout::kNhwc) {
    uint8_t* const batch = memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64);
    const size_t row = static_cast<size_t>(&p - photos_.data()) % kRows;
    return {batch + row * kRow * SizeOf(dtype), dtype, kScale, kBias, layout, true};
  }

  // The crops of a batch, one after the other.
  std::span<uint8_t> CropRoom(const Photo& p) const {
    const size_t place = static_cast<size_t>(&p - photos_.data()) % kCrops;
    return {for_device_to_.get() + place * kCropRoom, kCropRoom};
  }

  void AddDecoding() {
    const auto all = [](const Photo& p) { return Rect{0, 0, p.size.width, p.size.height}; };
    const std::string whole = "libjpeg-turbo: image to rows", crop = "libjpeg-turbo: crop to rows";
    Add(whole, "", [=, this](const Photo& p) { theirs_.Rows(p, all(p)); });
    Add("ours, alone: image to rows", whole, [=, this](const Photo& p) { ours_.Rows(p, all(p)); });
    Add("packed: image to rows", whole, [=, this](const Photo& p) { packed_.Rows(p, all(p)); });
    Add(crop, "", [this](const Photo& p) { theirs_.Rows(p, p.crop()); });
    Add("ours, alone: crop to rows", crop, [this](const Photo& p) { ours_.Rows(p, p.crop()); });
    Add("packed: crop to rows", crop, [this](const Photo& p) { packed_.Rows(p, p.crop()); });
  }

  void AddBatches() {
    for (const Box box : {Box::kCrop, Box::kEval}) {
      const std::string to = box == Box::kCrop ? "crop to batch row" : "eval to batch row";
      const std::string theirs = "libjpeg-turbo: " + to;
      Add(theirs, "", [=, this](const Photo& p) { theirs_.Batch(p, box, Row(p)); });
      Add("libjpeg-turbo, image first: " + to, theirs,
          [=, this](const Photo& p) { theirs_.BatchFromImage(p, box, Row(p)); });
      Add("ours, alone: " + to, theirs, [=, this](const Photo& p) { ours_.Batch(p, box, Row(p)); });
      Add("ours: " + to, theirs, [=, this](const Photo& p) { turns_.Batch(p, box, Row(p)); });
      Add("packed: " + to, "ours: " + to,
          [=, this](const Photo& p) { packed_.Batch(p, box, Row(p)); });
      for (size_t i = 0; i < kIntervals.size(); ++i) {
        Add("ours, indexed every " + std::to_string(kIntervals[i]) + ": " + to, theirs,
            [=, this](const Photo& p) { turns_.Batch(p, box, Row(p), p.index[i]); });
      }
    }
    Add("packed: crop for a device", "packed: crop to batch row",
        [this](const Photo& p) { for_device_.PackedCrop(p, Box::kCrop, CropRoom(p)); });
    for (size_t i = 0; i < kIntervals.size(); ++i) {
      const std::string indexed = "ours, indexed every " + std::to_string(kIntervals[i]) + ": ";
      Add(indexed + "crop for a device", indexed + "crop to batch row", [=, this](const Photo& p) {
        for_device_.PlainCrop(p, Box::kCrop, p.index[i], CropRoom(p));
      });
    }
    Add("ours: making an index, every 4", "",
        [this](const Photo& p) { (void)maker_.Make(p.bytes(), made_); });
    Add("ours: opening an index, and checking the crop's bytes", "", CheckCrop);
    Add("packing", "", [this](const Photo& p) { (void)packer_.Pack(p.bytes()); });
    Add("restoring", "", [](const Photo& p) {
      if (p.packed.empty()) return;
      (void)RestoreJpeg(std::span(p.packed).first(p.packed.size() - kBufferPadding));
    });
  }

  // Does what an index is needed for before a crop's bytes can be sent to a device.
  static void CheckCrop(const Photo& p) {
    jpeg::CropIndex index;
    const std::vector<uint8_t>& packed = p.index[0];
    if (packed.empty()) return;
    (void)index.Open(packed, p.bytes(), p.header);
    const jpeg::CropGeometry crop(p.header, p.crop());
    const int64_t first = int64_t{crop.top} * crop.mcus_across + crop.left,
                  last = int64_t{crop.bottom - 1} * crop.mcus_across + crop.right;
    const int64_t from = index.shape().EntryPointBefore(first),
                  until = index.shape().EntryPointBefore(last - 1) + 1;
    if (!index.HeaderIntact(p.bytes()) ||
        !index.Intact(p.bytes(), index.At(from), index.At(until))) {
      std::abort();
    }
  }

  void AddTypes() {
    for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
      for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
        if (dtype == DType::kU8 && layout == Layout::kNhwc) continue;
        Add(std::string("ours, ") + NameOf(dtype) + " " + NameOf(layout) + ": crop to batch row",
            "ours: crop to batch row",
            [=, this](const Photo& p) { turns_.Batch(p, Box::kCrop, Row(p, dtype, layout)); });
      }
    }
  }

  // Instruction sets of stoker's decoder and the resampler; libjpeg-turbo chooses its own.
  void AddTargets() {
    for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
      const std::string with = std::string("ours, ") + hwy::TargetName(target);
      const char* const theirs = "libjpeg-turbo: crop to batch row";
      Add(with + ": crop to batch row", theirs, [=, this](const Photo& p) {
        const With only(target);
        turns_.Batch(p, Box::kCrop, Row(p));
      });
      Add(with + ", indexed every 4: crop to batch row", theirs, [=, this](const Photo& p) {
        const With only(target);
        turns_.Batch(p, Box::kCrop, Row(p), p.index[0]);
      });
      Add(std::string("packed, ") + hwy::TargetName(target) + ": crop to batch row",
          with + ": crop to batch row", [=, this](const Photo& p) {
            const With only(target);
            packed_.Batch(p, Box::kCrop, Row(p));
          });
    }
  }

  void AddPhases() {
    const auto phase = [this](const char* name, void (DecodePhases::*member)()) {
      Add(name, "", [this, member](const Photo& p) {
        phases_.Use(p.bytes(), p.header);
        (phases_.*member)();
      });
      list_.back().phase = true;
    };
    phase("phase: header", &DecodePhases::Header);
    phase("phase: tables", &DecodePhases::Tables);
    phase("phase: destuff all", &DecodePhases::Destuff);
    phase("phase: tables, destuff, skip all", &DecodePhases::Skip);
    phase("phase: tables, destuff, decode all", &DecodePhases::Decode);
    phase("phase: tables, destuff, decode, inverse DCT of all", &DecodePhases::DecodeAndTransform);
  }

  const std::vector<Photo>& photos_;
  std::vector<uint8_t> memory_;
  Sequential theirs_{JpegDecoder::Backend::kLibjpegOnly}, ours_{JpegDecoder::Backend::kFastest};
  Interleaved turns_;
  Packed packed_;
  ForDevice for_device_;
  const std::unique_ptr<uint8_t[]> for_device_to_ = std::make_unique<uint8_t[]>(kCrops * kCropRoom);
  JpegPacker packer_;
  jpeg::CropIndexMaker maker_;
  std::vector<uint8_t> made_;
  DecodePhases phases_;
  std::vector<Measured> list_;
};

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: decode_bench DIR [ROUNDS [NAME...]]\n");
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
  PackAll(photos);
  Measurements measurements(photos);
  std::vector<Measured>& all = measurements.list();
  if (argc > 3) {
    std::erase_if(all, [=](const Measured& m) {
      return std::none_of(argv + 3, argv + argc, [&m](const char* name) {
        return m.name.find(name) != std::string::npos;
      });
    });
  }
  const int rounds = argc > 2 ? std::max(1, std::atoi(argv[2])) : 7;
  for (int i = 0; i < rounds; ++i) RunRound(all, photos);
  Print(all);
  measurements.PrintCounts();
  return 0;
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) { return stoker::Main(argc, argv); }
