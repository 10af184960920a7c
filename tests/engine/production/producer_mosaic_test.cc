// Rows that are made of several samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/batch/object_shapes.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/time/stage_times.h"
#include "engine/arrays/compose.h"
#include "engine/loader/loader.h"
#include "engine/production/producer_parts.h"
#include "io/memory/arrays.h"
#include "io/packed/packed.h"
#include "io/ranges/path_source.h"
#include "io/select/combine.h"
#include "io/select/subset.h"
#include "io/tfrecord/tfrecord.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/called_photos.h"
#include "tests/testing/samples/make_packed.h"
#include "tests/testing/samples/make_tfrecord.h"
#include "tests/testing/samples/packed_files.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using testing::RuntimeUnderTest;
using testing::TakeEpoch;
using Source = std::shared_ptr<const SampleSource>;

constexpr uint64_t kSamples = 29;

// Sample `id` has id % 4 objects, which are numbered from 10 id; their boxes are all of the image.
class ProducerMosaic : public ::testing::Test {
 protected:
  ProducerMosaic() {
    std::filesystem::create_directory(folder_.Path("images"));
    std::filesystem::create_directory(folder_.Path("masks"));
    for (uint64_t id = 0; id < kSamples; ++id) {
      const int width = 30 + static_cast<int>(id * 7 % 41);
      const int height = 30 + static_cast<int>(id * 11 % 37);
      Write(ImageOf(id), testing::MakeJpeg({.width = width, .height = height, .seed = id}));
      Write(MaskOf(id),
            testing::MakePng({.width = width, .height = height, .color = 0, .seed = id}));
      for (uint64_t object = 0; object < id % 4; ++object) {
        numbers_.push_back(static_cast<int64_t>(10 * id + object));
        for (const int side : {0, 0, width, height}) boxes_.push_back(static_cast<float>(side));
      }
      offsets_.push_back(static_cast<int64_t>(numbers_.size()));
      labels_.push_back(static_cast<int64_t>(id));
    }
  }

  std::string ImageOf(uint64_t id) const {
    return folder_.Path("images/" + std::to_string(10 + id) + ".jpg");
  }
  std::string MaskOf(uint64_t id) const {
    return folder_.Path("masks/" + std::to_string(10 + id) + ".png");
  }
  static void Write(const std::string& path, const std::vector<uint8_t>& bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes.begin(), bytes.end());
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Source Photos(bool masks = false, bool objects = false) const {
    FilesOptions options;
    std::vector<std::string> images, of_masks;
    for (uint64_t id = 0; id < kSamples; ++id) {
      images.push_back(ImageOf(id));
      of_masks.push_back(MaskOf(id));
    }
    if (masks) options.further = {{.name = "mask", .fill = 255, .paths = PathTable(of_masks)}};
    ArrayColumn labels{.name = "label",
                       .dtype = DType::kI64,
                       .row_shape = {},
                       .data = labels_.data(),
                       .samples = kSamples};
    options.columns = {labels};
    if (objects) {
      ArrayColumn numbers = labels, boxes = labels;
      numbers.name = "numbers";
      numbers.data = numbers_.data();
      numbers.offsets = offsets_.data();
      numbers.kind = Field::Kind::kObject;
      boxes = numbers;
      boxes.name = "boxes";
      boxes.data = boxes_.data();
      boxes.dtype = DType::kF32;
      boxes.row_shape = {4};
      boxes.kind = Field::Kind::kBoxes;
      options.columns.push_back(numbers);
      options.columns.push_back(boxes);
    }
    return Files(PathTable(images), std::move(options)).value();
  }

  LoaderOptions Options(Source source, int threads = 3) const {
    LoaderOptions options;
    options.source = std::move(source);
    options.transforms = {Mosaic{.size = 48, .p = 0.8}, RandomHorizontalFlip{}};
    options.batch_size = 5;
    options.shuffle = true;
    options.seed = 3;
    options.max_bad_fraction = 1;
    options.runtime = Runtime::Create(RuntimeUnderTest(threads)).value();
    return options;
  }

