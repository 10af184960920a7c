#include "bindings/c/loader_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/arrays/processor.h"
#include "engine/loader/loader.h"
#include "tests/testing/effort.h"
#include "tests/testing/samples/photo_folder.h"
#include "transforms/spec/transform_table.h"

namespace stoker {
namespace {

using ::testing::HasSubstr;

// Ten samples that nobody reads.
class FakeSource : public SampleSource {
 public:
  uint64_t size() const override { return 10; }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/false); }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t, std::string& path) const override { path = "none"; }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "fake"; }

 private:
  std::vector<std::string> classes_;
};

Result<LoaderOptions> Parse(const std::string& text) {
  return ParseLoaderSpec(text, std::make_shared<FakeSource>());
}

// Returns a good spec with the keys in `more`: R"("seed": 1)".
std::string With(const std::string& more) {
  const std::string size = more.find("batch_size") == more.npos ? R"(, "batch_size": 4)" : "";
  return R"({"source": {"kind": "arrays"})" + size + (more.empty() ? "" : ", " + more) + "}";
}

std::string WithTransform(const std::string& transform) {
  return With(R"("transforms": [)" + transform + "]");
}

void ExpectBad(const std::string& text, const std::string& word) {
  SCOPED_TRACE(text.substr(0, 200));
  const Result<LoaderOptions> parsed = Parse(text);
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
  EXPECT_THAT(parsed.error().cause, HasSubstr(word));
  EXPECT_LT(parsed.error().cause.size(), 300U);
}

