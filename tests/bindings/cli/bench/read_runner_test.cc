// `stoker bench --read-only` reads what a loader reads, and counts it correctly.
#include "bindings/cli/bench/reads/read_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "bindings/cli/bench/latencies.h"
#include "bindings/cli/bench/reads/fio.h"
#include "bindings/cli/bench/reads/page_cache.h"
#include "bindings/cli/pack/pack_folder.h"
#include "bindings/cli/synth/photograph.h"
#include "engine/loader/loader.h"
#include "engine/runtime/runtime.h"
#include "io/memory/arrays.h"
#include "io/packed/packed.h"
#include "io/ranges/path_source.h"
#include "io/select/combine.h"
#include "tests/testing/random.h"
#include "tests/testing/samples/listed_files.h"
#include "tests/testing/samples/packed_files.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker {
namespace {

using ::stoker::testing::ListedFiles;
using ::stoker::testing::PackedFiles;
using ::stoker::testing::Pattern;
using ::stoker::testing::TempFolder;
using ::testing::HasSubstr;

class ReadRunner : public ::testing::TestWithParam<ReaderKind> {
 protected:
  static constexpr uint32_t kFiles = 100;

  void SetUp() override {
    if (!ChooseReader(GetParam()).ok()) GTEST_SKIP() << "no io_uring here";
    std::vector<ListedFiles::Sample> samples;
    for (uint32_t i = 0; i < kFiles; ++i) {
      samples.push_back({folder.Write("sample" + std::to_string(i), Pattern(1000 + 100 * i, i))});
      bytes += 1000 + 100 * i;
    }
    files = std::make_shared<ListedFiles>(samples);
  }

  BenchOptions Options(std::shared_ptr<const SampleSource> source) const {
    BenchOptions options;
    options.loader.source = std::move(source);
    options.loader.batch_size = 16;
    options.loader.shuffle = true;
    options.runtime.reader = GetParam();
    options.runtime.reads_in_flight = 8;
    return options;
  }

