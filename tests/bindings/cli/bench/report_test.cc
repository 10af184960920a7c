#include "bindings/cli/bench/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/sources/source.h"
#include "tests/testing/listed_files.h"

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
              HasSubstr("a list: 2 images, labels without names"));
  EXPECT_THAT(TextOf({{"a.jpg"}, {"b.jpg"}}), HasSubstr("a list: 2 images, no labels"));
}

}  // namespace
}  // namespace stoker