TEST(LoaderSpec, BatchesHaveRowsOrTokens) {
  ExpectBad(R"({"source": {"kind": "arrays"}, "batch_size": 0})", "there is no batch_tokens");
  const Result<LoaderOptions> parsed = Parse(
      R"({"source": {"kind": "arrays"}, "batch_size": 0, "batch_tokens": 9, "tokens": "label"})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(parsed->batch_size, 0U);
  EXPECT_EQ(parsed->batch_tokens, 9U);
  EXPECT_EQ(parsed->tokens, "label");
}

TEST(LoaderSpec, ReadsBuckets) {
  const Result<LoaderOptions> parsed = Parse(With(R"("buckets": "128:0.5,256%8")"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  ASSERT_EQ(parsed->buckets.all.size(), 2U);
  EXPECT_EQ(parsed->buckets.all[0].length, 128U);
  EXPECT_EQ(parsed->buckets.all[0].weight, 0.5);
  EXPECT_EQ(parsed->buckets.multiple, 8U);
  EXPECT_TRUE(Parse(With("")).value().buckets.empty());
  ExpectBad(With(R"("buckets": "128;256")"), "buckets is \"128;256\"");
}

TEST(LoaderSpec, MissingKeysTakeTheDefaultsOfLoaderOptions) {
  const Result<LoaderOptions> parsed = Parse(With(""));
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  const LoaderOptions defaults;
  EXPECT_EQ(parsed->batch_size, 4U);
  EXPECT_TRUE(parsed->transforms.empty());
  EXPECT_EQ(parsed->dtype, defaults.dtype);
  EXPECT_EQ(parsed->layout, defaults.layout);
  EXPECT_EQ(parsed->exif_orientation, defaults.exif_orientation);
  EXPECT_EQ(parsed->limits.max_pixels, defaults.limits.max_pixels);
  EXPECT_EQ(parsed->limits.max_scans, defaults.limits.max_scans);
  EXPECT_FALSE(parsed->limits.accept_truncated);
  EXPECT_EQ(parsed->shuffle, defaults.shuffle);
  EXPECT_EQ(parsed->seed, defaults.seed);
  EXPECT_EQ(parsed->rank, defaults.rank);
  EXPECT_EQ(parsed->world, defaults.world);
  EXPECT_EQ(parsed->remainder, defaults.remainder);
  EXPECT_EQ(parsed->drop_remainder, defaults.drop_remainder);
  EXPECT_EQ(parsed->depth, defaults.depth);
  EXPECT_EQ(parsed->lent_batches, defaults.lent_batches);
}

TEST(LoaderSpec, ParsesCropIndex) {
  const testing::PhotoFolder folder(2, 1);
  const auto parse = [&](const std::string& more) {
    return ParseLoaderSpec(
        R"({"batch_size": 1, "source": {"kind": "image_folder", "directory": ")" + folder.path() +
        "\"" + more + "}}");
  };
  EXPECT_TRUE(parse("").ok());
  EXPECT_TRUE(parse(R"(, "crop_index": "auto")").ok());
  EXPECT_TRUE(parse(R"(, "crop_index": "off")").ok());
  EXPECT_EQ(parse(R"(, "crop_index": "/nowhere")").error().code, Code::kNotFound);
  for (const char* bad : {R"(, "crop_index": "here")", R"(, "crop_index": "")",
                          R"(, "crop_index": 1)", R"(, "crop_index": null)"}) {
    const Result<LoaderOptions> parsed = parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument) << bad;
    EXPECT_THAT(parsed.error().cause, HasSubstr("crop_index"));
  }
}

TEST(LoaderSpec, ParsesChannels) {
  const auto channels = [](const std::string& value) {
    return Parse(With("\"channels\": " + value)).value().channels;
  };
  EXPECT_EQ(channels("\"rgba\""), Channels::kRgba);
  EXPECT_EQ(channels("5"), StoredChannels(5));
  EXPECT_EQ(channels("\"5\""), StoredChannels(5));
  for (const char* bad :
       {"\"unchanged\"", "\"bgr\"", "0", "65", "-1", "2.5", "null", "[3]", "true"}) {
    ExpectBad(With(std::string("\"channels\": ") + bad), "channels");
  }
  ExpectBad(With(R"("on_bad": 5)"), "must be a string");
  ExpectBad(With(R"("cache": 7)"), "must be a string");
}

TEST(LoaderSpec, ParsesEveryKey) {
  const Result<LoaderOptions> parsed = Parse(R"({
      "source": {"kind": "image_folder", "directory": "/nowhere", "crop_index": "off",
                 "samples": 10},
      "transforms": [
        {"name": "RandomResizedCrop", "height": 224, "width": 192, "scale": [0.1, 0.9],
         "ratio": [0.5, 2], "antialias": false},
        {"name": "RandomHorizontalFlip", "p": 0.25},
        {"name": "Normalize", "mean": [0.1, 0.2, 0.3], "std": [1, 2, 3]}],
      "batch_size": 64, "shuffle": true, "seed": 18446744073709551615, "dtype": "float32",
      "drop_remainder": true, "rank": 2, "world": 3, "remainder": "pad", "exif_orientation": false,
      "decode": "scaled", "depth": 5, "lent_batches": 7, "layout": "NCHW", "max_pixels": 4294836225, "max_scans": 11,
      "accept_truncated": true, "wait_target": 0.25, "weight": 3, "pin_memory": false})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  ASSERT_EQ(parsed->transforms.size(), 3U);
  const auto& crop = std::get<RandomResizedCrop>(parsed->transforms[0]);
  EXPECT_EQ(crop.height, 224);
  EXPECT_EQ(crop.width, 192);
  EXPECT_EQ(crop.scale, (std::array<double, 2>{0.1, 0.9}));
  EXPECT_EQ(crop.ratio, (std::array<double, 2>{0.5, 2}));
  EXPECT_FALSE(crop.antialias);
  EXPECT_EQ(std::get<RandomHorizontalFlip>(parsed->transforms[1]).p, 0.25);
  const auto& normalize = std::get<Normalize>(parsed->transforms[2]);
  EXPECT_EQ(normalize.mean, (std::vector<float>{0.1F, 0.2F, 0.3F}));
  EXPECT_EQ(normalize.std, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(parsed->batch_size, 64U);
  EXPECT_TRUE(parsed->shuffle);
  EXPECT_EQ(parsed->seed, ~uint64_t{0});
  EXPECT_EQ(parsed->dtype, DType::kF32);
  EXPECT_EQ(parsed->layout, Layout::kNchw);
  EXPECT_TRUE(parsed->drop_remainder);
  EXPECT_EQ(parsed->rank, 2U);
  EXPECT_EQ(parsed->world, 3U);
  EXPECT_EQ(parsed->remainder, Remainder::kPad);
  EXPECT_FALSE(parsed->exif_orientation);
  EXPECT_EQ(parsed->decode, DecodeSize::kScaled);
  EXPECT_EQ(parsed->limits.max_pixels, int64_t{65535} * 65535);
  EXPECT_EQ(parsed->limits.max_scans, 11);
  EXPECT_TRUE(parsed->limits.accept_truncated);
  EXPECT_EQ(parsed->depth, 5);
  EXPECT_EQ(parsed->lent_batches, 7);
  EXPECT_EQ(parsed->wait_target, 0.25);
  EXPECT_EQ(parsed->weight, 3);
  EXPECT_EQ(parsed->pinned_for, nullptr);
}

TEST(LoaderSpec, ParsesDTypesAndLayoutsByName) {
  for (const DType dtype : {DType::kU8, DType::kF16, DType::kBF16, DType::kF32}) {
    EXPECT_EQ(Parse(With(std::string(R"("dtype": ")") + NameOf(dtype) + "\""))->dtype, dtype);
  }
  for (const Layout layout : {Layout::kNhwc, Layout::kNchw}) {
    EXPECT_EQ(Parse(With(std::string(R"("layout": ")") + NameOf(layout) + "\""))->layout, layout);
  }
}

TEST(LoaderSpec, ParsesAProcessor) {
  const auto with = [](const std::string& keys) {
    return With(
        R"("processor": {"config": "{\"image_processor_type\": \"Qwen2VLImageProcessor\"}")" +
        keys + "}");
  };
  const auto parsed = [&](const std::string& keys) { return Parse(with(keys)).value().processor; };
  EXPECT_EQ(Parse(With("")).value().processor, nullptr);
  EXPECT_EQ(parsed("")->options().dtype, DType::kF32);
  EXPECT_EQ(parsed("")->recipe().max_pixels, 1003520);
  EXPECT_EQ(parsed(R"(, "dtype": "float16")")->options().dtype, DType::kF16);
  EXPECT_EQ(parsed(R"(, "overrides": "{\"max_pixels\": 50176}")")->recipe().max_pixels, 50176);
  EXPECT_EQ(parsed(R"(, "max_pixels": 99)")->options().limits.max_pixels, 99);
  EXPECT_FALSE(parsed(R"(, "exif_orientation": false)")->options().exif_orientation);
  EXPECT_EQ(parsed(R"(, "resampler": "pillow")")->recipe().resampler, ResampledAs::kPillowExact);
  ExpectBad(with(R"(, "dtype": "uint16")"), "uint16");
  ExpectBad(with(R"(, "resampler": "opencv")"), "resampler");
  ExpectBad(with(R"(, "colour": 1)"), "colour");
  ExpectBad(with(R"(, "overrides": "[")"), "overrides is not JSON");
  ExpectBad(With(R"("processor": {})"), "config");
  ExpectBad(With(R"("processor": 3)"), "processor is 3; it must be an object");
  ExpectBad(With(R"("processor": null)"), "processor is null; it must be an object");
  // The error names a mistake next to a good processor.
  const std::string open = with("").substr(0, with("").size() - 1);
  ExpectBad(open + R"(, "rank": -1})", "rank is -1");
  ExpectBad(open + R"(, "transforms": [{"name": "Blur"}]})", "Blur");
}

TEST(LoaderSpec, PinnedMemoryNeedsCuda) {
  EXPECT_EQ(Parse(With(R"("pin_memory": false)"))->pinned_for, nullptr);
  ExpectBad(With(R"("pin_memory": 1)"), "pin_memory");
  const Result<LoaderOptions> pins = Parse(With(R"("pin_memory": true)"));
  if (pins.ok()) {
    ASSERT_NE(pins->pinned_for, nullptr);
    EXPECT_EQ(pins->pinned_for->name().kind, DeviceName::Kind::kCuda);
  } else {
    EXPECT_EQ(pins.error().code, Code::kFailedPrecondition);
    EXPECT_THAT(pins.error().cause, HasSubstr("pin_memory needs a GPU: "));
  }
}

TEST(LoaderSpec, ParsesResizeAndCenterCrop) {
  const Result<LoaderOptions> parsed = Parse(WithTransform(
      R"({"name": "Resize", "size": 256, "antialias": false},
         {"name": "CenterCrop", "height": 224, "width": 192},
         {"name": "Resize", "height": 10, "width": 20})"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(std::get<Resize>(parsed->transforms[0]).size, 256);
  EXPECT_FALSE(std::get<Resize>(parsed->transforms[0]).antialias);
  EXPECT_EQ(std::get<CenterCrop>(parsed->transforms[1]).width, 192);
  EXPECT_EQ(std::get<Resize>(parsed->transforms[2]).size, 0);
  EXPECT_EQ(std::get<Resize>(parsed->transforms[2]).height, 10);
}

TEST(LoaderSpec, OpensTheImageFolder) {
  const testing::PhotoFolder photos(6, 2);
  const std::string source =
      R"({"kind": "image_folder", "directory": ")" + photos.path() + R"(", "samples": )";
  const auto parse = [&](const std::string& samples) {
    return ParseLoaderSpec(R"({"batch_size": 2, "transforms": [{"name": "Resize", "height": 8,)"
                           R"( "width": 8}], "source": )" +
                           source + samples + "}}");
  };
  Result<LoaderOptions> parsed = parse("6");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  Result<std::shared_ptr<Loader>> loader = Loader::Open(*std::move(parsed));
  ASSERT_TRUE(loader.ok()) << loader.error().ToString();
  EXPECT_EQ((*loader)->Iterate()->Next().value().rows(), 2);

  parsed = parse("7");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(parsed.error().cause, HasSubstr(photos.path()));

  const std::string fingerprint = FingerprintText(*photos.Source());
  EXPECT_EQ(fingerprint.size(), 16u);
  EXPECT_TRUE(parse(R"(6, "fingerprint": ")" + fingerprint + "\"").ok());
  parsed = parse(R"(6, "fingerprint": "0123456789abcdef")");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kFailedPrecondition);
}

TEST(LoaderSpec, OpensRecords) {
  const testing::PhotoFolder folder(1, 1);
  const std::string one = folder.path() + "/one", two = folder.path() + "/two";
  std::ofstream(one) << "-1234";
  std::ofstream(two) << "-56";
  Result<LoaderOptions> parsed = ParseLoaderSpec(
      R"({"batch_size": 3, "source": {"kind": "records", "record": "label uint8, x uint8 1", )"
      R"("offset": "1", "paths": ")" +
      one + "\\n" + two + "\"}}");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(parsed->source->size(), 3u);
  EXPECT_EQ(parsed->source->LabelOf(2), '5');
}

TEST(LoaderSpec, RefusesSourcesItCannotOpen) {
  Result<LoaderOptions> parsed = ParseLoaderSpec(
      R"({"batch_size": 2, "source": {"kind": "image_folder", "directory": "/no/such"}})");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kNotFound);
  EXPECT_EQ(parsed.error().file, "/no/such");

  parsed = ParseLoaderSpec(R"({"batch_size": 2, "source": {"kind": "arrays", "key": "x"}})");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kFailedPrecondition);
}

