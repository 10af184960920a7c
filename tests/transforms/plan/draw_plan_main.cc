// draw_plan SPEC FILE...: transforms JPEG files and writes their rows to stdout, one after the
// other; for each file a line of JSON on stderr with the drawn parameters. The n-th file is drawn
// with the key {1, 0, n}. tests/python/transforms/test_torchvision.py compares them with
// torchvision.
//
// draw_plan SPEC WIDTHxHEIGHTxCOUNT: only draws, for the keys {1, 0, 0} to {1, 0, COUNT - 1} and an
// image of that size; the lines go to stdout.
//
// SPEC: a JSON object with "transforms", "dtype", … as docs/loader-spec.md has them.
//
// A line: {"geometry": {…}, "steps": [{"name": …, "transform": place, parameters…}, …],
// "erasures": [{"box": …, "value": … or "noise": key, "transform": place}, …]}; a box is
// [x, y, width, height], a size [width, height]. If only drawn, a Mosaic of COUNT samples adds
// "mosaic": {"scale": …, "x": …, "y": …, "canvas": …, "images": [{"part": …, "sample": …}, …]}.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "core/memory/buffer.h"
#include "tests/transforms/plan/geometry_of.h"
#include "transforms/augment/geometry/elastic.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

using Json = nlohmann::ordered_json;

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "draw_plan: %s\n", message.c_str());
  std::exit(2);
}

Json Box(const Rect& box) { return {box.x, box.y, box.width, box.height}; }
Json Size(ImageSize size) { return {size.width, size.height}; }

constexpr const char* kModes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};

// The parameters of each step.
struct Parameters {
  ImageSize size;  // of the image

  // The numbers of x, then those of y.
  Json Displaced(const ElasticNoise& noise) const {
    std::vector<float> memory(DisplacementBytes(noise, size) / sizeof(float));
    const Displacement by =
        MakeDisplacement(noise, size, reinterpret_cast<uint8_t*>(memory.data()));
    const ptrdiff_t count = ptrdiff_t{size.width} * size.height;
    std::vector<float> numbers(by.x, by.x + count);
    numbers.insert(numbers.end(), by.y, by.y + count);
    return numbers;
  }
  Json operator()(const AdjustBrightness& s) const { return {{"factor", s.factor}}; }
  Json operator()(const AdjustContrast& s) const { return {{"factor", s.factor}}; }
  Json operator()(const AdjustSaturation& s) const { return {{"factor", s.factor}}; }
  Json operator()(const AdjustSharpness& s) const { return {{"factor", s.factor}}; }
  Json operator()(const AdjustHue& s) const { return {{"shift", s.shift}}; }
  Json operator()(const AdjustHsv& s) const {
    return {{"shift", s.shift}, {"saturation", s.saturation}, {"value", s.value}};
  }
  Json operator()(const Grayscale&) const { return Json::object(); }
  Json operator()(const PermuteChannels& s) const { return {{"from", s.from}}; }
  Json operator()(const Posterize& s) const { return {{"bits", s.bits}}; }
  Json operator()(const Solarize& s) const { return {{"threshold", s.threshold}}; }
  Json operator()(const Invert&) const { return Json::object(); }
  Json operator()(const AutoContrast&) const { return Json::object(); }
  Json operator()(const Equalize&) const { return Json::object(); }
  Json operator()(const Blur& s) const {
    return {{"taps", Size(s.taps)}, {"sigma_x", s.sigma_x}, {"sigma_y", s.sigma_y}};
  }
  Json operator()(const Affine& s) const {
    return {{"matrix", s.matrix},
            {"divisor", s.divisor},
            {"interpolation", NameOf(s.interpolation)},
            {"fill", s.fill},
            {"padding_mode", kModes[static_cast<int>(s.padding)]},
            {"displacement", s.noise ? Displaced(*s.noise) : Json()}};
  }
  Json operator()(const Reframe& s) const {
    return {{"window", Box(s.window)},
            {"padding_mode", kModes[static_cast<int>(s.padding)]},
            {"fill", s.fill}};
  }
  Json operator()(const Mirror& s) const { return {{"columns", s.columns}, {"rows", s.rows}}; }
  Json operator()(const Paste&) const { return Json::object(); }
  Json operator()(const Mix& s) const {
    Json chains = Json::array();
    for (const Mix::Chain& chain : s.chains) {
      Json steps = Json::array();
      for (const ChainedStep& chained : chain.steps) {
        Json step = {{"name", NameOf(chained.step)}};
        step.update(std::visit(*this, chained.step));
        steps.push_back(step);
      }
      chains.push_back({{"weight", chain.weight}, {"steps", steps}});
    }
    return {{"weight", s.weight}, {"chains", chains}};
  }
};