  const TempFolder folder;
  std::shared_ptr<const SampleSource> files;
  uint64_t bytes = 0;
};

TEST_P(ReadRunner, ReadsEachSampleOnceAnEpoch) {
  BenchOptions options = Options(files);
  options.epochs = 3;
  const ReadReport report = RunReadBench(options).value();
  EXPECT_EQ(report.epochs, 3u);
  EXPECT_EQ(report.samples, 3 * kFiles);
  EXPECT_EQ(report.bytes, 3 * bytes);
  EXPECT_GE(report.counts.opens, 3 * kFiles);
  EXPECT_GT(report.counts.calls, 0u);
  EXPECT_GT(report.seconds, 0);
  EXPECT_LE(report.latency_p50_s, report.latency_p99_s);
  EXPECT_LE(report.latency_p99_s, report.latency_p999_s);
  EXPECT_EQ(report.reader.kind, GetParam());
  EXPECT_EQ(report.reads_in_flight, 8u);
  EXPECT_FALSE(report.interrupted);
}

TEST_P(ReadRunner, RefusesSamplesOfSeveralImages) {
  const PathTable paths(std::vector<std::string>{"/a"});
  const auto source = Files(paths, {.further = {{.name = "mask", .paths = paths}}}).value();
  const Result<ReadReport> refused = RunReadBench(Options(source));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
  EXPECT_THAT(refused.error().cause, HasSubstr("several images"));
}

// All files of samples leave the page cache.
TEST_P(ReadRunner, DropsMasksToo) {
  const PathTable images(std::vector<std::string>{folder.Path("sample0")});
  const PathTable masks(std::vector<std::string>{folder.Path("no mask")});
  const auto source = Files(images, {.further = {{.name = "mask", .paths = masks}}}).value();
  const Status dropped = DropFromPageCache(*source);
  ASSERT_FALSE(dropped.ok());
  EXPECT_EQ(dropped.error().file, folder.Path("no mask"));
  EXPECT_TRUE(DropFromPageCache(*Files(images).value()).ok());
}

TEST_P(ReadRunner, RanksShareTheSamples) {
  uint64_t samples = 0, read = 0;
  for (uint32_t rank = 0; rank < 3; ++rank) {
    BenchOptions options = Options(files);
    options.loader.rank = rank;
    options.loader.world = 3;
    const ReadReport report = RunReadBench(options).value();
    samples += report.samples;
    read += report.bytes;
  }
  EXPECT_EQ(samples, kFiles);
  EXPECT_EQ(read, bytes);
}

TEST_P(ReadRunner, CountsAFileOfManySamplesOnce) {
  BenchOptions options = Options(std::make_shared<PackedFiles>(files, folder.Path(""), 2));
  options.cold = true;
  const ReadReport report = RunReadBench(options).value();
  EXPECT_EQ(report.samples, kFiles);
  EXPECT_EQ(report.bytes, bytes);
  EXPECT_LE(report.counts.opens, 2 + 2 * options.runtime.reads_in_flight)
      << "reads that begin before a file is open open it for themselves";
}

// Packed photographs: reads the rows that the crops need, with several views those of any of them.
TEST_P(ReadRunner, OfPackedPhotographsItReadsWhatALoaderReads) {
  std::vector<std::shared_ptr<const SampleSource>> sources;
  uint64_t whole = 0;
  for (const std::string set : {"one", "other"}) {
    for (uint64_t i = 0; i < 20; ++i) {
      const PhotographRecipe recipe{.width = 300 + static_cast<int>(i), .height = 250};
      const std::vector<uint8_t> photo = RenderPhotograph(recipe, 1, i);
      folder.Write(set + "/a/" + std::to_string(i) + ".jpg", {photo.begin(), photo.end()});
    }
    PackFolder(folder.Path(set), folder.Path(set + "-packed"), {}).value();
    sources.push_back(Packed(folder.Path(set + "-packed")).value());
    for (uint64_t id = 0; id < sources.back()->size(); ++id) {
      whole += sources.back()->RangeOf(id).length;
    }
  }
  const std::vector<Transform> crop = {RandomResizedCrop{.height = 32, .width = 32}};
  constexpr double kWeights[] = {1, 3};
  const auto runtime = Runtime::Create({.threads = 2, .executor = ExecutorKind::kThreads}).value();
  for (const auto& source : {Combine(sources).value(), Combine(sources, kWeights).value()}) {
    for (const bool several : {false, true}) {
      SCOPED_TRACE(source->Describe() + (several ? ", views" : ""));
      BenchOptions options = Options(source);
      options.epochs = 2;
      if (several) {
        options.loader.views = {crop, {CenterCrop{.height = 40, .width = 40}}, crop};
      } else {
        options.loader.transforms = crop;
      }
      const ReadReport report = RunReadBench(options).value();
      options.loader.epochs = 2;
      options.loader.runtime = runtime;
      const auto loader = Loader::Open(options.loader).value();
      for (uint64_t epoch = 0; epoch < 2; ++epoch) {
        const auto iterator = loader->Iterate();
        while (iterator->Next().value()) {
        }
      }
      EXPECT_EQ(report.bytes, loader->Stats().bytes_read);
      EXPECT_EQ(report.samples, 2 * source->size());
      EXPECT_LT(report.bytes, 2 * whole);
    }
  }
}

TEST_P(ReadRunner, TheFirstErrorEndsTheRun) {
  std::vector<ListedFiles::Sample> samples{{folder.Path("sample1")}, {folder.Path("missing")}};
  const Result<ReadReport> report = RunReadBench(Options(std::make_shared<ListedFiles>(samples)));
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kNotFound);
  EXPECT_EQ(report.error().file, folder.Path("missing"));
}

TEST_P(ReadRunner, CanBeInterrupted) {
  BenchOptions options = Options(files);
  options.epochs = 1'000'000'000;
  const ReadReport report = RunReadBench(options, [](const ReadProgress& progress) {
                              return progress.samples < 300;
                            }).value();
  EXPECT_TRUE(report.interrupted);
  EXPECT_GE(report.samples, 300u);
  EXPECT_EQ(report.epochs, report.samples / kFiles);
  EXPECT_THAT(ReadReportText(report), HasSubstr("interrupted"));
}

TEST_P(ReadRunner, RefusesSamplesInMemory) {
  const std::vector<uint8_t> values(10);
  const auto arrays =
      Arrays({{.name = "x", .row_shape = {}, .data = values.data(), .samples = 10}}, nullptr)
          .value();
  EXPECT_EQ(RunReadBench(Options(arrays)).error().code, Code::kInvalidArgument);
}

