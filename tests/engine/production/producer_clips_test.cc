// Samples of several images in one field: their batches, errors, memory and states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "engine/memory/memory_manager.h"
#include "engine/production/check_options.h"
#include "io/folder/image_folder.h"
#include "io/packed/packed.h"
#include "io/select/clips.h"
#include "io/select/subset.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/make_packed.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using testing::Effort;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RuntimeUnderTest;
using Source = std::shared_ptr<const SampleSource>;

constexpr uint64_t kFrames = 26;  // of each camera
constexpr uint32_t kOfClip = 4, kStride = 2;
constexpr uint64_t kClips = kFrames - (kOfClip - 1) * kStride;

// One row of a batch: the sample, and the bytes of each of its columns.
struct ClipRow {
  uint64_t sample = 0;
  std::vector<std::string> columns;
  friend bool operator==(const ClipRow&, const ClipRow&) = default;
};
using ClipRows = std::vector<ClipRow>;

ClipRows Epochs(Loader& loader, uint64_t epochs) {
  ClipRows rows;
  testing::ForEachBatch(loader, epochs, [&](const Batch& batch) {
    for (size_t row = 0; row < static_cast<size_t>(batch.rows()); ++row) {
      rows.push_back({batch.sample_ids()[row], {}});
      for (const Column& column : batch.columns()) {
        const size_t bytes = column.bytes() / static_cast<size_t>(batch.rows());
        const auto* const data = static_cast<const char*>(column.data) + row * bytes;
        rows.back().columns.emplace_back(data, bytes);
      }
    }
  });
  return rows;
}
ClipRows Epochs(const LoaderOptions& options, uint64_t epochs = 1) {
  return Epochs(*Loader::Open(options).value(), epochs);
}

enum class Stored { kFiles, kPacked, kTfRecord };

class ProducerClips : public ::testing::Test {
 protected:
  ProducerClips() {
    for (const char* camera : {"front", "wrist"}) {
      std::filesystem::create_directory(folder_.Path(camera));
      const bool is_front = camera == std::string("front");
      for (uint64_t i = 0; i < kFrames; ++i) {
        const std::vector<uint8_t> image = testing::MakeJpeg({.width = is_front ? 56 : 40,
                                                              .height = is_front ? 40 : 48,
                                                              .seed = (is_front ? 100 : 200) + i});
        Put(camera, i, {image.begin(), image.end()});
      }
    }
  }

  std::string FileOf(const std::string& camera, uint64_t frame) const {
    return folder_.Path(camera) + "/" + std::to_string(1000 + frame) + ".jpg";
  }
  void Put(const std::string& camera, uint64_t frame, const std::string& bytes) const {
    folder_.Write(camera + "/" + std::to_string(1000 + frame) + ".jpg", bytes);
  }

  // Opens the frames of a camera, from another form of its files if one is given.
  Source FramesOf(const std::string& camera, Stored stored = Stored::kFiles) const {
    if (stored == Stored::kFiles) return ImageFolder(folder_.Path(camera)).value();
    const std::string name = camera + (stored == Stored::kPacked ? " packed" : " records");
    const std::string path = folder_.Path(name);
    testing::NamedFiles files;
    std::string records;
    for (uint64_t i = 0; i < kFrames; ++i) {
      files.emplace_back(std::to_string(1000 + i) + ".jpg",
                         testing::BytesOfFile(FileOf(camera, i)));
      records += testing::ImageRecord(files.back().second, 0);
    }
    if (stored == Stored::kTfRecord) {
      folder_.Write(name, records);
      return TfRecord(path, {.label = ""}).value();
    }
    std::filesystem::create_directory(path);
    testing::MakePackedSet(path, files, 7);
    return Packed(path).value();
  }

  Source ClipsOf(Stored front = Stored::kFiles, Stored wrist = Stored::kFiles) const {
    return Clips({{"front", FramesOf("front", front)}, {"wrist", FramesOf("wrist", wrist)}},
                 {.frames = kOfClip, .stride = kStride})
        .value();
  }

  static LoaderOptions Options(Source source, int threads = 2) {
    LoaderOptions options;
    options.source = std::move(source);
    options.transforms = {RandomResizedCrop{.height = 16, .width = 24}, RandomHorizontalFlip{},
                          ColorJitter{.brightness = {0.5, 1.5}}, RandomErasing{.p = 0.7}};
    options.batch_size = 7;
    options.shuffle = true;
    options.seed = 5;
    options.max_bad_fraction = 1;
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }

