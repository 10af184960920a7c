// Single images with transforms: the rows of a loader with the same options, and what is refused.
#include "engine/arrays/compose.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/loader/loader.h"
#include "io/folder/image_folder.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/process/child_process.h"
#include "tests/testing/process/process_usage.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kComposed = 23;

std::vector<uint8_t> Composed(const DecodedArray& array) {
  const auto* const data = static_cast<const uint8_t*>(array.memory.get());
  return {data, data + array.shape.bytes()};
}

std::vector<uint8_t> RowOf(const Column& images, size_t row) {
  const size_t bytes = images.bytes() / static_cast<size_t>(images.shape[0]);
  const auto* const data = static_cast<const uint8_t*>(images.data) + row * bytes;
  return {data, data + bytes};
}

std::unique_ptr<Compose> MakeCompose(ComposeOptions options) {
  return Compose::Create(std::move(options)).value();
}

Error ErrorOf(Result<ComposedImage> result) { return std::move(result).error(); }

// Progressive: two bytes for each sample.
const std::vector<uint8_t>& NeedsSevenMebibytes() {
  static const std::vector<uint8_t> jpeg =
      testing::MakeJpeg({.width = 1200, .height = 1024, .scans = testing::JpegScans::kProgressive});
  return jpeg;
}

const std::vector<Transform> kTraining = {RandomResizedCrop{.height = 24, .width = 32},
                                          RandomHorizontalFlip{.p = 0.5},
                                          ColorJitter{.brightness = {0.6, 1.4}}};

// Unaligned memory for one array, with guards.
class GuardedRow {
 public:
  explicit GuardedRow(const Compose& compose) : bytes_(compose.shape()->bytes() + 3, kGuard) {}
  void* data() { return bytes_.data() + 1; }
  bool intact() const {
    return bytes_[0] == kGuard && bytes_[bytes_.size() - 2] == kGuard && bytes_.back() == kGuard;
  }

 private:
  static constexpr uint8_t kGuard = 0x5a;
  std::vector<uint8_t> bytes_;
};

// From bytes and from files, into new memory and given memory, for each place in an order, in every
// type and layout.
TEST(Compose, MakesTheRowsOfALoader) {
  const testing::PhotoFolder photos(kComposed, 3);
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
      LoaderOptions options;
      options.source = photos.Source();
      options.transforms = kTraining;
      if (dtype != DType::kU8) options.transforms.emplace_back(Normalize{{0.4F, 0.5F, 0.6F}});
      options.dtype = dtype;
      options.layout = layout;
      options.batch_size = kComposed;
      options.shuffle = true;
      options.seed = 9;
      options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
      const auto loader = Loader::Open(options).value();
      const auto compose =
          MakeCompose({.transforms = options.transforms, .dtype = dtype, .layout = layout});
      for (uint64_t epoch = 0; epoch < 2; ++epoch) {
        const Batch batch = loader->Iterate()->Next().value();
        const Column& images = batch.images();
        for (uint64_t row = 0; row < kComposed; ++row) {
          const std::string path = photos.FileOf(batch.sample_ids()[row]);
          const DrawKey key{.seed = 9, .epoch = epoch, .position = row};
          const std::string file = testing::BytesOfFile(path);
          const std::vector<uint8_t> encoded(file.begin(), file.end());
          const ComposedImage of_file = compose->ApplyToFile(path, key).value();
          EXPECT_EQ(of_file.array.shape.sides,
                    std::vector<int64_t>(images.shape.begin() + 1, images.shape.end()));
          EXPECT_EQ(of_file.array.shape.dtype, dtype);
          EXPECT_FALSE(of_file.size);
          EXPECT_EQ(Composed(of_file.array), RowOf(images, row));
          EXPECT_EQ(Composed(compose->Apply(encoded, key).value().array), Composed(of_file.array));
          GuardedRow given(*compose);
          const ComposedImage into = compose->Apply(encoded, key, given.data()).value();
          EXPECT_EQ(into.array.memory.get(), given.data());
          EXPECT_EQ(Composed(into.array), Composed(of_file.array));
          EXPECT_TRUE(given.intact());
        }
      }
    }
  }
}

