// Samples that are ranges of large files give the same batches as files of their own, and their
// files stay open no longer than loaders read them.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "engine/production/producer.h"
#include "engine/runtime/runtime.h"
#include "io/readers/reader.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/samples/packed_files.h"
#include "tests/testing/samples/photo_folder.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::PackedFiles;
using ::stoker::testing::PhotoFolder;
using ::stoker::testing::Take;
using ::stoker::testing::TakeEpoch;
using ::stoker::testing::TempFolder;

class ProducerRanges : public ::testing::TestWithParam<ReaderKind> {
 protected:
  void SetUp() override {
    if (!ChooseReader(GetParam()).ok()) GTEST_SKIP() << "no io_uring here";
    RuntimeOptions options = testing::RuntimeUnderTest(2);
    options.reader = GetParam();
    runtime = Runtime::Create(options).value();
  }

  LoaderOptions OptionsOf(std::shared_ptr<const SampleSource> source) const {
    LoaderOptions options;
    options.source = std::move(source);
    options.transforms = {RandomResizedCrop{.height = 32, .width = 24}};
    options.batch_size = 8;
    options.shuffle = true;
    options.runtime = runtime;
    return options;
  }

  const TempFolder folder;
  std::shared_ptr<Runtime> runtime;
};

TEST_P(ProducerRanges, GiveTheBatchesOfFiles) {
  const PhotoFolder photos(61, 4);
  const auto expected = TakeEpoch(*Producer::Open(OptionsOf(photos.Source())).value());
  const auto packed = std::make_shared<PackedFiles>(photos.Source(), folder.Path(""), 3);
  auto loader = Producer::Open(OptionsOf(packed)).value();
  EXPECT_EQ(TakeEpoch(*loader), expected);
  EXPECT_EQ(folder.OpenFiles(), 3u);
}

TEST_P(ProducerRanges, NoFileIsOpenAfterTheLastLoader) {
  const PhotoFolder photos(30, 2);
  const auto packed = std::make_shared<PackedFiles>(photos.Source(), folder.Path(""), 3);
  auto loader = Producer::Open(OptionsOf(packed)).value();
  (void)Take(*loader, 2);
  loader.reset();
  EXPECT_EQ(folder.OpenFiles(), 0u);
}

// Another list of the same files, which were rewritten while the first loader has them open.
TEST_P(ProducerRanges, ALoaderReadsTheFilesThatAreThereWhenItStarts) {
  const PhotoFolder photos(30, 2), others(30, 3);
  const auto packed = std::make_shared<PackedFiles>(photos.Source(), folder.Path(""), 2);
  auto first = Producer::Open(OptionsOf(packed)).value();
  (void)Take(*first, 1);
  const auto expected = TakeEpoch(*Producer::Open(OptionsOf(others.Source())).value());
  for (const char* name : {"0", "1"}) std::filesystem::remove(folder.Path(name));
  const auto anew = std::make_shared<PackedFiles>(others.Source(), folder.Path(""), 2);
  EXPECT_EQ(TakeEpoch(*Producer::Open(OptionsOf(anew)).value()), expected);
}

INSTANTIATE_TEST_SUITE_P(Readers, ProducerRanges,
                         ::testing::Values(ReaderKind::kPread, ReaderKind::kUring),
                         [](const auto& info) {
                           return info.param == ReaderKind::kPread ? "pread" : "uring";
                         });

}  // namespace
}  // namespace stoker
