// apply_plan TRANSFORM... -- FILE...: transforms JPEG files and writes their rows to stdout, one
// after the other; for each file a line on stderr: box x y width height, resized width height,
// flip.
//
// TRANSFORM: resize=SIZE, resize=HEIGHTxWIDTH, center_crop=HEIGHTxWIDTH, random_resized_crop=
// HEIGHTxWIDTH, flip=P, normalize (ImageNet's mean and std); plain (no antialias), f32; bicubic,
// box, lanczos, nearest: the interpolation of what follows. The n-th file is drawn with the key {1,
// 0, n}.
//
// apply_plan TRANSFORM... -- WIDTHxHEIGHTxCOUNT: only draws, for the keys {1, 0, 0} to {1, 0, COUNT
// - 1} and an image of that size; for each a line on stdout: box x y width height.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/memory/buffer.h"
#include "tests/transforms/plan/geometry_of.h"
#include "transforms/decode/image_decoder.h"
#include "transforms/plan/plan.h"

namespace stoker {
namespace {

struct Request {
  std::vector<Transform> transforms;
  PlanOptions options;
  std::vector<std::string> files;
};

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "apply_plan: %s\n", message.c_str());
  std::exit(2);
}

// How to resample.
struct Filter {
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
};

Transform Parse(const std::string& name, const std::string& value, const Filter& filter) {
  int height = 0, width = 0;
  const bool both = std::sscanf(value.c_str(), "%dx%d", &height, &width) == 2;
  if (name == "resize" && both)
    return Resize{0, height, width, filter.antialias, filter.interpolation};
  if (name == "resize") return Resize{height, 0, 0, filter.antialias, filter.interpolation};
  if (name == "center_crop" && both) return CenterCrop{height, width};
  if (name == "random_resized_crop" && both) {
    RandomResizedCrop crop{height, width};
    crop.antialias = filter.antialias;
    crop.interpolation = filter.interpolation;
    return crop;
  }
  if (name == "flip") return RandomHorizontalFlip{std::atof(value.c_str())};
  if (name == "normalize") {
    return Normalize{{0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  }
  Fail("cannot read " + name + "=" + value);
}

Request ParseArguments(int argc, char** argv) {
  Request request;
  Filter filter;
  int i = 1;
  for (; i < argc && std::string(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    if (word == "plain") {
      filter.antialias = false;
    } else if (const auto interpolation = InterpolationOf(word)) {
      filter.interpolation = *interpolation;
    } else if (word == "nchw") {
      request.options.layout = Layout::kNchw;
    } else if (word == "f32" || word == "f16") {
      request.options.dtype = word == "f32" ? DType::kF32 : DType::kF16;
    } else {
      const size_t equals = word.find('=');
      const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
      request.transforms.push_back(Parse(word.substr(0, equals), value, filter));
    }
  }
  for (++i; i < argc; ++i) request.files.push_back(argv[i]);
  return request;
}

std::vector<uint8_t> ReadFile(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) Fail("cannot read " + path);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void Run(const Request& request) {
  Result<Plan> plan = Plan::Compile(request.transforms, request.options);
  if (!plan) Fail(plan.error().ToString());
  MemoryBudget budget(uint64_t{1} << 30);
  auto workspace = plan->MakeWorkspace(budget);
  ImageDecoder header;
  std::vector<uint8_t> row(plan->row_bytes());
  for (size_t n = 0; n < request.files.size(); ++n) {
    std::vector<uint8_t> bytes = ReadFile(request.files[n]);
    const size_t size = bytes.size();
    bytes.resize(size + kBufferPadding);
    const std::span<const uint8_t> file(bytes.data(), size);
    const DrawKey key{1, 0, n};
    StageTimes times;
    Status status = plan->Apply(file, key, *workspace, row.data(), times);
    if (!status) Fail(std::move(status).error().WithFile(request.files[n]).ToString());
    const ImageInfo info = header.Open(file).value();
    const Geometry g = testing::GeometryOf(*plan, key, Viewed(info.size, info.orientation));
    std::fprintf(stderr, "%d %d %d %d %d %d %d\n", g.box.x, g.box.y, g.box.width, g.box.height,
                 g.resized.width, g.resized.height, g.mirror_columns ? 1 : 0);
    std::fwrite(row.data(), 1, row.size(), stdout);
  }
}

void DrawBoxes(const Request& request, ImageSize image, uint64_t count) {
  Result<Plan> plan = Plan::Compile(request.transforms, request.options);
  if (!plan) Fail(plan.error().ToString());
  for (uint64_t n = 0; n < count; ++n) {
    const Rect box = testing::GeometryOf(*plan, {1, 0, n}, image).box;
    std::printf("%d %d %d %d\n", box.x, box.y, box.width, box.height);
  }
}

void RunOrDraw(const Request& request) {
  ImageSize image;
  unsigned count = 0;
  if (request.files.size() == 1 &&
      std::sscanf(request.files[0].c_str(), "%dx%dx%u", &image.width, &image.height, &count) == 3) {
    DrawBoxes(request, image, count);
  } else {
    Run(request);
  }
}

}  // namespace
}  // namespace stoker

int main(int argc, char** argv) {
  stoker::RunOrDraw(stoker::ParseArguments(argc, argv));
  return 0;
}