TEST(LoaderSpec, RefusesAFunctionOfAnotherProcess) {
  class Function final : public MapFunction {
   public:
    std::string Describe() const override { return "to_gray"; }
  };
  const std::string spec = R"({"batch_size": 2, "map": "to_gray", "source": {"kind": "arrays"}})";
  Result<LoaderOptions> parsed = ParseLoaderSpec(spec, std::make_shared<FakeSource>());
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().code, Code::kFailedPrecondition);
  EXPECT_THAT(parsed.error().cause, HasSubstr("the loader calls the function to_gray"));
  const auto function = std::make_shared<const Function>();
  parsed = ParseLoaderSpec(spec, std::make_shared<FakeSource>(), function);
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(parsed->map, function);
  ExpectBad(R"({"batch_size": 2, "map": 5, "source": {"kind": "arrays"}})", "map");
}

TEST(LoaderSpec, RefusesTextThatIsNotAJsonObject) {
  for (const char* text : {"", " ", "{", "nul", "{}x", "{\"a\": NaN}", "{\"a\": 1e999}", "{'a': 1}",
                           "\"\xff\"", "{\"\xc0\xaf\": 1}", "[]", "1", "null", "\"x\""}) {
    ExpectBad(text, "the loader spec");
  }
  ExpectBad(std::string(kLongestSpec + 1, ' '), "longer");
}

