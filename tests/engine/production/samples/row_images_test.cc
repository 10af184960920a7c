// Rows of any number of images, among them rows of text alone: batches at the memory limit, at a
// loader's end, next to bad images, and of objects on a server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/arrays/processor.h"
#include "engine/loader/loader.h"
#include "engine/memory/memory_manager.h"
#include "io/memory/string_rows.h"
#include "io/ranges/path_source.h"
#include "io/select/subset.h"
#include "tests/testing/effort.h"
#include "tests/testing/images/make_jpeg.h"
#include "tests/testing/images/make_png.h"
#include "tests/testing/samples/batches.h"
#include "tests/testing/storage/object_server.h"
#include "tests/testing/storage/temp_folder.h"
#include "tests/testing/threads/executors.h"

namespace stoker {
namespace {

using ::stoker::testing::Effort;
using ::stoker::testing::ObjectServer;
using ::stoker::testing::RuntimeUnderTest;
using ::testing::EndsWith;

constexpr uint64_t kMiB = 1 << 20;
// The budget of the batches and of one large image, whose coefficients are 5.5 MiB.
constexpr uint64_t kTightBudget = 13 * kMiB;

class RowImages : public ::testing::Test {
 protected:
  // The images of each sample; every third or so has text alone.
  static constexpr int kCounts[] = {2, 0, 1, 3, 0, 0, 1, 4, 0, 2, 1,
                                    0, 1, 5, 0, 2, 0, 1, 1, 0, 3, 0};
  static constexpr uint64_t kSamples = std::size(kCounts);

  RowImages() {
    const std::vector<uint8_t> large = testing::MakeJpeg(
        {.width = 1200, .height = 800, .scans = testing::JpegScans::kProgressive});
    for (uint64_t id = 0; id < kSamples; ++id) {
      for (int i = 0; i < kCounts[id]; ++i) {
        const int image = static_cast<int>(names_.size());
        names_.push_back(std::to_string(image) + ".jpg");
        const std::vector<uint8_t> bytes =
            image % 3 == 0   ? large
            : image % 3 == 1 ? testing::MakeJpeg({.width = 90 + image, .height = 70})
                             : testing::MakePng({.width = 60, .height = 50 + image});
        Put(image, {bytes.begin(), bytes.end()});
      }
      ends_.push_back(names_.size());
      texts_.Add("text " + std::to_string(id));
    }
  }

  void Put(size_t image, const std::string& bytes) const { folder_.Write(names_[image], bytes); }

  // `root`: a folder or a URL.
  std::shared_ptr<const SampleSource> SourceAt(const std::string& root) const {
    FilesOptions options{.images = ImageNumbers(ends_), .root = root};
    options.columns = {texts_.Column("text", DType::kString)};
    return Files(PathTable(names_), std::move(options)).value();
  }

  LoaderOptions Options(RuntimeOptions runtime, uint64_t budget = 0) const {
    LoaderOptions options;
    options.source = SourceAt(folder_.path());
    options.processor = processor_;
    options.batch_size = 3;
    options.shuffle = true;
    options.seed = 3;
    options.depth = 2;
    options.max_bad_fraction = 1;
    runtime.memory_budget = budget;
    options.runtime = Runtime::Create(runtime).value();
    return options;
  }

  // Fails unless each row has the pixels that the processor makes of its images, and its text.
  void ExpectRows(const Batch& batch) const {
    const Column& pixels = batch.columns()[0];
    for (size_t row = 0; row < batch.sample_ids().size(); ++row) {
      const uint64_t id = batch.sample_ids()[row];
      SCOPED_TRACE("sample " + std::to_string(id));
      EXPECT_EQ(batch.columns()[1].as<std::string_view>()[row], "text " + std::to_string(id));
      const std::span<const float> got = pixels.objects<float>(static_cast<int64_t>(row));
      std::vector<float> wanted;
      for (uint64_t i = id == 0 ? 0 : ends_[id - 1]; i < ends_[id]; ++i) {
        const ProcessedImages made =
            processor_->Process({.bytes = {}, .path = folder_.Path(names_[i])}).value();
        const auto* values = reinterpret_cast<const float*>(made.array.memory.get());
        wanted.insert(wanted.end(), values, values + made.array.shape.bytes() / sizeof(float));
      }
      EXPECT_TRUE(std::ranges::equal(got, wanted));
    }
  }

