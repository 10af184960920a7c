// Columns of objects next to listed files: what samples have, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "io/memory/arrays.h"
#include "io/ranges/path_source.h"
#include "io/select/combine.h"
#include "io/select/subset.h"
#include "tests/testing/samples/view_as.h"

namespace stoker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ViewAs;
using Source = std::shared_ptr<const SampleSource>;

// Three samples with two objects, none and three.
struct Objects {
  std::vector<int64_t> offsets{0, 2, 2, 5};
  std::vector<float> boxes = std::vector<float>(20);
  std::vector<float> points = std::vector<float>(5 * 2 * 3);
  std::vector<int64_t> labels{10, 11, 30, 31, 32};

  Objects() {
    std::iota(boxes.begin(), boxes.end(), 0.0f);
    std::iota(points.begin(), points.end(), 100.0f);
  }

  ArrayColumn Boxes() const {
    return {.name = "boxes",
            .dtype = DType::kF32,
            .row_shape = {4},
            .data = boxes.data(),
            .samples = offsets.size() - 1,
            .offsets = offsets.data(),
            .kind = Field::Kind::kBoxes,
            .box_format = BoxFormat::kXywh};
  }
  ArrayColumn Points() const {
    return {.name = "points",
            .dtype = DType::kF32,
            .row_shape = {2, 3},
            .data = points.data(),
            .samples = offsets.size() - 1,
            .offsets = offsets.data(),
            .kind = Field::Kind::kKeypoints,
            .flip_pairs = {1, 0}};
  }
  ArrayColumn Labels() const {
    return {.name = "labels",
            .dtype = DType::kI64,
            .row_shape = {},
            .data = labels.data(),
            .samples = offsets.size() - 1,
            .offsets = offsets.data(),
            .kind = Field::Kind::kObject};
  }
};

Result<Source> Make(std::vector<ArrayColumn> columns) {
  PathTable paths(std::vector<std::string>{"/a.jpg", "/b.jpg", "/c.jpg"});
  return Files(std::move(paths), {.columns = std::move(columns)});
}

TEST(ObjectColumns, BecomeFieldsOfObjects) {
  const Objects objects;
  const Source source = Make({objects.Boxes(), objects.Points(), objects.Labels()}).value();
  const std::span<const Field> fields = source->fields();
  ASSERT_EQ(fields.size(), 4u);
  EXPECT_EQ(fields[1].kind, Field::Kind::kBoxes);
  EXPECT_EQ(fields[1].box_format, BoxFormat::kXywh);
  EXPECT_EQ(fields[1].row_bytes(), 16u);
  EXPECT_EQ(fields[2].flip_pairs, (std::vector<uint16_t>{1, 0}));
  EXPECT_TRUE(fields[3].is_of_objects());
  EXPECT_EQ(source->pieces(), 1u);
  EXPECT_EQ(source->max_objects(), 3u);
  EXPECT_FALSE(source->label());
  EXPECT_EQ(source->LabelOf(0), kNoLabel);
  EXPECT_THAT(ViewAs<int64_t>(*source, 3, 0), ElementsAre(10, 11));
  EXPECT_TRUE(source->View(3, 1).empty());
  EXPECT_THAT(ViewAs<int64_t>(*source, 3, 2), ElementsAre(30, 31, 32));
  EXPECT_EQ(ViewAs<float>(*source, 1, 2).front(), 8);
  EXPECT_EQ(ViewAs<float>(*source, 2, 2).size(), 18u);
}

TEST(ObjectColumns, DoNotFollowChangesOfTheOffsets) {
  Objects objects;
  const Source source = Make({objects.Labels()}).value();
  const uint64_t fingerprint = source->Fingerprint();
  objects.offsets = {0, 5000, 1, 1};
  EXPECT_THAT(ViewAs<int64_t>(*source, 1, 0), ElementsAre(10, 11));
  EXPECT_EQ(source->Fingerprint(), fingerprint);
}

TEST(ObjectColumns, MayHaveNoObjectsAtAll) {
  Objects objects;
  objects.offsets = {0, 0, 0, 0};
  ArrayColumn boxes = objects.Boxes();
  boxes.data = nullptr;
  const Source source = Make({boxes}).value();
  EXPECT_EQ(source->max_objects(), 0u);
  EXPECT_TRUE(source->View(1, 2).empty());
}