// Options that change the row of a JPEG: each row is the loader's, and differs from that without
// the option.
TEST(Compose, HasTheLoadersOptions) {
  const std::vector<uint8_t> photo =
      testing::MakeJpeg({.width = 400, .height = 300, .orientation = 6, .seed = 4});
  std::vector<uint8_t> cut = photo;
  cut.resize(photo.size() / 2);
  const std::vector<Transform> transforms = {Resize{.height = 40, .width = 60}};
  const std::vector<uint8_t> plain =
      Composed(MakeCompose({.transforms = transforms})->Apply(photo).value().array);
  struct Case {
    ComposeOptions options;
    std::vector<uint8_t> image;
  };
  const std::vector<Case> cases = {
      {{.transforms = transforms, .decode = DecodeSize::kScaled}, photo},
      {{.transforms = transforms, .exif_orientation = false}, photo},
      {{.transforms = transforms, .limits = {.accept_truncated = true}}, cut}};
  for (const auto& [given, image] : cases) {
    const testing::TempFolder folder;
    folder.Write("class/a.jpg", image);
    LoaderOptions options;
    options.source = ImageFolder(folder.path()).value();
    options.transforms = given.transforms;
    options.decode = given.decode;
    options.exif_orientation = given.exif_orientation;
    options.limits = given.limits;
    options.batch_size = 1;
    options.runtime = Runtime::Create(testing::RuntimeUnderTest(1)).value();
    const Batch batch = Loader::Open(options).value()->Iterate()->Next().value();
    const std::vector<uint8_t> made = Composed(MakeCompose(given)->Apply(image).value().array);
    EXPECT_EQ(made, RowOf(batch.images(), 0));
    EXPECT_NE(made, plain);
  }
}

// An erased image that is padded, and its size; the images of a second view.
TEST(Compose, MakesTheRowsOfAPaddedImageAndOfAView) {
  constexpr uint32_t kRows = 7;
  const testing::PhotoFolder photos(kRows, 1);
  const std::vector<Transform> padded = {RandomHorizontalFlip{.p = 0.5},
                                         Resize{.size = 20, .max_size = 90}, RandomErasing{.p = 1},
                                         PadTo{.height = 90, .width = 90}};
  LoaderOptions options;
  options.source = photos.Source();
  options.batch_size = kRows;
  options.seed = 5;
  options.runtime = Runtime::Create(testing::RuntimeUnderTest(2)).value();
  LoaderOptions of_views = options;
  options.transforms = padded;
  of_views.views = {{CenterCrop{.height = 8, .width = 8}}, kTraining};
  const Batch batch = Loader::Open(options).value()->Iterate()->Next().value();
  const Batch views = Loader::Open(of_views).value()->Iterate()->Next().value();
  const auto pads = MakeCompose({.transforms = padded}),
             view = MakeCompose({.transforms = kTraining});
  const auto sizes = batch.column("image_size")->as<int32_t>();
  for (uint32_t row = 0; row < kRows; ++row) {
    const std::string path = photos.FileOf(batch.sample_ids()[row]);
    const DrawKey key{.seed = 5, .position = row}, of_view{.seed = 5, .position = row, .view = 1};
    const ComposedImage image = pads->ApplyToFile(path, key).value();
    EXPECT_EQ(Composed(image.array), RowOf(batch.images(), row));
    EXPECT_EQ(image.size, (ImageSize{.width = sizes[2 * row + 1], .height = sizes[2 * row]}));
    EXPECT_EQ(Composed(view->ApplyToFile(path, of_view).value().array),
              RowOf(*views.column("image_1"), row));
  }
}

