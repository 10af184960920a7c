#include "engine/arrays/sized_by_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/arrays/decode_image.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/runtime.h"
#include "io/files/section_file.h"
#include "io/index/dataset_index.h"
#include "io/memory/arrays.h"
#include "tests/testing/samples/called_photos.h"
#include "tests/testing/samples/numbered_source.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::PhotoFolder;
using Source = std::shared_ptr<const SampleSource>;

class SizedByHeadersTest : public ::testing::Test {
 protected:
  Result<Source> Open(const Interrupt& interrupt = {}) {
    return SizedByHeaders(photos_.Source(), *runtime_, index_, interrupt);
  }

  // Compares sizes with those of the decoded images; `unknown` has none.
  void ExpectSizes(const SampleSource& sized, uint64_t unknown = ~uint64_t{0}) {
    ASSERT_EQ(sized.size(), 30u);
    for (uint64_t id = 0; id < sized.size(); ++id) {
      const ImageFacts facts = sized.FactsOf(id);
      if (id == unknown) {
        EXPECT_EQ(facts, ImageFacts());
        continue;
      }
      const auto image = DecodeImageFile(photos_.FileOf(id), {.exif_orientation = false}).value();
      EXPECT_EQ(facts.height, image.shape.sides[0]);
      EXPECT_EQ(facts.width, image.shape.sides[1]);
    }
  }

  const PhotoFolder photos_{30, 3};
  const testing::TempFolder folder_;
  const std::string index_ = folder_.Path("sizes");
  const std::shared_ptr<Runtime> runtime_ = Runtime::Create(testing::RuntimeUnderTest(3)).value();
};

TEST_F(SizedByHeadersTest, SizesAreThoseOfTheImages) {
  ExpectSizes(*Open().value());
  photos_.Overwrite(4, "from here on the index is used");
  const Source again = Open().value();
  EXPECT_EQ(again->Warning(), "");
  EXPECT_NE(again->FactsOf(4).width, 0u);
}

TEST_F(SizedByHeadersTest, ImagesThatCannotBeReadAreCounted) {
  photos_.Overwrite(4, "no image");
  for (int opening = 0; opening < 2; ++opening) {
    const Source sized = Open().value();
    ExpectSizes(*sized, 4);
    EXPECT_THAT(sized->Warning(), HasSubstr("1 of 30 samples"));
    EXPECT_THAT(sized->Warning(), HasSubstr("sample 4: " + photos_.FileOf(4)));
  }
}

// Its cause may pass.
TEST_F(SizedByHeadersTest, UnknownSizesAreReadAgain) {
  const std::string sound = testing::BytesOfFile(photos_.FileOf(4));
  photos_.Overwrite(4, sound.substr(0, 20));
  EXPECT_EQ(Open().value()->FactsOf(4).width, 0u);
  photos_.Overwrite(4, sound);
  ExpectSizes(*Open().value());
  photos_.Overwrite(4, "from here on the index has it");
  EXPECT_NE(Open().value()->FactsOf(4).width, 0u);
}

// As an equal fingerprint of other images.
TEST_F(SizedByHeadersTest, SomeHeadersAreComparedWithTheIndex) {
  std::vector<ImageFacts> facts(30, ImageFacts{.width = 7, .height = 5, .orientation = 6});
  const uint64_t fingerprint = photos_.Source()->Fingerprint();
  const auto write = [&] {
    auto file = SectionFileWriter::Create(index_, 1).value();
    ASSERT_TRUE(DatasetIndex::WriteFacts(std::move(file), fingerprint, facts).ok());
  };
  write();
  const Error error = Open().error();
  EXPECT_EQ(error.code, Code::kFailedPrecondition);
  EXPECT_EQ(error.file, index_);
  EXPECT_THAT(error.cause, HasSubstr("sample 0 (" + photos_.FileOf(0)));
  EXPECT_THAT(error.cause, HasSubstr("in the index height 5, width 7 and orientation 6"));
  for (uint64_t id = 0; id < 30; ++id) {
    if (id % 15 != 0) facts[id] = ImageFacts();
  }
  write();
  EXPECT_EQ(Open().error().code, Code::kFailedPrecondition);
}

