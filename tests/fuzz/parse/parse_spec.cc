#include "tests/fuzz/parse/parse_spec.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "bindings/c/processor_config.h"
#include "transforms/plan/plan.h"
#include "transforms/processor/recipe.h"

namespace stoker::testing {

namespace {

// Nothing on this machine is opened, whatever directory the input names.
class NoSource : public SampleSource {
 public:
  uint64_t size() const override { return 10; }
  std::span<const Field> fields() const override { return ImageFields(/*labels=*/false); }
  ByteRange RangeOf(uint64_t /*id*/) const override { return {}; }
  void PathOf(uint32_t, std::string& path) const override { path.clear(); }
  const std::vector<std::string>& classes() const override { return classes_; }
  uint64_t memory_bytes() const override { return 0; }
  std::string Describe() const override { return "none"; }

 private:
  std::vector<std::string> classes_;
};

void Check(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

void CheckError(const Error& error) {
  Check(error.code == Code::kInvalidArgument || error.code == Code::kFailedPrecondition ||
            error.code == Code::kUnimplemented || error.detail == Error::Detail::kOverLimits,
        "code");
  Check(!error.cause.empty() && error.cause.size() < 500, "length of the cause");
  Check(std::none_of(error.cause.begin(), error.cause.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
        "control character in the cause");
}

void CheckProcessor(const ProcessorRecipe& recipe) {
  for (const ImageSize image : {ImageSize{1, 1}, {50, 40}, {3, 65535}, {8000, 6000}}) {
    const Result<ImagePlan> plan = PlanImage(recipe, image);
    if (!plan.ok()) {
      CheckError(plan.error());
      continue;
    }
    int64_t rows = 0;
    for (const ResizedWindow& canvas : plan->all()) {
      const auto [columns, lines] = plan->Grid(canvas);
      Check(columns * plan->patch.width == canvas.window.width, "columns");
      Check(lines * plan->patch.height == canvas.window.height, "lines");
      rows += int64_t{columns} * lines;
    }
    Check(rows == plan->rows && rows >= 1, "rows");
    const int64_t most = std::max(rows, recipe.padded_rows);
    const auto values = static_cast<int64_t>(RowValues(recipe, plan->patch));
    Check(most <= static_cast<int64_t>(kMostRowBytes) / 4 / values, "bytes");
    const std::optional<ImagePlan> fixed = FixedPlan(recipe);
    Check(!fixed || (fixed->patch == plan->patch && fixed->rows == most), "fixed rows");
  }
}

}  // namespace

void ParseFuzzedSpec(std::span<const uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  for (const ResampledAs resampler : {ResampledAs::kTorchvision, ResampledAs::kPillowExact}) {
    const Result<ProcessorRecipe> recipe = ParseProcessorConfig(text, resampler);
    if (recipe.ok()) CheckProcessor(*recipe);
    if (!recipe.ok()) CheckError(recipe.error());
  }
  Result<LoaderOptions> parsed = ParseLoaderSpec(text, std::make_shared<NoSource>());
  if (!parsed.ok()) return CheckError(parsed.error());
  Check(parsed->batch_size >= 1 || parsed->batch_tokens >= 1, "no rows");
  Check(parsed->world >= 1, "no ranks");
  Check(parsed->depth >= 0 && parsed->depth <= 4096, "depth");
  Check(parsed->lent_batches >= 0 && parsed->lent_batches <= 4096, "lent_batches");
  Check(parsed->source != nullptr, "no source");
  PlanOptions options;
  options.dtype = parsed->dtype;
  const Result<Plan> plan = Plan::Compile(std::move(parsed->transforms), options);
  DrawnSample drawn;
  for (uint64_t position = 0; plan.ok() && position < 3; ++position) {
    (void)plan->Draw({.position = position}, {50, 40}, drawn);
  }
  if (parsed->mix) (void)CheckMix(*parsed->mix);
}

}  // namespace stoker::testing