Json Described(const DrawnStep& drawn, ImageSize size) {
  Json json = {{"name", NameOf(drawn.step)}, {"transform", drawn.transform}};
  json.update(std::visit(Parameters{size}, drawn.step));
  return json;
}

Json Described(const Erasure& erasure) {
  Json json = {{"box", Box(erasure.box)}, {"transform", erasure.transform}};
  if (erasure.noise) {
    json["noise"] = *erasure.noise;
  } else {
    json["value"] = erasure.value;
  }
  return json;
}

Json Described(const Mosaic& mosaic, const DrawKey& key, const RowSamples& images) {
  RandomStream random(key, 0);
  const DrawnMosaic drawn = DrawMosaic(mosaic, random);
  Json parts = Json::array();
  for (const RowPart& of : images.all()) {
    parts.push_back({{"part", of.part}, {"sample", of.sample}});
  }
  return {{"scale", drawn.scale},
          {"x", drawn.x},
          {"y", drawn.y},
          {"canvas", Box(drawn.canvas)},
          {"middle", {drawn.middle_x, drawn.middle_y}},
          {"degrees", drawn.degrees},
          {"shear", {drawn.x_shear, drawn.y_shear}},
          {"perspective", {drawn.x_perspective * drawn.scale, drawn.y_perspective * drawn.scale}},
          {"images", parts}};
}

Json Line(const DrawnSample& drawn) {
  const Geometry& g = drawn.geometry;
  Json steps = Json::array(), erasures = Json::array();
  for (const DrawnStep& step : drawn.steps) steps.push_back(Described(step, drawn.size));
  for (const Erasure& erasure : drawn.erasures) erasures.push_back(Described(erasure));
  return {{"geometry",
           {{"box", Box(g.box)},
            {"resized", Size(g.resized)},
            {"window", Box(g.window)},
            {"mirror_columns", g.mirror_columns},
            {"mirror_rows", g.mirror_rows},
            {"antialias", g.antialias},
            {"interpolation", NameOf(g.interpolation)}}},
          {"steps", steps},
          {"erasures", erasures}};
}

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) Fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void Run(const Plan& plan, const std::vector<std::string>& files) {
  MemoryBudget budget(uint64_t{1} << 30);
  auto workspace = plan.MakeWorkspace(budget);
  ImageDecoder header;
  std::vector<uint8_t> row(plan.row_bytes());
  for (size_t n = 0; n < files.size(); ++n) {
    std::vector<uint8_t> bytes = ReadFile(files[n]);
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    const std::span<const uint8_t> file(bytes.data(), size);
    const DrawKey key{1, 0, n};
    StageTimes times;
    Status status = plan.Apply(file, key, *workspace, row.data(), times);
    if (!status) Fail(std::move(status).error().WithFile(files[n]).ToString());
    const ImageInfo info = header.Open(file).value();
    const ImageSize viewed = Viewed(info.size, info.orientation);
    std::fprintf(stderr, "%s\n", Line(testing::DrawnOf(plan, key, viewed)).dump().c_str());
    std::fwrite(row.data(), 1, row.size(), stdout);
  }
}

void OnlyDraw(const Plan& plan, ImageSize image, uint64_t count) {
  for (uint64_t n = 0; n < count; ++n) {
    const DrawKey key{1, 0, n};
    Json line = Line(testing::DrawnOf(plan, key, image));
    if (const auto* mosaic = std::get_if<Mosaic>(plan.transforms().data())) {
      line["mosaic"] = Described(*mosaic, key, plan.SamplesOf(key, n, count, 0));
    }
    std::puts(line.dump().c_str());
  }
}

void RunOrDraw(const std::string& spec, const std::vector<std::string>& files) {
  Result<TransformSpec> parsed = ParseTransformSpec(spec);
  if (!parsed) Fail(parsed.error().ToString());
  Result<Plan> plan = Plan::Compile(std::move(parsed->transforms), parsed->options);
  if (!plan) Fail(plan.error().ToString());
  ImageSize image;
  unsigned count = 0;
  if (files.size() == 1 &&
      std::sscanf(files[0].c_str(), "%dx%dx%u", &image.width, &image.height, &count) == 3) {
    OnlyDraw(*plan, image, count);
  } else {
    Run(*plan, files);
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  if (argc < 3) stoker::Fail("usage: draw_plan SPEC FILE... or draw_plan SPEC WIDTHxHEIGHTxCOUNT");
  stoker::RunOrDraw(argv[1], {argv + 2, argv + argc});
  return 0;
}