  std::vector<uint64_t> Prints(Loader& loader, uint64_t epochs = 2) const {
    std::vector<uint64_t> prints;
    testing::ForEachBatch(
        loader, epochs, [&](const Batch& batch) { prints.push_back(testing::Fingerprint(batch)); });
    return prints;
  }

  static std::set<uint64_t> IdsOf(Loader& loader, const auto& take) {
    std::set<uint64_t> ids;
    testing::ForEachBatch(loader, 1, [&](const Batch& batch) {
      take(batch);
      ids.insert(batch.sample_ids().begin(), batch.sample_ids().end());
    });
    return ids;
  }

  const testing::TempFolder folder_;
  const std::shared_ptr<const Processor> processor_ =
      Processor::Create({.recipe = {.size = {40, 32}}}).value();
  std::vector<std::string> names_;  // of images
  std::vector<uint64_t> ends_;
  StringRows texts_;
};

TEST_F(RowImages, AreThoseOfTheProcessor) {
  const auto loader = Loader::Open(Options(RuntimeUnderTest(2))).value();
  EXPECT_EQ(IdsOf(*loader, [&](const Batch& batch) { ExpectRows(batch); }).size(), kSamples);
}

// Images wait for memory and are decoded again, also those next to rows of text alone, which need
// none: batches stay the same, and all memory is returned.
TEST_F(RowImages, WaitForMemory) {
  const auto wanted = Prints(*Loader::Open(Options(RuntimeUnderTest(2), 512 * kMiB)).value());
  uint64_t waited = 0;
  for (const testing::TestedExecutor executor : testing::ExecutorsUnderTest()) {
    // Whether two large images meet is a matter of chance, so the test repeats until they do.
    for (int round = 0; round < Effort(3) || (waited == 0 && round < 40); ++round) {
      RuntimeOptions runtime = RuntimeUnderTest(1 + (round + 2) % 4);
      testing::SetExecutor(executor, runtime, static_cast<uint64_t>(round));
      const LoaderOptions options = Options(runtime, kTightBudget);
      auto loader = Loader::Open(options).value();
      EXPECT_EQ(Prints(*loader), wanted) << "round " << round;
      EXPECT_LE(options.runtime->budget().peak(), kTightBudget);
      waited += options.runtime->memory().samples_waited();
      loader.reset();
      EXPECT_EQ(options.runtime->budget().used(), 0u);
    }
  }
  EXPECT_GT(waited, 0u);
}

// A batch of text alone needs no read and no memory but its slot.
TEST_F(RowImages, OfTextAloneNeedNoMemory) {
  std::vector<uint64_t> ids;
  for (uint64_t id = 0; id < kSamples; ++id) {
    if (kCounts[id] == 0) ids.push_back(id);
  }
  for (size_t image = 0; image < names_.size(); ++image) {
    std::filesystem::remove(folder_.Path(names_[image]));
  }
  LoaderOptions options = Options(RuntimeUnderTest(2), kTightBudget);
  options.source = Subset(options.source, ids).value();
  const auto loader = Loader::Open(options).value();
  uint64_t rows = 0;
  testing::ForEachBatch(*loader, 2, [&](const Batch& batch) {
    rows += batch.sample_ids().size();
    EXPECT_EQ(batch.columns()[0].shape[0], 0);
    for (const std::string_view text : batch.columns()[1].as<std::string_view>()) {
      EXPECT_TRUE(text.starts_with("text ")) << text;
    }
  });
  EXPECT_EQ(rows, 2 * ids.size());
  EXPECT_EQ(loader->Stats().bad.dropped, 0u);
}

// A loader stops, restores a state or is destroyed while rows of text stand next to images that
// wait.
TEST_F(RowImages, StopAtAnyTime) {
  for (int round = 0; round < Effort(16); ++round) {
    RuntimeOptions runtime = RuntimeUnderTest(1 + round % 3);
    const auto executors = testing::ExecutorsUnderTest();
    testing::SetExecutor(executors[static_cast<size_t>(round) % executors.size()], runtime);
    const LoaderOptions options = Options(runtime, kTightBudget);
    auto loader = Loader::Open(options).value();
    auto iterator = loader->Iterate();
    const std::string begin = iterator->state();
    const Batch first = iterator->Next().value();
    for (int i = 0; i < round % 7; ++i) EXPECT_TRUE(iterator->Next().ok());
    if (round % 3 == 0) {
      ASSERT_TRUE(iterator->Restore(begin).ok());
      EXPECT_EQ(testing::Fingerprint(iterator->Next().value()), testing::Fingerprint(first));
    } else if (round % 3 == 1) {
      loader->Stop();
    }
    iterator.reset();
    loader.reset();
  }
}

// A bad image is a fault of its sample alone, whichever of its images it is: rows of text and of
// other images keep their content, with room for all or not.
TEST_F(RowImages, NextToBadOnes) {
  const std::set<uint64_t> bad = {0, 3, 12, 20};
  for (const size_t image : {size_t{1}, static_cast<size_t>(ends_[2]) + 1,
                             static_cast<size_t>(ends_[11]), static_cast<size_t>(ends_[19]) + 2}) {
    Put(image, "no image");
  }
  for (const uint64_t budget : {512 * kMiB, kTightBudget}) {
    for (const testing::TestedExecutor executor : testing::ExecutorsUnderTest()) {
      RuntimeOptions runtime = RuntimeUnderTest(3);
      testing::SetExecutor(executor, runtime, 5);
      LoaderOptions options = Options(runtime, budget);
      options.on_bad = BadPolicy::Parse("drop").value();
      auto dropping = Loader::Open(options).value();
      std::set<uint64_t> ids = IdsOf(*dropping, [&](const Batch& batch) { ExpectRows(batch); });
      EXPECT_EQ(ids.size(), kSamples - bad.size());
      EXPECT_EQ(dropping->Stats().bad.dropped, bad.size());
      for (const uint64_t id : bad) EXPECT_FALSE(ids.contains(id));
      dropping.reset();

      options.on_bad = BadPolicy::Parse("substitute").value();
      const auto substituting = Loader::Open(options).value();
      uint64_t rows = 0;
      ids = IdsOf(*substituting, [&](const Batch& batch) {
        ExpectRows(batch);
        rows += batch.sample_ids().size();
      });
      const BadCounts counts = substituting->Stats().bad;
      EXPECT_EQ(counts.substituted + counts.dropped, bad.size());
      EXPECT_EQ(rows, kSamples - counts.dropped);
      for (const uint64_t id : bad) EXPECT_FALSE(ids.contains(id));
    }
  }
}

// Lists of URLs: batches are those of the files, and an object that is missing is a bad sample.
TEST_F(RowImages, OfObjectsOnAServer) {
  const auto wanted = Prints(*Loader::Open(Options(RuntimeUnderTest(2))).value());
  ObjectServer server([&](const ObjectServer::Get& get) {
    return ObjectServer::Part(testing::BytesOfFile(folder_.Path(get.path.substr(1))), get);
  });
  LoaderOptions options = Options(RuntimeUnderTest(2));
  options.source = SourceAt(server.url());
  EXPECT_EQ(Prints(*Loader::Open(options).value()), wanted);
  EXPECT_GE(server.requests(), 2 * names_.size()) << "and none for text alone";

  constexpr char kMissing[] = "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n";
  const std::string gone = "/" + names_[ends_[12]];  // the first of sample 13
  ObjectServer lossy([&](const ObjectServer::Get& get) {
    if (get.path == gone) return std::string(kMissing);
    return ObjectServer::Part(testing::BytesOfFile(folder_.Path(get.path.substr(1))), get);
  });
  options.source = SourceAt(lossy.url());
  std::vector<Error> errors;
  const auto failing = Loader::Open(options).value();
  const auto iterator = failing->Iterate();
  for (Result<Batch> batch = iterator->Next(); !batch.ok() || *batch; batch = iterator->Next()) {
    if (!batch.ok()) errors.push_back(batch.error());
    ASSERT_LE(errors.size(), 1u);
  }
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].code, Code::kNotFound);
  EXPECT_THAT(errors[0].file, EndsWith(gone));
  options.on_bad = BadPolicy::Parse("drop").value();
  const auto dropping = Loader::Open(options).value();
  const std::set<uint64_t> ids = IdsOf(*dropping, [&](const Batch& b) { ExpectRows(b); });
  EXPECT_EQ(ids.size(), kSamples - 1);
  EXPECT_FALSE(ids.contains(13));
}

}  // namespace
}  // namespace stoker
