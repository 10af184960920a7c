#include "bindings/cli/explain/plan_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "bindings/cli/outcome.h"
#include "bindings/cli/text/report_text.h"
#include "bindings/cli/working_memory.h"
#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "io/samples/sample_reads.h"
#include "io/source/image_numbers.h"
#include "transforms/plan/plan_run.h"

namespace stoker {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMixed = "once all its rows are complete; not measured";
constexpr size_t kTogether = 32;  // images in memory at a time

// Some of a source's images, in memory.
class Group {
 public:
  Group(const Plan& plan, uint64_t seed)
      : plan_(plan),
        budget_(WorkingMemory(plan.options().limits)),
        seed_(seed),
        row_(plan.row_bytes()) {}

  // Fails if the image cannot be read.
  Status Add(const SampleSource& source, uint64_t id) {
    ReadRequest read;
    read.buffer = GrowingBuffer(budget_);
    SampleReads(source).Read(id, read);
    if (!read.status.ok()) {
      return NamedError(source, id, std::move(read.status).error().WithFile(read.path));
    }
    std::span<const uint8_t> encoded(read.buffer.data(), read.size);
    if (source.has_records()) {
      std::vector<uint8_t> rows(LoadedBytes(source.fields()));
      ASSIGN_OR_RETURN(encoded, source.Unpack(id, encoded, rows));
    }
    GrowingBuffer memory(budget_);
    const std::span<const uint8_t> crop_index = source.ReadCropIndex(id, read.size, memory);
    images_.push_back({std::move(read.buffer), encoded, id, std::move(read.path), std::move(memory),
                       crop_index, ObjectsOf(source, id)});
    return {};
  }
  size_t size() const { return images_.size(); }

  // Applies the plan to each image once; `epoch` changes the draws.
  void Apply(uint64_t epoch, Workspace& workspace, StageTimes& times) {
    refused_ = 0;
    size_t next = 0;
    PlanRun run(plan_, workspace, times);
    const auto fill = [&] {
      while (next < images_.size() && run.has_room()) run.Begin(Encoded(next++, epoch));
    };
    for (fill(); run.busy(); fill()) {
      std::optional<FinishedRows> rows = run.Advance();
      if (!rows || rows->status.ok()) continue;
      Refuse(images_[rows->tag], std::move(rows->status).error());
      run.SkipTime();
    }
  }
  uint64_t refused() const { return refused_; }
  const std::string& refusal() const { return refusal_; }

 private:
  struct Image {
    GrowingBuffer buffer;
    std::span<const uint8_t> encoded;  // within the read buffer
    uint64_t id;
    std::string path;
    GrowingBuffer index_memory;
    std::span<const uint8_t> crop_index;            // within it
    std::vector<std::span<const uint8_t>> objects;  // by field of objects
  };

  static std::vector<std::span<const uint8_t>> ObjectsOf(const SampleSource& source, uint64_t id) {
    std::vector<std::span<const uint8_t>> objects;
    for (size_t field = 0; field < source.fields().size(); ++field) {
      if (source.fields()[field].is_of_objects()) objects.push_back(source.View(field, id));
    }
    return objects;
  }

  // The draws may need the objects; they are not written.
  EncodedImage Encoded(size_t index, uint64_t epoch) {
    const Image& image = images_[index];
    EncodedImage encoded{.tag = static_cast<uint32_t>(index),
                         .bytes = image.encoded,
                         .key = {seed_, epoch, image.id},
                         .to = {.row = row_.data()},
                         .crop_index = image.crop_index};
    if (plan_.options().objects.empty()) return encoded;
    const size_t bytes = plan_.options().objects.front().bytes;
    objects_ = {.from = image.objects,
                .count = static_cast<uint32_t>(image.objects.front().size() / bytes)};
    encoded.to.objects = &objects_;
    return encoded;
  }
  void Refuse(const Image& image, Error error) {
    ++refused_;
    if (refusal_.empty()) refusal_ = std::move(error).WithFile(image.path).Message(cli::FlagOf);
  }

  const Plan& plan_;
  MemoryBudget budget_;
  uint64_t seed_;
  std::vector<Image> images_;
  std::vector<uint8_t> row_;  // two images alternately write to it; it is never read
  ObjectRows objects_;        // of the image that Encoded returned
  uint64_t refused_ = 0;
  std::string refusal_;
};

// Returns CPU time, without the time in which other threads had the core.
double Microseconds(uint64_t nanoseconds, const PlanCost& cost) {
  return cost.images == 0 ? 0
                          : static_cast<double>(nanoseconds) * 1e-3 * cost.clocked.share() /
                                static_cast<double>(cost.images);
}

Error Interrupted() { return {Code::kCancelled, "interrupted"}; }

// Applies the plan to a group, and adds the cost to `cost`, if it is not null.
void ApplyOnce(Workspace& workspace, Group& group, uint64_t epoch, PlanCost* cost) {
  StageTimes times;
  const std::vector<uint64_t> before = TransformTimesOf(workspace);
  const CoreClock clock;
  const uint64_t started = NowNanoseconds();
  group.Apply(epoch, workspace, times);
  if (cost == nullptr) return;
  cost->work_ns += NowNanoseconds() - started;
  if (const std::optional<CoreTime> time = clock.Read()) cost->clocked += *time;
  const std::vector<uint64_t> after = TransformTimesOf(workspace);
  for (size_t i = 0; i < after.size(); ++i) cost->transform_ns[i] += after[i] - before[i];
  cost->stages += times;
  cost->images += group.size() - group.refused();
}

void AddTransforms(const Plan& plan, const PlanCost* cost, ReportText& text) {
  size_t index = 0;
  for (const ExplainedTransform& one : Explain(plan)) {
    const uint64_t spent = cost == nullptr ? 0 : cost->transform_ns[index];
    const bool fused = plan.sites()[index++] == ExecutionSite::kFused;
    const std::string micros =
        cost == nullptr || fused ? "" : fmt::format("{:.1f} µs", Microseconds(spent, *cost));
    text.Add("  ", one.transform);
    text.Add(fmt::format("      {:<5}{:>10}  ", one.where, micros), one.how);
  }
}

void AddCost(const PlanCost& cost, ReportText& text) {
  text.Add("");
  text.Add(fmt::format("  CPU time of one worker per sample (mean of {}):", cost.images));
  const std::pair<const char*, uint64_t> stages[] = {{"decode", cost.stages.decode_ns},
                                                     {"resize", cost.stages.resize_ns},
                                                     {"tile and row", cost.stages.augment_ns}};
  for (const auto& [name, spent] : stages) {
    text.Add(fmt::format("    {:<14}{:>10.1f} µs", name, Microseconds(spent, cost)));
  }
  if (!cost.warning.empty()) text.Add("  ", cost.warning);
  if (!cost.skipped.empty()) text.Add("  ", cost.skipped.Summary());
  if (cost.refused > 0) {
    text.Add("  ", fmt::format("{} could not be read; the first: {}", SamplesText(cost.refused),
                               cost.first_refusal));
  }
}

const char* PaddingText(const Plan& plan) {
  if (plan.pads_batches()) return " at most, padded to the batch's largest";
  return plan.pads() ? ", padded" : "";
}

}  // namespace

