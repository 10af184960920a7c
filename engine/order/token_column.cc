#include "engine/order/token_column.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/result/plural.h"
#include "core/result/try.h"
#include "engine/order/patch_counts.h"
#include "io/source/field.h"
#include "io/source/source.h"

namespace stoker {
namespace {

Error Refuse(std::string cause, std::string advice, Code code = Code::kInvalidArgument) {
  return {.code = code, .cause = std::move(cause), .advice = std::move(advice)};
}

bool IsOfNumbers(const Field& field) {
  return !field.is_encoded() && !field.is_drawn() && !field.is_of_objects() &&
         field.is_class_number() && field.dtype != DType::kBool;
}

Result<size_t> FieldNamed(const SampleSource& source, const std::string& name) {
  const std::span<const Field> fields = source.fields();
  const auto found = std::ranges::find(fields, name, &Field::name);
  if (found == fields.end()) {
    std::string numbers;
    for (const Field& field : fields) {
      if (!IsOfNumbers(field)) continue;
      numbers += (numbers.empty() ? "'" : ", '") + field.name + "'";
    }
    return Refuse("tokens is '" + name + "', and " + source.Describe() + " has no such column",
                  numbers.empty() ? "Add a column of integers to it" : "Give one of " + numbers);
  }
  if (!IsOfNumbers(*found)) {
    return Refuse("tokens is '" + name + "', which has no single integer for each sample of " +
                      source.Describe(),
                  "Give a column of integers");
  }
  if (found->kind != Field::Kind::kFixed) {
    return Refuse("tokens is '" + name + "', whose numbers are read with the images of " +
                      source.Describe() + ", and batches are planned before",
                  "Give the numbers in memory, such as a column of stoker.files",
                  Code::kUnimplemented);
  }
  return static_cast<size_t>(found - fields.begin());
}

Result<std::vector<uint32_t>> TokensOf(const LoaderOptions& options, uint64_t memory_budget) {
  const SampleSource& source = *options.source;
  const uint32_t budget = options.batch_tokens;
  std::optional<size_t> column;  // nullopt: patches
  if (!options.tokens.empty()) {
    ASSIGN_OR_RETURN(column, FieldNamed(source, options.tokens));
  }
  if (source.size() > TokenBatches::kMostSamples) {
    return Refuse(source.Describe() + " has " + std::to_string(source.size()) +
                      " samples; batch_tokens can order at most " +
                      std::to_string(TokenBatches::kMostSamples),
                  "Give parts of it", Code::kUnimplemented);
  }
  const uint64_t needed = source.size() * TokenBatches::kPlanBytes;
  if (needed > memory_budget) {
    Error error = Refuse("planning batches of " + std::to_string(source.size()) +
                             " samples may take " + std::to_string(needed) +
                             " bytes, and memory_budget is " + std::to_string(memory_budget),
                         "", Code::kResourceExhausted);
    error.changes = {{OptionChange::How::kSetToAtLeast, "memory_budget", needed}};
    return error;
  }
  const Field& of = source.fields()[column.value_or(0)];
  const PatchCounts* const counts = options.patch_counts.get();
  std::vector<uint32_t> tokens(source.size());
  constexpr size_t kAtOnce = 512;
  std::array<uint64_t, kAtOnce> ids;
  alignas(8) std::array<uint8_t, kAtOnce * sizeof(int64_t)> rows;
  uint64_t refused = 0, first = 0;
  int64_t its_number = 0, least = 0, most = 0;
  for (uint64_t begin = 0; begin < tokens.size(); begin += kAtOnce) {
    const size_t count = std::min<uint64_t>(kAtOnce, tokens.size() - begin);
    std::iota(ids.begin(), ids.end(), begin);
    if (column) source.FixedRows(*column, std::span(ids).first(count), rows.data());
    for (size_t i = 0; i < count; ++i) {
      const int64_t number = column ? of.ClassNumberIn(rows.data() + i * of.row_bytes())
                             : counts != nullptr ? int64_t{counts->TokensOf(begin + i)}
                                                 : 1;
      tokens[begin + i] = static_cast<uint32_t>(number);
      least = std::min(least, number);
      most = std::max(most, number);
      if ((number >= 0 && number <= budget) || refused++ != 0) continue;
      first = begin + i;
      its_number = number;
    }
  }
  if (refused == 0) return tokens;
  std::string path;
  if (!source.in_memory()) source.PathOf(source.RangeOf(first).file, path);
  const std::string others = refused == 1
                                 ? ""
                                 : " (and " + std::to_string(refused - 1) +
                                       Plural(refused - 1, " more sample is", " more samples are") +
                                       " outside 0 to batch_tokens)";
  Error error = Refuse("sample " + std::to_string(first) + " has " + std::to_string(its_number) +
                           (column ? " tokens in column '" + options.tokens + "'" : " patches") +
                           ", and batch_tokens is " + std::to_string(budget) + others,
                       least < 0 ? "Give numbers from 0 on" : "Leave such samples out");
  if (least >= 0 && most <= kMostTokens) {
    error.changes = {
        {OptionChange::How::kSetToAtLeast, "batch_tokens", static_cast<uint64_t>(most)}};
  }
  return NamedError(source, first, std::move(error).WithFile(std::move(path)));
}

}  // namespace

Result<std::shared_ptr<const TokenBatches>> TokenBatchesOf(const LoaderOptions& options,
                                                           uint64_t memory_budget) {
  ASSIGN_OR_RETURN(const std::vector<uint32_t> tokens, TokensOf(options, memory_budget));
  return std::make_shared<const TokenBatches>(
      TokenBatchOptions{.tokens = tokens,
                        .budget = options.batch_tokens,
                        .most_rows = options.batch_size == 0 ? kMostBatchRows : options.batch_size,
                        .seed = options.seed,
                        .shuffle = options.shuffle,
                        .padded = options.padding == RowPadding::kLongest,
                        .buckets = options.buckets.empty() ? nullptr : &options.buckets,
                        .run = options.buckets.empty() ? 1 : options.world});
}

}  // namespace stoker