  // Returns the rows that loaders of one frame each make: those of frame k of all clips are a
  // subset of the camera's frames, which has as many samples, so its epochs have the same order and
  // the same draws.
  ClipRows Expected(const LoaderOptions& options, uint64_t epochs) const {
    ClipRows rows;
    for (const char* camera : {"front", "wrist"}) {
      for (uint64_t k = 0; k < kOfClip; ++k) {
        std::vector<uint64_t> ids;
        for (uint64_t clip = 0; clip < kClips; ++clip) ids.push_back(clip + k * kStride);
        LoaderOptions alone = options;
        alone.source = Subset(FramesOf(camera), ids).value();
        const ClipRows frames = Epochs(alone, epochs);
        if (rows.empty()) {
          for (const ClipRow& row : frames) rows.push_back({row.sample, {"", ""}});
        }
        for (size_t i = 0; i < rows.size(); ++i) {
          EXPECT_EQ(rows[i].sample, frames.at(i).sample);
          rows[i].columns[camera == std::string("front") ? 0 : 1] += frames[i].columns[0];
        }
      }
    }
    return rows;
  }

  // The clips that have a frame.
  static std::set<uint64_t> ClipsWith(uint64_t frame) {
    std::set<uint64_t> clips;
    for (uint64_t clip = 0; clip < kClips; ++clip) {
      for (uint64_t k = 0; k < kOfClip; ++k) {
        if (clip + k * kStride == frame) clips.insert(clip);
      }
    }
    return clips;
  }

  const testing::TempFolder folder_;
};

TEST_F(ProducerClips, AreWhatLoadersOfOneFrameEachMake) {
  constexpr uint64_t kEpochs = 2;
  const Source files = ClipsOf(), packed = ClipsOf(Stored::kPacked, Stored::kPacked),
               mixed = ClipsOf(Stored::kTfRecord, Stored::kFiles);
  for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
    LoaderOptions options = Options(files);
    options.layout = layout;
    if (layout == Layout::kNchw) {
      options.dtype = DType::kF32;
      options.transforms.emplace_back(Normalize{});
    }
    const ClipRows expected = Expected(options, kEpochs);
    ASSERT_EQ(expected.size(), kEpochs * kClips);
    for (int round = 0; round < Effort(6); ++round) {
      RuntimeOptions runtime = RuntimeUnderTest(round % 2 == 0 ? 1 : 4);
      runtime.reader = round / 2 % 2 == 0 ? ReaderKind::kPread : ReaderKind::kAuto;
      runtime.reader_threads = 1 + round % 3;
      if (round % 4 == 3) runtime.reads_in_flight = 1;
      options.runtime = Runtime::Create(runtime).value();
      options.source = round % 3 == 0 ? files : round % 3 == 1 ? packed : mixed;
      EXPECT_EQ(Epochs(options, kEpochs), expected) << "round " << round;
    }
  }
}

TEST_F(ProducerClips, ARowBeginsWithTheNumberOfItsImages) {
  const auto shape_of = [](LoaderOptions options) {
    const auto loader = Loader::Open(std::move(options)).value();
    return loader->Iterate()->Next().value().columns()[1].shape;
  };
  LoaderOptions options = Options(ClipsOf());
  EXPECT_THAT(shape_of(options), ElementsAre(7, kOfClip, 16, 24, 3));
  options.layout = Layout::kNchw;
  EXPECT_THAT(shape_of(options), ElementsAre(7, kOfClip, 3, 16, 24));
  options.source =
      Clips({{"a", FramesOf("front")}, {"b", FramesOf("wrist")}}, {.frames = 1}).value();
  EXPECT_THAT(shape_of(options), ElementsAre(7, 1, 3, 16, 24));
  options.source = Clips({{"a", FramesOf("front")}}, {.frames = 1}).value();
  EXPECT_THAT(Loader::Open(options).value()->Iterate()->Next().value().images().shape,
              ElementsAre(7, 1, 3, 16, 24));
}

