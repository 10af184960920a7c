#include "engine/arrays/sized_by_headers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/arrays/decode_image.h"
#include "engine/runtime/runtime.h"
#include "io/files/section_file.h"
#include "io/index/dataset_index.h"
#include "io/memory/arrays.h"
#include "tests/testing/samples/numbered_source.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;
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
  const std::shared_ptr<Runtime> runtime_ = Runtime::Create({.threads = 3}).value();
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
