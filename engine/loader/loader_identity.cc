#include "engine/loader/loader_identity.h"

#include <algorithm>
#include <span>

#include "core/result/utf8.h"
#include "engine/arrays/processor.h"
#include "engine/options/option_table.h"
#include "engine/order/token_batches.h"
#include "io/source/source.h"
#include "transforms/plan/explain.h"
#include "transforms/spec/transform_table.h"

namespace stoker {

namespace {

constexpr std::string_view kSamples = "samples", kFingerprint = "fingerprint";
constexpr const char* kPieces = "images of a sample";  // if there are several
constexpr const char* kTokenBatches = "token batches";
constexpr const char* kProcessor = "processor";
constexpr std::string_view kOfPlan[] = {  // differ in it, too
    kSamples,  kFingerprint, kProcessor, "batch_size", "batch_tokens", "tokens",
    "padding", "buckets",    "shuffle",  "seed",       "world"};

void AddTransform(const Transform& transform, const std::string& name, Identity& identity) {
  const TransformRow& row = RowOf(transform);
  Transform given = transform, standard = row.standard;  // options are read through pointers
  identity.emplace_back(name, row.name);
  for (const Parameter& parameter : row.parameters) {
    for (const Option<Transform>& option : parameter.options) {
      if (option.in == nullptr) continue;
      std::string value = TextOf(option, option.in(given));
      if (value == TextOf(option, option.in(standard))) continue;
      identity.emplace_back(name + "." + option.name, std::move(value));
    }
  }
  const std::vector<Transform>* const held = HeldBy(transform);
  for (size_t i = 0; held != nullptr && i < held->size(); ++i) {
    AddTransform((*held)[i], name + ".transforms[" + std::to_string(i) + "]", identity);
  }
}

// Adds every view. One that is equal to an earlier view only names it.
void AddViews(const std::vector<std::vector<Transform>>& views, Identity& identity) {
  const auto name_of = [](size_t view) { return "views[" + std::to_string(view) + "]"; };
  std::vector<Identity> each;
  for (size_t view = 0; view < views.size(); ++view) {
    Identity parts;  // "[0]", "[0].scale", …
    for (size_t i = 0; i < views[view].size(); ++i) {
      AddTransform(views[view][i], "[" + std::to_string(i) + "]", parts);
    }
    const auto same = std::ranges::find(each, parts);
    if (same != each.end()) {
      identity.emplace_back(name_of(view), name_of(static_cast<size_t>(same - each.begin())));
    } else {
      for (const auto& [name, value] : parts) identity.emplace_back(name_of(view) + name, value);
    }
    each.push_back(std::move(parts));
  }
}

std::string MixText(const BatchMix& mix) {
  std::string text = TextOf(mix);
  for (const double p : mix.p) text += ", p " + NumberText(p);
  if (mix.num_classes != 0) text += ", " + std::to_string(mix.num_classes) + " classes";
  return text;
}

// "image, mask with fill 255", "8 × image".
std::string PiecesText(const SampleSource& source) {
  std::string text;
  for (const Field& field : source.fields().first(source.encoded_fields())) {
    if (!text.empty()) text += ", ";
    if (field.varies) {
      text += "any number of ";
    } else if (field.count != 0) {
      text += std::to_string(field.count) + " × ";
    }
    if (field.kind == Field::Kind::kImage) {
      text += field.varies ? "images" : "image";
    } else {
      text += field.dtype == DType::kU16 ? "mask of uint16" : "mask";
      text += " with fill " + std::to_string(field.fill);
    }
  }
  return text;
}

const std::string* Find(const Identity& identity, std::string_view name) {
  const auto found = std::ranges::find(identity, name, &Identity::value_type::first);
  return found == identity.end() ? nullptr : &found->second;
}

// For options that an identity has only if batches depend on them.
bool IsOfSome(std::string_view name) {
  return std::ranges::any_of(AllLoaderOptions(), [name](const LoaderOptionRow& row) {
    return row.decides && !row.changes_batches && row.option.name == name;
  });
}

// "transforms[2]" of "transforms[2].p", "processor" of "processor.mean"; empty for other names.
std::string_view TransformOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : name.substr(0, dot);
}

bool IsOfPlan(std::string_view name) {
  const std::string_view of = TransformOf(name);
  return std::ranges::find(kOfPlan, of.empty() ? name : of) != std::end(kOfPlan);
}

std::string DefaultOf(const Identity& identity, std::string_view name) {
  const std::string_view of = TransformOf(name);
  const std::string* const transform = of.empty() ? nullptr : Find(identity, of);
  for (const TransformRow& row : AllTransforms()) {
    if (transform == nullptr || *transform != row.name) continue;
    Transform standard = row.standard;
    for (const Parameter& parameter : row.parameters) {
      for (const Option<Transform>& option : parameter.options) {
        if (option.in == nullptr || option.name != name.substr(of.size() + 1)) continue;
        return TextOf(option, option.in(standard));
      }
    }
  }
  LoaderOptions standard;
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    if (row.option.in != nullptr && row.option.name == name) {
      return TextOf(row.option, row.option.in(standard));
    }
  }
  return "none";
}