  // The row that a plan makes of these samples.
  std::vector<uint8_t> Planned(const Plan& plan, const RowSamples& parts, DrawKey key,
                               bool masks = false) {
    std::vector<uint8_t> row(plan.row_bytes());
    const auto workspace = plan.MakeWorkspace(budget_);
    for (const auto& [part, sample] : parts.all()) {
      const std::string file = Read(masks ? MaskOf(sample) : ImageOf(sample));
      std::vector<uint8_t> bytes(file.begin(), file.end());
      bytes.resize(bytes.size() + kBufferPadding);
      StageTimes times;
      key.part = part;
      plan.Apply(std::span(bytes).first(file.size()), key, *workspace, row.data(), times).value();
    }
    return row;
  }

  std::vector<uint64_t> EpochOf(const LoaderOptions& options) const {
    return TakeEpoch(*Loader::Open(options).value()->Iterate(0));
  }

  const testing::TempFolder folder_;
  std::vector<int64_t> offsets_{0}, numbers_, labels_;
  std::vector<float> boxes_;
  MemoryBudget budget_{uint64_t{1} << 30};
};

std::vector<uint8_t> RowIn(const Column& column, int64_t rows, int64_t row) {
  const size_t bytes = column.bytes() / static_cast<size_t>(rows);
  const auto* const data = static_cast<const uint8_t*>(column.data) + row * bytes;
  return {data, data + bytes};
}

class MosaicOf : public ProducerMosaic, public ::testing::WithParamInterface<int> {
 protected:
  LoaderOptions OptionsOf(Source source) const {
    LoaderOptions options = Options(std::move(source));
    std::get<Mosaic>(options.transforms[0]).n = GetParam();
    return options;
  }
};

TEST_P(MosaicOf, RowsAreMadeOfTheSamplesThatThePlanDraws) {
  LoaderOptions options = OptionsOf(Photos(/*masks=*/true, /*objects=*/true));
  options.dtype = DType::kF32;
  const int n = GetParam();
  const Plan plan = *PlanOf(options, {}).value();
  const auto loader = Loader::Open(options).value();
  std::set<uint64_t> own;
  std::map<size_t, int> by_parts;
  testing::ForEachBatch(*loader, 2, [&](const Batch& batch) {
    const Column& numbers = *batch.column("numbers");
    const Column& boxes = *batch.column("boxes");
    for (int64_t row = 0; row < batch.rows(); ++row) {
      const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
      const DrawKey key{options.seed, batch.epoch(), batch.position() + static_cast<uint64_t>(row)};
      const RowSamples parts = plan.SamplesOf(key, id, kSamples, 0);
      ++by_parts[parts.count];
      ASSERT_EQ(RowIn(batch.images(), batch.rows(), row), Planned(plan, parts, key)) << id;
      ASSERT_EQ(RowIn(*batch.column("mask"), batch.rows(), row),
                Planned(plan.piece(1), parts, key, true))
          << id;
      EXPECT_EQ(batch.column("label")->as<int64_t>()[static_cast<size_t>(row)],
                static_cast<int64_t>(id));
      // Objects come from these samples, in their order, and all of a sample's boxes are equal.
      const auto of_row = numbers.objects<const int64_t>(row);
      const auto boxes_of_row = boxes.objects<const float>(row);
      ASSERT_EQ(boxes_of_row.size(), 4 * of_row.size());
      std::vector<int64_t> possible;
      for (const RowPart& part : parts.all()) {
        for (uint64_t i = 0; i < part.sample % 4; ++i) {
          possible.push_back(static_cast<int64_t>(10 * part.sample + i));
        }
      }
      size_t at = 0;
      for (const int64_t number : of_row) {
        while (at < possible.size() && possible[at] != number) ++at;
        ASSERT_LT(at++, possible.size()) << number;
      }
      own.insert(id);
    }
  });
  EXPECT_EQ(own.size(), kSamples);
  EXPECT_EQ(loader->columns()[2].max_objects, 0u);
  EXPECT_EQ(loader->columns()[3].max_objects, 3 * static_cast<uint32_t>(n));
  EXPECT_GT(by_parts[1], 2);
  EXPECT_GT(by_parts[static_cast<size_t>(n)], 20);
  EXPECT_EQ(by_parts[2] + by_parts[3] > 0, n == 4);
}

