#include "bindings/cli/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "io/source/source.h"
#include "tests/testing/samples/listed_files.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

std::string TextOf(const std::vector<testing::ListedFiles::Sample>& samples) {
  BenchReport report;
  report.options.loader.source = std::make_shared<testing::ListedFiles>(samples);
  report.source = report.options.loader.source->Describe();
  report.samples = samples.size();
  return BenchReportText(report);
}

TEST(BenchReport, SaysWhetherSamplesWithoutClassesHaveLabels) {
  EXPECT_THAT(TextOf({{"a.jpg", 7}, {"b.jpg", 7}}),
              HasSubstr("a list: 2 samples, labels without names"));
  EXPECT_THAT(TextOf({{"a.jpg"}, {"b.jpg"}}), HasSubstr("a list: 2 samples, no labels"));
}

// Memory that was not pinned makes copies to a device slow, in every figure of them.
TEST(BenchReport, SaysThatMemoryWasNotPinned) {
  BenchReport report;
  report.options.loader.source =
      std::make_shared<testing::ListedFiles>(std::vector<testing::ListedFiles::Sample>{{"a.jpg"}});
  EXPECT_THAT(BenchReportJson(report), HasSubstr(R"("memory_warnings":[])"));
  report.memory_warnings = {"it could not be pinned"};
  EXPECT_THAT(BenchReportText(report), HasSubstr("it could not be pinned"));
  EXPECT_THAT(BenchReportJson(report),
              HasSubstr(R"("memory_warnings":["it could not be pinned"])"));
  report.options.device.emplace();
  report.device.emplace();
  report.loader.pinned_bytes = 7;
  report.loader.pinning_ns = 1'500'000'000;
  EXPECT_THAT(BenchReportJson(report), HasSubstr(R"("pinned_bytes":7,"pinning_s":1.5)"));
}

// Files in decimal units, as the rate next to them; memory in binary ones, as --memory-budget is
// given.
TEST(BenchReport, GivesFilesAndMemoryInTheirUnits) {
  BenchReport report;
  report.options.loader.source =
      std::make_shared<testing::ListedFiles>(std::vector<testing::ListedFiles::Sample>{{"a.jpg"}});
  report.seconds = 2;
  report.bytes_read = 42'000'000;
  report.bytes_from_storage = 1'500;
  report.peak_memory_bytes = 3 << 20;
  const std::string text = BenchReportText(report);
  EXPECT_THAT(text, HasSubstr(" 21.0 MB/s   42.0 MB, 1.5 kB of it from storage"));
  EXPECT_THAT(text, HasSubstr(" 3.0 MiB   whole process; 0 B reserved of the budget of 0 B"));
}

// Rows go on below their last column, and a path stays whole.
TEST(BenchReport, FitsThePage) {
  BenchReport report;
  report.options.loader.source =
      std::make_shared<testing::ListedFiles>(std::vector<testing::ListedFiles::Sample>{{"a.jpg"}});
  report.warning =
      "the index /a/long/path/that/is/wider/than/the/page/photos.index is of other files";
  const std::string whole = BenchReportText(report);
  const std::string text = BenchReportText(report, {.prose = 64, .rows = 64});
  EXPECT_THAT(text, HasSubstr("\n  crop index     the index\n                 "
                              "/a/long/path/that/is/wider/than/the/page/photos.index\n"
                              "                 is of other files\n"));
  EXPECT_THAT(text, HasSubstr("   how long Next()\n" + std::string(44, ' ') + "takes; small:\n"));
  const auto words = [](const std::string& lines) {
    std::istringstream all(lines);
    return std::vector<std::string>(std::istream_iterator<std::string>(all), {});
  };
  EXPECT_EQ(words(text), words(whole));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find('/') != std::string::npos) continue;
    EXPECT_LE(cli::ColumnsOf(line), 64u) << line;
  }
}

}  // namespace
}  // namespace stoker