// Clips of one image are not mistaken for images.
TEST_F(ProducerClips, AClipOfOneImageHasTheRowsOfTheImage) {
  LoaderOptions images = Options(FramesOf("front"));
  LoaderOptions clips = Options(Clips({{"a", FramesOf("front")}}, {.frames = 1}).value());
  const ClipRows one = Epochs(images), other = Epochs(clips);
  ASSERT_EQ(one.size(), other.size());
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].columns[0], other[i].columns[0]);
  EXPECT_THAT(Loader::Open(clips)
                  .value()
                  ->PlaceOf(Loader::Open(images).value()->StateAt({0, 1}))
                  .error()
                  .cause,
              HasSubstr("images of a sample was none and is 1 × image"));
}

TEST_F(ProducerClips, ABadFrameIsTheErrorOfItsClipsAndIsNamed) {
  const Source clips = ClipsOf();
  Put("wrist", 9, "this is no photograph");
  std::filesystem::remove(FileOf("front", 15));
  std::map<uint64_t, std::string> bad;
  for (const uint64_t clip : ClipsWith(9)) bad[clip] = FileOf("wrist", 9);
  for (const uint64_t clip : ClipsWith(15)) bad[clip] = FileOf("front", 15);  // it is read first
  for (const int threads : {1, 4}) {
    LoaderOptions options = Options(clips, threads);
    options.batch_size = 1;
    options.shuffle = false;
    const auto iterator = Loader::Open(options).value()->Iterate();
    for (uint64_t id = 0; id < kClips; ++id) {
      const Result<Batch> batch = iterator->Next();
      ASSERT_EQ(batch.ok(), !bad.contains(id)) << id;
      if (!batch.ok()) {
        EXPECT_EQ(batch.error().file, bad.at(id));
      }
    }
  }
}

TEST_F(ProducerClips, ClipsWithABadFrameAreDroppedOrSubstituted) {
  const Source clips = ClipsOf();
  const ClipRows whole = Epochs(Options(clips));
  Put("wrist", 9, "this is no photograph");
  Put("front", 12, "");
  std::set<uint64_t> bad = ClipsWith(9);
  bad.merge(ClipsWith(12));
  ClipRows kept, substituted;
  std::ranges::copy_if(whole, std::back_inserter(kept),
                       [&](const ClipRow& row) { return !bad.contains(row.sample); });
  for (const int threads : {1, 4}) {
    LoaderOptions options = Options(clips, threads);
    options.on_bad = BadPolicy::Parse("drop").value();
    const auto loader = Loader::Open(options).value();
    EXPECT_EQ(Epochs(*loader, 1), kept);
    EXPECT_EQ(loader->Stats().bad.dropped, bad.size());
    options.on_bad = BadPolicy::Parse("substitute").value();
    const ClipRows rows = Epochs(options);
    if (threads == 1) substituted = rows;
    EXPECT_EQ(rows, substituted);
    ASSERT_EQ(rows.size(), whole.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_FALSE(bad.contains(rows[i].sample));
      if (!bad.contains(whole[i].sample)) {
        EXPECT_EQ(rows[i], whole[i]);
      }
    }
  }
}

// A record that cannot be unpacked ends its piece alone: those after it are decoded all the same.
TEST_F(ProducerClips, ADamagedRecordIsTheErrorOfItsClipsAndIsNamed) {
  for (const Stored stored : {Stored::kPacked, Stored::kTfRecord}) {
    const Source clips = ClipsOf(Stored::kFiles, stored);
    const ClipRows whole = Epochs(Options(clips));
    const ByteRange range = clips->RangeOfPiece(6, kOfClip + 1);  // frame 8
    std::string path, bytes;
    clips->PathOf(range.file, path);
    bytes = testing::BytesOfFile(path);
    bytes[range.offset + range.length / 2] ^= 1;
    folder_.Write(std::filesystem::relative(path, folder_.path()), bytes);
    LoaderOptions options = Options(clips);
    options.batch_size = 1;
    options.shuffle = false;
    const auto iterator = Loader::Open(options).value()->Iterate();
    for (uint64_t id = 0; id < kClips; ++id) {
      const Result<Batch> batch = iterator->Next();
      ASSERT_EQ(batch.ok(), !ClipsWith(8).contains(id)) << id;
      if (batch.ok()) continue;
      EXPECT_EQ(batch.error().file, path);
      EXPECT_EQ(batch.error().offset, range.offset);
      if (stored == Stored::kPacked) {
        EXPECT_THAT(batch.error().cause, HasSubstr("(1008.jpg)"));
      }
    }
    options = Options(clips, 4);
    options.on_bad = BadPolicy::Parse("drop").value();
    ClipRows kept;
    std::ranges::copy_if(whole, std::back_inserter(kept),
                         [&](const ClipRow& row) { return !ClipsWith(8).contains(row.sample); });
    EXPECT_EQ(Epochs(options), kept);
  }
}

