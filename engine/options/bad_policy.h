// BadPolicy: what a loader does with samples that cannot be used.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result/result.h"
#include "core/result/sample_fault.h"

namespace stoker {

enum class OnBad : uint8_t {
  kFail,        // Next returns the error instead of the batch
  kSubstitute,  // a random other sample of the order replaces it: the same one in each run
  kDrop,        // the batch is one row shorter; the others keep their order
};
inline constexpr int kOnBads = 3;

// "fail", "substitute", "drop".
const char* NameOf(OnBad action);

// An action for each class of faults.
class BadPolicy {
 public:
  // Parses one action for all classes but kForbidden ("drop"), or a list
  // ("truncated=drop,vanished=substitute"), which leaves the other classes at kFail. A server that
  // forbids all objects would end an epoch without an error, so that class is only handled by
  // name. InvalidArgument says what is wrong with the text.
  static Result<BadPolicy> Parse(std::string_view text);

  OnBad operator[](SampleFault fault) const { return actions_[static_cast<size_t>(fault)]; }
  bool Has(OnBad action) const;
  std::string ToString() const;  // in the form that Parse reads

  friend bool operator==(const BadPolicy&, const BadPolicy&) = default;

 private:
  std::array<OnBad, kSampleFaults> actions_{};
};

}  // namespace stoker