TEST(LoaderSpec, RefusesDeepNesting) {
  for (const size_t depth : {26UL, 1000UL, kLongestSpec / 4}) {
    const std::string open(depth, '[');
    const std::string close(depth, ']');
    ExpectBad(With(R"("seed": )" + open + close), "deep");
    ExpectBad(R"({"source": {"x": )" + open + close + "}}", "deep");
    ExpectBad(open, "the loader spec");
    ExpectBad(With(R"("seed": )" + open), "the loader spec");
  }
}

TEST(LoaderSpec, ErrorsNameKeysWithWrongValues) {
  for (const char* key : {"batch_size", "seed", "rank", "world", "depth", "lent_batches"}) {
    const std::string named = "\"" + std::string(key) + "\": ";
    for (const char* value :
         {"-1", "1.5", "1e3", "true", "null", "\"1\"", "[1]", "{}", "18446744073709551616",
          "99999999999999999999999999", "-9223372036854775809"}) {
      ExpectBad(With(named + value), key);
    }
  }
  for (const char* key : {"batch_size", "rank", "world", "depth", "lent_batches"}) {
    ExpectBad(With("\"" + std::string(key) + "\": 4294967296"), key);
    ExpectBad(With("\"" + std::string(key) + "\": 18446744073709551615"), key);
  }
  for (const char* key : {"batch_size", "world", "max_pixels", "max_scans"}) {
    ExpectBad(With("\"" + std::string(key) + "\": 0"), key);
  }
  for (const char* key : {"shuffle", "drop_remainder", "exif_orientation"}) {
    for (const char* value : {"0", "1", "\"true\"", "null", "[]"}) {
      ExpectBad(With("\"" + std::string(key) + "\": " + value), key);
    }
  }
  for (const char* key : {"dtype", "layout", "remainder"}) {
    for (const char* value : {"0", "\"\"", "\"int64\"", "null", "[]", "\"uint8\\u0000\""}) {
      ExpectBad(With("\"" + std::string(key) + "\": " + value), key);
    }
  }
}