// The file is larger than the memory for headers: it is not read, and the others are.
TEST_F(SizedByHeadersTest, AHeaderWithoutRoomStaysUnknown) {
  photos_.Overwrite(4, "no image");
  std::filesystem::resize_file(photos_.FileOf(4), uint64_t{5} << 30);  // takes no room on the disk
  const Source sized = Open().value();
  ExpectSizes(*sized, 4);
  EXPECT_THAT(sized->Warning(), HasSubstr("1 of 30 samples"));
  EXPECT_THAT(sized->Warning(), HasSubstr(photos_.FileOf(4)));
  EXPECT_THAT(sized->Warning(), HasSubstr("finding its size takes 5368"));
  EXPECT_THAT(sized->Warning(), Not(HasSubstr("memory_budget")));
  EXPECT_THAT(sized->Warning(), Not(HasSubstr("memory budget")));
}

// Headers that are being read when the interrupt is asked are read to their ends.
TEST_F(SizedByHeadersTest, AnInterruptEndsIt) {
  std::atomic<bool> asked = false;
  const Source source = std::make_shared<testing::CalledPhotos>(
      photos_.Source(), 3, [&](uint64_t, const std::string& file, LoadedSample& loaded) {
        asked.wait(false);
        return testing::GiveBytes(file, loaded);
      });
  const auto interrupt = [&] {
    asked = true;
    asked.notify_all();
    return true;
  };
  EXPECT_EQ(SizedByHeaders(source, *runtime_, index_, interrupt).error().code, Code::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(index_));
  const Source whole = SizedByHeaders(source, *runtime_, index_).value();
  ExpectSizes(*whole);
  EXPECT_TRUE(std::filesystem::exists(index_));
}

// The runtime's workers, which read files, have another task until the interrupt is asked.
TEST_F(SizedByHeadersTest, AnInterruptEndsReadsOfFiles) {
  std::atomic<bool> asked = false;
  const auto runtime =
      Runtime::Create(testing::RuntimeUnderTest(3)).value();  // ends before `asked`
  const auto wait = [](void* context, uint32_t, int) {
    static_cast<std::atomic<bool>*>(context)->wait(false);
  };
  Executor& workers = runtime->executor();
  for (int i = workers.concurrency(); i > 0; --i) workers.Submit({wait, &asked});
  const auto interrupt = [&] {
    asked = true;
    asked.notify_all();
    return true;
  };
  const auto cancelled = SizedByHeaders(photos_.Source(), *runtime, index_, interrupt);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code, Code::kCancelled);
  EXPECT_FALSE(std::filesystem::exists(index_));
  ExpectSizes(*Open().value());
}

TEST_F(SizedByHeadersTest, AnIndexThatCannotBeWrittenIsRefused) {
  const Error error = SizedByHeaders(photos_.Source(), *runtime_, "/nowhere/index").error();
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_EQ(error.file, "/nowhere/index");
}

TEST_F(SizedByHeadersTest, WithoutAFingerprintThereIsNoIndex) {
  const Source source = std::make_shared<testing::NumberedSource>(0);
  EXPECT_THAT(SizedByHeaders(source, *runtime_, index_).error().cause, HasSubstr("no fingerprint"));
  EXPECT_TRUE(SizedByHeaders(source, *runtime_).ok());
}

TEST_F(SizedByHeadersTest, ManyOpenItAtOnce) {
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([this] { ExpectSizes(*Open().value()); });
  }
  threads.clear();
  size_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
    files += file.path() == index_ ? 1 : 100;
  }
  EXPECT_EQ(files, 1u);
}

TEST_F(SizedByHeadersTest, RefusesWhatHasNoHeaders) {
  const std::vector<uint8_t> pixels(12);
  const Source arrays = Arrays({{.name = "image",
                                 .dtype = DType::kU8,
                                 .row_shape = {},
                                 .data = pixels.data(),
                                 .samples = 12}},
                               nullptr)
                            .value();
  EXPECT_EQ(SizedByHeaders(arrays, *runtime_).error().code, Code::kInvalidArgument);
  EXPECT_EQ(SizedByHeaders(nullptr, *runtime_).error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace stoker