// An error in an image says where it is in the file, though the image is in a record.
TEST_F(ProducerClips, AnErrorInAnImageHasItsPlaceInTheFile) {
  const std::string image = testing::BytesOfFile(FileOf("wrist", 8));
  Put("wrist", 8, image.substr(0, image.size() / 2));
  const Source clips = ClipsOf(Stored::kFiles, Stored::kTfRecord);
  LoaderOptions options = Options(clips);
  options.batch_size = 1;
  options.shuffle = false;
  const auto iterator = Loader::Open(options).value()->Iterate();
  for (uint64_t id = 0; id < 6; ++id) (void)iterator->Next();
  const Result<Batch> batch = iterator->Next();
  ASSERT_FALSE(batch.ok());
  const ByteRange range = clips->RangeOfPiece(6, kOfClip + 1);
  EXPECT_GT(batch.error().offset.value(), range.offset + image.size() / 4);
  EXPECT_LE(batch.error().offset.value(), range.offset + range.length);
}

TEST_F(ProducerClips, ImagesOfACameraHaveOneSize) {
  const Source clips = ClipsOf();
  const std::vector<uint8_t> image = testing::MakeJpeg({.width = 40, .height = 47});
  Put("wrist", 10, {image.begin(), image.end()});
  LoaderOptions options = Options(clips);
  options.batch_size = 1;
  options.shuffle = false;
  const auto iterator = Loader::Open(options).value()->Iterate();
  for (uint64_t id = 0; id < kClips; ++id) {
    const Result<Batch> batch = iterator->Next();
    ASSERT_EQ(batch.ok(), !ClipsWith(10).contains(id)) << id;
    if (batch.ok()) continue;
    const bool is_first = id == 10;  // then the others do not have its size
    EXPECT_EQ(batch.error().file, FileOf("wrist", is_first ? 12 : 10));
    EXPECT_THAT(batch.error().cause,
                HasSubstr((is_first ? "it has 40 × 48 pixels, and " + FileOf("wrist", 10)
                                    : "it has 40 × 47 pixels, and " + FileOf("wrist", id)) +
                          ", the first image of its clip, has"));
  }
}

// In a file of many images, the error names the first image.
TEST_F(ProducerClips, AnImageOfAnotherSizeInAPackedSetIsNamed) {
  const std::vector<uint8_t> image = testing::MakeJpeg({.width = 40, .height = 47});
  Put("wrist", 2, {image.begin(), image.end()});
  LoaderOptions options = Options(ClipsOf(Stored::kFiles, Stored::kPacked));
  options.shuffle = false;
  EXPECT_THAT(Loader::Open(options).value()->Iterate()->Next().error().cause,
              HasSubstr("it has 40 × 47 pixels, and 1000.jpg, the first image of its clip, has "
                        "40 × 48 (1002.jpg)"));
}

// Columns of sizes and geometry describe the first image, so that all must have its size.
TEST_F(ProducerClips, CamerasOfDifferentSizesHaveNoCommonGeometry) {
  const auto error_of = [](const LoaderOptions& options) {
    const Result<Batch> batch = Loader::Open(options).value()->Iterate()->Next();
    return batch.ok() ? "" : batch.error().cause;
  };
  LoaderOptions options = Options(ClipsOf());
  EXPECT_EQ(error_of(options), "");
  options.geometry = true;
  EXPECT_THAT(error_of(options), HasSubstr("it has 40 × 48 pixels"));
  options.source = Clips({{"a", FramesOf("front")}, {"b", FramesOf("front")}}, {}).value();
  EXPECT_EQ(error_of(options), "");
  options.geometry = false;
  options.transforms = {PadTo{.height = 64, .width = 64}};
  EXPECT_EQ(error_of(options), "");
  const Batch batch = Loader::Open(options).value()->Iterate()->Next().value();
  EXPECT_THAT(batch.columns()[0].shape, ElementsAre(7, 8, 64, 64, 3));
  EXPECT_EQ(batch.column("image_size")->as<int32_t>()[0], 40);
  EXPECT_EQ(batch.column("image_size")->as<int32_t>()[1], 56);
  options.source = ClipsOf();
  EXPECT_THAT(error_of(options), HasSubstr("it has 40 × 48 pixels"));
}