TEST(DeviceOptions, AreParsedAndErrorsNameTheKey) {
  EXPECT_EQ(ParseDeviceOptions("{}")->buffers, DeviceOptions().buffers);
  EXPECT_EQ(ParseDeviceOptions("{}")->crop_bytes, DeviceOptions().crop_bytes);
  const Result<DeviceOptions> options = ParseDeviceOptions(R"({"buffers": 64, "crop_bytes": 1})");
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->buffers, 64);
  EXPECT_EQ(options->crop_bytes, 1u);
  for (const auto& [text, key] : std::vector<std::pair<std::string, std::string>>{
           {R"({"buffers": 1})", "buffers"},
           {R"({"buffers": 65})", "buffers"},
           {R"({"crop_bytes": 0})", "crop_bytes"},
           {R"({"crop_bytes": 268435457})", "crop_bytes"},
           {R"({"crop_bytes": null})", "crop_bytes"},
           {R"({"piece_bytes": 1})", "piece_bytes"},
           {"[]", "the device's options"}}) {
    const Result<DeviceOptions> refused = ParseDeviceOptions(text);
    ASSERT_FALSE(refused.ok()) << text;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().cause, ::testing::HasSubstr(key));
  }
}

TEST(LoaderSpec, ErrorsNameUnknownAndMissingKeys) {
  ExpectBad(R"({"source": {"kind": "arrays"}})", "batch_size is missing");
  ExpectBad(R"({"batch_size": 1})", "source is missing");
  ExpectBad(R"({"batch_size": 1, "source": {}})", "source.kind is missing");
  ExpectBad(R"({"batch_size": 1, "source": 3})", "source is 3");
  ExpectBad(With(R"("bach_size": 1)"), "bach_size");
  ExpectBad(With(R"("\u001b[2J": 1)"), "\\u001b[2J");
  ExpectBad(With("\"" + std::string(100'000, 'k') + "\": 1"), "kkk");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "arrays", "path": ""}})", "\"path\" in source");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "zip"}})", "source.kind is \"zip\"");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "tar"}})", "source.shards is missing");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "tar", "shards": "/a", "root": "b"}})",
            "source.root must be \"off\" or an absolute path");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "image_folder"}})", "source.directory");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "image_folder", "directory": ""}})",
            "source.directory");
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "image_folder", "directory": "a\u0000b"}})",
            "source.directory");
  for (const char* relative : {"photos", "./photos", "../photos", "~/photos", "."}) {
    ExpectBad(R"({"batch_size": 1, "source": {"kind": "image_folder", "directory": ")" +
                  std::string(relative) + "\"}}",
              "source.directory must be an absolute path");
  }
  ExpectBad(R"({"batch_size": 1, "source": {"kind": "arrays", "samples": 0}})", "source.samples");
}

