#include "bench/decode_phases.h"

#include "core/memory/buffer.h"

namespace stoker {

namespace {

int Mcus(int pixels, int blocks) { return (pixels + 8 * blocks - 1) / (8 * blocks); }

}  // namespace

void DecodePhases::Header() { (void)jpeg::ParseHeader(bytes_, parsed_); }

void DecodePhases::Tables() {
  const jpeg::FrameHeader& h = *header_;
  unsigned have_dc = 0, have_ac = 0;
  for (int i = 0; i < h.components; ++i) {
    const jpeg::Component& c = h.component[static_cast<size_t>(i)];
    const auto dc = static_cast<size_t>(c.dc), ac = static_cast<size_t>(c.ac);
    if ((have_dc >> dc & 1) == 0) (void)jpeg::BuildDcTable(h.dc[dc], dc_[dc]);
    if ((have_ac >> ac & 1) == 0) {
      (void)jpeg::BuildAcTable(h.ac[ac], ac_[ac]);
      jpeg::BuildSkipTable(h.ac[ac], skip_[ac]);
    }
    have_dc |= 1u << dc;
    have_ac |= 1u << ac;
  }
}

void DecodePhases::Destuff() {
  const auto data = bytes_.subspan(header_->scan_offset);
  clean_.resize(data.size() + kBufferPadding);
  (void)jpeg::Destuff(data.data(), data.data() + data.size(), clean_.data());
}

void DecodePhases::Parse(bool store, bool transform) {
  const jpeg::FrameHeader& h = *header_;
  Tables();
  const int across = Mcus(h.size.width, h.mcu_columns());
  Prepare(across);
  data_.Start(bytes_.subspan(h.scan_offset));
  (void)data_.Provide(state_);
  for (int row = Mcus(h.size.height, h.mcu_rows()); row > 0; --row) {
    for (jpeg::McuRun run = jpeg::StartRun(state_, store, 0, across); run.count != 0;) {
      jpeg::Parse(run);
      if (jpeg::ScanData::Passed(state_) && !data_.Provide(state_)) return;
    }
    if (transform) Transform();
  }
}

void DecodePhases::Prepare(int across) {
  constexpr size_t kRows = 4;
  state_ = {};
  row_count_ = 0;
  const size_t groups = static_cast<size_t>(across / 2 + 1);
  coefficients_.assign(kRows * groups * jpeg::kGroupStride + 64, 0);
  last_.assign(kRows * groups * jpeg::kGroupBlocks, 0);
  samples_.resize(groups * jpeg::kGroupRow * 8 + kBufferPadding);
  const auto address = reinterpret_cast<uintptr_t>(coefficients_.data());
  const size_t short_of_aligned = (64 - address % 64) % 64 / sizeof(int16_t);
  int16_t* const aligned = coefficients_.data() + short_of_aligned;
  for (int i = 0; i < header_->components; ++i) AssignBlocks(i, across, groups, aligned);
  jpeg::ListSteps(state_);
}

void DecodePhases::AssignBlocks(int component, int across, size_t groups, int16_t* coefficients) {
  const jpeg::FrameHeader& h = *header_;
  const jpeg::Component& c = h.component[static_cast<size_t>(component)];
  jpeg::SetQuantiser(h.quantisation[static_cast<size_t>(c.quantisation)],
                     quantiser_[static_cast<size_t>(component)]);
  const int columns = component == 0 ? h.mcu_columns() : 1;
  const int rows = component == 0 ? h.mcu_rows() : 1;
  for (int row = 0; row < rows; ++row, ++row_count_) {
    int16_t* const to = coefficients + row_count_ * groups * jpeg::kGroupStride;
    uint8_t* const last = last_.data() + row_count_ * groups * jpeg::kGroupBlocks;
    rows_[row_count_] = {component, (across * columns + 3) / 4, to, last};
    for (int column = 0; column < columns; ++column) {
      const auto dc = static_cast<size_t>(c.dc), ac = static_cast<size_t>(c.ac);
      state_.block[static_cast<size_t>(state_.blocks++)] = {
          &dc_[dc], &ac_[ac], &skip_[ac], component, columns, column, to, last};
    }
  }
}

void DecodePhases::Transform() {
  for (size_t i = 0; i < row_count_; ++i) {
    const Row& r = rows_[i];
    (void)jpeg::InverseDct(quantiser_[static_cast<size_t>(r.component)], r.groups, r.coefficients,
                           r.last, samples_.data(), ptrdiff_t{r.groups} * jpeg::kGroupRow);
  }
}

}  // namespace stoker
