#include "engine/options/bad_policy.h"

#include <algorithm>
#include <optional>

#include "core/result/utf8.h"

namespace stoker {

namespace {

using Actions = std::array<OnBad, kSampleFaults>;  // by SampleFault

template <typename Enum, int count>
std::optional<Enum> EnumNamed(std::string_view name) {
  for (int i = 0; i < count; ++i) {
    if (NameOf(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <typename Enum, int count>
std::string AllNames() {
  std::string names;
  for (int i = 0; i < count; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(NameOf(static_cast<Enum>(i)));
  }
  return names;
}

Actions ForAll(OnBad action) {
  Actions actions;
  actions.fill(action);
  actions[static_cast<size_t>(SampleFault::kForbidden)] = OnBad::kFail;
  return actions;
}

Error Refused(std::string_view text, std::string advice) {
  return Error{.code = Code::kInvalidArgument,
               .cause = "on_bad is \"" + Printable(text) + "\"",
               .advice = std::move(advice)};
}

}  // namespace

const char* NameOf(OnBad action) {
  switch (action) {
    case OnBad::kFail:
      return "fail";
    case OnBad::kSubstitute:
      return "substitute";
    case OnBad::kDrop:
      return "drop";
  }
  return "";
}

Result<BadPolicy> BadPolicy::Parse(std::string_view text) {
  BadPolicy policy;
  if (const auto action = EnumNamed<OnBad, kOnBads>(text)) {
    policy.actions_ = ForAll(*action);
    return policy;
  }
  for (std::string_view left = text; !left.empty();) {
    const std::string_view one = left.substr(0, left.find(','));
    left.remove_prefix(std::min(one.size() + 1, left.size()));
    const size_t equals = std::min(one.find('='), one.size());
    const auto fault = EnumNamed<SampleFault, kSampleFaults>(one.substr(0, equals));
    const auto action = EnumNamed<OnBad, kOnBads>(one.substr(std::min(equals + 1, one.size())));
    if (!fault) {
      return Refused(text, "Give one of " + AllNames<OnBad, kOnBads>() +
                               "; or a class of faults, '=' and one of them, as often as needed: " +
                               AllNames<SampleFault, kSampleFaults>());
    }
    if (!action) {
      return Refused(
          text, std::string("Give ") + NameOf(*fault) + " one of " + AllNames<OnBad, kOnBads>());
    }
    policy.actions_[static_cast<size_t>(*fault)] = *action;
  }
  if (text.empty()) return Refused(text, "Give one of " + AllNames<OnBad, kOnBads>());
  return policy;
}

bool BadPolicy::Has(OnBad action) const { return std::ranges::count(actions_, action) != 0; }

std::string BadPolicy::ToString() const {
  if (actions_ == ForAll(actions_[0])) return NameOf(actions_[0]);
  std::string text;
  for (int i = 0; i < kSampleFaults; ++i) {
    const auto fault = static_cast<SampleFault>(i);
    if ((*this)[fault] == OnBad::kFail) continue;
    text += (text.empty() ? "" : ",") + std::string(NameOf(fault)) + "=" + NameOf((*this)[fault]);
  }
  return text;
}

}  // namespace stoker