TEST_F(ProducerClips, AStateContinuesWithTheNextBatch) {
  const Source clips = ClipsOf(Stored::kPacked, Stored::kPacked);
  const ClipRows all = Epochs(Options(clips), 2);
  std::string state;
  {
    const auto loader = Loader::Open(Options(clips)).value();
    const auto iterator = loader->Iterate();
    for (int batch = 0; batch < 2; ++batch) EXPECT_TRUE(iterator->Next().ok());
    state = loader->StateAt(*iterator->position());
  }
  const auto loader = Loader::Open(Options(clips, 1)).value();
  loader->epochs().Restore(loader->PlaceOf(state).value());
  const ClipRows rest = Epochs(*loader, 2);
  EXPECT_TRUE(std::ranges::equal(rest, std::span(all).subspan(14)));
}

// Each frame takes more than half of the memory, so none is decoded next to another.
TEST_F(ProducerClips, MemoryMayBeShort) {
  for (uint64_t i = 0; i < kFrames; i += 3) {
    const std::vector<uint8_t> image = testing::MakeJpeg(
        {.width = 1200, .height = 800, .scans = testing::JpegScans::kProgressive, .seed = i});
    for (uint64_t same = i; same < i + 3 && same < kFrames; ++same) {
      Put("wrist", same, {image.begin(), image.end()});
    }
  }
  LoaderOptions options =
      Options(Clips({{"wrist", FramesOf("wrist")}}, {.frames = 3, .stride = 1, .step = 3}).value());
  options.batch_size = 2;
  options.depth = 1;
  const ClipRows expected = Epochs(options);
  ASSERT_EQ(expected.size(), kFrames / 3);
  for (int round = 0; round < Effort(6); ++round) {
    RuntimeOptions runtime = RuntimeUnderTest(1 + round % 4);
    runtime.memory_budget = uint64_t{12} << 20;
    options.runtime = Runtime::Create(runtime).value();
    EXPECT_EQ(Epochs(options), expected) << "round " << round;
    EXPECT_LE(options.runtime->budget().peak(), runtime.memory_budget);
    EXPECT_EQ(options.runtime->budget().used(), 0u);
  }
}

std::string RefusalOf(const LoaderOptions& options) {
  const auto loader = Loader::Open(options);
  return loader.ok() ? "" : loader.error().Message();
}

TEST_F(ProducerClips, ViewsMixingAndDevicesAreRefused) {
  for (const uint32_t frames : {1, 3}) {
    const auto clips = [&] {
      return Options(Clips({{"image", FramesOf("front")}}, {.frames = frames}).value());
    };
    const std::string what = frames == 1 ? "a clip of one image" : "3 encoded images";
    LoaderOptions options = clips();
    options.mix = BatchMix{.choices = {MixUp{}}};
    EXPECT_THAT(RefusalOf(options), HasSubstr(what));
    options = clips();
    options.views = {options.transforms, options.transforms};
    options.transforms.clear();
    EXPECT_THAT(RefusalOf(options), HasSubstr(what));
    options = clips();
    options.to_device.emplace().decodes = true;
    EXPECT_THAT(CheckOptions(options).error().cause, HasSubstr(what));
  }
}

// A source of clips whose number of images a test chooses.
class ClipsOfMany final : public SampleSource {
 public:
  explicit ClipsOfMany(uint32_t count)
      : fields_{{.name = "image", .kind = Field::Kind::kImage, .count = count}} {}
  uint64_t size() const override { return 10; }
  std::span<const Field> fields() const override { return fields_; }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void PathOf(uint32_t file, std::string& path) const override { path = std::to_string(file); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "many"; }

 private:
  const std::vector<Field> fields_;
  const std::vector<std::string> classes_;
};

TEST_F(ProducerClips, TooManyImagesAreRefused) {
  EXPECT_EQ(RefusalOf(Options(std::make_shared<ClipsOfMany>(1024))), "");
  EXPECT_THAT(RefusalOf(Options(std::make_shared<ClipsOfMany>(1025))),
              HasSubstr("each sample of many has 1025 encoded images; at most 1024 are possible"));
}

}  // namespace
}  // namespace stoker