INSTANTIATE_TEST_SUITE_P(Images, MosaicOf, ::testing::Values(4, 9));

TEST_F(ProducerMosaic, BatchesDependOnNoThreadAndContinueFromAState) {
  const Source source = Photos(true, true);
  const auto loader = Loader::Open(Options(source)).value();
  const std::vector<uint64_t> all = TakeEpoch(*loader->Iterate(0));
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(EpochOf(Options(source, 1)), all);
  const auto resumed = Loader::Open(Options(source)).value()->Iterate();
  ASSERT_TRUE(resumed->Restore(loader->StateAt({0, 2})).ok());
  EXPECT_EQ(TakeEpoch(*resumed), std::vector<uint64_t>(all.begin() + 2, all.end()));
  LoaderOptions other = Options(source);
  std::get<Mosaic>(other.transforms[0]).scale = 0.4;
  EXPECT_FALSE(Loader::Open(other).value()->PlaceOf(loader->StateAt({0, 2})).ok());
}

// Records, calls, a few large files, arrays and selections give what files give.
TEST_P(MosaicOf, IsTheSameOfEverySource) {
  const Source photos = Photos();
  const std::vector<uint64_t> wanted = EpochOf(OptionsOf(photos));
  EXPECT_EQ(EpochOf(OptionsOf(std::make_shared<testing::PackedFiles>(photos, folder_.path(), 3))),
            wanted);
  std::string records;
  testing::NamedFiles named;
  for (uint64_t id = 0; id < kSamples; ++id) {
    records += testing::ImageRecord(Read(ImageOf(id)), static_cast<int64_t>(id));
  }
  folder_.Write("train-0", records);
  EXPECT_EQ(EpochOf(OptionsOf(TfRecord(folder_.path() + "/train-0").value())), wanted);
  const auto call = [](uint64_t, const std::string& file, LoadedSample& loaded) {
    return testing::GiveBytes(file, loaded);
  };
  EXPECT_EQ(EpochOf(OptionsOf(std::make_shared<testing::CalledPhotos>(photos, 2, call))), wanted);
  std::vector<uint64_t> first, rest;
  for (uint64_t id = 0; id < kSamples; ++id) (id < 10 ? first : rest).push_back(id);
  const auto combined =
      Combine({Subset(photos, first).value(), Subset(photos, rest).value()}).value();
  EXPECT_EQ(EpochOf(OptionsOf(combined)), wanted);
}

TEST_F(ProducerMosaic, OfASubsetHasItsSamplesAlone) {
  const std::vector<uint64_t> few{3, 5, 7};  // with 3, 1 and 3 objects
  LoaderOptions options = Options(Subset(Photos(false, true), few).value());
  options.batch_size = 3;
  std::set<int64_t> seen;
  const auto loader = Loader::Open(options).value();
  testing::ForEachBatch(*loader, 20, [&](const Batch& batch) {
    for (const int64_t number : batch.column("numbers")->as<int64_t>()) seen.insert(number / 10);
  });
  EXPECT_EQ(seen, (std::set<int64_t>{3, 5, 7}));
}