Result<PlanCost> MeasurePlan(const SampleSource& source, const Plan& plan, const PlanWork& work,
                             const std::function<bool(uint64_t, uint64_t)>& keep_going) {
  TRY(CheckFixedImages("the cost of transforms", source));
  if (source.pieces() > 1) {
    return Error{.code = Code::kUnimplemented,
                 .cause = "the cost of samples with several images is not measured",
                 .advice = "Measure it for the images alone"};
  }
  MemoryBudget budget(WorkingMemory(plan.options().limits));
  const auto workspace = plan.MakeWorkspace(budget);
  PlanCost cost;
  cost.transform_ns.resize(plan.transforms().size());
  cost.warning = source.Warning();
  cost.skipped = source.Skipped();
  const uint64_t total = std::min(work.images, source.size());
  const auto late = [&] { return NowNanoseconds() >= work.until_ns; };
  for (uint64_t done = 0; done < total && (done == 0 || !late());) {
    Group group(plan, work.seed);
    for (size_t i = 0; i < kTogether && done < total && (i == 0 || !late()); ++i, ++done) {
      if (!keep_going(done, total)) return Interrupted();
      // Evenly spread: sources have less than 2^62 samples, and images are few.
      const Status read = group.Add(source, done * (source.size() / total));
      if (read.ok()) continue;
      ++cost.refused;
      if (cost.first_refusal.empty()) cost.first_refusal = read.error().Message(cli::FlagOf);
    }
    for (int round = 0; round <= work.rounds && (round < 2 || !late()); ++round) {
      if (!keep_going(done, total)) return Interrupted();
      ApplyOnce(*workspace, group, static_cast<uint64_t>(round), round > 0 ? &cost : nullptr);
    }
    cost.refused += group.refused();
    if (cost.first_refusal.empty()) cost.first_refusal = group.refusal();
  }
  return cost;
}

std::string PlanText(const Plan& plan, const BatchMix* mix, const PlanCost* cost,
                     const cli::PageWidth& width) {
  ReportText text(width);
  AddTransforms(plan, cost, text);
  if (mix != nullptr) {
    text.Add("  ", TextOf(*mix));
    text.Add(fmt::format("      batch{:>10}  ", ""), kMixed);
  }
  const ImageSize size = plan.output_size();
  text.Add("  → ", fmt::format("{} {} × {}, {}{}{}", NameOf(plan.dtype()), size.height, size.width,
                               NameOf(plan.options().layout), ChannelsText(plan.options().channels),
                               PaddingText(plan)));
  if (cost != nullptr) AddCost(*cost, text);
  return text.Take();
}

std::string PlanJson(const Plan& plan, const BatchMix* mix, const PlanCost* cost) {
  Json transforms = Json::array();
  size_t index = 0;
  for (const ExplainedTransform& one : Explain(plan)) {
    Json entry = {{"transform", one.transform}, {"where", one.where}, {"how", one.how}};
    if (cost != nullptr && plan.sites()[index] != ExecutionSite::kFused) {
      entry["microseconds"] = Microseconds(cost->transform_ns[index], *cost);
    }
    transforms.push_back(std::move(entry));
    ++index;
  }
  Json json = {{"transforms", std::move(transforms)},
               {"mix", mix == nullptr ? Json(nullptr) : Json(TextOf(*mix))},
               {"decode", NameOf(plan.options().decode)},
               {"dtype", NameOf(plan.dtype())},
               {"layout", NameOf(plan.options().layout)},
               {"channels", NameOf(plan.options().channels)},
               {"shape", plan.row_shape()}};
  if (cost != nullptr) {
    json["images"] = cost->images;
    json["warning"] = cost->warning.empty() ? Json(nullptr) : Json(cost->warning);
    json["skipped"] = cost->skipped.by_extension;
    json["refused"] = cost->refused;
    json["first_refusal"] = cost->refused > 0 ? Json(cost->first_refusal) : Json(nullptr);
    json["microseconds"] = {{"decode", Microseconds(cost->stages.decode_ns, *cost)},
                            {"resize", Microseconds(cost->stages.resize_ns, *cost)},
                            {"augment", Microseconds(cost->stages.augment_ns, *cost)}};
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace stoker
