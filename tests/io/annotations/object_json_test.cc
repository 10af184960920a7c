#include "io/annotations/object_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/annotations/keyed_column.h"
#include "tests/testing/effort.h"
#include "tests/testing/random.h"

namespace stoker {
namespace {

using nlohmann::json;
using testing::Effort;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::Random;

constexpr char kColumns[] =
    "b,boxes,o.bbox,xywh,normalized\n"
    "k,keypoints,o.points,0:1\n"
    "labels,object,o.id\n"
    "w,object,o.weight,float32\n"
    "v,object,o.vector,int16\n";

ObjectJson Reader(const char* columns = kColumns) {
  return ObjectJson::Make(ParseKeyedColumns(columns).value()).value();
}

TextFile Text(std::string text) { return {"a.json", std::move(text)}; }

Error ErrorOf(const std::string& text, const char* columns = "b,boxes,b\nn,object,n") {
  ObjectJson objects = Reader(columns);
  const Status first = objects.Read(Text(R"({"b": [[1, 2, 3, 4]], "n": [7]})"));
  EXPECT_TRUE(first.ok());
  const Status read = objects.Read(Text(text));
  EXPECT_FALSE(read.ok()) << text;
  if (read.ok()) return {};
  EXPECT_EQ(read.error().code, Code::kInvalidArgument);
  EXPECT_EQ(read.error().file, "a.json");
  EXPECT_TRUE(read.error().offset.has_value());
  return read.error();
}

template <typename T>
std::vector<T> ValuesOf(const ObjectValues& values) {
  const ArrayColumn view = values.View();
  std::vector<T> all(values.objects() * view.row_bytes() / sizeof(T));
  if (!all.empty()) std::memcpy(all.data(), view.data, all.size() * sizeof(T));
  return all;
}

size_t PlaceIn(Random& random, std::string_view text) {
  return static_cast<size_t>(random.Between(0, static_cast<int>(text.size()) - 1));
}

// One object of the samples that are compared.
json RandomObject(Random& random) {
  const auto number = [&random] { return json(static_cast<double>(random.Between(0, 999)) / 4); };
  json object;
  for (int i = 0; i < 4; ++i) object["bbox"].push_back(number());
  for (int i = 0; i < 2; ++i)
    object["points"].push_back({number(), number(), random.Between(0, 2)});
  object["id"] = random.Between(0, 89);
  object["weight"] = random.OneIn(2) ? number() : json(random.Between(0, 8));
  object["vector"] = {random.Between(-300, 299), random.Between(0, 8)};
  object["other"] = {{"deep", {1, {{"x", "]}\""}}}}};
  return object;
}

// Both layouts have the values that nlohmann's parser finds.
TEST(ObjectJson, ReadsWhatAPlainParserDoes) {
  Random random(3);
  ObjectJson of_lists = Reader(), of_objects = Reader();
  std::vector<float> boxes, points, weights;
  std::vector<int64_t> ids, offsets{0};
  std::vector<int16_t> vectors;
  for (int sample = 0; sample < Effort(1000); ++sample) {
    json lists = {{"bbox", json::array()},
                  {"points", json::array()},
                  {"id", json::array()},
                  {"weight", json::array()},
                  {"vector", json::array()}};
    json objects = json::array();
    const int count = random.Between(0, 4);
    for (int i = 0; i < count; ++i) {
      const json object = RandomObject(random);
      for (auto& [key, list] : lists.items()) list.push_back(object[key]);
      for (const json& x : object["bbox"]) boxes.push_back(x);
      for (const json& point : object["points"]) {
        for (const json& x : point) points.push_back(x);
      }
      ids.push_back(object["id"]);
      weights.push_back(object["weight"]);
      for (const json& x : object["vector"]) vectors.push_back(x);
      objects.push_back(object);
    }
    offsets.push_back(offsets.back() + count);
    ASSERT_TRUE(of_lists.Read(Text(json{{"x", 1}, {"o", lists}}.dump())).ok());
    ASSERT_TRUE(of_objects.Read(Text(json{{"o", objects}, {"y", nullptr}}.dump(2))).ok());
  }
  for (ObjectJson* reader : {&of_lists, &of_objects}) {
    std::vector<ObjectValues>& columns = reader->columns();
    for (ObjectValues& values : columns) {
      ASSERT_TRUE(values.Finish().ok());
      const ArrayColumn view = values.View();
      ASSERT_EQ(view.samples + 1, offsets.size());
      EXPECT_EQ(std::vector(view.offsets, view.offsets + offsets.size()), offsets);
    }
    EXPECT_EQ(ValuesOf<float>(columns[0]), boxes);
    EXPECT_EQ(ValuesOf<float>(columns[1]), points);
    EXPECT_EQ(ValuesOf<int64_t>(columns[2]), ids);
    EXPECT_EQ(ValuesOf<float>(columns[3]), weights);
    EXPECT_EQ(ValuesOf<int16_t>(columns[4]), vectors);
  }
}

TEST(ObjectJson, DescribesItsColumns) {
  ObjectJson objects = Reader();
  ASSERT_TRUE(objects
                  .Read(Text(R"({"o": [{"bbox": [1, 2, 3, 4], "points": [1, 2, 0, 3, 4, 1],
      "id": 7, "weight": 1, "vector": [1, 2]}]})"))
                  .ok());
  ASSERT_TRUE(objects.Read(Text(R"({"o": []})")).ok());
  std::vector<ArrayColumn> views;
  for (ObjectValues& values : objects.columns()) {
    ASSERT_TRUE(values.Finish().ok());
    views.push_back(values.View());
  }
  EXPECT_EQ(views[0].kind, Field::Kind::kBoxes);
  EXPECT_EQ(views[0].box_format, BoxFormat::kXywh);
  EXPECT_TRUE(views[0].normalized);
  EXPECT_THAT(views[1].row_shape, ElementsAre(2, 3));
  EXPECT_THAT(views[1].flip_pairs, ElementsAre(1, 0));
  EXPECT_EQ(views[2].dtype, DType::kI64);
  EXPECT_THAT(views[2].row_shape, IsEmpty());
  EXPECT_EQ(views[3].dtype, DType::kF32);
  EXPECT_EQ(views[4].dtype, DType::kI16);
  EXPECT_THAT(views[4].row_shape, ElementsAre(2));
}

