#include "tests/fuzz/parse/read_state.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "core/result/utf8.h"
#include "engine/loader/loader_state.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"
#include "tests/fuzz/promise.h"
#include "tests/testing/samples/numbered_source.h"

namespace stoker::testing {
namespace {

LoaderOptions Options(uint32_t world, uint32_t rank, uint32_t batch_size) {
  LoaderOptions options;
  options.source = std::make_shared<NumberedSource>(101);
  options.transforms = {RandomResizedCrop{.height = 64, .width = 64}};
  options.shuffle = true;
  options.seed = 7;
  options.world = world;
  options.rank = rank;
  options.batch_size = batch_size;
  return options;
}

void CheckRefusal(const Error& error) {
  Promise(error.code == Code::kInvalidArgument || error.code == Code::kFailedPrecondition, "code");
  const std::string message = error.Message();
  Promise(!message.empty() && message.size() < 20'000, "length of the message");
  Promise(message == Printable(message), "a message is safe to print");
}

void ReadWith(std::string_view text, const LoaderOptions& options, bool same_ranks) {
  const Identity identity = IdentityOf(options);
  const Sampler order = Sampler::Make(SamplerOptionsOf(options)).value();
  const Result<BatchName> next = ReadState(text, identity, order, same_ranks);
  if (!next.ok()) return CheckRefusal(next.error());
  Promise(next->start <= order.options().samples, "the start is a position");
  Promise(next->index <= order.batches_from(next->start), "the batch is one of the epoch's");
  const bool ended = next->index == order.batches_from(next->start);
  if (ended) return;  // of this rank; rank 0's end is that of all
  const Result<BatchName> again = ReadState(StateText(identity, *next), identity, order, true);
  Promise(again.ok() && *again == *next, "a place's own state gives it back");
}

}  // namespace

void ReadFuzzedState(std::span<const uint8_t> input) {
  const std::string_view text(reinterpret_cast<const char*>(input.data()), input.size());
  ReadWith(text, Options(1, 0, 4), true);
  ReadWith(text, Options(1, 0, 4), false);
  ReadWith(text, Options(3, 2, 5), false);
}

}  // namespace stoker::testing
