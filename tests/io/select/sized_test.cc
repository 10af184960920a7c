#include "io/select/sized.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "io/select/combine.h"
#include "io/select/subset.h"
#include "io/select/weighted.h"
#include "tests/testing/samples/numbered_source.h"

namespace stoker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::NumberedSource;
using Source = std::shared_ptr<const SampleSource>;

Source NumbersToSize(uint64_t size) { return std::make_shared<NumberedSource>(size); }

// Six samples; knows the sizes of 0 and 3, and says that all have ranges of rows.
class PartlyKnown final : public SampleSource {
 public:
  uint64_t size() const override { return 6; }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/false); }
  ByteRange RangeOf(uint64_t id) const override { return {.file = static_cast<uint32_t>(id)}; }
  void PathOf(uint32_t /*file*/, std::string& path) const override { path = "a"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "partly known"; }
  ImageFacts FactsOf(uint64_t id) const override {
    if (id % 3 != 0) return {.file_bytes = 9};
    return {.file_bytes = 9, .width = 640, .height = 480, .orientation = 6, .format = 1};
  }
  bool has_row_ranges(uint64_t /*id*/) const override { return true; }

 private:
  const std::vector<std::string> classes_;
};

std::vector<ImageSize> SizesFor(uint64_t samples) {
  std::vector<ImageSize> sizes;
  for (int id = 0; id < static_cast<int>(samples); ++id) sizes.push_back({100 + id, 50 + id});
  return sizes;
}

std::string SizedErrorOf(const Source& source, const std::vector<ImageSize>& sizes) {
  const Result<Source> made = Sized(source, sizes);
  if (made.ok()) return "";
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
  return made.error().Message();
}

TEST(Sized, OnlySizesAreNew) {
  const Source source = NumbersToSize(100);
  const Source sized = Sized(source, SizesFor(100)).value();
  EXPECT_EQ(sized->Fingerprint(), source->Fingerprint());
  EXPECT_EQ(sized->Warning(), source->Warning());
  EXPECT_EQ(sized->fields().data(), source->fields().data());
  EXPECT_EQ(&sized->classes(), &source->classes());
  EXPECT_EQ(sized->files(), source->files());
  EXPECT_EQ(sized->Describe(), "sized(numbered)");
  EXPECT_GE(sized->memory_bytes(), source->memory_bytes() + 100 * sizeof(ImageFacts));
  for (uint64_t id = 0; id < 100; ++id) {
    EXPECT_EQ(sized->RangeOf(id).offset, source->RangeOf(id).offset);
    EXPECT_EQ(sized->LabelOf(id), source->LabelOf(id));
    const ImageFacts facts = sized->FactsOf(id);
    EXPECT_EQ(facts, (ImageFacts{.file_bytes = id,
                                 .width = 100 + static_cast<uint32_t>(id),
                                 .height = 50 + static_cast<uint32_t>(id)}));
  }
}

TEST(Sized, SizesFollowWhatIsMadeOfTheSource) {
  const Source sized = Sized(NumbersToSize(10), SizesFor(10)).value();
  const Source chosen = Subset(sized, std::vector<uint64_t>{7, 2}).value();
  EXPECT_EQ(chosen->FactsOf(0).width, 107u);
  EXPECT_EQ(chosen->FactsOf(1).height, 52u);
  const Source all = Combine({sized, Sized(NumbersToSize(5), SizesFor(5)).value()}).value();
  EXPECT_EQ(all->FactsOf(9).width, 109u);
  EXPECT_EQ(all->FactsOf(12).width, 102u);
  const Source again = Sized(chosen, std::vector<ImageSize>{{107, 57}, {102, 52}}).value();
  EXPECT_EQ(again->FactsOf(1).width, 102u);
}

// Sizes that the source itself knows stay, and rows are read only by these heights.
TEST(Sized, WhatTheSourceKnowsStays) {
  const Source source = std::make_shared<PartlyKnown>();
  std::vector<ImageSize> sizes = SizesFor(6);
  EXPECT_THAT(SizedErrorOf(source, sizes), AllOf(HasSubstr("sizes[0] has height 50 and width 100"),
                                                 HasSubstr("knows height 480 and width 640")));
  sizes[0] = sizes[3] = {640, 480};
  const Source sized = Sized(source, sizes).value();
  EXPECT_EQ(sized->FactsOf(3), source->FactsOf(3));
  EXPECT_EQ(sized->FactsOf(4).width, 104u);
  EXPECT_TRUE(sized->has_row_ranges(3));
  EXPECT_FALSE(sized->has_row_ranges(4));
  EXPECT_TRUE(source->has_row_ranges(4));
}

TEST(Sized, HostileSizesAreRefused) {
  const Source source = NumbersToSize(4);
  for (const size_t wrong : {size_t{0}, size_t{3}, size_t{5}}) {
    EXPECT_THAT(SizedErrorOf(source, SizesFor(wrong)),
                AllOf(HasSubstr(std::to_string(wrong) + " sizes"), HasSubstr("4 samples")));
  }
  for (const ImageSize bad : {ImageSize{0, 0},
                              {0, 5},
                              {5, 0},
                              {-1, 5},
                              {5, -2147483647 - 1},
                              {65536, 5},
                              {5, 2147483647}}) {
    std::vector<ImageSize> sizes = SizesFor(4);
    sizes[2] = bad;
    EXPECT_THAT(SizedErrorOf(source, sizes),
                AllOf(HasSubstr("sizes[2] has height " + std::to_string(bad.height) +
                                " and width " + std::to_string(bad.width)),
                      HasSubstr("1 to 65535")));
  }
  std::vector<ImageSize> largest(4, ImageSize{65535, 65535});
  EXPECT_EQ(SizedErrorOf(source, largest), "");
}

TEST(Sized, SourcesThatHaveNoSizesAreRefused) {
  EXPECT_THAT(SizedErrorOf(nullptr, {}), HasSubstr("no source"));
  const Source weighted = Weighted(NumbersToSize(3), std::vector<double>{1, 2, 3}, 0).value();
  EXPECT_THAT(SizedErrorOf(weighted, SizesFor(3)), HasSubstr("order of its own"));
}

TEST(Sized, UnknownSizesAreCounted) {
  const Source source = std::make_shared<PartlyKnown>();
  std::vector<ImageFacts> facts(6);
  facts[1].width = facts[1].height = 7;
  const Source sized = SizedByFacts(source, facts, "a.jpg: it ends early");
  EXPECT_THAT(sized->Warning(),
              HasSubstr("3 of 6 samples of partly known have no known size; the first is sample 2: "
                        "a.jpg: it ends early"));
  EXPECT_EQ(sized->FactsOf(2).width, 0u);
  EXPECT_EQ(sized->FactsOf(0).width, 640u);
}

}  // namespace
}  // namespace stoker
