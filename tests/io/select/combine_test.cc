#include "io/select/combine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/numbers/random.h"
#include "io/memory/arrays.h"
#include "io/ranges/path_source.h"
#include "io/select/sample_order.h"
#include "io/select/subset.h"
#include "tests/testing/images/crop_index_of.h"
#include "tests/testing/samples/numbered_source.h"

namespace stoker {
namespace {

using testing::CropIndexOf;
using ::testing::HasSubstr;
using testing::NumberedSource;
using Source = std::shared_ptr<const SampleSource>;
using Sources = std::vector<Source>;

Source Named(const char* name, uint64_t size, uint64_t first,
             std::vector<std::string> classes = {}) {
  return std::make_shared<NumberedSource>(size, first, name, std::move(classes));
}

std::string CombineErrorOf(Sources sources) {
  const Result<Source> made = Combine(std::move(sources));
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : made.error().Message();
}

std::string CombineErrorOf(Sources sources, const std::vector<double>& weights,
                           uint64_t samples = 0) {
  const Result<Source> made = Combine(std::move(sources), weights, samples);
  EXPECT_FALSE(made.ok());
  return made.ok() ? "" : made.error().Message();
}

TEST(Combine, EveryAnswerIsThatOfTheSourcesInTurn) {
  const Sources parts{Named("a", 10, 0), Named("b", 1, 100), Named("c", 200, 1000)};
  const Source all = Combine(parts).value();
  ASSERT_EQ(all->size(), 211u);
  EXPECT_EQ(all->files(), 211u);
  EXPECT_EQ(all->order(), nullptr);
  std::string path, theirs;
  uint64_t id = 0;
  for (const Source& part : parts) {
    for (uint64_t own = 0; own < part->size(); ++own, ++id) {
      const ByteRange range = all->RangeOf(id), same = part->RangeOf(own);
      EXPECT_EQ(range.offset, same.offset);
      EXPECT_EQ(range.length, same.length);
      all->PathOf(range.file, path);
      part->PathOf(same.file, theirs);
      EXPECT_EQ(path, theirs);
      EXPECT_EQ(all->LabelOf(id), part->LabelOf(own));
      EXPECT_EQ(all->FactsOf(id), part->FactsOf(own));
      EXPECT_EQ(all->View(1, id).data(), part->View(1, own).data());
      EXPECT_EQ(CropIndexOf(*all, id, 9), CropIndexOf(*part, own, 9));
    }
  }
  EXPECT_EQ(all->Warning(), "a is a test; and b is a test; and c is a test");
  EXPECT_EQ(all->Skipped().Counts(), ".gif 3");
  EXPECT_EQ(all->Describe(), "combine(a and 2 more)");
}

TEST(Combine, RowsTogetherAreThoseOneByOne) {
  const Source all =
      Combine({Named("a", 70, 0), Named("b", 3, 100), Named("c", 200, 1000)}).value();
  RandomStream random({1, 2, 3}, 0);
  std::vector<uint64_t> ids(300);
  for (size_t i = 0; i < ids.size(); ++i) {  // neighbours, then from all over
    ids[i] = i < all->size() ? i : random.Below(all->size());
  }
  std::vector<int64_t> rows(ids.size() + 1, -5);
  all->FixedRows(1, ids, rows.data());
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(rows[i], all->LabelOf(ids[i])) << i;
  EXPECT_EQ(rows.back(), -5);
}

TEST(Combine, OneSourceIsItself) {
  const Source one = Named("a", 10, 0);
  EXPECT_EQ(Combine({one}).value(), one);
}

TEST(Combine, OfManyAndOfCombinations) {
  Sources parts;
  for (uint64_t i = 0; i < 1000; ++i) parts.push_back(Named("x", 1 + i % 3, 10 * i));
  const Source many = Combine(parts).value();
  const Source twice = Combine({many, many}).value();
  uint64_t id = 0;
  for (const Source& part : parts) {
    for (uint64_t own = 0; own < part->size(); ++own, ++id) {
      ASSERT_EQ(many->LabelOf(id), part->LabelOf(own));
      ASSERT_EQ(twice->RangeOf(many->size() + id).offset, part->RangeOf(own).offset);
    }
  }
  const Source some = Subset(twice, std::vector<uint64_t>{many->size() + 4, 0}).value();
  EXPECT_EQ(some->LabelOf(0), many->LabelOf(4));
}

TEST(Combine, ClassNamesAgreeOrAreAbsent) {
  const std::vector<std::string> pets{"cat", "dog"};
  EXPECT_EQ(Combine({Named("a", 1, 0, pets), Named("b", 1, 0, pets)}).value()->classes(), pets);
  EXPECT_TRUE(Combine({Named("a", 1, 0, pets), Named("b", 1, 0)}).value()->classes().empty());
  EXPECT_TRUE(Combine({Named("a", 1, 0), Named("b", 1, 0, pets)}).value()->classes().empty());
  EXPECT_THAT(CombineErrorOf({Named("a", 1, 0, pets), Named("b", 1, 0, {"cat", "eel"})}),
              HasSubstr("class 1 is 'dog' in a, and 'eel' in b"));
  EXPECT_THAT(CombineErrorOf({Named("a", 1, 0), Named("b", 1, 0, pets), Named("c", 1, 0, {"cat"})}),
              HasSubstr("class 1 is 'dog' in b, and none in c"));
}

Source ArraysWith(const char* name, DType dtype, std::vector<int64_t> shape, bool labels = false) {
  static const std::array<uint8_t, 64> zeros{};
  std::vector<ArrayColumn> columns{{name, dtype, std::move(shape), zeros.data(), 2}};
  if (labels) columns.push_back({"label", DType::kI64, {}, zeros.data(), 2});
  return Arrays(std::move(columns), nullptr).value();
}

TEST(Combine, FieldsMustAgree) {
  const Source one = ArraysWith("x", DType::kU8, {2});
  EXPECT_TRUE(Combine({one, ArraysWith("x", DType::kU8, {2})}).ok());
  EXPECT_THAT(
      CombineErrorOf({one, ArraysWith("x", DType::kI8, {2})}),
      HasSubstr("field 0 is 'x' (uint8 (2)) in arrays(x: 2 × uint8 (2)), and 'x' (int8 (2))"));
  EXPECT_THAT(CombineErrorOf({one, ArraysWith("y", DType::kU8, {2})}),
              HasSubstr("'y' (uint8 (2))"));
  EXPECT_THAT(CombineErrorOf({one, ArraysWith("x", DType::kU8, {3})}),
              HasSubstr("'x' (uint8 (3))"));
  EXPECT_THAT(CombineErrorOf({one, ArraysWith("x", DType::kU8, {2}, true)}),
              HasSubstr("field 1 is nothing in"));
  EXPECT_THAT(CombineErrorOf({ArraysWith("image", DType::kI64, {}, true), Named("a", 2, 0)}),
              HasSubstr("and 'image' (encoded images) in a"));
}

TEST(Combine, MasksMustAgree) {
  const auto masks = [](Field::Kind kind, uint8_t fill) {
    const PathTable paths(std::vector<std::string>{"/a"});
    return Files(paths, {.further = {{.name = "m", .kind = kind, .fill = fill, .paths = paths}}})
        .value();
  };
  const Source one = masks(Field::Kind::kMask, 0);
  EXPECT_EQ(Combine({one, masks(Field::Kind::kMask, 0)}).value()->pieces(), 2u);
  EXPECT_THAT(CombineErrorOf({one, masks(Field::Kind::kMask, 255)}),
              HasSubstr("field 1 is 'm' (masks, filled with 0) in files(/a), and 'm' (masks, "
                        "filled with 255) in files(/a)"));
  EXPECT_THAT(CombineErrorOf({one, masks(Field::Kind::kImage, 0)}),
              HasSubstr("'m' (encoded images)"));
  EXPECT_THAT(CombineErrorOf({Files(PathTable(std::vector<std::string>{"/a"})).value(), one}),
              HasSubstr("field 1 is nothing in"));
}

TEST(Combine, RefusesWhatItCannotCombine) {
  EXPECT_THAT(CombineErrorOf({}), HasSubstr("no source"));
  EXPECT_THAT(CombineErrorOf({Named("a", 1, 0), nullptr}), HasSubstr("no source"));
  EXPECT_THAT(CombineErrorOf({Named("a", 0, 0)}), HasSubstr("a has no samples"));
  const Source mixed = Combine({Named("b", 5, 0)}, std::vector<double>{1}).value();
  EXPECT_THAT(CombineErrorOf({Named("a", 1, 0), mixed}), HasSubstr("combine(b) has an order"));
  const uint64_t half = uint64_t{1} << 31;
  EXPECT_TRUE(Combine({Named("a", half, 1), Named("b", half, 1)}).ok());
  EXPECT_THAT(CombineErrorOf({Named("a", half, 1), Named("b", half + 1, 1)}),
              HasSubstr("2^32 files"));
}

TEST(Combine, LastFileOfAllIsFound) {
  const uint64_t half = uint64_t{1} << 31;
  const Source all = Combine({Named("a", half, 1), Named("b", half, 1)}).value();
  std::string path;
  all->PathOf(all->RangeOf(2 * half - 1).file, path);
  EXPECT_EQ(path, "b/" + std::to_string((half - 1) % NumberedSource::kFiles));
  all->PathOf(all->RangeOf(half).file, path);
  EXPECT_EQ(path, "b/0");
}

TEST(Combine, FingerprintCoversOrderAndNumber) {
  const Source a = Named("a", 10, 0), b = Named("b", 20, 0);
  const auto print = [](Sources sources) {
    return Combine(std::move(sources)).value()->Fingerprint();
  };
  const std::vector<double> even{1, 1}, odd{1, 2};
  std::vector<uint64_t> all{print({a, b}),
                            print({b, a}),
                            print({a, b, b}),
                            print({a, a}),
                            Combine({a, b}, even).value()->Fingerprint(),
                            Combine({a, b}, odd).value()->Fingerprint(),
                            Combine({a, b}, odd, 7).value()->Fingerprint()};
  std::ranges::sort(all);
  EXPECT_EQ(std::adjacent_find(all.begin(), all.end()), all.end());
  EXPECT_EQ(print({a, b}), print({a, b}));
}

TEST(Combine, ByWeightHasTheSameSamplesInAnotherOrder) {
  const Sources parts{Named("a", 10, 0), Named("b", 90, 100)};
  const Source mixed = Combine(parts, std::vector<double>{3, 1}, 40).value();
  EXPECT_EQ(mixed->size(), 100u);
  EXPECT_EQ(mixed->LabelOf(99), 189);
  ASSERT_NE(mixed->order(), nullptr);
  EXPECT_EQ(mixed->order()->positions(), 40u);
  uint64_t of_first = 0;
  for (uint64_t i = 0; i < 40; ++i) of_first += mixed->order()->At(0, 0, i) < 10;
  EXPECT_EQ(of_first, 30u);
  EXPECT_EQ(Combine(parts, std::vector<double>{3, 1}).value()->order()->positions(), 100u);
}

TEST(Combine, RefusesWeightsThatAreNone) {
  const Sources two{Named("a", 1, 0), Named("b", 1, 0)};
  EXPECT_THAT(CombineErrorOf(two, {1}), HasSubstr("1 weights for 2 sources"));
  EXPECT_THAT(CombineErrorOf(two, {1, -1}), HasSubstr("weights[1] is -1"));
  EXPECT_THAT(CombineErrorOf(two, {std::nan(""), 1}), HasSubstr("weights[0] is nan"));
  EXPECT_THAT(CombineErrorOf(two, {0, 0}), HasSubstr("all weights are 0"));
  EXPECT_THAT(CombineErrorOf(two, {1, 1}, (uint64_t{1} << 53) + 1), HasSubstr("too long"));
}

}  // namespace
}  // namespace stoker
