// The way of samples that are in memory already: no reader, and many rows in one go.
#include <cstring>
#include <utility>

#include "core/trace.h"
#include "engine/loader/producer_impl.h"

namespace stoker {

namespace {

// Precondition: rows are uint8 (height, width, 3).
ImageView ImageOf(const ArrayColumn& array, uint64_t id) {
  ImageView view;
  view.size = {static_cast<int>(array.row_shape[1]), static_cast<int>(array.row_shape[0])};
  view.plane[0] = array.Row(id);
  view.stride[0] = ptrdiff_t{3} * view.size.width;
  return view;
}

}  // namespace

// Order → worker: what is in memory needs no reader.
void Producer::Impl::SubmitRuns() {
  while (!stopped_.load(std::memory_order_relaxed) && !samples_.TooFewFree()) {
    const std::optional<uint32_t> index = samples_.Take();
    if (!index) continue;
    const std::optional<RowTicket> ticket = assembler_->Claim(run_);
    if (!ticket) return samples_.Give(*index);
    BeginWork();
    samples_[*index].ticket = *ticket;
    samples_[*index].path.Claim(NowNanoseconds(), /*behind_workers=*/true);
    Submit(*index);
  }
}

void Producer::Impl::CopyRun(uint32_t index, int worker) {
  const TraceSpan span(runtime_.trace(), "stoker.decode");
  const uint64_t before = NowNanoseconds();
  WorkerPace& pace = paces_[static_cast<size_t>(worker)];
  pace.Begin(samples_[index].path.times(), before);
  const RowTicket ticket = samples_[index].ticket;
  StageTimes times;
  Status status = FillRun(ticket, worker, times);
  const uint64_t after = NowNanoseconds();
  counters_[static_cast<size_t>(worker)].Add(ticket.rows, 0, times, after - before);
  pace.End(samples_[index].path.times(), after);
  if (plan_) TrimWorkspace(*workspaces_[static_cast<size_t>(worker)]);
  if (MustWait(samples_[index], status)) return Postpone(index);
  EndSample(index, after - before, std::move(status), worker);
}

// Rows that are there already are copied, column by column; or the image's is transformed.
Status Producer::Impl::FillRun(const RowTicket& ticket, int worker, StageTimes& times) {
  Slot& slot = *ticket.slot;
  const std::span<const ArrayColumn> arrays = options_.source->arrays();
  const std::span<uint64_t> ids = std::span(slot.sample_ids).subspan(ticket.row, ticket.rows);
  uint32_t row = ticket.row;
  for (uint64_t& id : ids) {
    const OrderEntry entry = order_.At(slot.epoch, slot.index, row);
    id = entry.sample;
    if (plan_) {
      Status status = plan_->Apply(
          ImageOf(arrays[0], id), {options_.seed, slot.epoch, entry.position},
          *workspaces_[static_cast<size_t>(worker)], slot.Row(0, row), times, WorkOf(slot, row));
      if (!status.ok()) return status;
    }
    ++row;
  }
  for (size_t c = plan_ ? 1 : 0; c < arrays.size(); ++c) {
    if (c == 1 && mixer_) return WriteLabels(ticket);
    const size_t bytes = arrays[c].row_bytes();
    auto* to = static_cast<uint8_t*>(slot.Row(c, ticket.row));
    for (uint64_t id : ids) {
      std::memcpy(to, arrays[c].Row(id), bytes);
      to += bytes;
    }
  }
  return {};
}

// Class numbers become rows of numbers.
Status Producer::Impl::WriteLabels(const RowTicket& ticket) const {
  const ArrayColumn& labels = options_.source->arrays()[1];
  for (uint32_t row = ticket.row; row < ticket.row + ticket.rows; ++row) {
    const uint64_t id = ticket.slot->sample_ids[row];
    if (Status s = mixer_->CopyLabel(labels, id, *ticket.slot, row); !s.ok()) return s;
  }
  return {};
}

}  // namespace stoker