TEST(Compose, RefusesKeysOutOfRange) {
  const std::vector<uint8_t> jpeg = testing::MakeJpeg({.width = 60, .height = 30, .seed = 1});
  const DecodedArray whole = DecodeImage(jpeg).value();
  ImageView view{.size = {.width = 60, .height = 30}};
  view.plane[0] = static_cast<const uint8_t*>(whole.memory.get());
  view.stride[0] = 60 * 3;
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    const auto compose = MakeCompose({.transforms = transforms});
    for (const DrawKey& key : {DrawKey{.epoch = uint64_t{1} << 32}, {.view = kMaxViews}}) {
      EXPECT_EQ(ErrorOf(compose->Apply(jpeg, key)).code, Code::kInvalidArgument);
      EXPECT_EQ(ErrorOf(compose->Apply(view, key)).code, Code::kInvalidArgument);
    }
    EXPECT_TRUE(compose->Apply(jpeg, {.epoch = 0xffff'ffff, .view = kMaxViews - 1}).ok());
  }
}

TEST(Compose, RefusesImagesBeyondItsLimits) {
  const std::vector<uint8_t> progressive = testing::MakeJpeg(
      {.width = 40, .height = 30, .scans = testing::JpegScans::kProgressive, .seed = 1});
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    for (const DecodeLimits& limits : {DecodeLimits{.max_pixels = 1199}, {.max_scans = 2}}) {
      const auto compose = MakeCompose({.transforms = transforms, .limits = limits});
      EXPECT_EQ(ErrorOf(compose->Apply(progressive)).code, Code::kResourceExhausted);
      EXPECT_TRUE(compose->Apply(testing::MakeJpeg({.width = 30, .height = 39})).ok());
    }
  }
}

// From bytes, a file and pixels, also after an error.
TEST(Compose, WritesIntoMemoryOfTheCaller) {
  const testing::TempFolder folder;
  const std::vector<uint8_t> png = testing::MakePng({.width = 60, .height = 30, .seed = 1});
  const std::string path = folder.Write("class/a.png", png);
  const DecodedArray whole = DecodeImage(png).value();
  ImageView view{.size = {.width = 60, .height = 30}};
  view.plane[0] = static_cast<const uint8_t*>(whole.memory.get());
  view.stride[0] = 60 * 3;
  const auto compose = MakeCompose({.transforms = kTraining, .dtype = DType::kF32});
  const std::vector<uint8_t> wanted = Composed(compose->Apply(png).value().array);
  GuardedRow given(*compose);
  EXPECT_EQ(Composed(compose->ApplyToFile(path, {}, given.data()).value().array), wanted);
  const auto half = std::span(png).first(png.size() / 2);
  EXPECT_EQ(ErrorOf(compose->Apply(half, {}, given.data())).code, Code::kDataLoss);
  EXPECT_TRUE(given.intact());
  EXPECT_EQ(Composed(compose->Apply(view, {}, given.data()).value().array), wanted);
  EXPECT_TRUE(given.intact());

  const auto whole_images = MakeCompose({});
  EXPECT_FALSE(whole_images->shape());
  const Error refused = ErrorOf(whole_images->Apply(png, {}, given.data()));
  EXPECT_EQ(refused.code, Code::kInvalidArgument);
  EXPECT_NE(refused.advice, "");
}

// The budget has room for the working memory of either image.
TEST(Compose, DoesNotKeepMuchMemory) {
  std::vector<uint8_t> long_file = testing::MakeJpeg({.width = 64, .height = 64});
  long_file.resize(33 << 20);
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    const auto compose = MakeCompose({.transforms = transforms, .memory_budget = 38 << 20});
    EXPECT_TRUE(compose->Apply(long_file).ok());
    EXPECT_TRUE(compose->Apply(NeedsSevenMebibytes()).ok());
  }
}

// Memory that is kept after earlier calls does not make the next call fail.
TEST(Compose, AcceptsAnImageWhateverCameBefore) {
  const auto file_of = [](int mebibytes) {
    std::vector<uint8_t> file = testing::MakeJpeg({.width = 64, .height = 64});
    file.resize(static_cast<size_t>(mebibytes) << 20);
    return file;
  };
  struct Case {
    int threads, mebibytes, budget;
  };
  for (const auto& [threads, mebibytes, budget] : {Case{1, 28, 34}, {4, 14, 64}}) {
    const std::vector<uint8_t> before = file_of(mebibytes);
    for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
      const auto compose = MakeCompose(
          {.transforms = transforms, .memory_budget = static_cast<uint64_t>(budget) << 20});
      std::barrier together(threads);
      std::vector<std::thread> calls;
      for (int t = 0; t < threads; ++t) {
        calls.emplace_back([&] {
          together.arrive_and_wait();
          EXPECT_TRUE(compose->Apply(before).ok());
        });
      }
      for (std::thread& call : calls) call.join();
      EXPECT_TRUE(compose->Apply(NeedsSevenMebibytes()).ok());
      EXPECT_TRUE(compose->Apply(before).ok());
      EXPECT_EQ(ErrorOf(compose->Apply(file_of(budget))).code, Code::kResourceExhausted);
    }
  }
}

