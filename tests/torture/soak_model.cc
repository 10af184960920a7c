#include "tests/torture/soak_model.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/memory/buffer.h"
#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "engine/production/check_options.h"
#include "engine/production/producer_parts.h"

namespace stoker::testing {

SoakModel::SoakModel(const LoaderOptions& options, const FakeDisk& disk, const Faults& faults)
    : options_(options),
      disk_(disk),
      faults_(faults),
      sampler_(Sampler::Make(SamplerOptionsOf(options)).value()),
      plan_(PlanOf(options, {}).value()),
      row_(plan_ ? BytesOf(plan_->dtype(), plan_->row_shape())
                 : options.source->fields()[0].row_bytes()) {
  if (!plan_) return;
  workspace_ = plan_->MakeWorkspace(budget_);
  for (size_t i = 1; i < plan_->views(); ++i) other_rows_.emplace_back(plan_->view(i).row_bytes());
  for (size_t i = 1; i < options.source->pieces(); ++i) other_rows_.push_back(row_);
}

ExpectedBatch SoakModel::At(BatchName batch) const {
  ExpectedBatch expected;
  for (uint32_t row = 0; row < sampler_.RowsIn(batch); ++row) {
    const SamplerEntry entry = sampler_.At(batch, row);
    Settle(batch.epoch, entry.position, entry.sample, expected);
  }
  return expected;
}

// Adds the row of this position, whose sample is `sample` or takes its place.
void SoakModel::Settle(uint64_t epoch, uint64_t position, uint64_t sample,
                       ExpectedBatch& batch) const {
  for (uint32_t attempt = 0; attempt <= Sampler::kMostSubstitutes; ++attempt) {
    const auto fault = faults_.find(sample);
    if (fault == faults_.end()) {
      batch.rows.push_back({sample, position});
      batch.substituted += attempt == 0 ? 0 : 1;
      return;
    }
    const OnBad action = options_.on_bad[fault->second];
    if (action == OnBad::kDrop) {
      ++batch.dropped;
      return;
    }
    if (action == OnBad::kFail) break;
    sample = sampler_.SubstituteFor(epoch, position, attempt);
  }
  batch.fails = true;
}

std::string SoakModel::Differs(const Batch& batch, const ExpectedBatch& expected,
                               uint64_t checked) {
  if (batch.rows() != static_cast<int64_t>(expected.rows.size())) {
    return "it has " + std::to_string(batch.rows()) + " rows, not " +
           std::to_string(expected.rows.size());
  }
  for (size_t row = 0; row < expected.rows.size(); ++row) {
    if (batch.sample_ids()[row] == expected.rows[row].sample) continue;
    return "row " + std::to_string(row) + " has sample " + std::to_string(batch.sample_ids()[row]) +
           ", not " + std::to_string(expected.rows[row].sample);
  }
  for (uint64_t i = 0; i < std::min<uint64_t>(checked, expected.rows.size()); ++i) {
    const size_t row = checks_++ % expected.rows.size();
    std::string different = DifferentRow(batch, row, expected.rows[row]);
    if (!different.empty()) return different;
  }
  return {};
}

// Writes the expected row to row_ and other_rows_.
Status SoakModel::MakeRow(uint64_t epoch, const ExpectedRow& expected) {
  const SampleSource& source = *options_.source;
  if (!plan_) {
    std::ranges::copy(source.View(0, expected.sample), row_.begin());
    return {};
  }
  std::vector<void*> others;
  for (size_t i = 1; i < plan_->views(); ++i) others.push_back(other_rows_[i - 1].data());
  TRY(MakePiece(source.RangeOf(expected.sample), epoch, expected,
                {.row = row_.data(), .other_rows = others}));
  for (size_t i = 1; i < source.pieces(); ++i) {
    TRY(MakePiece(source.RangeOfPiece(expected.sample, i), epoch, expected,
                  {.row = other_rows_[i - 1].data()}));
  }
  return {};
}

Status SoakModel::MakePiece(const ByteRange& range, uint64_t epoch, const ExpectedRow& expected,
                            const OutputRows& to) {
  std::string path;
  options_.source->PathOf(range.file, path);
  const std::vector<uint8_t>& file = disk_.files.at(path);
  padded_.assign(file.begin(), file.end());
  padded_.resize(file.size() + kBufferPadding);
  StageTimes times;
  return plan_->Apply({.bytes = std::span(padded_).first(file.size()),
                       .key = {options_.seed, epoch, expected.position},
                       .to = to},
                      *workspace_, times);
}

std::string SoakModel::DifferentRow(const Batch& batch, size_t row, const ExpectedRow& expected) {
  const SampleSource& source = *options_.source;
  const Status made = MakeRow(batch.epoch(), expected);
  if (!made.ok()) return made.error().ToString();
  for (size_t view = 0; view <= other_rows_.size(); ++view) {  // or piece
    const std::vector<uint8_t>& made_row = view == 0 ? row_ : other_rows_[view - 1];
    SampleSource::PlaceOfPiece place;
    if (view != 0) place.field = source.fields().size() + view - 1;
    if (source.pieces() > 1) place = source.PlaceOf(view);
    const size_t column = place.field;
    const auto* delivered = static_cast<const uint8_t*>(batch.columns()[column].data);
    delivered += row * batch.columns()[column].bytes() / static_cast<size_t>(batch.rows());
    delivered += place.image * made_row.size();
    if (std::memcmp(delivered, made_row.data(), made_row.size()) != 0) {
      return "the values of row " + std::to_string(row) + ", column " + std::to_string(column) +
             ", are not those of sample " + std::to_string(expected.sample);
    }
  }
  int64_t label = 0;
  source.FixedRows(*source.label(), {&expected.sample, 1}, &label);
  const int64_t got = batch.column("label")->as<int64_t>()[row];
  if (got == label) return {};
  return "row " + std::to_string(row) + " has label " + std::to_string(got) + ", not " +
         std::to_string(label);
}

}  // namespace stoker::testing
