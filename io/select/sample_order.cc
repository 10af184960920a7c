#include "io/select/sample_order.h"

#include "io/source/source.h"

namespace stoker {

Status CheckNoOrder(const std::string& what, const SampleSource* source) {
  if (source == nullptr) return Error{Code::kInvalidArgument, what + ": no source was given"};
  if (source->order() == nullptr) return {};
  return Error{.code = Code::kInvalidArgument,
               .cause = what + ": " + source->Describe() +
                        " has an order of its own, which does not tell how often some of its "
                        "samples should come",
               .advice = "Choose and combine samples first, and weight the result"};
}

}  // namespace stoker