// Decoded images give what their lossless files give, with any strides of rows and planes.
TEST(Compose, TakesPixels) {
  constexpr int kWidth = 41, kHeight = 30;
  const std::vector<uint8_t> png =
      testing::MakePng({.width = kWidth, .height = kHeight, .seed = 2});
  const std::vector<uint8_t> pixels = Composed(DecodeImage(png).value());
  constexpr ptrdiff_t kStride = 3 * kWidth + 5;
  std::vector<uint8_t> padded(kStride * kHeight, 0xa5), planes(3 * kStride * kHeight, 0xa5);
  for (ptrdiff_t y = 0; y < kHeight; ++y) {
    for (ptrdiff_t x = 0; x < kWidth * 3; ++x) {
      const uint8_t value = pixels[static_cast<size_t>(y * kWidth * 3 + x)];
      padded[static_cast<size_t>((kHeight - 1 - y) * kStride + x)] = value;
      planes[static_cast<size_t>((x % 3 * kHeight + y) * kStride + x / 3)] = value;
    }
  }
  const ImageSize size{.width = kWidth, .height = kHeight};
  const uint8_t* const last = padded.data() + kStride * (kHeight - 1);
  const uint8_t* const plane = planes.data();
  const ImageView views[] = {
      {.size = size, .plane = {pixels.data()}, .stride = {kWidth * 3}},
      {.size = size, .plane = {last}, .stride = {-kStride}},
      {.layout = PixelLayout::kPlanar,
       .size = size,
       .plane = {plane, plane + kStride * kHeight, plane + 2 * kStride * kHeight},
       .stride = {kStride, kStride, kStride}}};
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    const auto compose = MakeCompose({.transforms = transforms, .limits = {.max_pixels = 1}});
    const auto of_files = MakeCompose({.transforms = transforms});
    for (uint64_t position = 0; position < 5; ++position) {
      const DrawKey key{.seed = 3, .position = position};
      const std::vector<uint8_t> wanted = Composed(of_files->Apply(png, key).value().array);
      for (const ImageView& view : views) {
        EXPECT_EQ(Composed(compose->Apply(view, key).value().array), wanted);
      }
    }
  }
}

TEST(Compose, RefusesPixelsWithoutASide) {
  const uint8_t pixel[3] = {};
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    const auto compose = MakeCompose({.transforms = transforms});
    for (const ImageSize size :
         {ImageSize{0, 1}, ImageSize{1, 0}, ImageSize{kMaxSidePixels + 1, 1}}) {
      ImageView view{.size = size};
      view.plane[0] = pixel;
      EXPECT_EQ(ErrorOf(compose->Apply(view)).code, Code::kInvalidArgument);
    }
  }
}

TEST(Compose, WithoutTransformsItIsTheWholeImage) {
  const std::vector<uint8_t> jpeg =
      testing::MakeJpeg({.width = 41, .height = 30, .orientation = 6, .seed = 1});
  ArrayRequest request;
  request.dtype = DType::kF32;
  request.layout = Layout::kNchw;
  const auto compose = MakeCompose({.dtype = DType::kF32, .layout = Layout::kNchw});
  const ComposedImage image = compose->Apply(jpeg).value();
  EXPECT_THAT(image.array.shape.sides, ElementsAre(3, 41, 30));
  EXPECT_FALSE(image.size);
  EXPECT_EQ(Composed(image.array), Composed(DecodeImage(jpeg, request).value()));
  EXPECT_EQ(Composed(MakeCompose({})->Apply(jpeg).value().array),
            Composed(DecodeImage(jpeg).value()))
      << "the array outlives its Compose";
  const auto stored = MakeCompose({.exif_orientation = false});
  EXPECT_THAT(stored->Apply(jpeg).value().array.shape.sides, ElementsAre(30, 41, 3));
}

TEST(Compose, SaysWhichPartOfAPaddedArrayIsTheImage) {
  const auto compose =
      MakeCompose({.transforms = {Resize{.size = 20}, PadTo{.height = 40, .width = 50}}});
  const ComposedImage image =
      compose->Apply(testing::MakeJpeg({.width = 60, .height = 30, .seed = 1})).value();
  EXPECT_THAT(image.array.shape.sides, ElementsAre(40, 50, 3));
  EXPECT_EQ(image.size, (ImageSize{.width = 40, .height = 20}));
}