TEST(ObjectJson, TypesAreThoseOfTheValues) {
  ObjectJson objects = Reader("a,object,a\nb,object,b\nlabels,object,c\nd,object,d");
  ASSERT_TRUE(objects.Read(Text(R"({"a": [1], "b": [true], "c": ["x"], "d": [[1, 2]]})")).ok());
  ASSERT_TRUE(objects.Read(Text(R"({"a": [2.5], "b": [false], "c": ["a"], "d": [[3, 4]]})")).ok());
  std::vector<ObjectValues>& columns = objects.columns();
  EXPECT_THAT(columns[2].NumberClasses(), ElementsAre("a", "x"));
  EXPECT_THAT(ValuesOf<double>(columns[0]), ElementsAre(1, 2.5));
  EXPECT_EQ(columns[1].View().dtype, DType::kBool);
  EXPECT_THAT(ValuesOf<int64_t>(columns[2]), ElementsAre(1, 0));
  EXPECT_THAT(ValuesOf<int64_t>(columns[3]), ElementsAre(1, 2, 3, 4));
}

TEST(ObjectJson, TheDocumentMayBeTheList) {
  ObjectJson boxes =
      ObjectJson::Make({{.field = {.name = "b", .kind = Field::Kind::kBoxes}, .key = ""}}).value();
  ASSERT_TRUE(boxes.Read(Text("[[1, 2, 3, 4]]")).ok());
  EXPECT_THAT(ValuesOf<float>(boxes.columns()[0]), ElementsAre(1, 2, 3, 4));
  ObjectJson ids = Reader("id,object,id");
  ASSERT_TRUE(ids.Read(Text(R"([{"id": 1}, {"id": 3}])")).ok());
  EXPECT_THAT(ValuesOf<int64_t>(ids.columns()[0]), ElementsAre(1, 3));
}