TEST_P(ReadRunner, FioMakesTheSameReads) {
  // NOLINTNEXTLINE(bugprone-command-processor): the text is constant
  if (system("fio --version > /dev/null 2>&1") != 0) GTEST_SKIP() << "fio is not installed";
  const auto packed = std::make_shared<PackedFiles>(files, folder.Path(""), 2);
  for (const std::shared_ptr<const SampleSource>& source :
       std::initializer_list<std::shared_ptr<const SampleSource>>{files, packed}) {
    const ReadReport report = RunReadBench(Options(source)).value();
    ASSERT_TRUE(report.fio);
    EXPECT_EQ(report.fio->reads, kFiles);
    EXPECT_GT(report.fio->bytes_per_second, 0);
    EXPECT_THAT(ReadReportText(report), HasSubstr("for the first 100 of these reads"));
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, ReadRunner,
                         ::testing::Values(ReaderKind::kPread, ReaderKind::kUring),
                         [](const auto& info) {
                           return info.param == ReaderKind::kPread ? "pread" : "uring";
                         });

TEST(Latencies, QuantilesAreAtMostAThirtySecondTooSmall) {
  EXPECT_EQ(Latencies().Quantile(0.5), 0u);
  testing::Random random(1);
  for (const int bits : {1, 6, 7, 20, 62}) {
    Latencies latencies;
    std::vector<uint64_t> all;
    for (int i = 0; i < 1000; ++i) {
      all.push_back((uint64_t{1} << random.Between(0, bits)) +
                    random.Between(0, 1 << 20) % (1 << bits % 31));
      latencies.Add(all.back());
    }
    std::ranges::sort(all);
    for (const double share : {0.0, 0.5, 0.99, 0.999, 1.0}) {
      const uint64_t exact = all[std::min<size_t>(999, static_cast<size_t>(share * 1000))];
      const uint64_t told = latencies.Quantile(share);
      EXPECT_LE(told, exact);
      EXPECT_GE(told + exact / 32, exact) << share;
    }
  }
  Latencies largest;
  largest.Add(UINT64_MAX);
  EXPECT_GE(largest.Quantile(0.5), UINT64_MAX / 32 * 31);
}

TEST(FioReport, IsReadIfFioSucceeded) {
  const std::string good = "3;fio-3.33;stoker;0;0;34810;610716;7017;57;1;16127\n";
  const FioFigure figure = ParseFioReport(good).value();
  EXPECT_EQ(figure.reads_per_second, 7017);
  EXPECT_EQ(figure.bytes_per_second, 610716.0 * 1024);
  for (const char* bad : {"", "3", ";;;;;;;;;;", "2;fio-3.33;stoker;0;0;34810;610716;7017;57",
                          "3;fio-3.33;stoker;0;5;34810;610716;7017;57",
                          "3;fio-3.33;stoker;0;0;34810;many;7017;57", "fio: no such file\n"}) {
    EXPECT_FALSE(ParseFioReport(bad)) << bad;
  }
}

TEST(FioReport, IsNotTriedForPathsThatItsListCannotHold) {
  EXPECT_FALSE(MeasureWithFio({{.path = "/a file", .length = 1}}, ReaderKind::kPread, 1));
  EXPECT_FALSE(
      MeasureWithFio({{.path = std::string(300, 'x'), .length = 1}}, ReaderKind::kPread, 1));
  EXPECT_FALSE(MeasureWithFio({}, ReaderKind::kPread, 1));
}

TEST(CachedShare, CountsWhatIsThere) {
  const TempFolder folder;
  const ListedFiles files({{folder.Write("a", Pattern(100'000))}, {folder.Write("b", "")}});
  EXPECT_EQ(CachedShare(files), 1.0) << "they have just been written";
  EXPECT_EQ(CachedShare(ListedFiles({{folder.Path("missing")}, {folder.Path(".")}})), std::nullopt);
  ASSERT_TRUE(DropFromPageCache(files).ok());
  const double dropped = CachedShare(files).value();  // the file system may ignore the request
  EXPECT_GE(dropped, 0);
  EXPECT_LE(dropped, 1);
}

}  // namespace
}  // namespace stoker