TEST_P(MosaicOf, OfArrays) {
  constexpr size_t kSide = 20, kImage = kSide * kSide * 3;
  std::vector<uint8_t> pixels(kSamples * kImage);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i / kImage * 8 + 1);
  const ArrayColumn images{.name = "image",
                           .dtype = DType::kU8,
                           .row_shape = {kSide, kSide, 3},
                           .data = pixels.data(),
                           .samples = kSamples};
  const Source source = Arrays({images}, nullptr).value();
  LoaderOptions options = OptionsOf(source);
  options.transforms = {Mosaic{.size = 48, .fill = {0, 0, 0}, .n = GetParam()}};
  const Plan plan = *PlanOf(options, {}).value();
  testing::ForEachBatch(*Loader::Open(options).value(), 1, [&](const Batch& batch) {
    for (int64_t row = 0; row < batch.rows(); ++row) {
      const uint64_t id = batch.sample_ids()[static_cast<size_t>(row)];
      const RowSamples parts = plan.SamplesOf(
          {options.seed, 0, batch.position() + static_cast<uint64_t>(row)}, id, kSamples, 0);
      std::set<uint8_t> possible{0}, seen;
      for (const RowPart& part : parts.all())
        possible.insert(static_cast<uint8_t>(part.sample * 8 + 1));
      for (const uint8_t value : RowIn(batch.images(), batch.rows(), row)) seen.insert(value);
      EXPECT_TRUE(std::ranges::includes(possible, seen)) << id;
    }
  });
}

// ---- Bad samples.

TEST_P(MosaicOf, AnErrorNamesTheSampleThatIsBad) {
  constexpr uint64_t kBad = 4;
  Write(ImageOf(kBad), {1, 2, 3});
  LoaderOptions options = OptionsOf(Photos());
  options.batch_size = 1;
  options.shuffle = false;
  const Plan plan = *PlanOf(options, {}).value();
  const auto iterator = Loader::Open(options).value()->Iterate(0);
  int bad = 0;
  for (uint64_t id = 0; id < kSamples; ++id) {
    const RowSamples parts = plan.SamplesOf({options.seed, 0, id}, id, kSamples, 0);
    const bool has_bad = std::ranges::count(parts.all(), kBad, &RowPart::sample) != 0;
    const Result<Batch> batch = iterator->Next();
    ASSERT_EQ(batch.ok(), !has_bad) << id;
    if (batch.ok()) continue;
    EXPECT_EQ(batch.error().file, ImageOf(kBad));
    ++bad;
  }
  EXPECT_GT(bad, 1);
}

// Each row keeps its own sample unless that is bad, and gets others next to it.
TEST_P(MosaicOf, OtherSamplesReplaceABadOne) {
  const std::set<uint64_t> bad{4, 11, 12};
  Write(ImageOf(4), {1, 2, 3});
  std::filesystem::remove(ImageOf(11));
  Write(MaskOf(12), testing::MakePng({.width = 3, .height = 3, .color = 0}));
  LoaderOptions options = OptionsOf(Photos(/*masks=*/true));
  options.on_bad = BadPolicy::Parse("substitute").value();
  options.bad_samples_file = folder_.Path("bad.jsonl");
  options.batch_size = 1;
  options.shuffle = false;
  const std::vector<uint64_t> all = EpochOf(options);
  EXPECT_EQ(all.size(), kSamples);
  EXPECT_EQ(EpochOf(options), all);
  const auto loader = Loader::Open(options).value();
  const auto iterator = loader->Iterate(0);
  for (uint64_t id = 0; id < kSamples; ++id) {
    const Batch batch = iterator->Next().value();
    const uint64_t is = batch.sample_ids()[0];
    EXPECT_FALSE(bad.contains(is));
    EXPECT_TRUE(is == id || bad.contains(id));
  }
  std::ifstream lines(folder_.Path("bad.jsonl"));
  int listed = 0;
  for (std::string line; std::getline(lines, line); ++listed) {
    const bool names = line.find(ImageOf(4)) != std::string::npos ||
                       line.find(ImageOf(11)) != std::string::npos ||
                       line.find(MaskOf(12)) != std::string::npos;
    EXPECT_TRUE(names) << line;
  }
  EXPECT_GT(listed, 9);
}

// A canvas is finished with the last of its images, and the error is of another one: its shapes are
// wrong, it has more objects than a mask of uint8 can tell apart, or it cannot be decoded.
// By the images of a row: two are those of a row to which objects of another sample are pasted,
// which have room there.
class ErrorOfACanvas : public ProducerMosaic, public ::testing::WithParamInterface<int> {};