// "1,281,167"; text that is not a 64-bit number is returned unchanged.
std::string Grouped(const std::string& digits) {
  constexpr size_t kMostDigits = 20;
  if (digits.size() > kMostDigits) return digits;
  if (digits.find_first_not_of("0123456789") != std::string::npos) return digits;
  std::string text = digits;
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// Returns the first characters of a text from a state, which may be hostile, safe to print.
std::string DisplayText(std::string_view text) {
  constexpr size_t kMost = 200;
  return text.size() <= kMost ? Printable(text) : Printable(text.substr(0, kMost)) + "…";
}

std::string Difference(std::string_view name, const std::string& was, const std::string& is) {
  if (name == kSamples) {
    return "the data set has " + Grouped(is) + (is == "1" ? " sample" : " samples") +
           ", the state was saved on " + DisplayText(Grouped(was));
  }
  if (name == kFingerprint) {
    return "the samples are different: the data set's fingerprint was " + DisplayText(was) +
           " and is " + is;
  }
  if (name == kTokenBatches) {
    return "samples have other numbers of tokens: the batches' hash was " + DisplayText(was) +
           " and is " + is;
  }
  const auto shown = [](const std::string& value) {
    return value.empty() ? "none" : DisplayText(value);
  };
  return DisplayText(name) + " was " + shown(was) + " and is " + shown(is);
}

}  // namespace

Identity IdentityOf(const LoaderOptions& options) {
  const SampleSource& source = *options.source;
  Identity identity{{std::string(kSamples), std::to_string(source.size())},
                    {std::string(kFingerprint), FingerprintText(source)}};
  if (source.pieces() > 1 || source.has_clips() || source.varies())
    identity.emplace_back(kPieces, PiecesText(source));
  LoaderOptions given = options, standard;  // options are read through pointers
  if (options.processor != nullptr) {       // the loader's are at their defaults (CheckProcessor)
    const ProcessorOptions& own = options.processor->options();
    given.dtype = own.dtype;
    given.exif_orientation = own.exif_orientation;
    given.limits = own.limits;
  }
  for (const LoaderOptionRow& row : AllLoaderOptions()) {
    const bool decides = row.decides && options.on_bad[*row.decides] != OnBad::kFail;
    if (row.option.in == nullptr || !(row.changes_batches || decides)) continue;
    std::string value = TextOf(row.option, row.option.in(given));
    // Options that decide which samples are bad are saved even at their defaults, so that they
    // differ from those that an earlier stoker did not save.
    if (!decides && value == TextOf(row.option, row.option.in(standard))) continue;
    identity.emplace_back(row.option.name, std::move(value));
  }
  for (size_t i = 0; i < options.transforms.size(); ++i) {
    AddTransform(options.transforms[i], "transforms[" + std::to_string(i) + "]", identity);
  }
  if (options.processor != nullptr) {
    const auto parts = PartsOf(options.processor->recipe());
    identity.emplace_back(kProcessor, parts[0].second);  // its family
    for (const auto& [name, value] : std::span(parts).subspan(1)) {
      identity.emplace_back(kProcessor + ("." + name), value);
    }
  }
  AddViews(options.views, identity);
  if (options.mix) identity.emplace_back("mix", MixText(*options.mix));
  if (options.map != nullptr) identity.emplace_back("map", options.map->InState());
  if (options.token_batches != nullptr) {
    identity.emplace_back(kTokenBatches, std::to_string(options.token_batches->Hash()));
  }
  return identity;
}

std::string ValueIn(const Identity& identity, std::string_view name) {
  const std::string* const given = Find(identity, name);
  return given != nullptr ? *given : DefaultOf(identity, name);
}

std::vector<std::string> Differences(const Identity& saved, const Identity& here,
                                     const std::vector<std::string_view>& except) {
  std::vector<std::string_view> names;
  for (const Identity* identity : {&here, &saved}) {
    for (const auto& [name, value] : *identity) {
      if (std::ranges::find(names, name) == names.end()) names.emplace_back(name);
    }
  }
  // Last, because other differences explain it.
  std::ranges::stable_partition(names, [](std::string_view name) { return name != kTokenBatches; });
  std::vector<std::string> found;
  std::vector<std::string_view> different;
  const auto differs = [&](std::string_view name) {
    return std::ranges::find(different, name) != different.end();
  };
  const auto of_another = [&](std::string_view name) {  // a transform, or one with it in its list
    for (name = TransformOf(name); !name.empty(); name = TransformOf(name)) {
      if (differs(name)) return true;
    }
    return false;
  };
  for (const std::string_view name : names) {
    if (std::ranges::find(except, name) != except.end() || of_another(name)) continue;
    if (name == kFingerprint && differs(kSamples)) continue;  // it goes without saying
    if (name == kTokenBatches && std::ranges::any_of(different, IsOfPlan)) continue;
    const bool both = Find(saved, name) != nullptr && Find(here, name) != nullptr;
    if (!both && IsOfSome(name)) continue;  // of an earlier stoker, or on_bad is different
    const std::string was = ValueIn(saved, name), is = ValueIn(here, name);
    if (was == is) continue;
    different.push_back(name);
    found.push_back(Difference(name, was, is));
  }
  return found;
}

}  // namespace stoker