TEST(Compose, RefusesOptionsThatDoNotFit) {
  const auto refused = [](ComposeOptions options) {
    const auto made = Compose::Create(std::move(options));
    if (made.ok()) return std::string("made");
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    return made.error().ToString();
  };
  EXPECT_THAT(refused({.dtype = DType::kI64}), HasSubstr("dtype is int64"));
  EXPECT_THAT(refused({.limits = {.max_pixels = 0}}), HasSubstr("at least 1"));
  EXPECT_THAT(refused({.transforms = {RandomHorizontalFlip{}}}),
              HasSubstr("makes all images the same size"));
  EXPECT_THAT(refused({.transforms = {CenterCrop{.height = 0, .width = 4}}}),
              HasSubstr("CenterCrop"));
}

TEST(Compose, ErrorsAreThoseOfTheImage) {
  const testing::TempFolder folder;
  const std::string path = folder.Write("broken.jpg", "no image");
  for (const std::vector<Transform>& transforms : {kTraining, std::vector<Transform>()}) {
    const auto compose = MakeCompose({.transforms = transforms, .memory_budget = 4 << 20});
    EXPECT_EQ(compose->memory_budget(), uint64_t{4} << 20);
    EXPECT_EQ(ErrorOf(compose->Apply(std::span<const uint8_t>())).code, Code::kDataLoss);
    const Error broken = ErrorOf(compose->ApplyToFile(path));
    EXPECT_EQ(broken.code, Code::kDataLoss);
    EXPECT_EQ(broken.file, path);
    const Error missing = ErrorOf(compose->ApplyToFile(folder.Path("missing")));
    EXPECT_EQ(missing.code, Code::kNotFound);
    EXPECT_EQ(missing.file, folder.Path("missing"));
    EXPECT_EQ(missing.advice, "The target of a symbolic link may be missing");
    EXPECT_EQ(ErrorOf(compose->ApplyToFile("")).code, Code::kInvalidArgument);
    EXPECT_EQ(ErrorOf(compose->Apply(NeedsSevenMebibytes())).code, Code::kResourceExhausted);
    EXPECT_TRUE(compose->Apply(testing::MakeJpeg({.width = 64, .height = 64})).ok()) << "again";
  }
}

TEST(Compose, ErrorsNameTheFile) {
  const testing::TempFolder folder;
  const std::string path = folder.Write("a.jpg", testing::MakeJpeg({.width = 64, .height = 64}));
  const auto crops = MakeCompose({.transforms = {RandomCrop{.height = 65, .width = 65}}});
  const Error small = ErrorOf(crops->ApplyToFile(path));
  EXPECT_EQ(small.code, Code::kInvalidArgument);
  EXPECT_EQ(small.file, path);
  EXPECT_EQ(ErrorOf(crops->ApplyToFile(path, {.view = kMaxViews})).file, path);
  EXPECT_EQ(ErrorOf(MakeCompose({.memory_budget = 1})->ApplyToFile(path)).file, path);
}

// The address space of a child has no room for 100 MB.
TEST(Compose, SaysThatTheSystemHasNoMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs address space";
#endif
  const testing::TempFolder folder;
  const std::string path = folder.Write("a.jpg", testing::MakeJpeg({.width = 64, .height = 64}));
  const auto large = MakeCompose({.transforms = {Resize{.height = 6000, .width = 6000}}});
  const int code = testing::ExitCodeOfChild([&] {
    const uint64_t bytes = testing::MemoryNow().mapped + (uint64_t{64} << 20);
    const rlimit limit{bytes, bytes};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
    const Error error = ErrorOf(large->ApplyToFile(path));
    const bool told = error.detail == Error::Detail::kNoMemory && !error.advice.empty();
    return told && error.code == Code::kResourceExhausted && error.file == path ? 0 : 2;
  });
  EXPECT_EQ(code, 0);
}

TEST(Compose, HasABudgetByDefault) {
  const uint64_t budget = MakeCompose({})->memory_budget();
  EXPECT_GT(budget, 0U);
  EXPECT_LE(budget, uint64_t{4} << 30);
}

TEST(Compose, ThreadsDoNotDisturbEachOther) {
  const auto compose = MakeCompose({.transforms = kTraining});
  std::vector<std::vector<uint8_t>> files, wanted;
  for (uint64_t i = 0; i < 20; ++i) {
    files.push_back(testing::MakeJpeg({.width = 200, .height = 150, .seed = i}));
    wanted.push_back(Composed(compose->Apply(files.back(), {.position = i}).value().array));
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < files.size(); ++i) {
        EXPECT_EQ(Composed(compose->Apply(files[i], {.position = i}).value().array), wanted[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace stoker
