#include "tests/fuzz/parse/parse_spec.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/c/loader_spec.h"
#include "transforms/plan/plan.h"

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
  Check(error.code == Code::kInvalidArgument || error.code == Code::kFailedPrecondition, "code");
  Check(!error.cause.empty() && error.cause.size() < 500, "length of the cause");
  Check(std::none_of(error.cause.begin(), error.cause.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20; }),
        "control character in the cause");
}

}  // namespace

void ParseFuzzedSpec(std::span<const uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  Result<LoaderOptions> parsed = ParseLoaderSpec(text, std::make_shared<NoSource>());
  if (!parsed.ok()) return CheckError(parsed.error());
  Check(parsed->batch_size >= 1 && parsed->world >= 1, "zero");
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
