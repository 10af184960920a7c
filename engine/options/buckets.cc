#include "engine/options/buckets.h"

#include <algorithm>
#include <charconv>

#include "core/result/utf8.h"
#include "transforms/spec/option.h"

namespace stoker {

namespace {

// Takes a number from the start of a text; false if there is none from `low` to `high`.
template <typename Number>
bool TakeNumber(std::string_view& text, Number low, Number high, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return error == std::errc() && number >= low && number <= high;
}

bool TakeSign(std::string_view& text, char sign) {
  if (!text.starts_with(sign)) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

Result<Buckets> Buckets::Parse(std::string_view text) {
  Buckets buckets;
  std::string_view left = text;
  double sum = 0;
  bool valid = true;
  for (bool more = !left.empty(); more && valid; more = TakeSign(left, ',')) {
    Bucket& bucket = buckets.all.emplace_back();
    valid = buckets.all.size() <= kMost && TakeNumber(left, 1U, kMostLength, bucket.length) &&
            (!TakeSign(left, ':') || TakeNumber(left, 0.0, 1e300, bucket.weight));
    sum += bucket.weight;
  }
  if (valid && TakeSign(left, '%')) valid = TakeNumber(left, 1U, kMostLength, buckets.multiple);
  if (valid && left.empty() && (text.empty() || sum > 0)) return buckets;
  return Error{.code = Code::kInvalidArgument,
               .cause = "buckets is \"" + Printable(text) + "\"",
               .advice = "Give 1 to " + std::to_string(kMost) + " lengths from 1 to " +
                         std::to_string(kMostLength) +
                         ", perhaps with weights from 0 on that are not all 0, and a multiple of "
                         "rows: 128:0.5,256%8"};
}

std::string Buckets::ToString() const {
  std::string text;
  for (const Bucket& bucket : all) {
    text += (text.empty() ? "" : ",") + std::to_string(bucket.length);
    if (bucket.weight != 1) text += ":" + NumberText(bucket.weight);
  }
  return multiple == 1 ? text : text + "%" + std::to_string(multiple);
}

uint32_t Buckets::RowsOf(const Bucket& bucket, uint32_t tokens, uint32_t most_rows) const {
  return std::min(tokens / bucket.length, most_rows) / multiple * multiple;
}

uint32_t Buckets::longest() const { return std::ranges::max(all, {}, &Bucket::length).length; }

}  // namespace stoker