TEST(LoaderSpec, ErrorsNameBadTransforms) {
  ExpectBad(With(R"("transforms": {})"), "transforms");
  ExpectBad(With(R"("transforms": [3])"), "transforms[0] is 3");
  ExpectBad(WithTransform("{}"), "transforms[0].name is missing");
  ExpectBad(WithTransform(R"({"name": "Rotate"})"), "transforms[0].name is \"Rotate\"");
  ExpectBad(WithTransform(R"({"name": "Resize", "p": 1})"), "\"p\" in transforms[0]");
  ExpectBad(WithTransform(R"({"name": "Resize", "size": 70000})"), "transforms[0].size");
  ExpectBad(WithTransform(R"({"name": "CenterCrop", "height": 1})"), "transforms[0].width");
  ExpectBad(WithTransform(R"({"name": "RandomResizedCrop", "height": 1, "width": 1,
                              "scale": [1]})"),
            "transforms[0].scale");
  ExpectBad(WithTransform(R"({"name": "RandomResizedCrop", "height": 1, "width": 1,
                              "ratio": [1, "2"]})"),
            "transforms[0].ratio");
  ExpectBad(WithTransform(R"({"name": "Resize", "size": 1}, {"name": "RandomHorizontalFlip",
                              "p": 1.5})"),
            "transforms[1].p");
  ExpectBad(WithTransform(R"({"name": "Normalize", "mean": [0, 0, 1e300]})"), "transforms[0].mean");
  std::string many = "{}";
  for (size_t i = 0; i < kMaxTransforms; ++i) many += ", {}";
  ExpectBad(WithTransform(many), "transforms is a list of 257");
}

TEST(TransformSpec, ParsesTheTransformsOfRandomApply) {
  const auto apply = [](const std::string& transforms) {
    return R"({"transforms": [{"name": "RandomApply", "p": 0.25, "transforms": [)" + transforms +
           "]}]}";
  };
  const Result<TransformSpec> parsed =
      ParseTransformSpec(apply(R"({"name": "RandomSolarize", "threshold": 7}, )"
                               R"({"name": "ColorJitter", "p": 0.125})"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  const auto& read = std::get<RandomApply>(parsed->transforms.at(0));
  EXPECT_EQ(read.p, 0.25);
  ASSERT_EQ(read.transforms.size(), 2u);
  EXPECT_EQ(std::get<RandomSolarize>(read.transforms[0]).threshold, 7);
  EXPECT_EQ(std::get<ColorJitter>(read.transforms[1]).p, 0.125);
  for (const char* refused : {R"({"name": "CenterCrop"})", R"({"name": "RandomApply"})",
                              R"({"name": "RandomSolarize"})", R"({"nam": 1})", "7"}) {
    const Result<TransformSpec> bad = ParseTransformSpec(apply(refused));
    ASSERT_FALSE(bad.ok()) << refused;
    EXPECT_THAT(bad.error().ToString(), HasSubstr("transforms[0].transforms")) << refused;
  }
}

TEST(TransformSpec, ParsesTreesOfTransforms) {
  const auto parse = [](const std::string& transforms) {
    return ParseTransformSpec(
        R"({"transforms": [{"name": "CenterCrop", "height": 9, "width": 9}, )" + transforms + "]}");
  };
  const Result<TransformSpec> parsed = parse(
      R"({"name": "RandomOrder", "transforms": [
          {"name": "RandomChoice", "p": [1, 0.5], "transforms": [
            {"name": "RandomVerticalFlip", "p": 1},
            {"name": "RandomApply", "transforms": [{"name": "RandomGrayscale"}], "p": 0.25}]},
          {"name": "RandomChoice", "transforms": [{"name": "RandomHorizontalFlip"}]}]})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(TextOf(parsed->transforms.at(1)),
            "RandomOrder(RandomChoice(RandomVerticalFlip(p 1), RandomApply(RandomGrayscale, p "
            "0.25), p (1, 0.5)), RandomChoice(RandomHorizontalFlip))");
  const auto refusal = [&](const std::string& held) {
    const Result<TransformSpec> bad =
        parse(R"({"name": "RandomOrder", "transforms": [{"name": "RandomChoice", "transforms": [)" +
              held + "]}]}");
    return bad.ok() ? "" : bad.error().cause;
  };
  const std::string at = "transforms[1].transforms[0].transforms[1].";
  const std::string flip = R"({"name": "RandomVerticalFlip"}, )";
  EXPECT_EQ(refusal(flip + R"({"name": "RandomVerticalFlip"})"), "");
  EXPECT_THAT(refusal(flip + R"({"name": "RandomVerticalFlip", "p": 2})"),
              HasSubstr(at + "p is 2"));
  EXPECT_THAT(refusal(flip + R"({"name": "Normalize"})"),
              HasSubstr(at + "name is \"Normalize\"; held transforms resize, crop, "));
  EXPECT_THAT(refusal(flip + R"({"name": "Normalise"})"), HasSubstr("; it must be one of the "));
  EXPECT_THAT(refusal(flip + R"({"name": "RandomOrder"})"),
              HasSubstr(at + "transforms is missing"));
  EXPECT_THAT(refusal(flip + R"({"name": "RandomGrayscale", "q": 1})"),
              HasSubstr("\"q\" in transforms[1].transforms[0].transforms[1] is not a known key"));
  EXPECT_THAT(refusal(flip + R"({"name": "RandomChoice", "transforms": [], "p": 1})"),
              HasSubstr(at + "p is 1; it must be a list of at most 256 numbers"));
  EXPECT_THAT(refusal(flip + R"({"name": "RandomChoice", "transforms": [], "p": ["1"]})"),
              HasSubstr(at + "p holds \"1\"; it must be a list of at most 256 numbers"));
}