TEST(ObjectJson, WrongDocuments) {
  EXPECT_THAT(ErrorOf("").cause, HasSubstr("truncated"));
  EXPECT_THAT(ErrorOf("[1]").cause, HasSubstr("this is not an object, with the key 'b'"));
  EXPECT_THAT(ErrorOf("{}").cause, HasSubstr("key 'b' is missing"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": []} x)").cause, HasSubstr("not JSON"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "b": [], "n": []})").cause, HasSubstr("'b' occurs twice"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": [1]})").cause, HasSubstr("'n' has 1 object"));
  EXPECT_THAT(ErrorOf(R"({"b": [[1, 2, 3]]})").cause, HasSubstr("a box of 3 numbers"));
  EXPECT_THAT(ErrorOf(R"({"b": [[1, 2, 3, true]]})").cause, HasSubstr("true or false"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": [1.5, "x"]})").cause, HasSubstr("'n' has text"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": [[1, 2]]})").cause, HasSubstr("'n' has a list"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": [true]})").cause, HasSubstr("'n' has true or false"));
  EXPECT_THAT(ErrorOf(R"({"b": [], "n": [1e999]})").cause, HasSubstr("float64 cannot hold"));
  EXPECT_EQ(ErrorOf(R"({"b": [[1, 2, 3, 4], [5]]})").offset, 21);
  constexpr char kList[] = "b,boxes,b\nn,object,n\nx,object,o.x";
  ObjectJson objects = Reader(kList);
  EXPECT_THAT(objects.Read(Text(R"({"b": [], "n": [], "o": [{"x": 1, "x": 2}]})")).error().cause,
              HasSubstr("'x' occurs twice"));
  objects = Reader(kList);
  EXPECT_THAT(objects.Read(Text(R"({"b": [], "n": [], "o": [{"x": 1}, {}]})")).error().cause,
              HasSubstr("'x' is missing"));
  objects = Reader(kList);
  EXPECT_THAT(objects.Read(Text(R"({"b": [], "n": [], "o": [[{"x": 1}]]})")).error().cause,
              HasSubstr("'o' is not an object, with the key 'x'"));
}

TEST(ObjectJson, WrongBoxes) {
  const Error reversed = ErrorOf(R"({"b": [[1, 2, 1, 2], [3, 2, 1, 4]], "n": [1, 2]})");
  EXPECT_EQ(reversed.cause, "'b' has a box that ends before it begins");
  EXPECT_THAT(reversed.advice, HasSubstr("Boxes are xyxy here"));
  EXPECT_THAT(reversed.advice, HasSubstr("leave out padding boxes; "));
  EXPECT_EQ(reversed.offset, 21);
  for (const char* const format : {"xywh", "cxcywh"}) {
    const std::string columns = std::string("b,boxes,b,") + format + "\nn,object,n";
    EXPECT_EQ(ErrorOf(R"({"b": [[1, 2, 3, -4]], "n": [1]})", columns.c_str()).cause,
              "'b' has a box of negative width or height");
    EXPECT_THAT(ErrorOf(R"({"b": [[-1, -1, -1, -1]], "n": [1]})", columns.c_str()).advice,
                HasSubstr("leave out padding boxes, such as [-1, -1, -1, -1]"));
  }
  for (const double number : {std::nan(""), -HUGE_VAL}) {  // as a TFRecord may have
    for (const KeyedColumn& column : ParseKeyedColumns("b,boxes,b\nk,keypoints,k").value()) {
      ObjectValues values(column);
      ASSERT_TRUE(values.BeginList().ok());
      const int numbers = column.field.kind == Field::Kind::kBoxes ? 4 : 3;
      for (int i = 0; i < numbers; ++i) ASSERT_TRUE(values.AddNumber(i == 1 ? number : 5).ok());
      EXPECT_THAT(values.EndList().error().cause, HasSubstr("has the coordinate "));
    }
  }
}

TEST(ObjectJson, WrongTypesAndPoints) {
  constexpr char kTyped[] = "k,keypoints,k,0:2\nn,object,n,uint8";
  const auto error = [&](const char* text) {
    ObjectJson objects = Reader(kTyped);
    Status read = objects.Read(Text(text));
    if (read.ok()) read = objects.columns()[0].Finish();
    EXPECT_FALSE(read.ok()) << text;
    return read.ok() ? "" : read.error().cause;
  };
  EXPECT_THAT(error(R"({"k": [[1, 2]], "n": [1]})"), HasSubstr("points of 2 numbers"));
  EXPECT_THAT(error(R"({"k": [[]], "n": [1]})"), HasSubstr("points of 0 numbers"));
  EXPECT_THAT(error(R"({"k": [[1, 2, 3], [1, 2, 3, 4, 5, 6]], "n": [1, 2]})"),
              HasSubstr("an object of 6 numbers; those before it have 3"));
  EXPECT_THAT(error(R"({"k": [], "n": [256]})"), HasSubstr("256, which uint8 cannot hold"));
  EXPECT_THAT(error(R"({"k": [], "n": [-1]})"), HasSubstr("-1, which uint8 cannot hold"));
  EXPECT_THAT(error(R"({"k": [], "n": [1.5]})"), HasSubstr("has 1.5, which uint8 cannot hold"));
  EXPECT_THAT(error(R"({"k": [], "n": [1e39]})"), HasSubstr("has 1e+39, which uint8 cannot hold"));
  EXPECT_THAT(error(R"({"k": [], "n": [1, [2]]})"), HasSubstr("lists and single numbers"));
  EXPECT_THAT(error(R"({"k": [[1, 2, 3]], "n": [1]})"), HasSubstr("a pair (0, 2) in flip_pairs"));
}