// Everything that changes batches, or what they mean, is in the fingerprint.
TEST(ObjectColumns, AreInTheFingerprint) {
  const Objects objects;
  const auto fingerprint = [](const std::vector<ArrayColumn>& columns) {
    return Make(columns).value()->Fingerprint();
  };
  const uint64_t known = fingerprint({objects.Boxes(), objects.Points()});
  EXPECT_EQ(known, fingerprint({Objects().Boxes(), Objects().Points()}));
  const std::vector<std::function<void(ArrayColumn&, ArrayColumn&, Objects&)>> changes = {
      [](ArrayColumn& boxes, auto&, Objects&) { boxes.box_format = BoxFormat::kXyxy; },
      [](ArrayColumn& boxes, auto&, Objects&) { boxes.normalized = true; },
      [](ArrayColumn& boxes, auto&, Objects&) { boxes.kind = Field::Kind::kObject; },
      [](auto&, ArrayColumn& points, Objects&) {
        points.flip_pairs = {0, 1};
      },
      [](auto&, auto&, Objects& of) { of.boxes[19] += 1; },
      [](auto&, auto&, Objects& of) { of.points[0] += 1; },
      [](auto&, auto&, Objects& of) {
        of.offsets = {0, 2, 3, 5};
      },
  };
  for (const auto& change : changes) {
    Objects changed;
    ArrayColumn boxes = changed.Boxes(), points = changed.Points();
    change(boxes, points, changed);
    EXPECT_NE(fingerprint({boxes, points}), known);
  }
}

TEST(ObjectColumns, OfSelectedSamplesCountForThemAlone) {
  const Objects objects;
  const Source all = Make({objects.Labels()}).value();
  const std::vector<uint64_t> ids{1, 0};
  const Source some = Subset(all, ids).value();
  EXPECT_EQ(some->max_objects(), 2u);
  EXPECT_THAT(ViewAs<int64_t>(*some, 1, 1), ElementsAre(10, 11));
  const Source both = Combine({some, all}).value();
  EXPECT_EQ(both->max_objects(), 3u);
  EXPECT_THAT(ViewAs<int64_t>(*both, 1, 4), ElementsAre(30, 31, 32));
}

TEST(ObjectColumns, OfOneMeaningAreCombined) {
  const Objects objects;
  ArrayColumn other = objects.Boxes();
  other.box_format = BoxFormat::kCxcywh;
  const auto combined = Combine({Make({objects.Boxes()}).value(), Make({other}).value()});
  ASSERT_FALSE(combined.ok());
  EXPECT_THAT(combined.error().cause, HasSubstr("'boxes' (boxes, xywh)"));
  EXPECT_THAT(combined.error().cause, HasSubstr("'boxes' (boxes, cxcywh)"));
}

TEST(ObjectColumns, AreRefusedWithTheFault) {
  const auto refusal = [](const std::function<void(Objects&, std::vector<ArrayColumn>&)>& change) {
    Objects objects;
    std::vector<ArrayColumn> columns{objects.Boxes(), objects.Points(), objects.Labels()};
    change(objects, columns);
    const auto made = Make(columns);
    if (made.ok()) return std::string("not refused");
    EXPECT_EQ(made.error().code, Code::kInvalidArgument);
    return made.error().cause;
  };
  using Columns = std::vector<ArrayColumn>;
  EXPECT_THAT(refusal([](Objects& of, Columns&) { of.offsets[1] = 3; }),
              HasSubstr("offsets 3 and 2 for sample 1"));
  EXPECT_THAT(refusal([](Objects& of, Columns&) { of.offsets[0] = -1; }),
              HasSubstr("offsets -1 and 2 for sample 0"));
  EXPECT_THAT(refusal([](Objects& of, Columns&) { of.offsets[3] = 2'000'000; }),
              HasSubstr("1999998 objects in sample 2; at most 1048576"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[0].row_shape = {5}; }),
              HasSubstr("'boxes' has boxes of float32 (5)"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[0].dtype = DType::kI32; }),
              HasSubstr("boxes of int32 (4)"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) {
                columns[1].row_shape = {2, 2};
              }),
              HasSubstr("keypoints of float32 (2, 2)"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[1].flip_pairs = {1}; }),
              HasSubstr("flip_pairs of 1 points"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) {
                columns[1].flip_pairs = {1, 1};
              }),
              HasSubstr("point 0 becomes 1, which becomes another"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) {
                columns[1].flip_pairs = {0, 7};
              }),
              HasSubstr("point 1"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) {
                columns[2].kind = Field::Kind::kBoxes;
                columns[2].dtype = DType::kF32;
                columns[2].row_shape = {4};
              }),
              HasSubstr("'labels' is a second field of boxes, after 'boxes'"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[2].name = "label"; }),
              HasSubstr("'label' is one value for each image"));
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[2].data = nullptr; }),
              HasSubstr("has no data"));
  static const std::vector<int64_t> others{0, 1, 2, 5};
  EXPECT_THAT(refusal([](Objects&, Columns& columns) { columns[2].offsets = others.data(); }),
              HasSubstr("1 object in sample 0, but 'boxes' has 2"));
}

}  // namespace
}  // namespace stoker