TEST(TransformSpec, ReadsListsOfIntegers) {
  const auto parse = [](const std::string& sizes) {
    return ParseRecipe(R"({"transforms": [{"name": "RandomShortestSize", "min_size": )" + sizes +
                       R"(}, {"name": "PadTo", "height": 9, "width": 9}]})");
  };
  const Result<TransformSpec> parsed = parse("[480, 512]");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  EXPECT_EQ(TextOf(parsed->transforms.at(0)), "RandomShortestSize(min_size (480, 512))");
  EXPECT_EQ(TextOf(parse("[480]")->transforms.at(0)), "RandomShortestSize(min_size 480)");
  const auto refusal = [&](const std::string& sizes) {
    const Result<TransformSpec> bad = parse(sizes);
    return bad.ok() ? "" : bad.error().cause;
  };
  const std::string at = "transforms[0].min_size ";
  EXPECT_THAT(refusal("480"), HasSubstr(at + "is 480; it must be a list of at most 256 integers"));
  EXPECT_THAT(refusal("[480, 0]"), HasSubstr(at + "holds 0; it must be a list of 2 integers from"));
  EXPECT_THAT(refusal("[1.5]"), HasSubstr(at + "holds 1.5"));
  std::string many = "[9";
  for (size_t i = 0; i < kMaxTransforms; ++i) many += ", 9";
  EXPECT_THAT(refusal(many + "]"), HasSubstr("at most 256 integers"));
}