// Any bytes are read, or refused with a position; the columns that were read are complete.
TEST(ObjectJson, SurvivesChangedDocuments) {
  Random random(5);
  const std::string good = R"({"o": {"bbox": [[1, 2, 3, 4], [5, 6.5, 7e0, 8]], "id": [1, 2],
      "points": [[[1, 2, 0], [3, 4, 2]], [5, 6, 1, 7, 8, 1]], "weight": [1, 2], "vector": [[1], [2]]}})";
  for (int round = 0; round < Effort(20000); ++round) {
    std::string text = good;
    for (int i = 0; i <= random.Between(0, 2); ++i) {
      constexpr std::string_view kBytes = "[]{},:\"0 1.e-\\tnx";
      text[PlaceIn(random, text)] = kBytes[PlaceIn(random, kBytes)];
    }
    if (random.OneIn(4)) text.resize(PlaceIn(random, text));
    ObjectJson objects = Reader();
    const Status read = objects.Read(Text(text));
    if (!read.ok()) {
      EXPECT_EQ(read.error().file, "a.json");
      EXPECT_LE(read.error().offset.value(), text.size());
      continue;
    }
    for (ObjectValues& values : objects.columns()) {
      ASSERT_TRUE(values.Finish().ok() || !values.column().flip_pairs.empty());
      EXPECT_EQ(values.samples(), 1U);
      EXPECT_EQ(values.objects(), objects.columns()[0].objects());
    }
  }
}

TEST(KeyedColumns, WrongTexts) {
  const auto error = [](const char* text) {
    const auto made = ParseKeyedColumns(text);
    EXPECT_FALSE(made.ok()) << text;
    return made.ok() ? "" : made.error().cause;
  };
  EXPECT_THAT(error("a,boxes"), HasSubstr("a name, a kind, a key"));
  EXPECT_THAT(error("a,circles,k"), HasSubstr("unknown kind"));
  EXPECT_THAT(error("image,boxes,k"), HasSubstr("another column"));
  EXPECT_THAT(error("a\x15,boxes,k"), HasSubstr("'a\\x15' or its key is too long"));
  EXPECT_THAT(error("a,boxes,\"k\n\""), HasSubstr("'a' or its key is too long"));
  EXPECT_THAT(error("a,boxes,k,xyzw"), HasSubstr("the option 'xyzw'"));
  EXPECT_THAT(error("a,object,k,string"), HasSubstr("the option 'string'"));
  EXPECT_THAT(error("a,value,k,xyxy"), HasSubstr("the option 'xyxy'"));
  EXPECT_THAT(error("a,mask,k,300"), HasSubstr("'a' has the fill 300"));
  EXPECT_THAT(error("a,mask,k,300,uint8"), HasSubstr("'a' has the fill 300"));
  EXPECT_EQ(ParseKeyedColumns("a,mask,k,300,uint16\nb,mask,l,255").value()[0].field.fill, 300);
  EXPECT_THAT(error("a,mask,k,65536"), HasSubstr("the option '65536'"));
  EXPECT_THAT(error("a,keypoints,k,0:1,1:2"), HasSubstr("the option '1:2'"));
  EXPECT_THAT(error("a,keypoints,k,3:3"), HasSubstr("the option '3:3'"));
  EXPECT_THAT(error("a,value,k\na,value,l"), HasSubstr("'a' occurs twice"));
}

TEST(ObjectJson, WrongKeys) {
  const auto error = [](const char* columns) {
    const auto made = ObjectJson::Make(ParseKeyedColumns(columns).value());
    EXPECT_FALSE(made.ok()) << columns;
    return made.ok() ? "" : made.error().cause;
  };
  EXPECT_THAT(error("a,object,x.\n"), HasSubstr("has a dot"));
  EXPECT_THAT(error("a,object,.x\n"), HasSubstr("has a dot"));
  EXPECT_THAT(error("a,object,x\nb,object,x"), HasSubstr("belongs to two columns"));
  EXPECT_THAT(error("a,object,x\nb,object,x.y"), HasSubstr("inside of another"));
  EXPECT_THAT(error("a,object,x.y\nb,object,x"), HasSubstr("around another"));
  EXPECT_THAT(error("a,object,a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q"), HasSubstr("more than 16"));
}

}  // namespace
}  // namespace stoker