TEST_P(ErrorOfACanvas, NamesTheSampleThatIsBad) {
  constexpr uint64_t kBad = 7;
  const bool of_two = GetParam() == 2;
  for (const char* const fault : {"runs", "many", "file"}) {
    const bool many = fault == std::string("many"), runs = fault == std::string("runs");
    if (!many && !runs) Write(ImageOf(kBad), {1, 2, 3});
    std::vector<float> boxes;
    ObjectShapes shapes;
    std::vector<int64_t> objects{0}, words{0};
    for (uint64_t id = 0; id < kSamples; ++id) {
      const float begin = of_two && id % 2 == 0 ? 14 : 2, end = of_two ? begin + 10 : 28;
      for (int n = id == kBad && many ? 300 : 1; n > 0; --n) {
        for (const float side : {begin, begin, end, end}) boxes.push_back(side);
        shapes.BeginObject();
        if (id == kBad && runs) {
          shapes.AddRuns(1, 1, std::array<uint32_t, 2>{0, 1});
        } else if (of_two) {
          shapes.AddPolygon(std::array{begin, begin, end, begin, end, end});
        }
      }
      objects.push_back(static_cast<int64_t>(boxes.size() / 4));
      words.push_back(static_cast<int64_t>(shapes.words().size()));
    }
    std::vector<std::string> images;
    for (uint64_t id = 0; id < kSamples; ++id) images.push_back(ImageOf(id));
    FilesOptions files;
    files.columns = {{.name = "boxes",
                      .dtype = DType::kF32,
                      .row_shape = {4},
                      .data = boxes.data(),
                      .samples = kSamples,
                      .offsets = objects.data(),
                      .kind = Field::Kind::kBoxes},
                     {.name = "instances",
                      .dtype = DType::kU8,
                      .row_shape = {},
                      .data = shapes.words().data(),
                      .samples = kSamples,
                      .offsets = words.data(),
                      .kind = Field::Kind::kInstances}};
    LoaderOptions options = Options(Files(PathTable(images), std::move(files)).value());
    const double translate = GetParam() == 9 ? 1 : 0;  // otherwise few are in the row
    options.transforms = {Mosaic{.size = 48, .scale = 0, .translate = translate, .n = GetParam()},
                          CopyPaste{1}};
    if (of_two) {
      options.transforms = {Resize{.height = 48, .width = 48},
                            CopyPaste{1, CopyPaste::Mode::kMixup}};
    }
    options.batch_size = 1;
    options.shuffle = false;
    const Plan plan = *PlanOf(options, {}).value();
    std::set<uint32_t> bad_parts;
    const auto loader = Loader::Open(options).value();
    std::unique_ptr<Iterator> iterator;
    constexpr uint64_t kEpochs = 12;
    for (uint64_t n = 0; n < kEpochs * kSamples; ++n) {
      const uint64_t epoch = n / kSamples, id = n % kSamples;
      if (id == 0) iterator = loader->Iterate(epoch);
      const Result<Batch> batch = iterator->Next();
      if (batch.ok()) continue;
      const RowSamples parts = plan.SamplesOf({options.seed, epoch, id}, id, kSamples, 0);
      const auto bad = std::ranges::find(parts.all(), kBad, &RowPart::sample);
      ASSERT_NE(bad, parts.all().end()) << batch.error().ToString();
      EXPECT_EQ(batch.error().file, ImageOf(kBad));
      bad_parts.insert(bad->part);
    }
    EXPECT_EQ(bad_parts.size(), plan.parts());
    // Its own row gets another sample, and others keep theirs.
    options.on_bad = BadPolicy::Parse("substitute").value();
    options.bad_samples_file = folder_.Path(fault);
    const auto substituting = Loader::Open(options).value()->Iterate(0);
    for (uint64_t id = 0; id < kSamples; ++id) {
      const Result<Batch> batch = substituting->Next();
      ASSERT_TRUE(batch.ok()) << batch.error().ToString();
      EXPECT_TRUE(id == kBad || batch->sample_ids()[0] == id) << id;
    }
    std::ifstream lines(options.bad_samples_file);
    int listed = 0;
    for (std::string line; std::getline(lines, line); ++listed) {
      EXPECT_NE(line.find(ImageOf(kBad)), std::string::npos) << line;
    }
    EXPECT_GT(listed, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Images, ErrorOfACanvas, ::testing::Values(2, 4, 9));

// A cache keeps one piece of a row.
TEST_F(ProducerMosaic, RowsOfSeveralSamplesAreNotCached) {
  const CopyPaste paste{1, CopyPaste::Mode::kMixup};
  for (const Transform& several :
       {Transform(Mosaic{.size = 48}), Transform(RandomApply{{paste}})}) {
    LoaderOptions options = Options(Photos());
    options.transforms = {several};
    options.cache = CacheChoice::Parse("dir:" + folder_.Path("cache") + ":1GB").value();
    const auto loader = Loader::Open(options);
    ASSERT_FALSE(loader.ok());
    EXPECT_THAT(loader.error().ToString(),
                ::testing::AnyOf(HasSubstr("transforms[0], Mosaic, makes rows of several samples"),
                                 HasSubstr("transforms[0], RandomApply, makes rows of several")));
  }
}

// Slots are used again: a row whose own sample is bad must not count the objects of another batch.
TEST_F(ProducerMosaic, RowsWithABadSampleAreDropped) {
  Write(ImageOf(7), {1, 2, 3});
  LoaderOptions options = Options(Photos(true, true));
  options.on_bad = BadPolicy::Parse("drop").value();
  uint64_t rows = 0;
  constexpr uint64_t kEpochs = 20;
  testing::ForEachBatch(*Loader::Open(options).value(), kEpochs, [&](const Batch& batch) {
    rows += static_cast<uint64_t>(batch.rows());
    for (const uint64_t id : batch.sample_ids()) EXPECT_NE(id, 7u);
    for (const int64_t number : batch.column("numbers")->as<int64_t>()) EXPECT_NE(number / 10, 7);
  });
  EXPECT_LT(rows, kEpochs * (kSamples - 1));
  EXPECT_GT(rows, kEpochs * kSamples / 2);
}

// If no partner is good, the row fails instead of being tried for ever.
TEST_F(ProducerMosaic, GivesUpIfNoOtherSampleIsGood) {
  for (uint64_t id = 1; id < kSamples; ++id) Write(ImageOf(id), {1, 2, 3});
  LoaderOptions options = Options(Photos());
  options.on_bad = BadPolicy::Parse("substitute").value();
  options.transforms = {Mosaic{.size = 48, .scale = 0, .translate = 0}};
  options.batch_size = 1;
  options.shuffle = false;
  const Result<Batch> batch = Loader::Open(options).value()->Iterate(0)->Next();
  ASSERT_FALSE(batch.ok());
  EXPECT_THAT(batch.error().cause, HasSubstr("substitute"));
}

// A budget for few samples: rows that find no memory are read and decoded again.
TEST_F(ProducerMosaic, MemoryMayBeShort) {
  LoaderOptions options = Options(Photos(true, true));
  const std::vector<uint64_t> wanted = EpochOf(options);
  RuntimeOptions small = RuntimeUnderTest(2);
  small.memory_budget = 12 << 20;
  options.runtime = Runtime::Create(small).value();
  options.depth = 1;
  EXPECT_EQ(EpochOf(options), wanted);
}

// ---- What is refused.

TEST_F(ProducerMosaic, RefusesACacheAndCompose) {
  LoaderOptions options = Options(Photos());
  options.cache = CacheChoice::Parse("ram:1GiB").value();
  const auto loader = Loader::Open(options);
  ASSERT_FALSE(loader.ok());
  EXPECT_THAT(loader.error().cause, HasSubstr("Mosaic"));
  const auto compose = Compose::Create({.transforms = {Mosaic{.size = 8}}});
  ASSERT_FALSE(compose.ok());
  EXPECT_THAT(compose.error().cause, HasSubstr("Mosaic"));
}

}  // namespace
}  // namespace stoker
