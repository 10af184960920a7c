#include "engine/loader/loader_state.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/try.h"
#include "engine/loader/loader_identity.h"
#include "engine/order/sampler.h"
#include "engine/production/check_options.h"

namespace stoker {

namespace {

using Json = nlohmann::json;  // finds and adds a key of a hostile object in logarithmic time

constexpr uint64_t kVersion = 3;
constexpr size_t kLongest = size_t{1} << 18;  // room for the most transforms of views
constexpr size_t kMostOptions = 4000;
constexpr size_t kMostNamed = 20;                  // differences in a message
constexpr uint64_t kMostRows = uint64_t{1} << 20;  // of world, and of batch_size

struct SavedState {
  BatchName next;
  Identity identity;
};

Error Invalid(std::string cause, std::string advice = "") {
  if (advice.empty()) advice = "Give what a loader's state() or state_dict() returned";
  return {.code = Code::kInvalidArgument, .cause = std::move(cause), .advice = std::move(advice)};
}

Result<uint64_t> NumberIn(const Json& state, const char* key, uint64_t most) {
  const auto found = state.find(key);
  if (found == state.end()) return Invalid(std::string("the state has no '") + key + "'");
  if (!found->is_number_unsigned() || found->get<uint64_t>() > most) {
    return Invalid(std::string("the state's ") + key + " is not a whole number from 0 to " +
                   std::to_string(most));
  }
  return found->get<uint64_t>();
}

Result<Identity> OptionsIn(const Json& state) {
  const auto found = state.find("options");
  if (found == state.end()) return Invalid("the state has no 'options'");
  const Error wrong = Invalid("the state's options are not an object of texts");
  if (!found->is_object()) return wrong;
  if (found->size() > kMostOptions) {
    return Invalid("the state has more than " + std::to_string(kMostOptions) + " options");
  }
  Identity identity;
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) return wrong;
    identity.emplace_back(name, value.get<std::string>());
  }
  return identity;
}

Result<SavedState> Parse(std::string_view text) {
  if (text.size() > kLongest) {
    return Invalid("the state is longer than " + std::to_string(kLongest) + " bytes");
  }
  const Json state = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!state.is_object()) return Invalid("the state is not a JSON object");
  constexpr uint64_t kMost = uint64_t{1} << 62;
  ASSIGN_OR_RETURN(const uint64_t version, NumberIn(state, "version", kMost));
  if (version != kVersion) {
    return Invalid("the state is of version " + std::to_string(version) + "; this stoker reads " +
                       std::to_string(kVersion),
                   "Load it with the stoker that saved it, or start a new epoch");
  }
  SavedState saved;
  ASSIGN_OR_RETURN(saved.next.epoch, NumberIn(state, "epoch", kMaxEpochs));
  ASSIGN_OR_RETURN(saved.next.index, NumberIn(state, "batch", kMost));
  ASSIGN_OR_RETURN(saved.next.start, NumberIn(state, "start", kMost));
  ASSIGN_OR_RETURN(saved.identity, OptionsIn(state));
  return saved;
}

Result<uint32_t> RowsIn(const Identity& identity, const char* name) {
  const std::string text = ValueIn(identity, name);
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > kMostRows) {
    return Invalid(std::string("the state's option ") + name + " is not a number from 1 to " +
                   std::to_string(kMostRows));
  }
  return value;
}

Error OfAnother(const std::vector<std::string>& differences) {
  const size_t named = std::min(differences.size(), kMostNamed);
  std::string all;
  for (const std::string& one : std::span(differences).first(named)) {
    all += (all.empty() ? "" : "; ") + one;
  }
  if (named < differences.size()) {
    all += "; and " + std::to_string(differences.size() - named) + " more";
  }
  return {.code = Code::kFailedPrecondition,
          .cause = "the state was saved by a loader with other options or samples: " + all,
          .advice = "Give this loader the same source, transforms and options"};
}

// Returns the batch with which the rank `here` continues after all ranks of `there` have delivered
// the batches before `next`.
Result<BatchName> GoOn(BatchName next, const Sampler& there, const Sampler& here) {
  const uint64_t batches = there.batches_from(next.start);
  if (next.index > batches || next.start > there.options().samples) {
    return Invalid("the state's batch " + std::to_string(next.index) + " is of an epoch that has " +
                   std::to_string(batches));
  }
  const TokenBatches* const tokens = here.options().tokens;
  if (tokens != nullptr && tokens->has_buckets() && next.start % here.step() != 0) {
    return Invalid("the state's start " + std::to_string(next.start) +
                   " is not that of a step, whose batches have one length");
  }
  if (next.index == batches) return BatchName{next.epoch, here.batches_per_epoch()};
  if (there.step() != here.step()) {
    next.start += next.index * there.step();
    next.index = 0;
    // These ranks would have reached the same place if they had begun the epoch, so the batches
    // keep the numbers that the program knows.
    if (next.start % here.step() == 0) next = {next.epoch, next.start / here.step()};
  }
  next.index = std::min(next.index, here.batches_from(next.start));
  return next;
}

}  // namespace

std::string StateText(const Identity& identity, BatchName next) {
  using Ordered = nlohmann::ordered_json;
  Ordered options = Ordered::object();
  for (const auto& [name, value] : identity) options[name] = value;
  const Ordered state = {{"version", kVersion},
                         {"epoch", next.epoch},
                         {"batch", next.index},
                         {"start", next.start},
                         {"options", std::move(options)}};
  return state.dump(-1, ' ', /*ensure_ascii=*/false, Ordered::error_handler_t::replace);
}

Result<BatchName> ReadState(std::string_view state, const Identity& identity, const Sampler& order,
                            bool same_ranks) {
  ASSIGN_OR_RETURN(const SavedState saved, Parse(state));
  std::vector<std::string_view> except;
  const bool of_tokens = order.options().tokens != nullptr;
  const bool in_buckets = of_tokens && order.options().tokens->has_buckets();
  if (!same_ranks && !in_buckets) except = {"world"};
  if (!same_ranks && !of_tokens) except.emplace_back("batch_size");
  const std::vector<std::string> different = Differences(saved.identity, identity, except);
  if (!different.empty()) return OfAnother(different);
  SamplerOptions first_rank = order.options();
  first_rank.rank = 0;
  ASSIGN_OR_RETURN(first_rank.world, RowsIn(saved.identity, "world"));
  if (!of_tokens) {
    ASSIGN_OR_RETURN(first_rank.batch_size, RowsIn(saved.identity, "batch_size"));
  }
  ASSIGN_OR_RETURN(const Sampler there, Sampler::Make(first_rank));
  return GoOn(saved.next, there, order);
}

}  // namespace stoker