TEST(TransformSpec, RefusesTreesThatAreTooDeep) {
  const auto nested = [](size_t depth) {
    std::string text = R"({"name": "RandomGrayscale"})";
    for (size_t level = 1; level < depth; ++level) {
      text.insert(0, R"({"name": "RandomOrder", "transforms": [)");
      text += "]}";
    }
    return text;
  };
  const auto in_view = [&](size_t depth) {
    const Result<TransformSpec> parsed =
        ParseRecipe(R"({"views": [{"transforms": [)" + nested(depth) + "]}]}");
    return parsed.ok() ? "" : parsed.error().cause;
  };
  EXPECT_EQ(in_view(kMaxTransformDepth), "");
  std::string path = "views[0].";
  for (size_t level = 1; level < kMaxTransformDepth; ++level) path += "transforms[0].";
  EXPECT_EQ(in_view(kMaxTransformDepth + 1),
            path + "transforms[0].transforms is nested more than 8 levels deep");
  for (const size_t depth : {12UL, 100UL, 10'000UL}) {
    EXPECT_THAT(in_view(depth), HasSubstr("more than 24 levels deep")) << depth;
  }
}

TEST(TransformSpec, ParsesOptionsThatMayBeNull) {
  const auto parse = [](const std::string& options) {
    return ParseTransformSpec(R"({"transforms": [{"name": "RandomAffine", "degrees": [0, 9])" +
                              options + R"(}, {"name": "RandomZoom", "height_factor": [0, 0]}]})");
  };
  const auto affine = [&](const std::string& options) {
    return std::get<RandomAffine>(parse(options).value().transforms.at(0));
  };
  EXPECT_EQ(affine("").fill, Fill{});
  EXPECT_EQ(affine(R"(, "fill": null)").fill, std::nullopt);
  EXPECT_EQ(affine(R"(, "fill": [1, 2, 3])").fill, (Fill{1, 2, 3}));
  EXPECT_EQ(affine(R"(, "center_x": 1.5)").center_x, 1.5);
  EXPECT_EQ(affine(R"(, "center_x": 1.5, "center_y": null)").center_y, std::nullopt);
  for (const char* bad : {R"(, "fill": 7)", R"(, "center_x": "1")", R"(, "center_x": 1e6)",
                          R"(, "degrees": null)", R"(, "scale": null)"}) {
    EXPECT_FALSE(parse(bad).ok()) << bad;
  }
}

TEST(TransformSpec, ParsesWholeNumbersBelowZero) {
  const auto parse = [](const std::string& depth) {
    return ParseTransformSpec(R"({"transforms": [{"name": "AugMix", "chain_depth": )" + depth +
                              "}]}");
  };
  const auto depth = [&](const std::string& text) {
    return std::get<AugMix>(parse(text).value().transforms.at(0)).chain_depth;
  };
  EXPECT_EQ(depth("-1"), -1);
  EXPECT_EQ(depth("3"), 3);
  for (const char* bad : {"-2", "0.5", "33", "\"1\"", "1e300"})
    EXPECT_FALSE(parse(bad).ok()) << bad;
}

TEST(TransformSpec, ParsesTransformsAndOptions) {
  const Result<TransformSpec> parsed = ParseTransformSpec(
      R"({"transforms": [{"name": "RandomHorizontalFlip", "p": 1}], "dtype": "float32",
          "layout": "NCHW", "exif_orientation": false, "decode": "scaled",
          "max_pixels": 12, "max_scans": 3,
          "accept_truncated": true})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().ToString();
  ASSERT_EQ(parsed->transforms.size(), 1U);
  EXPECT_EQ(std::get<RandomHorizontalFlip>(parsed->transforms[0]).p, 1);
  EXPECT_EQ(parsed->options.dtype, DType::kF32);
  EXPECT_EQ(parsed->options.layout, Layout::kNchw);
  EXPECT_FALSE(parsed->options.exif_orientation);
  EXPECT_EQ(parsed->options.decode, DecodeSize::kScaled);
  EXPECT_EQ(parsed->options.limits.max_pixels, 12);
  EXPECT_EQ(parsed->options.limits.max_scans, 3);
  EXPECT_TRUE(parsed->options.limits.accept_truncated);

  for (const char* key : {"batch_size", "seed", "source"}) {
    const Result<TransformSpec> other = ParseTransformSpec("{\"" + std::string(key) + "\": 1}");
    ASSERT_FALSE(other.ok());
    EXPECT_THAT(other.error().cause, HasSubstr(key));
  }
}

TEST(LoaderSpec, DamagedTextGivesAnErrorOrASpec) {
  const std::string good =
      With(R"("transforms": [{"name": "Normalize", "mean": [0.1, 0.2, 0.3]}], "dtype": "float32")");
  ASSERT_TRUE(Parse(good).ok());
  std::mt19937 random(1);  // NOLINT: the same damage in every run
  for (int run = 0; run < testing::Effort(20'000); ++run) {
    std::string text = good;
    for (unsigned n = 1 + random() % 4; n > 0; --n) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    const Result<LoaderOptions> parsed = Parse(text);
    if (parsed.ok()) continue;
    ASSERT_EQ(parsed.error().code, Code::kInvalidArgument) << text;
    ASSERT_FALSE(parsed.error().cause.empty());
  }
}

}  // namespace
}  // namespace stoker
