#include "transforms/plan/plan_run.h"

#include <algorithm>
#include <utility>

#include "transforms/plan/workspace.h"
#include "transforms/resize/emit.h"

namespace stoker {

namespace {

bool IsDecoding(const ImageContext& context) {
  return context.image && !context.finished && context.decoder.decoding();
}

}  // namespace

PlanRun::PlanRun(const Plan& plan, Workspace& workspace, StageTimes& times)
    : plan_(plan), workspace_(workspace), watch_(workspace, times) {
  // Left over if an exception was thrown, or a run was destroyed early.
  for (ImageContext& context : workspace_.contexts) context.image.reset();
}

void PlanRun::SkipTime() { watch_.Skip(); }

ImageContext* PlanRun::FindFree() const {
  for (ImageContext& context : workspace_.contexts) {
    if (!context.image) return &context;
  }
  return nullptr;
}

// In one context, which has the canvas, or the sizes of the images before.
bool PlanRun::has_room() const {
  if (plan_.in_order()) return !busy();
  return FindFree() != nullptr && FindFinished() == nullptr;
}

GrowingBuffer& PlanRun::crop_index() { return FindFree()->crop_index; }

void PlanRun::Begin(const EncodedImage& image) {
  ImageContext& context = *FindFree();
  context.image = image.tag;
  context.piece = image.piece;
  context.viewed = {};
  context.finished.reset();
  if (image.key.part == 0) context.views[0].on_canvas = 0;
  const Plan& plan = plan_.piece(image.piece);
  Result<bool> pixels = plan.Open(image, context);
  if (!pixels.ok()) {
    context.finished = std::move(pixels).error();
  } else if (!*pixels) {
    context.finished = plan.EmitRows(context);
  }
}

bool PlanRun::busy() const {
  return std::ranges::any_of(workspace_.contexts,
                             [](const auto& c) { return c.image.has_value(); });
}

ImageContext* PlanRun::FindFinished() const {
  for (ImageContext& context : workspace_.contexts) {
    if (context.image && !IsDecoding(context)) return &context;
  }
  return nullptr;
}

std::optional<FinishedRows> PlanRun::Advance() {
  ImageContext &a = workspace_.contexts[0], &b = workspace_.contexts[1];
  if (IsDecoding(a) && IsDecoding(b)) {
    ImageDecoder::AdvanceBoth(a.decoder, b.decoder);
  } else if (IsDecoding(a) || IsDecoding(b)) {
    (IsDecoding(a) ? a : b).decoder.Advance();
  }
  ImageContext* const finished = FindFinished();
  return finished == nullptr ? std::nullopt : std::optional(End(*finished));
}

FinishedRows PlanRun::End(ImageContext& context) {
  Status status;
  if (context.finished) {
    status = *std::exchange(context.finished, std::nullopt);
  } else {
    status = context.decoder.Finish();
    if (status.ok()) status = plan_.piece(context.piece).EmitRows(context);
  }
  FlushEmitted();
  watch_.Add();
  return {.tag = *std::exchange(context.image, std::nullopt),
          .piece = context.piece,
          .failed = std::exchange(context.views[0].failed, std::nullopt).value_or(context.piece),
          .viewed = context.viewed,
          .status = std::move(status)};
}

}  // namespace stoker
